package report

import (
	"fmt"
	"math"

	"tare/internal/design"
	"tare/internal/metric"
)

// landlockGrowth has sizes enough to name a law.
func landlockGrowth() *Report {
	sizes := []string{"1", "2", "5", "10", "20", "50", "100", "200", "500", "1000"}
	c := comparison{
		name: "landlock-growth", metric: "cpu", blocks: 10, margin: 0.02, noise: 0.004, operations: []string{"open", "fork"},
		base: map[string]float64{"open": 1.19e-6, "fork": 88e-6},
		arms: []trialled{{levels: map[string]string{"enforcer": "none"}}},
	}
	for _, s := range sizes {
		var n float64
		if _, err := fmt.Sscan(s, &n); err != nil {
			panic(err)
		}
		c.arms = append(c.arms, trialled{
			levels: map[string]string{"enforcer": "landlock", "rules": s},
			cost:   map[string]float64{"open": 0.2 + 0.026*n},
		})
	}
	r := c.report()
	r.Question = design.Scale
	r.Design.Factors = []string{"enforcer", "rules"}
	negativeControls(r, "fork")
	g := Growth{
		Factor: "rules", Treatment: "enforcer=landlock", Metric: "cpu", Operation: "open", Unit: metric.CPUSeconds,
		Law: "linear", Best: "linear", Range: Interval{1, 1000},
		Coefficients: Coefficients{C0: 1.43e-6, C1: 31e-9}, Lo: new(29.4e-9), Hi: new(32.8e-9), Level: new(0.95),
		Budget:         "open.cpu <= +50%",
		BreaksBudgetAt: &Crossing{Value: 12, Lo: new(10.2), Hi: new(14.9)},
	}
	for i := 1; i <= len(sizes); i++ {
		m := r.Treatments[i].Metrics[0]
		var n float64
		if _, err := fmt.Sscan(sizes[i-1], &n); err != nil {
			panic(err)
		}
		fitted := g.Coefficients.C0 + g.Coefficients.C1*n
		g.Points = append(g.Points, GrowthPoint{
			N: n, Value: m.Value, Lo: m.Lo, Hi: m.Hi, Fitted: new(round4(fitted)),
			FittedLo: new(round4(fitted * 0.98)), FittedHi: new(round4(fitted * 1.02)),
		})
	}
	r.Growth = []Growth{g}
	return r
}

// growthTies has too few sizes to name a law.
func growthTies() *Report {
	r := base("identities")
	r.Question, r.Generator = design.Scale, nil
	r.Treatments = nil
	g := Growth{
		Factor: "identities", Treatment: "cache=on", Metric: "response", Quantile: "p50", Operation: "token",
		Unit: metric.Seconds, Best: "log", Tied: []string{"sqrt", "constant"},
		Range: Interval{10, 1000}, Coefficients: Coefficients{C0: 0.81e-3, C1: 4.1e-6}, Lo: new(0.0), Hi: new(9.2e-6),
		Level:    new(0.95),
		Constant: &Interval{-0.011, 0.034}, Reason: "7 sizes over 2 decades; a law needs 10 over 3",
		Knee:   &Crossing{Value: 320, Lo: new(200.0)},
		Budget: "response.p50 <= 1ms", BreaksBudgetAt: &Crossing{Value: 41000, Lo: new(3200.0), Extrapolated: true},
	}
	for _, n := range []float64{10, 20, 50, 100, 200, 500, 1000} {
		id := fmt.Sprintf("identities=%v", n)
		v := round4(0.81e-3 + 4.1e-6*math.Log2(1+n))
		r.Treatments = append(r.Treatments, Treatment{
			ID: id, Levels: map[string]string{"identities": fmt.Sprint(n)}, Verified: true,
			Metrics: []Metric{{Name: "response", Quantile: "p50", Operation: "token", Unit: "s", Value: v, N: 10}},
		})
		g.Points = append(g.Points, GrowthPoint{N: n, Value: v, Lo: new(round4(v * 0.98)), Hi: new(round4(v * 1.02))})
		r.Blocks = append(r.Blocks, BlockValues{
			Treatment: id, Operation: "token", Metric: "response", Quantile: "p50",
			Unit: metric.Seconds, Values: []*float64{new(v), new(round4(v * 1.01)), new(round4(v * 0.99))},
		})
	}
	refused := g
	refused.Metric, refused.Quantile, refused.Unit, refused.Law, refused.Best, refused.Tied, refused.Points, refused.Knee,
		refused.Constant, refused.BreaksBudgetAt, refused.Budget = "cpu", "", metric.CPUSeconds, "", "", nil, nil, nil, nil,
		nil, ""
	refused.Coefficients, refused.Lo, refused.Hi, refused.Level, refused.Reason = Coefficients{}, nil, nil, nil,
		"4 sizes tell no law from another"
	r.Growth = []Growth{g, refused}
	r.Design = &Design{Blocks: 3, Planned: 20, Alpha: 0.0158, Margin: 0.02, Factors: []string{"identities"}}
	return r
}
