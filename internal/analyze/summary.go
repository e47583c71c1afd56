package analyze

import (
	"math"
	"slices"

	"tare/internal/metric"
	"tare/internal/report"
)

// level is of the intervals that describe one arm alone. Budgets and effects have their own.
const level = 0.95

// quantilesOf are what is reported of a metric.
func quantilesOf(m *measure) []string {
	if m.metric.Name == metric.Response.Name && m.of != "" {
		return []string{"p50", "p90", "p99", "p999", "mean"}
	}
	return []string{m.main}
}

// metrics gives each arm's own values: the median over blocks, the mean of means, the pooled quantile of others.
func (a *analysis) metrics(c *comparison) {
	for i := range a.rep.Treatments {
		t := &a.rep.Treatments[i]
		for _, m := range c.measures {
			if m.treatment != t.ID {
				continue
			}
			for _, q := range quantilesOf(m) {
				if x, ok := c.metricOf(m, q); ok {
					t.Metrics = append(t.Metrics, x)
				}
			}
		}
	}
}

func (c *comparison) metricOf(m *measure, quantile string) (report.Metric, bool) {
	e, why := c.alone(m, quantile, level)
	if why != "" && !isFinite(e.Value) {
		return report.Metric{}, false
	}
	out := report.Metric{
		Name: m.metric.Name, Quantile: quantile, Operation: m.operation, Unit: string(m.metric.Unit), Value: e.Value,
		Lo: finite(e.Lo), Hi: finite(e.Hi), N: e.N,
	}
	if out.Lo != nil || out.Hi != nil {
		l := level
		out.Level = &l
	}
	return out, true
}

// valuesOf lists a quantile of m by the number of the block: null for those that are not complete. Where hardly any is,
// as in damaged records, it lists none.
func (d *dataset) valuesOf(m *measure, quantile string) report.BlockValues {
	out := report.BlockValues{
		Treatment: m.treatment, Operation: m.operation, Metric: m.metric.Name, Quantile: quantile, Unit: m.metric.Unit,
	}
	if d.unblocked {
		for _, v := range measuredOnly(m.values(quantile)) { // their numbers mean nothing
			out.Values = append(out.Values, finite(v))
		}
		return out
	}
	if len(d.blocks) == 0 {
		return out
	}
	d.listing.filled += len(d.blocks)
	if !d.listing.take(d.blocks[len(d.blocks)-1] + 1 - len(d.blocks)) {
		return out
	}
	out.Values = make([]*float64, d.blocks[len(d.blocks)-1]+1)
	for i, v := range m.values(quantile) {
		out.Values[d.blocks[i]] = finite(v)
	}
	return out
}

// listed are the metrics whose values are given block by block whether they gate or not: CPU time and elapsed times, so
// that a reader can see which blocks were disturbed, and what targets count themselves, which other tools' tables have
// beside them.
var listed = []string{
	metric.CPU.Name, metric.Wall.Name, metric.Instructions.Name, metric.Response.Name, metric.Allocations.Name,
	metric.Allocated.Name, metric.KernelMemory.Name, metric.Hits.Name, metric.CacheHits.Name,
}

// blockValues gives what effects are estimated from: what gates, and what is listed in any case.
func (a *analysis) blockValues(c *comparison) {
	for _, m := range c.measures {
		done := map[string]bool{}
		for _, g := range c.gates.of[subject{m.operation, m.metric.Name}] {
			if !c.estimatorFor(m, g.quantile).pooled && m.values(g.quantile) != nil {
				done[g.quantile] = true
				a.rep.Blocks = append(a.rep.Blocks, c.told(m, g.quantile))
			}
		}
		if (ownUnit(m.metric) != "" || slices.Contains(listed, m.metric.Name) || c.failures(m)) && !done[m.main] {
			a.rep.Blocks = append(a.rep.Blocks, c.told(m, m.main))
		}
	}
}

// failures reports whether m is the share of failed calls of an operation of which some failed, under any treatment.
func (c *comparison) failures(m *measure) bool {
	return m.metric.Name == metric.Error.Name && slices.ContainsFunc(c.measures, func(x *measure) bool {
		return x.metric.Name == m.metric.Name && x.operation == m.operation &&
			slices.ContainsFunc(x.value, func(v float64) bool { return v > 0 })
	})
}

// told lists the values of m, and says whether failed calls leave untold what they would be otherwise: whether the two
// readings differ by more than the margin.
func (c *comparison) told(m *measure, quantile string) report.BlockValues {
	out := c.valuesOf(m, quantile)
	if c.answered == nil || m.metric.Name == metric.Error.Name {
		return out
	}
	x := c.answered.find(m.treatment, m.operation, m.metric.Name)
	if x == nil || x == m {
		return out
	}
	ended, _ := c.estimatorFor(m, quantile).alone(m, level)
	answered, why := c.answered.estimatorFor(x, quantile).alone(x, level)
	if why != "" || math.Abs(math.Log(answered.Value/ended.Value)) > math.Log1p(c.margin) {
		out.Untold = c.failedUnder(m.metric.Name, m.operation, m.treatment)
	}
	return out
}
