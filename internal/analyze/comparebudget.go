package analyze

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/report"
	"tare/internal/stat"
	"tare/internal/unit"
)

// compared judges a budget of a comparison for one treatment. A budget that names no operation holds for each of those
// that have a clock of their own: the worst of them is told.
func (a *analysis) compared(b *budget.Budget, treatment string) finding {
	c := a.cmp
	var gates []gate
	for _, g := range c.named(b) {
		if b.Operation != "" || c.acts(treatment, g.operation) {
			gates = append(gates, g)
		}
	}
	if len(gates) == 0 {
		return unmeasured("%s", c.missing(b))
	}
	if b.Operation == "" && (b.Metric == metric.Error.Name || b.Metric == metric.Goodput.Name) {
		for _, m := range c.ofMetric[metric.Service.Name] { // of another tool's calls it may not be known
			if m.treatment == treatment && c.batched && !c.has(m.operation, b.Metric) {
				gates = append(gates, gate{operation: m.operation, metric: b.Metric})
			}
		}
	}
	var all []finding
	for _, g := range gates {
		all = append(all, c.settled(b, treatment, g, a.gauge(b, treatment, g).judged(b)))
	}
	worst := worstOf(b, all)
	f := all[worst]
	if len(all) > 1 && f.why == "" {
		f.how = fmt.Sprintf("%s is the worst of %d operations; %s", gates[worst].operation, len(all), f.how)
	}
	return f
}

// missing says why a budget names nothing that was measured.
func (c *comparison) missing(b *budget.Budget) string {
	if len(c.blocks) == 0 {
		return "no complete block was measured"
	}
	if m, ok := probe.Known(b.Metric); ok && timed(m) && c.late > 0 {
		return "no times are given, since the generator sent late"
	}
	have, ok := c.measured[b.Operation]
	if !ok {
		var names []string
		for _, m := range c.measures {
			if b.Operation == "" || m.operation == b.Operation || c.wholeMix(m.operation) {
				addOnce(&names, m.metric.Name)
			}
		}
		have = strings.Join(names, ", ")
		c.measured[b.Operation] = have
	}
	return fmt.Sprintf("%s was not measured; measured were %s", b.Metric, have)
}

// worstOf picks what a budget over several operations comes to: a broken one, else one that is open, else the one
// nearest the limit.
func worstOf(b *budget.Budget, all []finding) int {
	rank := map[report.Verdict]int{report.Fail: 3, report.Inconclusive: 2, report.NotMeasured: 1, report.Pass: 0}
	edge := func(f finding) float64 {
		if b.Op == budget.AtLeast {
			return -f.Lo
		}
		return f.Hi
	}
	worst := 0
	for i, f := range all {
		r, w := rank[f.verdict], rank[all[worst].verdict]
		if r > w || (r == w && edge(f) > edge(all[worst])) {
			worst = i
		}
	}
	return worst
}

// gauge estimates what a budget limits: the treatment's own metric, or its change against the baseline.
func (a *analysis) gauge(b *budget.Budget, treatment string, g gate) finding {
	c := a.cmp
	m := c.find(treatment, g.operation, g.metric)
	if m == nil {
		return unmeasured("%s was not measured under this treatment", g)
	}
	alpha := stat.LookAlpha
	if tested, ok := c.alphas[treatment][g]; ok && b.Limit.Against != budget.Absolute {
		alpha = tested
	}
	if b.Limit.Against == budget.Absolute {
		return a.withPeaks(b, treatment, c.absolute(b, m, g, alpha))
	}
	i := slices.IndexFunc(c.arms, func(t design.Treatment) bool { return t.ID == treatment })
	base, ok := c.baselineOf(&c.arms[i])
	switch {
	case !ok:
		return unmeasured("there is no baseline")
	case base.ID == treatment:
		return unmeasured("this is the baseline itself")
	}
	return c.relative(b, base.ID, m, g, alpha)
}

// absolute judges a metric of one arm by its own interval.
func (c *comparison) absolute(b *budget.Budget, m *measure, g gate, alpha float64) finding {
	if budget.Extreme(g.quantile) {
		return extremeOf(m, g.quantile)
	}
	e, why := c.alone(m, g.quantile, 1-alpha)
	if why != "" {
		return c.open(e.Value, why)
	}
	how := c.basis(b, &e, b.Limit.Value, alpha)
	if m.metric.Name == metric.Error.Name && e.Value == 0 && m.unreadCalls() == 0 {
		how += "; no call failed: " + missedOutages
	}
	return finding{Interval: budget.Interval{Value: e.Value, Lo: e.Lo, Hi: e.Hi}, how: how}
}

// extremeOf is the least or the greatest of all values: a fact of these, and no estimate.
func extremeOf(m *measure, quantile string) finding {
	all, n := measuredSamples(m.samples)
	if n == 0 {
		return unmeasured("no block has enough of it")
	}
	rank := n
	if quantile == "min" {
		rank = 1
	}
	v := stat.Ranked(rank, all...)
	e := byStep(m, stat.Estimate{Value: v, Lo: v, Hi: v})
	return finding{Interval: budget.Interval{Value: v, Lo: e.Lo, Hi: e.Hi}, how: fmt.Sprintf("of %d %s", n, m.of)}
}

// open is a metric that was measured and whose interval cannot be had yet.
func (c *comparison) open(v float64, why string) finding {
	if !isFinite(v) {
		return unmeasured("%s", why)
	}
	return finding{Interval: budget.Interval{Value: v, Lo: math.Inf(-1), Hi: math.Inf(1)}, how: why}
}

// basis says what an interval rests on, and how many blocks would tell it from the limit if it does not yet.
func (c *comparison) basis(b *budget.Budget, e *stat.Estimate, limit, alpha float64) string {
	if !isFinite(e.Lo) || !isFinite(e.Hi) {
		return fmt.Sprintf("%s are too few for an interval at %s", unit.Count(e.N, "block"), percent(1-alpha))
	}
	s := fmt.Sprintf("%s, interval at %s", unit.Count(e.N, "block"), percent(1-alpha))
	if v := budget.Decide(*b, budget.Interval{Value: e.Value, Lo: e.Lo, Hi: e.Hi}); v != budget.Inconclusive ||
		c.unblocked {
		return s
	}
	if n := blocksTo(e, limit, alpha); n > e.N {
		return fmt.Sprintf("%s; about %d blocks in all would decide", s, n)
	}
	return s
}

// blocksTo is how many blocks in all would tell an estimate from a limit with power .8, if it is the truth and its
// standard error falls with the root of the blocks; 0 if that is more than it is sensible to say.
func blocksTo(e *stat.Estimate, limit, alpha float64) int {
	const most = 100_000
	ratio := stat.DetectableEffect(stat.StandardError(*e), alpha, power) / math.Abs(e.Value-limit)
	n := math.Ceil(float64(e.N) * ratio * ratio)
	if !(n <= most) {
		return 0
	}
	return max(int(n), e.N+1)
}

// relative judges the change against the baseline.
func (c *comparison) relative(b *budget.Budget, base string, m *measure, g gate, alpha float64) finding {
	x, err := c.contrast(base, m.treatment, g)
	if err == nil {
		err = x.estimate(alpha)
	}
	var tooFew *stat.NotEstimable
	switch {
	case errors.As(err, &tooFew):
		return finding{
			Interval: budget.Interval{Value: c.pooledChange(b, base, m, g), Lo: math.Inf(-1), Hi: math.Inf(1)}, how: err.Error(),
		}
	case err != nil:
		return unmeasured("%v", err)
	}
	if b.Limit.Against == budget.Ratio {
		return c.asRatio(b, x, base, g, alpha)
	}
	return c.asDifference(b, x, base, m, g, alpha)
}

// asRatio gives a contrast as a share of the baseline.
func (c *comparison) asRatio(b *budget.Budget, x *contrast, base string, g gate, alpha float64) finding {
	e := x.got.Estimate
	limit := x.back(b.Limit.Value)
	if x.effect.Kind == kindDifference {
		from := c.find(base, g.operation, g.metric)
		own, why := c.estimatorFor(from, g.quantile).alone(from, 1-alpha)
		if why != "" || !(own.Value > 0) {
			return unmeasured("the baseline's %s is 0, of which a percentage has no meaning: limit it without a sign", g)
		}
		e, limit = x.overBase(own), b.Limit.Value
		if x.metric.Unit == metric.Ratio {
			if e, why = widenedRatio(from, c.find(x.effect.Treatment, g.operation, g.metric), e); why != "" {
				return c.open(e.Value, why)
			}
		}
	}
	f := finding{Interval: budget.Interval{Value: x.share(e.Value), Lo: x.share(e.Lo), Hi: x.share(e.Hi)}}
	switch {
	case x.uncounted:
		return c.open(f.Value, uncounted)
	case x.wide:
		return tooWide(f, x)
	}
	if isFinite(e.Lo) && math.IsInf(e.Hi, 1) {
		f.how = fmt.Sprintf("%s, interval at %s; the baseline's %s may be 0, which leaves the change without an upper end",
			unit.Count(e.N, "block"), percent(1-alpha), g)
		return f
	}
	plain := *b
	plain.Limit.Value = limit
	f.how = c.basis(&plain, &e, limit, alpha)
	return f
}

// overBase is the difference as a share of the baseline, which is known to an interval itself: of shares that of the
// ratio of their means, else the widest that both allow. What does not vary is divided as it is.
func (c *contrast) overBase(own stat.Estimate) stat.Estimate {
	e := c.got.Estimate
	least, most := max(math.SmallestNonzeroFloat64, own.Lo), own.Hi
	if c.exact {
		least, most = own.Value, own.Value
	} else if c.ratio != nil {
		if r, ok := c.ratio(e.Level); ok {
			r.Value, r.Lo, r.Hi = r.Value-1, r.Lo-1, r.Hi-1
			return r
		}
	}
	e.Value, e.Lo, e.Hi = e.Value/own.Value, min(e.Lo/least, e.Lo/most), max(e.Hi/least, e.Hi/most)
	return e
}

// share is the value of a ratio's test as a change; that of a difference is one already.
func (c *contrast) share(v float64) float64 { return c.scale(v) }

// tooWide leaves an interval open that the wanted level cannot be had for.
func tooWide(f finding, x *contrast) finding {
	f.Lo, f.Hi = math.Inf(-1), math.Inf(1)
	f.how = fmt.Sprintf("%s are too few for an interval", unit.Count(x.effect.Blocks, "block"))
	return f
}

// asDifference gives a contrast in the metric's unit. For a pooled quantile it is the interval of the ratio on the
// baseline's own, the widest that both allow.
func (c *comparison) asDifference(
	b *budget.Budget, x *contrast, base string, m *measure, g gate, alpha float64,
) finding {
	from, how := c.find(base, g.operation, g.metric), c.estimatorFor(m, g.quantile)
	if how.pooled {
		own, why := how.alone(from, 1-alpha)
		if why != "" {
			return c.open(math.NaN(), why)
		}
		e := x.got
		lo, hi := math.Expm1(e.Lo), math.Expm1(e.Hi)
		return finding{Interval: budget.Interval{
			Value: own.Value * math.Expm1(e.Value), Lo: min(lo*own.Lo, lo*own.Hi), Hi: max(hi*own.Lo, hi*own.Hi),
		}, how: fmt.Sprintf("%s, interval at %s", unit.Count(e.N, "block"), percent(1-alpha))}
	}
	if x.effect.Kind == kindRatio {
		var err error
		if x, err = c.between(from, m, g.quantile, true); err == nil {
			err = x.estimate(alpha)
		}
		if err != nil {
			return unmeasured("%v", err)
		}
	}
	e := x.got.Estimate
	f := finding{Interval: budget.Interval{Value: e.Value, Lo: e.Lo, Hi: e.Hi}}
	switch {
	case x.uncounted:
		return c.open(f.Value, uncounted)
	case x.wide:
		return tooWide(f, x)
	}
	f.how = c.basis(b, &e, b.Limit.Value, alpha)
	return f
}

// pooledChange is a pooled quantile's change without an interval.
func (c *comparison) pooledChange(b *budget.Budget, base string, m *measure, g gate) float64 {
	from, q := c.find(base, g.operation, g.metric), c.estimatorFor(m, g.quantile).q
	x, y := pooled(from, q), pooled(m, q)
	if b.Limit.Against == budget.Ratio {
		return y/x - 1
	}
	return y - x
}

// pooled is the quantile of all blocks' samples together.
func pooled(m *measure, q float64) float64 {
	blocks, _ := measuredSamples(m.samples)
	return stat.SampleQuantile(q, blocks...)
}
