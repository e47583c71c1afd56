package analyze

import (
	"testing"

	"tare/internal/record"
	"tare/internal/report"
)

// TestBatchesWithFailedCalls: a program whose calls fail quickly takes no less time, CPU time, instructions or memory
// for those that it answers.
func TestBatchesWithFailedCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failed, faster float64 // under the treatment: a share of the calls, and a factor of all times
		effect         report.EffectVerdict
		budget         report.Verdict
	}{
		"none failed":       {0, .5, report.Improved, report.Pass},
		"half failed":       {.5, .5, report.EffectInconclusive, report.Pass}, // the rest took at most twice the half
		"most failed":       {.8, .5, report.EffectInconclusive, report.Inconclusive},
		"all failed":        {1, .5, report.EffectInconclusive, report.Inconclusive},
		"few failed":        {.001, .5, report.Improved, report.Pass},
		"failed and slower": {.5, 3, report.Regressed, report.Fail},
	} {
		for metric, cost := range map[string]float64{"wall": 1e-6, "cpu": 1e-6, "instructions": 1e8, "allocated": 1e7} {
			x := pulls("check." + metric + " <= +20%")
			x.operations = []string{"check"}
			r := x.record()
			for _, trial := range r.Trials {
				share, factor := 0., 1.
				if trial.Treatment == "accessor=cached" {
					share, factor = c.failed, c.faster
				}
				b := record.Batches{
					Treatment: trial.Treatment, Block: trial.Block, Operation: "check", Metric: "error", N: 5000,
					Values: []float64{share},
				}
				spent := b
				spent.Metric, spent.Values = metric, nil
				for j := range 16 {
					spent.Values = append(spent.Values, cost*factor*(1+float64(j%5)/1000))
				}
				trial.Batches = []record.Batches{spent, b}
			}
			rep := reportOf(t, r)
			for _, e := range rep.Effects {
				if e.Metric == metric && e.Verdict != c.effect {
					t.Errorf("%s, %s: %s of %v [%v, %v], want %s", name, metric, e.Verdict, e.Estimate, e.Lo, e.Hi, c.effect)
				}
			}
			if len(rep.Budgets) != 1 || rep.Budgets[0].Verdict != c.budget {
				t.Errorf("%s, %s: budgets %+v, want %s", name, metric, rep.Budgets, c.budget)
			}
		}
	}
}

// TestFewFailuresAreNotEquivalent: a treatment under which more calls fail is not called equivalent, though their share
// is within the margin of 2 percentage points.
func TestFewFailuresAreNotEquivalent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		base, treated float64
		want          report.EffectVerdict
	}{
		"none":    {0, 0, report.Equivalent},
		"as many": {.01, .01, report.Equivalent},
		"more":    {0, .014, report.Slower},
		"fewer":   {.014, 0, report.Faster},
		"many":    {0, .1, report.Regressed},
	} {
		x := pulls()
		x.operations, x.margin = []string{"check"}, .02
		r := x.record()
		for _, trial := range r.Trials {
			share := c.base
			if trial.Treatment == "accessor=cached" {
				share = c.treated
			}
			trial.Batches = append(trial.Batches, record.Batches{
				Treatment: trial.Treatment, Block: trial.Block, Operation: "check", Metric: "error", N: 5000,
				Values: []float64{share},
			})
		}
		found := false
		for _, e := range reportOf(t, r).Effects {
			if e.Metric != "error" {
				continue
			}
			if found = true; e.Verdict != c.want || e.BlocksToDecide != nil {
				t.Errorf("%s: %s [%v, %v] after %v, want %s", name, e.Verdict, e.Lo, e.Hi, e.BlocksToDecide, c.want)
			}
		}
		if !found {
			t.Errorf("%s: no effect on failures", name)
		}
	}
}
