package report

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"tare/internal/chart"
	"tare/internal/unit"
)

// trustSection says what speaks for the numbers and what against them.
func trustSection(r *Report) section {
	s := section{Number: 7, Question: "Can I trust it?", Short: "Trust"}
	s.Blocks = append(s.Blocks, generator(r)...)
	if f := lateness(r); f != nil {
		s.Blocks = append(s.Blocks, block{Figure: f})
	}
	if text := designText(r); text != "" {
		s.Blocks = append(s.Blocks, block{Text: text})
	}
	s.Blocks = append(s.Blocks, tabular(treatments(r))...)
	s.Blocks = append(s.Blocks, controlBlocks(r)...)
	s.Blocks = append(s.Blocks, harnessBlocks(r)...)
	s.Blocks = append(s.Blocks, heatBlocks(r)...)
	if len(r.Warnings) > 0 {
		s.Blocks = append(s.Blocks, block{Heading: "Warnings"}, block{List: r.Warnings})
	}
	if len(r.Notes) > 0 {
		s.Blocks = append(s.Blocks, block{Heading: "Notes"}, block{List: r.Notes})
	}
	return s
}

// generator says whether the generator may be blamed.
func generator(r *Report) []block {
	g := r.Generator
	if g == nil && r.Design != nil {
		return nil // batches: the target has its own clock, and nothing is offered
	}
	if g == nil {
		return []block{{Text: "Nothing is known of how well the load was generated."}}
	}
	fit, unfit := "the limit is the target's, not the generator's", "Nothing that follows from a higher rate can be trusted."
	if r.Design != nil {
		fit, unfit = "what was measured is the target's doing, not the generator's", "No effect of this run can be trusted."
	}
	out := []block{{Notice: "The generator cannot be ruled out as the limit" + because(strings.Join(g.Doubts, "; ")) + "."}}
	switch n, of := spoiled(r); {
	case g.RuledOut() && n == 0 && g.Reason == "":
		out = []block{{Text: "The load was generated as it should be: " + fit + "."}}
	case g.Valid && n > 0:
		out = []block{{Notice: "At " + strconv.Itoa(n) + " of " + strconv.Itoa(of) + " points the generator was the limit: what was measured there says nothing of the target. The other points are valid."}}
	case g.Valid && g.Reason != "" && len(g.Doubts) == 0:
		out = []block{{Notice: "The generator is fit for most of the run, and not for all of it: " + strings.TrimSuffix(g.Reason, ".") + "."}}
	case !g.Valid:
		out = []block{{Notice: "The generator was the limit, not the target" + because(g.Reason) + ". " + unfit}}
	}
	var facts []fact
	if l := g.Lateness; l != nil {
		facts = append(facts, fact{Name: "Lateness, p99", Value: unit.Seconds(l.P99), Note: "half within " + unit.Seconds(l.P50) + ", the worst " + unit.Seconds(l.Max)})
	}
	if g.AchievedRatio != nil {
		facts = append(facts, fact{Name: "Sent of what was due", Value: Percent(*g.AchievedRatio)})
	}
	if g.CPUSeconds != nil {
		facts = append(facts, fact{Name: "CPU time of the generator", Value: unit.Seconds(*g.CPUSeconds)})
	}
	if len(g.Evidence) > 0 {
		facts = append(facts, fact{Name: "Threads of the generator", Value: g.Evidence[0], Note: strings.Join(g.Evidence[1:], ", ")})
	}
	if len(facts) > 0 {
		out = append(out, block{Facts: facts})
	}
	return out
}

// spoiled counts the points that are the generator's fault.
func spoiled(r *Report) (n, of int) {
	for i := range r.Capacity {
		for k := range r.Capacity[i].Points {
			of++
			if g := r.Capacity[i].Points[k].Generator; g != nil && !g.Valid {
				n++
			}
		}
	}
	return n, of
}

// lateness is the audit of each point; nil if no point knows it.
func lateness(r *Report) *figure {
	p := chart.Panel{
		Title: "Lateness of the generator by rate", Desc: "The 99th percentile of how much later than it should a call was sent, through the generator's own fault.",
		X: chart.Axis{Label: "offered (calls/s)", Min: new(0.0), Format: unit.Number}, Y: chart.Axis{Label: "lateness, p99", Log: true, Format: unit.Seconds}, Height: 150, Legend: several(r),
	}
	t := &grid{Caption: "The generator, point by point", Head: append(wordHeads("treatment", "point", "generator"), append(numberHeads("lateness p50", "p99", "max", "sent of due"), wordHeads("why")...)...)}
	drawable := false
	for i := range r.Capacity {
		c := &r.Capacity[i]
		series := chart.Series{Name: r.withTreatment(c.Treatment), Kind: chart.Color(i), Dots: true}
		for k := range c.Points {
			g := c.Points[k].Generator
			if g == nil {
				continue
			}
			word, class := audited(g)
			var l [3]string
			if g.Lateness != nil {
				l = [3]string{unit.Seconds(g.Lateness.P50), unit.Seconds(g.Lateness.P99), unit.Seconds(g.Lateness.Max)}
				series.X, series.Y = append(series.X, c.Points[k].Rate), append(series.Y, g.Lateness.P99)
			}
			t.add(r.withTreatment(c.Treatment), c.Points[k].Title(), word, l[0], l[1], l[2], opt(g.AchievedRatio, Percent), g.Reason)
			t.class(2, class)
		}
		drawable = drawable || len(series.X) > 1
		p.Series = append(p.Series, series)
	}
	if len(t.Rows) == 0 {
		return nil
	}
	f := &figure{Summary: "The generator, point by point", Table: t.used(), Open: true}
	if drawable {
		f.SVG, f.Caption = drawn(p.SVG("chart-7")), "How late calls were sent through the generator's own fault. A point is invalid when this exceeds the larger of 1 ms and a tenth of the median response time."
	}
	return f
}

// treatments says which were proved in force.
func treatments(r *Report) *grid {
	t := &grid{Caption: "Treatments", Head: wordHeads("treatment", "levels", "role", "proved in force")}
	for i := range r.Treatments {
		x := &r.Treatments[i]
		role := string(x.Control)
		if x.Baseline {
			role = strings.TrimSpace("baseline " + role)
		}
		word, class := "✓ verified", good
		if !x.Verified {
			word, class = "✗ not verified", bad
		}
		var levels []string
		for _, k := range slices.Sorted(maps.Keys(x.Levels)) {
			levels = append(levels, k+" = "+x.Levels[k])
		}
		t.add(x.ID, strings.Join(levels, ", "), role, word)
		t.class(3, class)
	}
	return t
}
