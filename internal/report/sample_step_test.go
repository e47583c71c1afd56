package report

import (
	"fmt"
	"math"
	"strings"

	"tare/internal/design"
	"tare/internal/metric"
)

// growthSteps has all kinds of growth that are not one law with noise: a step with a budget that breaks in it, bends of
// both kinds, exact counts, and zeros; and laws of every unit.
func growthSteps() *Report {
	r := base("image-records")
	r.Area, r.Question, r.Verdict, r.Reason, r.Seconds = "warehouse", design.Scale, None, "no budget was given", 300
	sizes := []float64{10, 50, 100, 200, 500, 1000, 1500, 1999, 2001, 2500, 3500, 5000, 10000}
	grow := func(g Growth, f func(n float64) float64) {
		g.Factor, g.Range, g.Level = "records", Interval{sizes[0], sizes[len(sizes)-1]}, new(0.95)
		for _, n := range sizes {
			p := GrowthPoint{N: n, Value: round4(f(n)), Lo: new(round4(f(n) * 0.98)), Hi: new(round4(f(n) * 1.02))}
			if g.Reason == "" || g.Step != nil || g.Bend != nil {
				p.Fitted, p.FittedLo, p.FittedHi = new(round4(f(n))), new(round4(f(n)*0.99)), new(round4(f(n)*1.01))
			}
			if g.Exact || g.Unit == metric.Ratio {
				p.Lo, p.Hi = new(p.Value), new(p.Value)
			}
			g.Points = append(g.Points, p)
		}
		r.Growth = append(r.Growth, g)
	}
	linear := func(c Coefficients) func(n float64) float64 { return func(n float64) float64 { return c.C0 + c.C1*n } }

	grow(Growth{
		Treatment: "pattern=scan", Metric: "cpu", Operation: "check", Unit: metric.CPUSeconds, Best: "constant",
		Tied:         []string{"log", "sqrt"},
		Coefficients: Coefficients{C0: 4.1e-6}, C0Lo: new(4.05e-6), C0Hi: new(4.16e-6),
		Reason: "a step fits better than any one law",
		Budget: "check.cpu <= 10us", BreaksBudgetAt: &Crossing{
			Value: math.Sqrt(1999 * 2001), Lo: new(1999.0),
			Hi: new(2001.0), InStep: true,
		},
		Step: &Step{
			From: 1999, To: 2001, Factor: 5.6, Lo: new(5.2), Hi: new(6.0), Across: new(5.4), AcrossLo: new(5.1),
			AcrossHi: new(5.7), Before: &GrowthSide{
				Range: Interval{10, 1999}, Best: "constant", Tied: []string{"log"}, Coefficients: Coefficients{C0: 4.11e-6},
				C0Lo: new(4.06e-6), C0Hi: new(4.17e-6),
				Reason: "8 sizes; naming a law takes 10", Constant: &Interval{-0.01, 0.02},
			},
		}, Constant: &Interval{4.4, 4.9},
	}, func(n float64) float64 {
		if n > 2000 {
			return 4.1e-6 * 5.6
		}
		return 4.1e-6
	})
	grow(Growth{
		Treatment: "pattern=uniform", Metric: "cpu", Operation: "check", Unit: metric.CPUSeconds,
		Reason: "a cost that is constant up to a bend fits better than any one law",
		Knee:   &Crossing{Value: 2004, Lo: new(1992.0), Hi: new(2018.0)},
		Bend: &Bend{Base: Coefficient{4e-6, new(3.95e-6), new(4.06e-6)}, Ceiling: &Coefficient{
			23e-6, new(22.5e-6),
			new(23.4e-6),
		}},
		Constant: &Interval{3.6, 3.9},
	}, func(n float64) float64 { return 4e-6 + 19e-6*max(0, 1-2000/n) })
	grow(Growth{
		Treatment: "pattern=uniform", Metric: "wall", Operation: "restart", Unit: metric.Seconds,
		Reason: "two segments fit better than any one law",
		Knee:   &Crossing{Value: 1400, Lo: new(1310.0), Hi: new(1500.0)},
		Bend: &Bend{
			Base: Coefficient{1e-3, new(0.9e-3), new(1.1e-3)}, Slope: &Coefficient{1e-6, new(0.8e-6), new(1.1e-6)},
			Steeper: &Coefficient{9e-6, new(8.8e-6), new(9.2e-6)},
		},
	}, func(n float64) float64 { return 1e-3 + 1e-6*n + 8e-6*max(0, n-1400) })
	for _, law := range []Growth{
		{
			Metric: "cpu", Unit: metric.CPUSeconds, Coefficients: Coefficients{110e-6, 0.88e-6}, C0Lo: new(106e-6),
			C0Hi: new(114e-6), Lo: new(0.87e-6), Hi: new(0.89e-6),
		},
		{
			Metric: "allocated", Unit: metric.Bytes, Coefficients: Coefficients{9216, 312.5}, C0Lo: new(9200.0),
			C0Hi: new(9230.0), Lo: new(312.4), Hi: new(312.6),
		},
		{
			Metric: "allocations", Unit: metric.Count, Coefficients: Coefficients{97, 2}, C0Lo: new(97.0), C0Hi: new(97.0),
			Lo: new(2.0), Hi: new(2.0),
		},
	} {
		law.Treatment, law.Operation, law.Law, law.Best = "pattern=uniform", "pull", "linear", "linear"
		grow(law, linear(law.Coefficients))
	}
	grow(Growth{
		Treatment: "pattern=uniform", Metric: "allocations", Operation: "check", Unit: metric.Count, Law: "constant",
		Best: "constant", Exact: true,
		Coefficients: Coefficients{C0: 8}, C0Lo: new(8.0), C0Hi: new(8.0), Lo: new(0.0), Hi: new(0.0), Constant: &Interval{},
	}, linear(Coefficients{C0: 8}))
	grow(Growth{
		Treatment: "pattern=scan", Metric: "hits", Operation: "check", Unit: metric.Ratio,
		Reason: "0 at 5 of 13 sizes (2001, 2500, 3500, 5000, 10k): a law is fitted to relative differences, and 0 has none",
	}, func(n float64) float64 {
		if n > 2000 {
			return 0
		}
		return 1
	})
	for i := range r.Growth[:2] {
		g := &r.Growth[i]
		for _, p := range g.Points {
			id := fmt.Sprintf("%s records=%v", g.Treatment, p.N)
			r.Treatments = append(r.Treatments, Treatment{
				ID: id, Levels: map[string]string{
					"pattern": strings.TrimPrefix(g.Treatment, "pattern="),
					"records": fmt.Sprint(p.N),
				}, Verified: true,
				Metrics: []Metric{{Name: "cpu", Operation: "check", Unit: "s", Value: p.Value, N: 10}},
			})
			r.Blocks = append(r.Blocks, BlockValues{
				Treatment: id, Operation: "check", Metric: "cpu", Unit: metric.CPUSeconds,
				Values: []*float64{new(p.Value), p.Lo, p.Hi},
			})
		}
	}
	r.Design = &Design{Blocks: 3, Planned: 20, Alpha: 0.0158, Margin: 0.02, Factors: []string{"pattern", "records"}}
	return r
}
