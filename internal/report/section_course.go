package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tare/internal/chart"
	"tare/internal/signature"
	"tare/internal/unit"
)

// failureSection shows how each trial went in time, what its signature is, and what the calls that failed ran into.
func failureSection(r *Report) section {
	s := section{Number: 5, Question: "How did it fail?", Short: "How it failed"}
	if !slices.ContainsFunc(r.Capacity, func(c Capacity) bool { return c.Broke }) {
		s.Question, s.Short = "How did it go, and did anything fail?", "How it went"
	}
	for i := range r.Timeline {
		if several(r) {
			s.Blocks = append(s.Blocks, block{Heading: r.Timeline[i].Treatment})
		}
		s.Blocks = append(s.Blocks, block{Figure: course(r, i)})
	}
	for i := range r.Capacity {
		s.Blocks = append(s.Blocks, signatureOf(r, i)...)
	}
	outcomes := slices.Concat(tabular(calls(r)), tabular(timeGrid(r)), tabular(causes(r)))
	if len(outcomes) > 0 {
		s.Blocks = append(append(s.Blocks, block{Heading: "What became of the calls"}), outcomes...)
	}
	return s
}

// course draws one trial in time: rates, calls that wait, response times.
func course(r *Report, index int) *figure {
	l := &r.Timeline[index]
	start := starts(l)
	x := chart.Axis{Time: true, Label: "time since the load began", Min: new(0.0), Format: unit.Seconds}
	step := func(name string, kind chart.Kind, y []float64) chart.Series {
		return chart.Series{Name: name, Kind: kind, X: start[:min(len(start), len(y))], Y: y, Line: true, Step: true}
	}
	rates := chart.Panel{
		Title: "Calls in time" + because(r.withTreatment(l.Treatment)), Desc: "Calls per second that were offered, that ended well and that ended badly, from the beginning of the load on.",
		X: x, Y: chart.Axis{Label: "calls/s", Min: new(0.0), Format: unit.Number}, Legend: true, Height: 200,
		Series: []chart.Series{step("offered", chart.Neutral, l.Offered), step("ended well", chart.Color(0), l.Good), step("ended badly", chart.Bad, l.Bad)},
	}
	waiting := chart.Panel{
		Title: "Outstanding calls", Desc: "Calls that were due and had not ended.", X: x, Height: 90, Legend: true,
		Y: chart.Axis{Label: "outstanding calls", Min: new(0.0), Format: unit.Number}, Series: []chart.Series{step("outstanding", chart.Color(5), l.Outstanding)},
	}
	response := chart.Panel{
		Title: "Response times", Desc: "Median and 99th percentile of the response times of the calls that ended well.", X: x, Height: 130, Legend: true,
		Y: chart.Axis{Label: "response", Log: true, Format: unit.Seconds},
		Series: []chart.Series{
			{Name: "p50", Kind: chart.Color(2), X: start[:min(len(start), len(l.P50))], Y: values(l.P50), Line: true},
			{Name: "p99", Kind: chart.Color(1), X: start[:min(len(start), len(l.P99))], Y: values(l.P99), Line: true},
		},
	}
	rates.Spans = spans(l)
	for _, m := range l.Marks {
		rates.Rules = append(rates.Rules, chart.Rule{At: m.At, Vertical: true, Label: m.Text, Kind: chart.Color(6)})
	}
	var caption strings.Builder
	caption.WriteString("The whole trial in slices of " + unit.Seconds(l.Bin) + "; shaded: the steps that offered load.")
	for _, m := range l.Marks {
		caption.WriteString(" At " + unit.Seconds(m.At) + ": " + m.Text + ".")
	}
	t, summary := inNumbers(l)
	return &figure{
		SVG: drawn(chart.Stack("chart-5-"+strconv.Itoa(index), rates, waiting, response)), Caption: caption.String(), Summary: summary, Table: t, Timeline: &index,
	}
}

// starts are the bins' beginnings.
func starts(l *Timeline) []float64 {
	out := make([]float64, len(l.Offered))
	for k := range out {
		out[k] = float64(k) * l.Bin
	}
	return out
}

// spans are the steps that offered load. Only those that have room for it carry their name.
func spans(l *Timeline) []chart.Span {
	var out []chart.Span
	whole := float64(len(l.Offered)) * l.Bin
	for _, s := range l.Steps {
		if s.Rate <= 0 {
			continue
		}
		span := chart.Span{From: s.From, To: s.To}
		if s.To-s.From > whole/12 {
			span.Label = stepName(s)
		}
		out = append(out, span)
	}
	return out
}

func stepName(s Stretch) string {
	if s.Rate <= 0 {
		return s.Name
	}
	return s.Name + " " + unit.PerSecond(s.Rate)
}

// values turns "there were none" into a gap.
func values(series []*float64) []float64 {
	out := make([]float64, len(series))
	for i, v := range series {
		out[i] = orNaN(v)
	}
	return out
}

// inNumbers is the timeline in numbers: by step where there are steps, otherwise slice by slice.
func inNumbers(l *Timeline) (t *grid, summary string) {
	t = &grid{Caption: "The trial in time", Head: append(wordHeads("step"), numberHeads("from", "to", "offered", "sent", "ended well", "ended badly", "outstanding at its end", "p99, median", "p99, largest")...)}
	stretches, summary := l.Steps, "The steps in numbers"
	if len(stretches) == 0 {
		summary = "The slices in numbers"
		for k := range l.Offered {
			stretches = append(stretches, Stretch{From: float64(k) * l.Bin, To: float64(k+1) * l.Bin})
		}
	}
	for _, s := range stretches {
		mean := func(series []float64) string { return finite(during(l, series, s), unit.PerSecond) }
		outstanding := ""
		if k := int(s.To/l.Bin) - 1; k >= 0 && k < len(l.Outstanding) {
			outstanding = unit.Number(l.Outstanding[k])
		}
		median, _, hi := spreadOver(l, s)
		t.add(stepName(s), unit.Seconds(s.From), unit.Seconds(s.To), mean(l.Offered), mean(l.Sent), mean(l.Good), mean(l.Bad), outstanding,
			finite(median, unit.Seconds), finite(hi, unit.Seconds))
	}
	return t.used(), summary
}

// signatureOf says which class the failure has, and why.
func signatureOf(r *Report, index int) []block {
	c := &r.Capacity[index]
	if c.Signature == "" {
		if text := recovery(c); text != "" {
			return []block{{Text: "Recovers: " + sentence(text)}}
		}
		return nil
	}
	title := "Signature: " + string(c.Signature)
	if name := r.withTreatment(c.Treatment); name != "" {
		title = name + ": " + string(c.Signature)
	}
	blocks := []block{{Heading: title}}
	if text := explained(c.Signature); text != "" {
		blocks = append(blocks, block{Text: text})
	}
	if len(c.Evidence) > 0 {
		blocks = append(blocks, block{List: c.Evidence})
	}
	if text := runnerUp(c); text != "" {
		blocks = append(blocks, block{Text: text})
	}
	if f := scores(c, index); f != nil {
		blocks = append(blocks, block{Figure: f})
	}
	if text := recovery(c); text != "" {
		blocks = append(blocks, block{Text: "Recovers: " + sentence(text)})
	}
	return blocks
}

// scores draws how well each class explains the failure; nil if none was weighed.
func scores(c *Capacity, index int) *figure {
	if len(c.Scores) == 0 {
		return nil
	}
	classes := slices.SortedFunc(maps.Keys(c.Scores), func(a, b signature.Class) int {
		switch {
		case a == c.Signature:
			return -1
		case b == c.Signature:
			return 1
		}
		return cmp.Or(cmp.Compare(c.Scores[b], c.Scores[a]), cmp.Compare(a, b))
	})
	show := func(v float64) string { return fmt.Sprintf("%.2f", v) }
	b := chart.Bars{
		Title: "Scores of the classes", Desc: "How well each class of failure explains what was seen, from 0 to 1; a class can win from 0.5 on.",
		Axis: chart.Axis{Label: "score", Min: new(0.0), Max: new(1.0), Format: show, Ticks: []float64{0, .25, .5, .75, 1}}, Rules: []chart.Rule{{At: .5, Vertical: true}},
	}
	t := &grid{Caption: "Scores", Head: append(wordHeads("class"), numberHeads("score")...)}
	none := 0
	for _, class := range classes {
		score := c.Scores[class]
		t.add(string(class), show(score))
		if score < .005 && class != c.Signature {
			none++
			continue
		}
		row := chart.Bar{Label: string(class), Value: score, Kind: chart.Neutral}
		if class == c.Signature {
			row.Kind = chart.Color(0)
		}
		b.Rows = append(b.Rows, row)
	}
	caption := "How well each class of failure explains what was seen. A class can win from 0.50 on; of those the more specific one does."
	if none > 0 {
		caption += fmt.Sprintf(" Not drawn: %d that explain nothing.", none)
	}
	return &figure{SVG: drawn(b.SVG("chart-5-scores-" + strconv.Itoa(index))), Caption: caption, Summary: "All scores", Table: t.used()}
}

// calls counts outcomes.
func calls(r *Report) *grid {
	t := &grid{Caption: "Outcomes", Head: append(wordHeads("treatment", "operation"), numberHeads("calls", "ok", "denied", "wrong", "refused", "timeout", "of these never sent",
		"connection failed", "failed", "still open")...)}
	some := func(n uint64) string {
		if n == 0 {
			return ""
		}
		return whole(n)
	}
	var all Outcomes
	for i := range r.Operations {
		o := r.Operations[i].Outcomes
		all.Denied, all.Wrong, all.Refused, all.Timeout = all.Denied+o.Denied, all.Wrong+o.Wrong, all.Refused+o.Refused, all.Timeout+o.Timeout
		all.Unsent, all.ConnFailed, all.Failed, all.Outstanding = all.Unsent+o.Unsent, all.ConnFailed+o.ConnFailed, all.Failed+o.Failed, all.Outstanding+o.Outstanding
	}
	// A count of zero is known: it is left out only where it is zero everywhere.
	show := func(n, of uint64) string {
		if of == 0 {
			return some(n)
		}
		return whole(n)
	}
	for i := range r.Operations {
		o, n := &r.Operations[i], &r.Operations[i].Outcomes
		t.add(r.withTreatment(o.Treatment), o.Operation, whole(n.Ended()+n.Outstanding), whole(n.OK), show(n.Denied, all.Denied), show(n.Wrong, all.Wrong),
			show(n.Refused, all.Refused), show(n.Timeout, all.Timeout), show(n.Unsent, all.Unsent), show(n.ConnFailed, all.ConnFailed),
			show(n.Failed, all.Failed), show(n.Outstanding, all.Outstanding))
	}
	return t
}

// times are the distributions of all calls that ended.
func timeGrid(r *Report) *grid {
	t := &grid{Caption: "Times of the calls that ended; a timeout counts as long as it took", Head: append(wordHeads("treatment", "operation", "time"), numberHeads("calls", "min", "mean", "p50", "p90", "p95", "p99", "p99.9", "max")...)}
	for i := range r.Operations {
		o := &r.Operations[i]
		for _, x := range []struct {
			name string
			d    *Distribution
		}{{"response", o.Response}, {"service", o.Service}, {"wait for a connection", o.PoolWait}} {
			d := x.d
			if d == nil || d.N == 0 {
				continue
			}
			t.add(r.withTreatment(o.Treatment), o.Operation, x.name, whole(d.N), unit.Seconds(d.Min), unit.Seconds(d.Mean), opt(d.P50, unit.Seconds),
				opt(d.P90, unit.Seconds), opt(d.P95, unit.Seconds), opt(d.P99, unit.Seconds), opt(d.P999, unit.Seconds), unit.Seconds(d.Max))
		}
	}
	return t
}

// causes are the ways in which calls did not end well.
func causes(r *Report) *grid {
	t := &grid{Caption: "Causes of calls that did not end well", Head: append(wordHeads("treatment", "operation", "outcome", "cause"), numberHeads("calls")...)}
	for i := range r.Operations {
		o := &r.Operations[i]
		for _, c := range o.Causes {
			t.add(r.withTreatment(o.Treatment), o.Operation, c.Outcome, c.Cause, whole(c.Calls))
		}
	}
	return t
}
