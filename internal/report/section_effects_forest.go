package report

import (
	"math"
	"slices"
	"strings"

	"tare/internal/budget"
	"tare/internal/chart"
	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/unit"
)

// A window is the range of an axis of changes.
type window struct{ lo, hi float64 }

// A common is what the forest plots of a page share: the axis, and the longest labels beside it.
type common struct {
	window
	label, text string
}

// sharedParts computes what all comparisons share.
func sharedParts(r *Report, groups []effectGroup) common {
	all := common{window: sharedWindow(r, groups)}
	for i := range groups {
		c := &groups[i]
		for _, e := range c.all() {
			row := forestRow(r, c, e)
			text := chart.Forest{}.Text(row)
			if len(row.Label) > len(all.label) {
				all.label = row.Label
			}
			if len(text) > len(all.text) {
				all.text = text
			}
		}
	}
	return all
}

func (w window) reach() float64 { return max(math.Abs(w.lo), math.Abs(w.hi)) }

func (w window) with(o window) window { return window{min(w.lo, o.lo), max(w.hi, o.hi)} }

// widened adds some room at both ends.
func (w window) widened() window {
	room := 0.04 * (w.hi - w.lo)
	return window{w.lo - room, w.hi + room}
}

// windowOf returns a range that shows a comparison's intervals, the margin and the budgets. It excludes intervals so
// far out that the others would shrink to lines at zero.
func windowOf(r *Report, c *effectGroup) window {
	var ends []float64
	for _, e := range c.all() {
		if !e.estimated() {
			continue
		}
		for _, v := range []float64{e.Estimate, e.Lo, e.Hi} {
			if math.Abs(v) < unboundedFrom {
				ends = append(ends, v)
			}
		}
	}
	w := window{0, 0}
	if m := marginOf(c); m > 0 {
		w = window{-1.5 * m, 1.5 * m}
	}
	for _, b := range rules(r, c) {
		w = w.with(window{min(0, 1.1*b.At), max(0, 1.1*b.At)})
	}
	sizes := make([]float64, len(ends))
	for i, v := range ends {
		sizes[i] = math.Abs(v)
	}
	slices.Sort(sizes)
	if len(sizes) > 0 {
		// More than five times the value below which four fifths of the ends lie is far out.
		far := 5 * max(sizes[len(sizes)*4/5], w.reach())
		for _, v := range ends {
			if math.Abs(v) <= far {
				w = w.with(window{v, v})
			}
		}
	}
	if w.lo == w.hi {
		w.hi = w.lo + 0.01
	}
	return w
}

// sharedWindow returns the axis of all comparisons in shares, so that their charts can be compared by eye. A comparison
// with effects many times as large as most others' gets its own axis.
func sharedWindow(r *Report, groups []effectGroup) window {
	var all []window
	var reaches []float64
	for i := range groups {
		if w := windowOf(r, &groups[i]); groups[i].ratio() && groups[i].unitAxis(w) == 0 {
			all, reaches = append(all, w), append(reaches, w.reach())
		}
	}
	if len(all) == 0 {
		return window{}
	}
	slices.Sort(reaches)
	most := 8 * reaches[len(reaches)/2]
	var shared window
	for _, w := range all {
		if w.reach() <= most {
			shared = shared.with(w)
		}
	}
	return shared
}

// longAxis is the change, as a share, from which an axis of shares is hard to read: 1000 %.
const longAxis = 10

// unitAxis returns the baseline's value if an axis of changes in the metric's unit is easier to read than one of
// shares: that of changes of many times the baseline, or of a baseline that is mostly the harness. It returns 0 for an
// axis of shares.
func (c *effectGroup) unitAxis(w window) float64 {
	base, harness := 0.0, false
	for _, e := range c.all() {
		if !isRatio(e) || e.Difference == nil || e.Estimate == 0 {
			return 0
		}
		_, mostly := e.inUnits()
		harness = harness || mostly
		switch of := *e.Difference / e.Estimate; {
		case base == 0:
			base = of
		case math.Abs(of/base-1) > 1e-6: // of several baselines
			return 0
		}
	}
	if harness || w.reach() > longAxis {
		return base
	}
	return 0
}

// marginOf returns the margin of a comparison's effects; 0 if they have none or several.
func marginOf(c *effectGroup) float64 {
	m := 0.0
	for _, e := range c.effects {
		if e.Margin == nil {
			continue
		}
		if m != 0 && *e.Margin != m {
			return 0
		}
		m = *e.Margin
	}
	return m
}

// forest draws a comparison.
func forest(r *Report, c *effectGroup, all common, id string) *figure {
	u := unitOf(r, c.metric)
	f := chart.Forest{
		Title: "Change of " + c.name(), Desc: described(r, c), Rules: rules(r, c), LongestLabel: all.label,
		LongestText: all.text,
		Axis:        chart.Axis{Label: "change of " + c.name() + " against the baseline", Format: tickShare},
	}
	caption := ""
	w, scale := windowOf(r, c), 1.0
	base := c.unitAxis(w)
	switch show := Quantity(u); {
	case base > 0:
		scale = base
		f.Axis.Format = func(v float64) string { return withSign(v, show(math.Abs(v))) }
	case !c.ratio() && u == metric.Ratio:
		f.Axis.Format = func(v float64) string { return strings.TrimSuffix(tickShare(v), space+"%") }
		f.Axis.Label += ", percentage points"
	case !c.ratio():
		f.Axis.Format = func(v float64) string { return withSign(v, show(math.Abs(v))) }
	case w.lo >= all.lo && w.hi <= all.hi:
		w = all.window
	default:
		caption = "This axis is not that of the other charts: its effects are larger."
	}
	w = window{w.lo * scale, w.hi * scale}.widened()
	f.Axis.Min, f.Axis.Max = new(w.lo), new(w.hi)
	if m := marginOf(c); m > 0 {
		label := "margin ±" + axisShare(m)
		if !c.ratio() {
			label = "margin"
		}
		f.Spans = []chart.Span{{From: -m * scale, To: m * scale, Label: label}}
	}
	for i := range f.Rules {
		f.Rules[i].At *= scale
	}
	for _, e := range c.all() {
		row := forestRow(r, c, e)
		row.Value, row.Lo, row.Hi = row.Value*scale, row.Lo*scale, row.Hi*scale
		f.Rows = append(f.Rows, row)
	}
	if n := outside(f.Rows, w); n > 0 {
		caption = strings.TrimSpace(caption + " " + unit.Count(n, "mark") +
			" beyond the end of the axis: hollow, at the edge, with the number at the right.")
	}
	return &figure{
		SVG: drawn(f.SVG, id), Caption: caption, Summary: "The numbers of this chart",
		Table: effectTable(r, "Effects on "+c.name(), c.all()),
	}
}

func outside(rows []chart.ForestRow, w window) int {
	n := 0
	for _, x := range rows {
		if x.Value < w.lo || x.Value > w.hi {
			n++
		}
	}
	return n
}

func forestRow(r *Report, c *effectGroup, e *Effect) chart.ForestRow {
	row := chart.ForestRow{Label: r.short(e.Treatment), Value: nothing, Lo: nothing, Hi: nothing, Text: e.Change()}
	if e.estimated() {
		row.Value = e.Estimate
	}
	if hasInterval(e) {
		row.Lo, row.Hi = infiniteBound(e.Lo), infiniteBound(e.Hi)
	}
	if controlled(c, e) {
		row.Apart, row.Word = true, controlWord(e)
		return row
	}
	row.Verdict = map[string]chart.Kind{
		good: chart.Good, bad: chart.Bad, unsure: chart.Unsure, plain: chart.Color(0),
	}[e.shown().class()]
	row.Glyph, row.Word = e.shown().mark(), string(e.shown())
	return row
}

// controlWord names the kind of control of an effect.
func controlWord(e *Effect) string {
	switch e.Control {
	case design.AA:
		return "A/A"
	case design.Negative:
		return "negative control"
	case design.None:
	}
	return "control"
}

// infiniteBound returns infinity for a bound that stands for it.
func infiniteBound(v float64) float64 {
	if math.Abs(v) >= unboundedFrom {
		return math.Inf(int(math.Copysign(1, v)))
	}
	return v
}

// described describes a comparison for those who cannot see the chart.
func described(r *Report, c *effectGroup) string {
	var parts []string
	for _, e := range c.all() {
		row := forestRow(r, c, e)
		parts = append(parts, row.Label+" "+row.Text+" "+row.Word)
	}
	return "Estimates with intervals: " + strings.Join(parts, "; ") + "."
}

// rules returns the limits that budgets set on a comparison's quantity as a change from the baseline.
func rules(r *Report, c *effectGroup) []chart.Rule {
	var out []chart.Rule
	limits := map[float64][]string{}
	for i := range r.Budgets {
		b := &r.Budgets[i]
		parsed, err := budget.Parse(b.Text)
		if err != nil || b.Limit == nil || !limitsGroup(c, &parsed) {
			continue
		}
		if _, ok := limits[*b.Limit]; !ok {
			out = append(out, chart.Rule{At: *b.Limit, Kind: chart.Color(1)})
		}
		if !slices.Contains(limits[*b.Limit], parsed.Treatment) {
			limits[*b.Limit] = append(limits[*b.Limit], parsed.Treatment)
		}
	}
	for i := range out {
		at := out[i].At
		out[i].Label = "budget " + (&Effect{Metric: c.metric, Kind: c.kind, Estimate: at, Lo: at, Hi: at}).size()
		if c.ratio() {
			out[i].Label = "budget " + tickShare(at)
		}
		if who := limits[at]; len(who) == 1 && who[0] != "" && several(r) {
			out[i].Label += " for " + who[0]
		}
	}
	return out
}

// limitsGroup reports whether a budget limits a comparison's quantity.
func limitsGroup(c *effectGroup, b *budget.Budget) bool {
	against := budget.Difference
	if c.ratio() {
		against = budget.Ratio
	}
	main := b.Quantile == "" && (c.quantile == "p50" || c.quantile == "mean")
	return b.Limit.Against == against && b.Metric == c.metric && (b.Quantile == c.quantile || main) &&
		(b.Operation == "" || b.Operation == c.operation) && !b.Drift
}
