package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/internal/budget"
	"tare/internal/chart"
	"tare/internal/metric"
	"tare/internal/unit"
)

// nothing is a value that a chart omits.
var nothing = math.NaN()

// limitSection draws answered against offered calls, and reports the service levels.
func limitSection(r *Report) section {
	s := section{Question: "Where does it break?", Short: "Where it breaks"}
	curves := tried(r)
	if rates := slices.DeleteFunc(slices.Clone(curves), func(c curve) bool { return c.named }); len(rates) > 0 {
		s.Blocks = append(s.Blocks, block{Figure: knee(r, rates)})
	}
	if named := slices.DeleteFunc(slices.Clone(curves), func(c curve) bool { return !c.named }); len(named) > 0 {
		s.Blocks = append(s.Blocks, workloads(r, named)...)
	}
	for i := range r.Capacity {
		s.Blocks = append(s.Blocks, ladderBlocks(r, &r.Capacity[i])...)
	}
	levels := levelBlocks(r)
	switch {
	case len(s.Blocks) == 0:
		s.Question, s.Short = "Does it keep its service levels?", "Service levels"
	case len(levels) > 0:
		s.Blocks = append(s.Blocks, block{In: onPage, Heading: "Does it keep its service levels?"})
	}
	s.Blocks = append(s.Blocks, levels...)
	return s
}

// ladderBlocks returns the points of a ladder, what the target used at them, and which of them the generator limited.
func ladderBlocks(r *Report, c *Capacity) []block {
	title := "Point by point"
	if several(r) {
		title += ": " + c.Treatment
	}
	blocks := tabular(&grid{table: ladder(c.Points), Title: title, Caption: title})
	if len(blocks) == 0 {
		return nil
	}
	used, late := listOf(list{Items: usedBy(c.Points)}), listOf(list{Items: lateRows(c.Points)})
	return slices.Concat(blocks, only(inWords, used...), late)
}

// A curve is the results of one treatment at the offered rates, in their order.
type curve struct {
	treatment string
	named     bool // workloads: they have no order
	points    []offeredRate
}

// An offeredRate is a rate that was offered for a while. Lo and Hi bound p99 if it varied in that time.
type offeredRate struct {
	number       string // its place in the order of a search
	step         string
	offered      float64
	seconds      float64
	goodput      float64
	success      float64 // of all its calls, however late; unknown for steps
	p99, lo, hi  float64
	invalid      bool
	before, upTo float64 // when, in seconds since the load began; both 0: unknown
}

// tried returns the points of ladders, and for a search its steps, from the timeline.
func tried(r *Report) []curve {
	var out []curve
	for i := range r.Capacity {
		c := &r.Capacity[i]
		if len(c.Points) == 0 {
			continue
		}
		cv := curve{treatment: c.Treatment}
		for k := range c.Points {
			p := &c.Points[k]
			cv.named = cv.named || p.Name != ""
			cv.points = append(cv.points, offeredRate{
				step: p.Name, offered: p.Rate, seconds: p.Seconds, goodput: orNaN(p.Goodput), success: orNaN(p.Success),
				p99: orNaN(p.P99), lo: nothing, hi: nothing,
				invalid: p.Generator != nil && !p.Generator.Valid,
			})
		}
		out = append(out, cv)
	}
	for i := range r.Timeline {
		l := &r.Timeline[i]
		if slices.ContainsFunc(out, func(c curve) bool { return c.treatment == l.Treatment }) {
			continue
		}
		if cv := (curve{treatment: l.Treatment, points: steps(l)}); len(cv.points) > 0 {
			out = append(out, cv)
		}
	}
	for _, c := range out {
		if c.named {
			continue // in the order of the file
		}
		slices.SortStableFunc(c.points, func(a, b offeredRate) int { return cmp.Compare(a.offered, b.offered) })
	}
	return out
}

// steps returns the stretches of a timeline in which a rate was offered. Of one that is shorter than a bin, the
// timeline cannot tell what was answered in it from what was answered beside it.
func steps(l *Timeline) []offeredRate {
	var out []offeredRate
	for _, s := range l.Steps {
		if s.Rate <= 0 || s.To <= s.From || s.To-s.From < l.Bin {
			continue
		}
		t := offeredRate{
			step: s.Name, offered: s.Rate, seconds: s.To - s.From, goodput: during(l, l.Good, s), success: nothing,
			before: s.From, upTo: s.To,
		}
		t.p99, t.lo, t.hi = spreadOver(l, s)
		t.number = strconv.Itoa(len(out) + 1)
		out = append(out, t)
	}
	return out
}

// during returns the mean of a series over a stretch; a bin that is partly inside counts in part.
func during(l *Timeline, series []float64, s Stretch) float64 {
	sum, weight := 0.0, 0.0
	for k, v := range series {
		if w := min(s.To, float64(k+1)*l.Bin) - max(s.From, float64(k)*l.Bin); w > 0 {
			sum, weight = sum+v*w, weight+w
		}
	}
	if weight == 0 {
		return nothing
	}
	return sum / weight
}

// spread returns the median, the smallest and the largest p99 of the bins whose middle lies in a stretch.
func spreadOver(l *Timeline, s Stretch) (median, lo, hi float64) {
	var all []float64
	for k, v := range l.P99 {
		if middle := (float64(k) + .5) * l.Bin; v != nil && middle >= s.From && middle < s.To {
			all = append(all, *v)
		}
	}
	if len(all) == 0 {
		return nothing, nothing, nothing
	}
	slices.Sort(all)
	return all[(len(all)-1)/2], all[0], all[len(all)-1]
}

func orNaN(v *float64) float64 {
	if v == nil {
		return nothing
	}
	return *v
}

// knee draws achieved against offered rates, and below it p99.
func knee(r *Report, curves []curve) *figure {
	fromSearch := slices.ContainsFunc(curves, func(c curve) bool { return len(c.points) > 0 && c.points[0].upTo > 0 })
	x, y := chart.Axis{Label: "offered (calls/s)", Format: unit.Number}, chart.Axis{
		Label:  "answered well (calls/s)",
		Format: unit.Number,
	}
	if wideRates(curves) {
		x.Log, y.Log = true, true
	} else {
		x.Min, y.Min = new(0.0), new(0.0)
	}
	top := chart.Panel{
		Title: "Answered against offered calls",
		Desc:  "Calls per second that were answered well, by calls per second that were offered. " + findings(r),
		X:     x, Y: y, Diagonal: "all answered", Legend: len(curves) > 1, Height: 260,
	}
	below := chart.Panel{
		Title: "p99 against offered calls",
		Desc:  "The 99th percentile of the response time, by calls per second that were offered.",
		X:     x, Y: chart.Axis{Label: "response, p99", Log: true, Format: unit.Seconds}, Height: 170,
	}
	for i, c := range curves {
		rates, times, doubtful, late := c.series(r.withTreatment(c.treatment), chart.Color(i), fromSearch)
		top.Series, below.Series = append(top.Series, rates), append(below.Series, times)
		if len(doubtful.X) > 0 {
			top.Series, below.Series, top.Legend = append(top.Series, doubtful), append(below.Series, late), true
		}
	}
	top.Rules, top.Spans = capacityRules(r)
	caption := "Each dot is a rate that was offered. On the dashed line every call is answered; where the dots leave " +
		"it, the target has reached its limit."
	if fromSearch {
		caption += " The numbers are the order of the search's steps. A step of the search that followed an " +
			"overload inherits its backlog, so dots may lie below the limit " +
			"or, while a backlog is worked off, above the dashed line."
		caption += " The bars at p99 reach from the best to the worst moment of a step."
	}
	return &figure{
		SVG: drawn(chart.Stack{top, below}.SVG, "chart-4"), Caption: caption, Summary: "The numbers of this chart",
		Table: tries(r, curves),
	}
}

// series returns the curve's points, joined by a line unless they come from a search, whose steps depend on earlier
// ones. Points that the generator limited are separate.
func (c curve) series(name string, kind chart.Kind, fromSearch bool) (rates, times, doubtful, late chart.Series) {
	rates = chart.Series{Name: orElse(name, "answered well"), Kind: kind, Dots: true, Line: !fromSearch}
	times = rates // without the numbers
	doubtful = chart.Series{
		Name: strings.TrimPrefix(name+", invalid: the generator was the limit", ", "),
		Kind: chart.Unsure, Dots: true,
	}
	late = doubtful
	for _, p := range c.points {
		if p.invalid {
			doubtful.X, doubtful.Y = append(doubtful.X, p.offered), append(doubtful.Y, p.goodput)
			late.X, late.Y = append(late.X, p.offered), append(late.Y, p.p99)
			continue
		}
		rates.X, rates.Y = append(rates.X, p.offered), append(rates.Y, p.goodput)
		rates.Labels = append(rates.Labels, p.number)
		times.X, times.Y = append(times.X, p.offered), append(times.Y, p.p99)
		if fromSearch {
			times.Lo, times.Hi = append(times.Lo, p.lo), append(times.Hi, p.hi)
		}
	}
	return rates, times, doubtful, late
}

// wide reports whether the rates span so much that the small ones would overlap on a linear axis.
func wideRates(curves []curve) bool {
	least, most := math.Inf(1), 0.0
	for _, c := range curves {
		for _, p := range c.points {
			least, most = min(least, p.offered), max(most, p.offered)
		}
	}
	return most > 20*least
}

// capacityRules returns the lines and bands for capacities: of several treatments only the capacities themselves.
func capacityRules(r *Report) (rules []chart.Rule, spans []chart.Span) {
	for i := range r.Capacity {
		c := &r.Capacity[i]
		color := chart.Color(i)
		if c.Rate != nil {
			label := "capacity " + rate(*c.Rate)
			if several(r) {
				label = c.Treatment + " " + rate(*c.Rate)
			}
			rules = append(rules, chart.Rule{At: *c.Rate, Vertical: true, Label: label, Kind: color})
		}
		switch {
		case !several(r):
			spans = bands(c)
		case c.Lo != nil && c.Hi != nil:
			spans = append(spans, chart.Span{From: *c.Lo, To: *c.Hi, Kind: color})
		}
	}
	return append(rules, capacityBudgets(r)...), spans
}

// bands are the rates that were seen to hold, those that were seen to break, and those between them.
func bands(c *Capacity) []chart.Span {
	var out []chart.Span
	if c.VerifiedLow != nil {
		label := "holds up to " + unit.PerSecond(*c.VerifiedLow)
		out = append(out, chart.Span{To: *c.VerifiedLow, Label: label, Kind: chart.Good})
	}
	if c.VerifiedLow != nil && c.VerifiedHigh != nil {
		out = append(out, chart.Span{From: *c.VerifiedLow, To: *c.VerifiedHigh, Label: "uncertain", Kind: chart.Unsure})
	}
	if c.VerifiedHigh != nil {
		out = append(out, chart.Span{
			From: *c.VerifiedHigh, To: math.Inf(1), Label: "breaks from " + unit.PerSecond(*c.VerifiedHigh), Kind: chart.Bad,
		})
	}
	return out
}

// capacityBudgets returns the limits that budgets set on the capacity.
func capacityBudgets(r *Report) []chart.Rule {
	var out []chart.Rule
	for i := range r.Budgets {
		b := &r.Budgets[i]
		if parsed, err := budget.Parse(b.Text); err == nil && parsed.Metric == metric.Capacity.Name && b.Limit != nil &&
			!slices.ContainsFunc(out, func(x chart.Rule) bool { return x.At == *b.Limit }) {
			out = append(out, chart.Rule{At: *b.Limit, Vertical: true, Label: "budget " + unit.PerSecond(*b.Limit)})
		}
	}
	return out
}

func tries(r *Report, curves []curve) *grid {
	t := &grid{
		Caption: "What was offered and what was answered",
		table: append(wordHeads("treatment", "no.", "step"), numberHeads("offered", "for", "from", "answered well in time",
			"of offered", "answered well however late", "p99", "least p99", "largest p99")...),
	}
	for _, c := range curves {
		for _, p := range c.points {
			from, share := "", ""
			if p.upTo > 0 {
				from = unit.Seconds(p.before)
			}
			if p.offered > 0 && !math.IsNaN(p.goodput) {
				share = Percent(p.goodput / p.offered)
			}
			t.add(r.withTreatment(c.treatment), p.number, p.step, unit.PerSecond(p.offered), unit.Seconds(p.seconds), from,
				finite(p.goodput, unit.PerSecond), share, finite(p.success, Percent),
				finite(p.p99, unit.Seconds), finite(p.lo, unit.Seconds), finite(p.hi, unit.Seconds))
		}
	}
	return t
}

func finite(v float64, show func(float64) string) string {
	if math.IsNaN(v) {
		return ""
	}
	return show(v)
}

// workloads returns points that differ by more than their rate: one row for each, the treatments of a workload next to
// each other.
func workloads(r *Report, curves []curve) []block {
	good := chart.Bars{
		Title: "Calls answered well by workload",
		Desc:  "The share of each workload's calls that were answered well, however late.",
		Axis: chart.Axis{
			Label: "answered well (of all its calls)", Min: new(0.0), Max: new(1.0),
			Ticks: []float64{0, .25, .5, .75, 1}, Format: Percent,
		},
	}
	tail := chart.Bars{
		Title: "p99 by workload", Desc: "The 99th percentile of each workload's response time.",
		Dots: true, Axis: chart.Axis{Label: "response, p99", Log: true, Format: unit.Seconds},
	}
	for k := range longest(curves) {
		for i, c := range curves {
			if k >= len(c.points) {
				continue // its ladder ended early
			}
			p := c.points[k]
			label, kind := workloadLabel(r, c, p), chart.Color(i)
			if p.invalid {
				kind = chart.Unsure
			}
			good.Rows = append(good.Rows, chart.Bar{Label: label, Value: p.success, Kind: kind})
			tail.Rows = append(tail.Rows, chart.Bar{Label: label, Value: p.p99, Kind: kind})
		}
	}
	t := tries(r, curves)
	return []block{
		{Figure: &figure{
			SVG:     drawn(good.SVG, "chart-4-good"),
			Caption: "How many of its calls each workload got answered well, however late.",
			Summary: "The numbers of this chart", Table: t,
		}},
		{Figure: &figure{
			SVG: drawn(tail.SVG, "chart-4-tail"), Caption: "The slowest hundredth of the calls, by workload.",
			Summary: "The numbers of this chart", Table: t,
		}},
	}
}

func longest(curves []curve) int {
	n := 0
	for _, c := range curves {
		n = max(n, len(c.points))
	}
	return n
}

func workloadLabel(r *Report, c curve, p offeredRate) string {
	label := orElse(p.step, unit.PerSecond(p.offered))
	if several(r) {
		label = c.treatment + ": " + label
	}
	if p.invalid {
		label += " (generator invalid)"
	}
	return label
}

// audited says whether the generator may have limited the result.
func audited(g *Generator) string {
	switch {
	case !g.Valid:
		return "✗ INVALID"
	case g.RuledOut():
		return "✓ valid"
	}
	return "? not ruled out"
}
