package report

import (
	"fmt"
	"slices"

	"tare/internal/design"
	"tare/internal/metric"
)

// enforcers is what the example of that name comes to: many treatments, budgets kept, broken and open.
func enforcers() *Report {
	arm := func(open, connect, exec, fork float64, levels ...string) trialled {
		a := trialled{levels: map[string]string{}, cost: map[string]float64{
			"open": open, "connect": connect, "exec": exec,
			"fork": fork,
		}}
		for i := 0; i+1 < len(levels); i += 2 {
			a.levels[levels[i]] = levels[i+1]
		}
		return a
	}
	c := comparison{
		name: "enforcers", metric: "cpu", blocks: 10, margin: 0.02, noise: 0.006,
		operations: []string{"open", "connect", "exec", "fork", "compute"},
		base: map[string]float64{
			"open": 1.19e-6, "connect": 21.4e-6, "exec": 612e-6, "fork": 88.2e-6,
			"compute": 941e-6,
		},
		arms: []trialled{
			arm(0, 0, 0, 0, "enforcer", "none"),
			arm(0.031, 0.006, 0.001, 0.000, "enforcer", "seccomp", "mode", "AlwaysAllow"),
			arm(0.042, 0.008, 0.004, 0.001, "enforcer", "seccomp", "mode", "custom", "rules", "4"),
			arm(0.096, 0.019, 0.007, 0.002, "enforcer", "seccomp", "mode", "RuntimeDefault"),
			arm(0.226, 0.011, 0.013, 0, "enforcer", "landlock", "rules", "0"),
			arm(0.262, 0.014, 0.021, 0, "enforcer", "landlock", "rules", "8"),
			arm(0.514, 0.021, 0.049, 0, "enforcer", "landlock", "rules", "50"),
			arm(0.334, 0.031, 0.027, 0, "enforcer", "both", "mode", "RuntimeDefault", "rules", "8"),
			arm(11.4, -0.024, 0.003, 0, "enforcer", "ptrace"),
		},
	}
	r := c.report()
	r.Design.Factors = []string{"enforcer", "mode", "rules"}
	negativeControls(r, "compute", "fork")
	for i := range r.Treatments[:4] {
		v := round4(1.31e-6 * (1 + 0.03*float64(i)))
		r.Treatments[i].Metrics = append(r.Treatments[i].Metrics, Metric{
			Name: "wall", Operation: "open", Unit: "s", Value: v,
			Lo: new(round4(v * 0.97)), Hi: new(round4(v * 1.04)), Level: new(0.95), N: 10,
		})
		values := known([]float64{
			v, round4(v * 0.97), round4(v * 1.04), round4(v * 0.96), round4(v * 1.05), round4(v * 0.98),
			round4(v * 1.07), v, v,
		})
		r.Blocks = append(r.Blocks, BlockValues{
			Treatment: r.Treatments[i].ID, Operation: "open", Metric: "wall",
			Unit: metric.Seconds, Values: append(values, nil),
		})
		if i > 0 {
			x := r.Effects[0]
			x.Treatment, x.Metric, x.Gating, x.Estimate, x.Lo, x.Hi, x.Verdict = r.Treatments[i].ID, "wall", false,
				0.03*float64(i), 0.03*float64(i)-0.025, 0.03*float64(i)+0.03, Slower
			r.Effects = append(r.Effects, x)
		}
	}
	r.Percentiles = []Percentiles{{
		Treatment: r.Treatments[0].ID, Operation: "open", Metric: "cpu", Unit: metric.CPUSeconds, Of: "batches", N: 160,
		Points: []Percentile{{Q: 0.5, Value: 1.19e-6, Lo: new(1.18e-6), Hi: new(1.2e-6)}, {Q: 0.99, Value: 1.42e-6}},
	}}
	enforcerBudgets(r)
	r.Warnings = []string{"block 8 was slow in every arm (+22 %): host noise"}
	return r
}

// negativeControls takes the effects on operations that a control cannot touch out of those that decide.
func negativeControls(r *Report, operations ...string) {
	r.Effects = slices.DeleteFunc(r.Effects, func(x Effect) bool {
		if !slices.Contains(operations, x.Operation) {
			return false
		}
		x.Control = design.Negative
		if x.Measurable = false; x.Verdict != Equivalent {
			x.Verdict = EffectInconclusive
		}
		r.AA.NegativeControls = append(r.AA.NegativeControls, x)
		return true
	})
}

func enforcerBudgets(r *Report) {
	limit := func(text string, limit float64) {
		for i := range r.Effects {
			x := &r.Effects[i]
			if x.Operation+"."+x.Metric+" <= +"+share(limit) != text || !x.Gating {
				continue
			}
			b := Budget{
				Text: text, Treatment: x.Treatment, Verdict: Inconclusive, Unit: metric.Ratio, Estimate: &x.Estimate,
				Lo: &x.Lo, Hi: &x.Hi, Limit: &limit,
			}
			if x.Hi <= limit {
				b.Verdict = Pass
			} else if x.Lo > limit {
				b.Verdict = Fail
			}
			r.Budgets = append(r.Budgets, b)
		}
	}
	limit("exec.cpu <= +2 %", 0.02)
	limit("open.cpu <= +30 %", 0.3)
	fails := 0
	for i := range r.Budgets {
		if r.Budgets[i].Verdict == Fail {
			fails++
		}
	}
	r.Verdict, r.Reason = Fail, fmt.Sprintf("%d budgets of %d broken", fails, len(r.Budgets))
}
