package analyze

import (
	"testing"

	"tare/internal/record"
	"tare/internal/report"
)

// TestBatchesWithFailedCalls: a program whose calls fail quickly does not take less time for those that it answers.
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
		x := pulls("check.wall <= +20%")
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
			for i := range trial.Batches {
				if trial.Batches[i].Metric == "wall" {
					for j := range trial.Batches[i].Values {
						trial.Batches[i].Values[j] = 1e-6 * factor * (1 + float64(j%5)/1000)
					}
				}
			}
			trial.Batches = append(trial.Batches, b)
		}
		rep := reportOf(t, r)
		for _, e := range rep.Effects {
			if e.Metric == "wall" && e.Verdict != c.effect {
				t.Errorf("%s: %s of %v [%v, %v], want %s", name, e.Verdict, e.Estimate, e.Lo, e.Hi, c.effect)
			}
		}
		if len(rep.Budgets) != 1 || rep.Budgets[0].Verdict != c.budget {
			t.Errorf("%s: budgets %+v, want %s", name, rep.Budgets, c.budget)
		}
	}
}
