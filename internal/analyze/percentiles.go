package analyze

import (
	"tare/internal/metric"
	"tare/internal/report"
	"tare/internal/stat"
)

// percentiles are the points at which distributions are drawn: even on an axis of log(1−q).
var percentiles = []float64{.05, .1, .25, .5, .75, .9, .95, .99, .995, .999, .9995, .9999}

// percentiles gives the distribution of every time that has more than one value a block. What is counted hardly varies.
func (a *analysis) percentiles(c *comparison) {
	for _, m := range c.measures {
		if m.of == "" || (m.of == "calls" && m.metric.Name != metric.Response.Name) {
			continue
		}
		if m.metric.Unit != metric.Seconds && m.metric.Unit != metric.CPUSeconds {
			continue
		}
		if p, ok := percentilesOf(m); ok {
			a.rep.Percentiles = append(a.rep.Percentiles, p)
		}
	}
}

func percentilesOf(m *measure) (report.Percentiles, bool) {
	out := report.Percentiles{
		Treatment: m.treatment, Operation: m.operation, Metric: m.metric.Name, Unit: m.metric.Unit, Of: m.of,
	}
	var blocks []stat.Sample
	if blocks, out.N = measuredSamples(m.samples); out.N == 0 {
		return out, false
	}
	for _, q := range percentiles {
		if !enough(out.N, max(q, 1-q)) {
			continue
		}
		p := report.Percentile{Q: q, Value: stat.SampleQuantile(q, blocks...)}
		if e, err := stat.PooledQuantile(blocks, q, level); err == nil {
			p.Lo, p.Hi = finite(e.Lo), finite(e.Hi)
		}
		out.Points = append(out.Points, p)
	}
	return out, len(out.Points) > 0
}
