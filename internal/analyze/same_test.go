package analyze

import (
	"testing"

	"tare/internal/metric"
	"tare/internal/report"
	"tare/internal/stat"
)

// TestSameInEveryBlock: a count that neither arm ever has is equivalent; one that differs in a single block is not,
// though its interval is [0, 0], and few blocks are too few either way.
func TestSameInEveryBlock(t *testing.T) {
	t.Parallel()
	allocations := metric.Metric{Name: "allocations", Unit: metric.Count, Better: metric.Lower}
	for name, c := range map[string]struct {
		blocks int
		last   float64
		want   report.EffectVerdict
	}{
		"none":             {20, 0, report.Equivalent},
		"one in one block": {20, 1, report.EffectInconclusive},
		"few blocks":       {4, 0, report.NotJudged},
	} {
		base, treated := make([]float64, c.blocks), make([]float64, c.blocks)
		treated[c.blocks-1] = c.last
		x, err := estimator{metric: allocations, blocks: c.blocks}.ofBlocks(base, treated, false)
		if err != nil {
			t.Fatal(err)
		}
		x.setMargin(base, 0.02)
		if err := x.estimate(stat.LookAlpha); err != nil {
			t.Fatal(err)
		}
		x.fill(stat.LookAlpha)
		e := x.effect
		if e.Lo != 0 || e.Hi != 0 || e.Verdict != c.want {
			t.Errorf("%s: %s of [%v, %v] (%s), want %s", name, e.Verdict, e.Lo, e.Hi, e.Reason, c.want)
		}
		if same := e.Reason == "the same in every block"; same != (c.want == report.Equivalent) {
			t.Errorf("%s: the reason is %q", name, e.Reason)
		}
	}
}
