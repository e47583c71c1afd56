package report

import (
	"fmt"
	"math"
	"math/rand/v2"

	"tare/internal/design"
	"tare/internal/metric"
)

// drivers are the samples of reports of targets that count for themselves, and have an operation that does nothing.
func drivers() map[string]*Report { return map[string]*Report{"pull-manager": pullManager()} }

// A drawnCost is one metric of one treatment: what it costs, and by how much blocks vary.
type drawnCost struct {
	metric metric.Metric
	value  float64
	noise  float64
}

// checkCosts are a check's costs by accessor, records and share of hits, near what the kubelet's own code takes.
func checkCosts(accessor string, records, hits int) []drawnCost {
	wall, objects, size, cached := 684e-6, 108.0, 61.5*1024, 0.0
	switch accessor {
	case "cached":
		wall, objects, size, cached = 415e-6, 58, 58*1024, float64(hits)/100
	case "disabled":
		wall, objects, size = 40e-9, 1, 1200
	}
	miss := 1 + (1-float64(hits)/100)*.4
	wall, objects = wall*miss*(1+.00005*float64(records)), math.Round(objects*miss)
	return []drawnCost{
		{metric.Wall, wall, .004},
		{metric.CPU, wall * .98, .003},
		{metric.Allocations, objects, 0},
		{metric.Allocated, size, .0005},
		{metric.Hits, float64(hits) / 100, 0},
		{metric.CacheHits, cached, 0},
	}
}

// pullManager is the published grid's shape: accessors within each number of records and share of hits.
func pullManager() *Report {
	r := base("pull-manager")
	r.Area, r.Question, r.Seconds, r.Generator, r.Treatments = "warehouse", design.Compare, 320, nil, nil
	const blocks = 10
	r.Design = &Design{Blocks: blocks, Planned: 10, Alpha: .0158, Margin: .02, Factors: []string{
		"accessor", "records",
		"hits",
	}}
	r.AA = &AA{Reliable: true}
	random := rand.New(rand.NewPCG(131882, 1))
	for _, accessor := range []string{"directfs", "cached", "disabled"} {
		for _, records := range []int{10, 100} {
			for _, hits := range []int{50, 100} {
				t := Treatment{Baseline: accessor == "directfs", Verified: true, Levels: map[string]string{
					"accessor": accessor,
					"records":  fmt.Sprint(records), "hits": fmt.Sprint(hits),
				}}
				t.ID = fmt.Sprintf("accessor=%s records=%d hits=%d", accessor, records, hits)
				r.measure(&t, "check", checkCosts(accessor, records, hits), blocks, random)
				r.addHarness(&t)
				r.Treatments = append(r.Treatments, t)
			}
		}
	}
	again := r.Treatments[0]
	again.ID, again.Control, again.Baseline, again.Metrics = design.AAArm, design.AA, false, nil
	r.measure(&again, "check", checkCosts("directfs", 10, 50), blocks, random)
	r.Treatments = append(r.Treatments, again)
	c := comparison{blocks: blocks, margin: .02}
	for i := 4; i < len(r.Treatments)-1; i++ {
		r.compareDriver(&c, &r.Treatments[i%4], &r.Treatments[i])
	}
	r.Notes = []string{"the harness's own cost is 5.26% of check.wall (39.9 ns) under accessor=disabled records=10 " +
		"hits=100; it is not subtracted"}
	return r
}

// measure draws the values of blocks, of which the treatment's metrics are medians.
func (r *Report) measure(t *Treatment, operation string, costs []drawnCost, blocks int, random *rand.Rand) {
	for _, c := range costs {
		v := make([]float64, blocks)
		for i := range v {
			v[i] = c.value * math.Exp(c.noise*random.NormFloat64())
			if c.noise > 0 {
				v[i] = round4(v[i])
			}
		}
		r.Blocks = append(r.Blocks, BlockValues{
			Treatment: t.ID, Operation: operation, Metric: c.metric.Name,
			Unit: c.metric.Unit, Values: known(v),
		})
		m := Metric{Name: c.metric.Name, Operation: operation, Unit: string(c.metric.Unit), Value: sampleMedian(v), N: blocks}
		switch c.metric.Name {
		case "wall", "cpu":
			m.Harness = new(2.1e-9 / m.Value)
		case "allocations", "allocated":
			m.Harness = new(0.0)
		}
		t.Metrics = append(t.Metrics, m)
	}
}

// addHarness is what an empty call costs: a little more under each treatment.
func (r *Report) addHarness(t *Treatment) {
	for _, c := range []drawnCost{
		{metric: metric.Wall, value: 2.1e-9},
		{metric: metric.CPU, value: 2.1e-9},
		{metric: metric.Allocations},
		{metric: metric.Allocated},
	} {
		v := c.value * (1 + .02*float64(len(r.Treatments)))
		r.Harness = append(r.Harness, Harness{
			Treatment: t.ID, Operation: "empty", Metric: c.metric.Name, Unit: c.metric.Unit, Value: round4(v),
			Lo: new(round4(v * .98)), Hi: new(round4(v * 1.02)), Level: new(.95), N: 10,
		})
	}
}

// compareDriver adds the effects of one treatment on all that was measured.
func (r *Report) compareDriver(c *comparison, base, t *Treatment) {
	values := func(id, name string) []float64 {
		for i := range r.Blocks {
			if b := &r.Blocks[i]; b.Treatment == id && b.Metric == name {
				return b.measuredValues()
			}
		}
		return nil
	}
	for _, m := range base.Metrics {
		if m.Unit == string(metric.Ratio) {
			d := sampleMedian(values(t.ID, m.Name)) - sampleMedian(values(base.ID, m.Name))
			x := Effect{
				Treatment: t.ID, Baseline: base.ID, Operation: "check", Metric: m.Name, Kind: "difference", Estimate: d,
				Lo: d, Hi: d, Level: .9842, Verdict: Equivalent, Blocks: c.blocks,
			}
			if d > 0 {
				x.Verdict, x.Measurable = Improved, true
			}
			r.Effects = append(r.Effects, x)
			continue
		}
		x := c.effect(values(base.ID, m.Name), values(t.ID, m.Name))
		x.Treatment, x.Baseline, x.Operation, x.Metric, x.Gating = t.ID, base.ID, "check", m.Name, m.Name == "cpu"
		r.Effects = append(r.Effects, x)
	}
}
