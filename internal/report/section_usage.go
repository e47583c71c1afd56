package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/internal/chart"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/unit"
)

// usageSection shows what the parts of the target used, and the generator beside them.
func usageSection(r *Report) section {
	var blocks []block
	figures := func(all ...*figure) {
		for _, f := range all {
			if f != nil {
				blocks = append(blocks, block{Figure: f})
			}
		}
	}
	figures(processor(r))
	blocks = append(blocks, attributed(r)...)
	figures(memory(r), alongPoints(r))
	used := r.targets()
	if r.soaked() {
		used = r.soakTargets()
	}
	target := &grid{table: used, Title: "Target", Panels: r.soaked(), Caption: "What each part of the target used"}
	rest, _ := target.shown(onPage)
	parts := tabular(target)
	if !slices.ContainsFunc(rest, func(c *column) bool { return !c.left }) {
		parts = only(inWords, parts...) // the figures have everything
	}
	return section{Question: "What else does it use?", Short: "What it uses", Blocks: slices.Concat(blocks,
		whenAsked("What each point used", usedByPoint(r)),
		parts,
		tabular(&grid{
			table: r.collections(), Title: "Garbage collection",
			Caption: "Garbage collection over what was measured", Most: maxCollections,
		}),
		whenAsked("Everything else that was probed", others(r)))}
}

// maxCollections limits the table of garbage collections in text and Markdown; the other formats have all.
const maxCollections = 24

func further(rest int) string {
	return "and " + unit.Count(rest, "more row") + ", which the other forms have"
}

// subject names a part of the target.
func subject(r *Report, x *Target) string {
	if name := r.withTreatment(x.Treatment); name != "" {
		return name + " · " + x.Name
	}
	return x.Name
}

// processor returns CPU time by part; nil if it is unknown.
func processor(r *Report) *figure {
	b := chart.Bars{
		Title: "CPU time", Desc: "CPU time that each part of the target used over the whole trial.",
		Axis: chart.Axis{Label: "CPU time", Min: new(0.0), Format: unit.Seconds},
	}
	t := &grid{
		Caption: "CPU time and throttling",
		table: append(wordHeads("target"), numberHeads("CPU time", "CPU per good call", "throttled for",
			"throttled periods")...),
	}
	known := false
	for i := range r.Target {
		x := &r.Target[i]
		periods, held := "", ""
		if x.Throttled != nil {
			periods, held = opt(x.Throttled.Periods, unit.Number), opt(x.Throttled.Seconds, unit.Seconds)
		}
		if x.CPUSeconds == nil && periods+held == "" {
			continue
		}
		label := opt(x.CPUSeconds, unit.Seconds)
		if x.CPUPerOp != nil {
			label += ", " + unit.Seconds(*x.CPUPerOp) + " per good call"
		}
		known = known || x.CPUSeconds != nil
		b.Rows = append(b.Rows, chart.Bar{Label: subject(r, x), Value: orNaN(x.CPUSeconds), Text: label})
		t.add(subject(r, x), opt(x.CPUSeconds, unit.Seconds), opt(x.CPUPerOp, unit.Seconds), held, periods)
	}
	if t.rows() == 0 {
		return nil
	}
	if g := r.Generator; g != nil && g.CPUSeconds != nil {
		b.Rows = append(b.Rows, chart.Bar{Label: "tare's generator", Value: *g.CPUSeconds, Kind: chart.Neutral})
		t.add("tare's generator", unit.Seconds(*g.CPUSeconds), "", "", "")
	}
	f := &figure{
		Caption: "CPU time over the whole trial." + throttling(r), Summary: "CPU and throttling in numbers",
		Table: t, Open: !known,
	}
	if known {
		f.SVG = drawn(b.SVG, "chart-6-cpu")
	}
	return f
}

// throttling describes in a sentence how much a CPU limit throttled the target.
func throttling(r *Report) string {
	var out strings.Builder
	for i := range r.Target {
		x := &r.Target[i]
		if x.Throttled != nil && x.Throttled.Seconds != nil && *x.Throttled.Seconds > 0 {
			fmt.Fprintf(&out, " Its CPU limit held %s back for %s.", subject(r, x), unit.Seconds(*x.Throttled.Seconds))
		}
	}
	return out.String()
}

// memory returns resident memory by part; nil if it is unknown.
func memory(r *Report) *figure {
	b := chart.Bars{Title: "Memory", Desc: "Resident memory of each part of the target: its peak, or what it had at " +
		"the end.", Axis: chart.Axis{Label: "resident memory", Min: new(0.0), Format: unit.Bytes}}
	t := &grid{Caption: "Resident memory", table: append(wordHeads("target"), numberHeads("before", "after", "peak")...)}
	for i := range r.Target {
		x := &r.Target[i]
		if x.RSS == nil {
			continue
		}
		most := x.RSS.Peak
		if most == nil {
			most = x.RSS.After
		}
		label := opt(most, unit.Bytes)
		if x.RSS.Before != nil && x.RSS.After != nil {
			label += " (" + unit.Bytes(*x.RSS.Before) + " → " + unit.Bytes(*x.RSS.After) + ")"
		}
		b.Rows = append(b.Rows, chart.Bar{Label: subject(r, x), Value: orNaN(most), Text: label})
		t.add(subject(r, x), opt(x.RSS.Before, unit.Bytes), opt(x.RSS.After, unit.Bytes), opt(x.RSS.Peak, unit.Bytes))
	}
	if t.rows() == 0 {
		return nil
	}
	b.Axis.Ticks = binary(b.Rows)
	return &figure{
		SVG:     drawn(b.SVG, "chart-6-memory"),
		Caption: "Resident memory: the peak, and from before to after the trial.", Summary: "Memory in numbers", Table: t,
	}
}

// binary returns at most six ticks at round binary sizes; nil if no size is known.
func binary(rows []chart.Bar) []float64 {
	most := 0.0
	for _, b := range rows {
		if b.Value > most { // false if unknown
			most = b.Value
		}
	}
	if most == 0 {
		return nil
	}
	step := math.Exp2(math.Ceil(math.Log2(most / 5)))
	var out []float64
	for v := 0.0; v <= most; v += step {
		out = append(out, v)
	}
	return append(out, float64(len(out))*step)
}

// alongPoints draws CPU time against rate; nil unless two points of a ladder have it.
func alongPoints(r *Report) *figure {
	p := chart.Panel{
		Title: "CPU time by rate", Desc: "CPU time that each part of the target used from a point's beginning until its " +
			"last call had ended.",
		X: chart.Axis{Label: "offered (calls/s)", Min: new(0.0), Format: unit.Number},
		Y: chart.Axis{Label: "CPU time", Min: new(0.0), Format: unit.Seconds}, Legend: true, Height: 180,
	}
	t := &grid{Caption: "CPU time by rate", table: append(wordHeads("target"), numberHeads("offered", "CPU time")...)}
	for i := range r.Capacity {
		c := &r.Capacity[i]
		for _, key := range keys(c.Points) {
			part, name := splitSubject(key)
			if name != probe.CPU.Name || slices.ContainsFunc(c.Points, func(p Point) bool { return p.Name != "" }) {
				continue
			}
			s := chart.Series{Name: strings.TrimPrefix(r.withTreatment(c.Treatment)+" · "+part, " · "), Line: true, Dots: true}
			for k := range c.Points {
				if v, ok := c.Points[k].Used[key]; ok {
					s.X, s.Y = append(s.X, c.Points[k].Rate), append(s.Y, v)
					t.add(s.Name, unit.PerSecond(c.Points[k].Rate), unit.Seconds(v))
				}
			}
			if len(s.X) > 1 {
				p.Series = append(p.Series, s)
			}
		}
	}
	if len(p.Series) == 0 {
		return nil
	}
	return &figure{
		SVG: drawn(p.SVG, "chart-6-points"), Caption: "CPU time of each point, until its last call had ended.",
		Summary: "The numbers of this chart", Table: t,
	}
}

// keys returns all resources that some point used, in order.
func keys(points []Point) []string {
	all := map[string]bool{}
	for i := range points {
		for k := range points[i].Used {
			all[k] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// splitSubject splits "subject metric" at its last space.
func splitSubject(key string) (subject, name string) {
	if i := strings.LastIndexByte(key, ' '); i >= 0 {
		return key[:i], key[i+1:]
	}
	return "", key
}

// usedByPoint returns one row for each point and a column for each probed metric.
func usedByPoint(r *Report) *grid {
	var all []Point
	for i := range r.Capacity {
		all = append(all, r.Capacity[i].Points...)
	}
	columns := slices.DeleteFunc(keys(all), func(key string) bool {
		return !slices.ContainsFunc(all, func(p Point) bool { return p.Used[key] != 0 })
	})
	t := &grid{Caption: "Used from a point's beginning until its last call had ended; what was 0 at all of them is " +
		"left out", table: wordHeads("treatment", "point")}
	if len(columns) == 0 {
		return nil
	}
	for _, key := range columns {
		t.table = append(t.table, numberHeads(strings.ReplaceAll(key, "_", " "))...)
	}
	for i := range r.Capacity {
		for k := range r.Capacity[i].Points {
			p := &r.Capacity[i].Points[k]
			row := []string{r.withTreatment(r.Capacity[i].Treatment), p.Title()}
			for _, key := range columns {
				value := ""
				if v, ok := p.Used[key]; ok {
					_, name := splitSubject(key)
					value = shown(name, v)
				}
				row = append(row, value)
			}
			t.add(row...)
		}
	}
	return t
}

// shown prints a probed value in the unit of its metric, or as a plain number if the metric is unknown.
func shown(name string, v float64) string {
	for _, q := range probe.Quantities() {
		if q.Name == name {
			return Quantity(q.Unit)(v)
		}
	}
	if v == float64(int64(v)) {
		return strconv.FormatInt(int64(v), 10)
	}
	return Quantity(metric.Count)(v)
}

// others returns the remaining metrics of all targets.
func others(r *Report) *grid {
	t := &grid{Caption: "Other probed metrics", table: append(wordHeads("target", "metric"), numberHeads("value")...)}
	for i := range r.Target {
		x := &r.Target[i]
		for _, name := range slices.Sorted(maps.Keys(x.Other)) {
			t.add(subject(r, x), name, shown(name, x.Other[name]))
		}
	}
	return t
}
