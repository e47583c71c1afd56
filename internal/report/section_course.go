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

// failureSection shows the course of each trial, how well each class explains its failure, and the outcome of the
// calls.
func failureSection(r *Report) section {
	s := section{Question: "How did it fail?", Short: "How it failed"}
	if !slices.ContainsFunc(r.Capacity, func(c Capacity) bool { return c.Broke }) {
		s.Question, s.Short = "How did it go, and did anything fail?", "How it went"
	}
	for i := range r.Timeline {
		heading := "The load over time" + because(r.withTreatment(r.Timeline[i].Treatment))
		s.Blocks = append(s.Blocks, block{In: onPage, Heading: heading})
		s.Blocks = append(s.Blocks, block{Figure: course(r, i)})
	}
	for i := range r.Capacity {
		if f := scores(&r.Capacity[i], i); f != nil {
			s.Blocks = append(s.Blocks, block{Figure: f})
		}
	}
	s.Blocks = slices.Concat(s.Blocks,
		tabular(&grid{table: r.operations(), Title: "Operations", Caption: "What became of the calls"}),
		only(onPage, tabular(timeGrid(r))...))
	return s
}

// course draws one trial over time: rates, waiting calls, response times.
func course(r *Report, index int) *figure {
	l := &r.Timeline[index]
	start := starts(l)
	x := chart.Axis{Time: true, Label: "time since the load began", Min: new(0.0), Format: unit.Seconds}
	step := func(name string, kind chart.Kind, y []float64) chart.Series {
		return chart.Series{Name: name, Kind: kind, X: start[:min(len(start), len(y))], Y: y, Line: true, Step: true}
	}
	rates := chart.Panel{
		Title: "Calls in time" + because(r.withTreatment(l.Treatment)), Desc: "Calls per second that were offered, that " +
			"ended well and that ended badly, from the beginning of the load on.",
		X: x, Y: chart.Axis{Label: "calls/s", Min: new(0.0), Format: unit.Number}, Legend: true, Height: 200,
		Series: []chart.Series{
			step("offered", chart.Neutral, l.Offered), step("ended well", chart.Color(0), l.Good),
			step("ended badly", chart.Bad, l.Bad),
		},
	}
	waiting := chart.Panel{
		Title: "Outstanding calls", Desc: "Calls that were due and had not ended.", X: x, Height: 90, Legend: true,
		Y:      chart.Axis{Label: "outstanding calls", Min: new(0.0), Format: unit.Number},
		Series: []chart.Series{step("outstanding", chart.Color(5), l.Outstanding)},
	}
	response := chart.Panel{
		Title: "Response times", Desc: "Median and 99th percentile of the response times of the calls that ended well.",
		X: x, Height: 130, Legend: true,
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
		SVG: drawn(chart.Stack{rates, waiting, response}.SVG, "chart-5-"+strconv.Itoa(index)), Caption: caption.String(),
		Summary: summary, Table: t, Timeline: &index,
	}
}

// starts returns the beginnings of the bins.
func starts(l *Timeline) []float64 {
	out := make([]float64, len(l.Offered))
	for k := range out {
		out[k] = float64(k) * l.Bin
	}
	return out
}

// spans returns the steps that offered load. Only those with enough room carry their name.
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

// values turns absent values into gaps.
func values(series []*float64) []float64 {
	out := make([]float64, len(series))
	for i, v := range series {
		out[i] = orNaN(v)
	}
	return out
}

// inNumbers returns the timeline in numbers: by step if there are steps, otherwise by slice.
func inNumbers(l *Timeline) (t *grid, summary string) {
	t = &grid{Caption: "The trial in time", table: append(wordHeads("step"), numberHeads("from", "to", "offered", "sent",
		"ended well", "ended badly", "outstanding at its end", "p99, median", "p99, largest")...)}
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
		t.add(stepName(s), unit.Seconds(s.From), unit.Seconds(s.To), mean(l.Offered), mean(l.Sent), mean(l.Good), mean(l.Bad),
			outstanding,
			finite(median, unit.Seconds), finite(hi, unit.Seconds))
	}
	return t, summary
}

// scores draws how well each class explains the failure; nil if no class was scored.
func scores(c *Capacity, index int) *figure {
	if c.Failure == nil || len(c.Failure.Scores) == 0 {
		return nil
	}
	classes := slices.SortedFunc(maps.Keys(c.Failure.Scores), func(a, b signature.Class) int {
		switch {
		case a == c.Failure.Class:
			return -1
		case b == c.Failure.Class:
			return 1
		}
		return cmp.Or(cmp.Compare(c.Failure.Scores[b], c.Failure.Scores[a]), cmp.Compare(a, b))
	})
	show := func(v float64) string { return fmt.Sprintf("%.2f", v) }
	b := chart.Bars{
		Title: "Scores of the classes", Desc: "How well each class of failure explains what was seen, from 0 to 1; a " +
			"class can be chosen from 0.5 on, and one that others resemble only from 0.65 to 0.95 on.",
		Axis:  chart.Axis{Label: "score", Min: new(0.0), Max: new(1.0), Format: show, Ticks: []float64{0, .25, .5, .75, 1}},
		Rules: []chart.Rule{{At: .5, Vertical: true}},
	}
	t := &grid{Caption: "Scores", table: append(wordHeads("class"), numberHeads("score")...)}
	none := 0
	for _, class := range classes {
		score := c.Failure.Scores[class]
		t.add(string(class), show(score))
		if score < .005 && class != c.Failure.Class {
			none++
			continue
		}
		row := chart.Bar{Label: string(class), Value: score, Kind: chart.Neutral}
		if class == c.Failure.Class {
			row.Kind = chart.Color(0)
		}
		b.Rows = append(b.Rows, row)
	}
	caption := "How well each class of failure explains what was seen. A class can win from 0.50 on; of those the more " +
		"specific one does."
	if c.Failure.Class == signature.Queue && c.Failure.Scores[signature.CPUThrottling] >= .5 {
		caption += " cpu-throttling says what sets the rate; what callers meet is a queue."
	}
	if none > 0 {
		caption += fmt.Sprintf(" Not drawn: %d that explain nothing.", none)
	}
	return &figure{
		SVG: drawn(b.SVG, "chart-5-scores-"+strconv.Itoa(index)), Caption: caption, Summary: "All scores",
		Table: t,
	}
}

// times returns the distributions of all calls that ended.
func timeGrid(r *Report) *grid {
	t := &grid{
		Caption: "Times of the calls that ended; a timeout counts as long as it took",
		table: append(wordHeads("treatment", "operation", "time"), numberHeads("calls", "min", "mean", "p50", "p90", "p95",
			"p99", "p99.9", "max")...),
	}
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
			t.add(r.withTreatment(o.Treatment), o.Operation, x.name, whole(d.N), unit.Seconds(d.Min), unit.Seconds(d.Mean),
				opt(d.P50, unit.Seconds),
				opt(d.P90, unit.Seconds), opt(d.P95, unit.Seconds), opt(d.P99, unit.Seconds), opt(d.P999, unit.Seconds),
				unit.Seconds(d.Max))
		}
	}
	return t
}

// causes returns the causes of failed calls, the most frequent of each operation first.
func causes(r *Report) *grid {
	t := table{
		{head: "treatment", left: true},
		{head: "operation", left: true, drop: 1},
		{head: "calls"},
		{head: "not ok", left: true},
		{head: "because", left: true},
	}
	for i := range r.Operations {
		o := &r.Operations[i]
		for _, c := range o.Causes {
			t.add(r.withTreatment(o.Treatment), o.Operation, whole(c.Calls), strings.ReplaceAll(c.Outcome, "_", " "), c.Cause)
		}
	}
	return &grid{table: t, Title: "Calls that were not ok", Caption: "Causes of calls that were not ok", Most: maxCauses}
}

// maxCauses limits the list in text and Markdown; the other formats have all.
const maxCauses = 24
