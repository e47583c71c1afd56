package report

import (
	"math"

	"tare/internal/metric"
)

// spoil puts a text into every field of a report that another could have chosen.
func spoil(r *Report, s string) {
	// A few of each are as good as many, and a fuzzer has ten seconds for all of it.
	r.Effects, r.Blocks, r.Treatments, r.Budgets = first(r.Effects), first(r.Blocks), first(r.Treatments), first(r.Budgets)
	if r.AA != nil {
		r.AA.Effects, r.AA.NegativeControls = first(r.AA.Effects), first(r.AA.NegativeControls)
	}
	r.Experiment.Name, r.Area, r.Reason, r.Environment.Host, r.Tool.Version = s, s, s, s, s
	r.Notes, r.Warnings = []string{s}, []string{s, s}
	for i := range r.Budgets {
		r.Budgets[i].Text, r.Budgets[i].Treatment, r.Budgets[i].Reason = s, s, s
	}
	for i := range r.Operations {
		r.Operations[i].Operation, r.Operations[i].Treatment = s, s
		r.Operations[i].Causes = []Cause{{Outcome: s, Cause: s, Calls: 1}, {Outcome: s, Cause: s, Calls: 2}}
	}
	for i := range r.Treatments {
		r.Treatments[i].ID = s
	}
	for i := range r.Harness {
		r.Harness[i].Treatment, r.Harness[i].Operation, r.Harness[i].Metric, r.Harness[i].Unit = s, s, s, metric.Unit(s)
	}
	for i := range r.Effects {
		x := &r.Effects[i]
		x.Treatment, x.Baseline, x.Operation, x.Quantile, x.Reason = s, s, s, s, s
	}
	for i := range r.Growth {
		g := &r.Growth[i]
		g.Factor, g.Treatment, g.Operation, g.Law, g.Best, g.Reason, g.Budget = s, s, s, s, s, s, s
	}
	for i := range r.Blocks {
		r.Blocks[i].Treatment, r.Blocks[i].Operation = s, s
	}
	if r.Design != nil {
		r.Design.Stopped, r.Design.Factors = s, []string{s}
	}
	for i := range r.Operations {
		r.Operations[i].Answers = map[string]uint64{s: 1, s + "2": 2}
	}
	for i := range r.Answers {
		r.Answers[i].Treatment, r.Answers[i].Answer = s, s
	}
	for i := range r.Soak {
		x := &r.Soak[i]
		x.Treatment, x.Drift = s, map[string]Drift{
			s:     {Verdict: EffectVerdict(s), Unit: metric.Unit(s), Reason: s},
			"rss": {Verdict: Regressed, PerHour: 1},
		}
	}
	for i := range r.Target {
		r.Target[i].Name, r.Target[i].GC = s, []GC{{Name: s, Count: 1}, {Name: s, Count: 2}}
		r.Target[i].Other = map[string]float64{s: 1, s + "2": math.Inf(1), "": math.NaN()}
	}
}

// spoilNumbers puts a number into every kind of field.
func spoilNumbers(r *Report, v float64, n uint64) {
	r.Seconds = v
	for i := range r.Budgets {
		r.Budgets[i].Estimate, r.Budgets[i].Lo, r.Budgets[i].Limit = &v, &v, &v
	}
	for i := range r.Capacity {
		r.Capacity[i].Rate, r.Capacity[i].AtLeast = &v, &v
		for k := range r.Capacity[i].Points {
			r.Capacity[i].Points[k].Rate = v
		}
	}
	for i := range r.Operations {
		r.Operations[i].Outcomes.OK, r.Operations[i].BytesIn = n, &n
		r.Operations[i].Response = &Distribution{N: n, Min: v, Mean: v, P50: &v}
	}
	for i := range r.Soak {
		x := &r.Soak[i]
		x.Seconds, x.WarmUpSeconds, x.Planned, x.Rate, x.Restarts, x.Outages = v, v, v, v, []float64{v, -v},
			[]Outage{{Start: -v, End: v, Calls: n}}
		x.Drift = map[string]Drift{"rss": {
			PerHour: v, Lo: &v, Hi: &v, Start: v, Total: v, Unit: metric.Bytes,
			Verdict: Slower,
		}, "cpu": {PerHour: -v, Start: v, Verdict: Equivalent, Margin: v}}
		if x.Total != nil {
			x.Total.Little, x.Total.CPUPerOp = &Little{Expected: v, Observed: v}, &v
		}
	}
	for i := range r.Answers {
		r.Answers[i].Client, r.Answers[i].Target = n, v
	}
	for i := range r.Harness {
		r.Harness[i].Value, r.Harness[i].Lo, r.Harness[i].Hi, r.Harness[i].N = v, &v, &v, int(n%1000)
	}
	for i := range r.Treatments {
		for k := range r.Treatments[i].Metrics {
			r.Treatments[i].Metrics[k].Harness = &v
		}
	}
	for i := range r.Effects {
		x := &r.Effects[i]
		x.Estimate, x.Lo, x.Hi, x.MDE, x.BlocksToDecide = v, -v, v, &v, new(int(n%1000))
	}
	for i := range r.Growth {
		g := &r.Growth[i]
		g.Coefficients, g.Lo, g.Hi, g.Range, g.Knee = Coefficients{v, v}, &v, &v, Interval{v, v}, &Crossing{Value: v, Hi: &v}
		if g.Step != nil {
			side := &GrowthSide{Range: Interval{v, v}, Best: "log", Coefficients: Coefficients{v, v}, Lo: &v, Hi: &v}
			g.Step, g.BreaksBudgetAt = &Step{
				From: v, To: -v, Factor: v, Lo: &v, Hi: &v, Across: &v, AcrossLo: &v, AcrossHi: &v,
				Before: side, After: side,
			}, &Crossing{Value: v, Lo: &v, Hi: &v, InStep: true}
		}
		if g.Bend != nil {
			k := &Coefficient{v, &v, &v}
			g.Bend = &Bend{Base: *k, Slope: k, Steeper: k}
		}
		for k := range g.Points {
			g.Points[k].N, g.Points[k].Value, g.Points[k].Lo = v, v, &v
		}
	}
	for i := range r.Blocks {
		r.Blocks[i].Values = []*float64{&v, nil, &v}
	}
	for i := range r.Target {
		r.Target[i].CPUSeconds, r.Target[i].GC = &v, []GC{{Count: v, Seconds: v}}
	}
}
