package report

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"tare/internal/chart"
	"tare/internal/unit"
)

// trustSection lists the evidence for and against the numbers, beyond what the verdict says.
func trustSection(r *Report) section {
	blocks := generatorFacts(r.Generator)
	if f := lateness(r); f != nil {
		blocks = append(blocks, block{Figure: f})
	}
	if text := designText(r); text != "" {
		blocks = append(blocks, block{In: onPage, Text: text})
	}
	blocks = slices.Concat(blocks, only(onPage, tabular(treatments(r))...), only(onPage, controlBlocks(r)...),
		harnessBlocks(r), only(onPage, heatBlocks(r)...))
	blocks = append(blocks, remarksList("Notes", list{Word: "note", Items: r.Notes})...)
	warnings := remarksList("Warnings", list{Word: "warning", Class: unsure, Items: r.Warnings})
	if len(r.Warnings) <= maxShown { // the page has them below the verdict
		warnings = only(inWords, warnings...)
	}
	blocks = append(blocks, warnings...)
	return section{Question: "Can I trust it?", Short: "Trust", Blocks: blocks}
}

// remarksList returns a list under its heading; of a long one the page folds the end.
func remarksList(title string, all list) []block {
	if len(all.Items) == 0 {
		return nil
	}
	first, rest := all, &grid{Caption: title, table: wordHeads("")}
	first.Items = all.Items[:min(maxShown, len(all.Items))]
	for _, text := range all.Items[len(first.Items):] {
		rest.add(text)
	}
	return slices.Concat([]block{{In: titled, Heading: title}}, only(onPage, listOf(first)...),
		whenAsked("And "+strconv.Itoa(len(all.Items)-len(first.Items))+" more", rest), closing(only(inWords, listOf(all)...)))
}

// generatorFacts returns the numbers behind the verdict on the generator.
func generatorFacts(g *Generator) []block {
	if g == nil {
		return nil
	}
	var facts []fact
	if l := g.Lateness; l != nil {
		facts = append(facts, fact{Name: "Lateness, p99", Value: unit.Seconds(l.P99), Note: "half within " +
			unit.Seconds(l.P50) + ", the worst " + unit.Seconds(l.Max)})
	}
	if g.AchievedRatio != nil {
		facts = append(facts, fact{Name: "Sent of what was due", Value: Percent(*g.AchievedRatio)})
	}
	if g.CPUSeconds != nil {
		facts = append(facts, fact{Name: "CPU time of the generator", Value: unit.Seconds(*g.CPUSeconds)})
	}
	return []block{{In: onPage, Facts: facts}}
}

// lateness returns the audit of each point; nil if no point has one.
func lateness(r *Report) *figure {
	p := chart.Panel{
		Title: "Lateness of the generator by rate", Desc: "The 99th percentile of how much later than it should a call " +
			"was sent, through the generator's own fault.",
		X: chart.Axis{Label: "offered (calls/s)", Min: new(0.0), Format: unit.Number},
		Y: chart.Axis{Label: "lateness, p99", Log: true, Format: unit.Seconds}, Height: 150, Legend: several(r),
	}
	t := &grid{
		Caption: "The generator, point by point",
		table: append(wordHeads("treatment", "point", "generator"),
			append(numberHeads("lateness p50", "p99", "max", "sent of due"), wordHeads("why")...)...),
	}
	drawable := false
	for i := range r.Capacity {
		c := &r.Capacity[i]
		series := chart.Series{Name: r.withTreatment(c.Treatment), Kind: chart.Color(i), Dots: true}
		for k := range c.Points {
			g := c.Points[k].Generator
			if g == nil {
				continue
			}
			word := audited(g)
			var l [3]string
			if g.Lateness != nil {
				l = [3]string{unit.Seconds(g.Lateness.P50), unit.Seconds(g.Lateness.P99), unit.Seconds(g.Lateness.Max)}
				series.X, series.Y = append(series.X, c.Points[k].Rate), append(series.Y, g.Lateness.P99)
			}
			t.add(r.withTreatment(c.Treatment), c.Points[k].Title(), word, l[0], l[1], l[2], opt(g.AchievedRatio, Percent),
				g.Reason)
		}
		drawable = drawable || len(series.X) > 1
		p.Series = append(p.Series, series)
	}
	if t.rows() == 0 {
		return nil
	}
	f := &figure{Summary: "The generator, point by point", Table: t, Open: true}
	if drawable {
		f.SVG, f.Caption = drawn(p.SVG, "chart-7"), "How late calls were sent through the generator's own fault. A point "+
			"is invalid when this exceeds the larger of 1 ms and a tenth of the median response time."
	}
	return f
}

// treatments lists which treatments were verified to be in force.
func treatments(r *Report) *grid {
	t := &grid{Caption: "Treatments", table: wordHeads("treatment", "levels", "role", "proved in force")}
	for i := range r.Treatments {
		x := &r.Treatments[i]
		role := string(x.Control)
		if x.Baseline {
			role = strings.TrimSpace("baseline " + role)
		}
		word := "✓ verified"
		switch {
		case x.Unproved != "":
			word = "? " + x.Unproved
		case !x.Verified:
			word = "✗ not verified"
		}
		var levels []string
		for _, k := range slices.Sorted(maps.Keys(x.Levels)) {
			levels = append(levels, k+" = "+x.Levels[k])
		}
		t.add(x.ID, strings.Join(levels, ", "), role, word)
	}
	return t
}
