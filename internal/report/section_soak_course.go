package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/internal/chart"
	"tare/internal/unit"
)

// maxLabels is the number of operations that a chart shows: one per colour.
const maxLabels = chart.Colors

// soakCourse draws a soak over time; nil if its windows are unknown.
func soakCourse(r *Report, s *Soak, index int) *figure {
	if len(s.Moments) == 0 {
		return nil
	}
	c := soakChart{r: r, s: s, x: chart.Axis{
		Time: true, Label: "time since the load began", Min: new(0.0),
		Format: unit.Seconds,
	}}
	for i := range s.Moments {
		m := &s.Moments[i]
		c.start = append(c.start, m.Start)
		c.middle = append(c.middle, (m.Start+m.End)/2)
	}
	c.start = append(c.start, s.Moments[len(s.Moments)-1].End)
	panels := chart.Stack{c.rates()}
	p99, p50 := func(o *MomentOperation) *float64 { return o.P99 }, func(o *MomentOperation) *float64 { return o.P50 }
	for _, p := range []*chart.Panel{
		c.times("p99", "99th percentile", p99), c.times("p50", "median", p50), c.processor(), c.memory(), c.heap(),
		c.collections(),
	} {
		if p != nil {
			panels = append(panels, *p)
		}
	}
	t := c.inNumbers()
	return &figure{
		SVG: drawn(panels.SVG, "chart-5-soak-"+strconv.Itoa(index)), Caption: c.caption(),
		Summary: "The course in numbers", Table: t,
	}
}

// soakChart draws one soak: the windows' starts, with the end of the last, and their middles.
type soakChart struct {
	r             *Report
	s             *Soak
	x             chart.Axis
	start, middle []float64
}

// each returns a value for every moment; NaN if it is unknown.
func (c *soakChart) each(value func(*Moment) *float64) []float64 {
	out := make([]float64, len(c.s.Moments))
	for i := range c.s.Moments {
		out[i] = orNaN(value(&c.s.Moments[i]))
	}
	return out
}

// rates returns the panel of calls, with warm-up, outages and restarts marked.
func (c *soakChart) rates() chart.Panel {
	step := func(name string, kind chart.Kind, value func(*Moment) *float64) chart.Series {
		y := c.each(value)
		return chart.Series{Name: name, Kind: kind, X: c.start, Y: append(y, y[len(y)-1]), Line: true, Step: true}
	}
	p := chart.Panel{
		Title: "The soak in time" + because(c.r.withTreatment(c.s.Treatment)),
		Desc:  "Calls per second that were answered well and that ended badly, from the beginning of the load on.",
		X:     c.x, Y: chart.Axis{Label: "calls/s", Min: new(0.0), Format: unit.Number}, Legend: true, Height: 130,
		Series: []chart.Series{
			step("answered well", chart.Color(0), func(m *Moment) *float64 { return &m.Good }),
			step("ended badly", chart.Bad, func(m *Moment) *float64 { return &m.Bad }),
		},
	}
	if c.s.WarmUpSeconds > 0 {
		p.Spans = append(p.Spans, chart.Span{From: 0, To: c.s.WarmUpSeconds, Label: "warm-up"})
	}
	for _, o := range c.s.Outages {
		p.Spans = append(p.Spans, chart.Span{From: o.Start, To: o.End, Label: "outage", Kind: chart.Bad})
	}
	for _, at := range c.s.Restarts {
		p.Rules = append(p.Rules, chart.Rule{At: at, Vertical: true, Label: "restart", Kind: chart.Color(6)})
	}
	return p
}

// busiest returns the operations with the most calls, in the order of their first moment, and how many were omitted.
func (c *soakChart) busiest() (names []string, left int) {
	calls := map[string]uint64{}
	for i := range c.s.Moments {
		for _, o := range c.s.Moments[i].Operations {
			if o.Operation == "" {
				continue
			}
			if _, seen := calls[o.Operation]; !seen {
				names = append(names, o.Operation)
			}
			calls[o.Operation] += o.Calls
		}
	}
	if len(names) <= maxLabels {
		return names, 0
	}
	byCalls := slices.Clone(names)
	slices.SortStableFunc(byCalls, func(a, b string) int { return cmp.Compare(calls[b], calls[a]) })
	byCalls = byCalls[:maxLabels]
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !slices.Contains(byCalls, n) }),
		len(names) - maxLabels
}

// times returns a panel of one quantile of all operations; nil if no window has it.
func (c *soakChart) times(short, long string, value func(*MomentOperation) *float64) *chart.Panel {
	p := chart.Panel{
		Title: "Response times, " + short, Desc: "The " + long + " of the response times of each operation.",
		X: c.x, Legend: short == "p99", Height: 120,
		Y: chart.Axis{Label: "response, " + short, Log: true, Format: unit.Seconds},
	}
	names, _ := c.busiest()
	known := false
	for i, name := range names {
		y := c.each(func(m *Moment) *float64 {
			k := slices.IndexFunc(m.Operations, func(o MomentOperation) bool { return o.Operation == name })
			if k < 0 {
				return nil
			}
			return value(&m.Operations[k])
		})
		known = known || anyKnown(y)
		p.Series = append(p.Series, chart.Series{Name: name, Kind: chart.Color(i), X: c.middle, Y: y, Line: true})
	}
	if !known {
		return nil
	}
	return &p
}

// processor returns the panel of CPU time; nil if it is unknown.
func (c *soakChart) processor() *chart.Panel {
	y := c.each(func(m *Moment) *float64 { return m.CPU })
	if !anyKnown(y) {
		return nil
	}
	p := chart.Panel{
		Title: "CPU time", Desc: "CPU time of all parts of the target for each call that was answered well.",
		X: c.x, Height: 90, Legend: true,
		Y:      chart.Axis{Label: "CPU per good call", Min: new(0.0), Format: unit.Seconds},
		Series: []chart.Series{{Name: "CPU per good call", Kind: chart.Color(5), X: c.middle, Y: y, Line: true}},
	}
	p.Series = append(p.Series, c.trend("cpu", y)...)
	return &p
}

// memory returns the panel of resident memory with its trend; nil if it is unknown. Its axis fits the data: with an
// axis from 0, a leak that matters in a month would be a flat line.
func (c *soakChart) memory() *chart.Panel {
	rss := c.each(func(m *Moment) *float64 { return m.RSS })
	if !anyKnown(rss) {
		return nil
	}
	p := chart.Panel{
		Title: "Memory", Desc: "Resident memory of all parts of the target with its trend; the axis does not begin at 0.",
		X: c.x, Height: 130, Legend: true,
		Y:      chart.Axis{Label: "resident memory (the axis does not begin at 0)", Format: unit.Bytes},
		Series: []chart.Series{{Name: "resident", Kind: chart.Color(3), X: c.middle, Y: rss, Line: true}},
	}
	p.Series = append(p.Series, c.trend("rss", rss)...)
	p.Y.Ticks = binaryBetween(rss)
	return &p
}

// heap returns the panel of the heap in use; nil if it is unknown.
func (c *soakChart) heap() *chart.Panel {
	y := c.each(func(m *Moment) *float64 { return m.Heap })
	if !anyKnown(y) {
		return nil
	}
	most := 0.0
	for _, v := range y {
		if v > most { // false if unknown
			most = v
		}
	}
	return &chart.Panel{
		Title: "Heap", Desc: "Heap in use.", X: c.x, Height: 90, Y: chart.Axis{
			Label: "heap in use", Min: new(0.0),
			Format: unit.Bytes, Ticks: binary([]chart.Bar{{Value: most}}),
		},
		Series: []chart.Series{{Name: "heap in use", Kind: chart.Color(2), X: c.middle, Y: y, Line: true}},
	}
}

// binaryBetween returns about five ticks at round binary sizes that span the known values of y; nil if there is a
// single value.
func binaryBetween(y []float64) []float64 {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range y {
		if !math.IsNaN(v) {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	if !(hi-lo > 1) || math.IsInf(hi, 0) || math.IsInf(lo, 0) || hi > 1e300 {
		return nil
	}
	step := math.Exp2(math.Ceil(math.Log2((hi - lo) / 4)))
	var out []float64
	for k := range 8 {
		v := (math.Floor(lo/step) + float64(k)) * step
		out = append(out, v)
		if v >= hi {
			break
		}
	}
	return out
}

// collections returns the panel of time in garbage collections; nil if it is unknown.
func (c *soakChart) collections() *chart.Panel {
	y := c.each(func(m *Moment) *float64 { return m.GC })
	if !anyKnown(y) {
		return nil
	}
	return &chart.Panel{
		Title: "Garbage collection", Desc: "Share of the time that the target spent in garbage collections.",
		X: c.x, Height: 70,
		Y:      chart.Axis{Label: "time in garbage collection", Min: new(0.0), Format: unit.Share},
		Series: []chart.Series{{Name: "time in garbage collection", Kind: chart.Color(4), X: c.middle, Y: y, Line: true}},
	}
}

func anyKnown(y []float64) bool {
	return slices.ContainsFunc(y, func(v float64) bool { return !math.IsNaN(v) })
}

// trend returns the line of a drift, one piece for each stretch between restarts: the pieces share the slope, as the
// estimate does, and each passes through its own mean. The band follows from the slope's interval.
func (c *soakChart) trend(metric string, y []float64) []chart.Series {
	d, ok := c.s.Drift[metric]
	if !ok || d.Lo == nil || d.Hi == nil {
		return nil
	}
	s := chart.Series{Name: metric + " trend, " + d.Slope(), Kind: chart.Color(1), Line: true, Dash: true}
	for _, run := range c.stretches(y) {
		if len(run) < 2 {
			continue
		}
		var mean, at float64
		for _, i := range run {
			mean += y[i] / float64(len(run))
			at += c.middle[i] / float64(len(run))
		}
		if len(s.X) > 0 { // a gap between stretches
			s.X, s.Y, s.Lo, s.Hi = append(s.X, at), append(s.Y, math.NaN()), append(s.Lo, math.NaN()), append(s.Hi, math.NaN())
		}
		first, last := c.middle[run[0]], c.middle[run[len(run)-1]]
		for _, x := range []float64{first, at, last} {
			h := (x - at) / 3600
			s.X, s.Y = append(s.X, x), append(s.Y, mean+d.PerHour*h)
			s.Lo, s.Hi = append(s.Lo, mean+min(*d.Lo*h, *d.Hi*h)), append(s.Hi, mean+max(*d.Lo*h, *d.Hi*h))
		}
	}
	if len(s.X) == 0 {
		return nil
	}
	return []chart.Series{s}
}

// stretches returns the moments of a trend, cut where the process was replaced.
func (c *soakChart) stretches(y []float64) [][]int {
	var out [][]int
	var run []int
	cut := func() {
		if len(run) > 0 {
			out, run = append(out, run), nil
		}
	}
	for i := range c.s.Moments {
		m := &c.s.Moments[i]
		restarted := m.Restarted || slices.ContainsFunc(c.s.Restarts, func(at float64) bool {
			return m.Start <= at &&
				at < m.End
		})
		if restarted {
			cut()
			continue
		}
		if !m.WarmUp && !math.IsNaN(y[i]) {
			run = append(run, i)
		}
	}
	cut()
	return out
}

// caption explains the chart and its marks.
func (c *soakChart) caption() string {
	var lengths []float64
	for i := range c.s.Moments {
		lengths = append(lengths, c.s.Moments[i].End-c.s.Moments[i].Start)
	}
	slices.Sort(lengths)
	parts := []string{"Windows of " + unit.Seconds(lengths[len(lengths)/2]) +
		"; shaded at the left: the warm-up, which no table and no trend counts."}
	if len(c.s.Outages) > 0 {
		parts = append(parts, "Shaded in red: outages, in which no call was answered well.")
	}
	if len(c.s.Restarts) > 0 {
		parts = append(parts, "Lines across: restarts of the target's process.")
	}
	parts = append(parts, "Dashed: trends after the warm-up, with the band that the interval of their slopes allows.")
	if c.times("p50", "", func(o *MomentOperation) *float64 { return o.P50 }) == nil {
		parts = append(parts, "Response times are not drawn: the windows had too few calls, or the generator was late "+
			"(see “Trust”).")
	}
	if _, left := c.busiest(); left > 0 {
		parts = append(parts, "The "+unit.Count(left, "operation")+" with fewest calls are in the table only.")
	}
	if c.s.Windows != "" {
		parts = append(parts, "Every window is in "+c.s.Windows+" in the run's folder.")
	}
	return strings.Join(parts, " ")
}

// inNumbers returns the course in numbers, a row for each moment.
func (c *soakChart) inNumbers() *grid {
	t := &grid{Caption: "The soak in time", table: append(wordHeads("window"),
		numberHeads("from", "to", "good", "bad")...)}
	var names []string
	for i := range c.s.Moments {
		for _, o := range c.s.Moments[i].Operations {
			if !slices.Contains(names, o.Operation) {
				names = append(names, o.Operation)
			}
		}
	}
	for _, n := range names {
		t.table = append(t.table, numberHeads(strings.TrimSpace(n+" p50"), strings.TrimSpace(n+" p99"))...)
	}
	t.table = append(t.table, numberHeads("CPU per call", "RSS", "heap", "in GC")...)
	for i := range c.s.Moments {
		m := &c.s.Moments[i]
		row := []string{kindOf(m), unit.Seconds(m.Start), unit.Seconds(m.End), unit.PerSecond(m.Good), unit.PerSecond(m.Bad)}
		for _, n := range names {
			p50, p99 := "", ""
			if k := slices.IndexFunc(m.Operations, func(o MomentOperation) bool { return o.Operation == n }); k >= 0 {
				p50, p99 = opt(m.Operations[k].P50, unit.Seconds), opt(m.Operations[k].P99, unit.Seconds)
			}
			row = append(row, p50, p99)
		}
		t.add(append(row, opt(m.CPU, unit.Seconds), opt(m.RSS, unit.Bytes), opt(m.Heap, unit.Bytes),
			opt(m.GC, unit.Share))...)
	}
	return t
}

func kindOf(m *Moment) string {
	switch {
	case m.WarmUp && m.Restarted:
		return "warm-up, restart"
	case m.WarmUp:
		return "warm-up"
	case m.Restarted:
		return "restart"
	}
	return "measured"
}
