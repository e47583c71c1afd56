package montecarlo

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"tare/internal/stat"
)

// Coverage is how often the intervals of one procedure held the truth.
type Coverage struct {
	World  string
	Blocks int
	Share  float64
	Half   float64 // the mean half width of the logarithm
}

const level = 0.95

// MedianCoverage is that of the 95 % Hodges–Lehmann interval of the blocks' log ratios of medians, each of 101 calls.
func MedianCoverage(ctx context.Context, s Study, w World, blocks int) (Coverage, error) {
	return cover(ctx, s, w, blocks, 0.5, func(base, treated [][]float64) (stat.Test, error) {
		d := make([]float64, len(base))
		for b := range d {
			d[b] = math.Log(stat.Quantile(treated[b], 0.5) / stat.Quantile(base[b], 0.5))
		}
		return stat.HodgesLehmann(d, level)
	})
}

// TailCoverage is that of the 95 % jackknife interval of the log ratio of pooled p99, with 500 calls a block.
func TailCoverage(ctx context.Context, s Study, w World, blocks int) (Coverage, error) {
	return cover(ctx, s, w, blocks, 0.99, func(base, treated [][]float64) (stat.Test, error) {
		return stat.QuantileRatio(samples(base), samples(treated), 0.99, level)
	})
}

// samples puts each block in order.
func samples(blocks [][]float64) (out []stat.Sample) {
	for _, x := range blocks {
		s := slices.Clone(x)
		slices.Sort(s)
		out = append(out, stat.Values(s))
	}
	return out
}

func cover(ctx context.Context, s Study, w World, blocks int, q float64,
	estimate func(base, treated [][]float64) (stat.Test, error),
) (Coverage, error) {
	calls := 500
	if q == 0.5 {
		calls = 101
	}
	tests, err := repeat(ctx, s, fmt.Sprintf("coverage %v %s %d", q, w.Name, blocks), func(r *rand.Rand) stat.Test {
		t, err := estimate(w.run(r, blocks, calls))
		if err != nil {
			return stat.Test{Estimate: stat.Estimate{Lo: math.NaN()}} // holds nothing: shows as lost coverage
		}
		return t
	})
	truth, half := w.truth(q), 0.0
	for _, t := range tests {
		half += (t.Hi - t.Lo) / 2 / float64(len(tests))
	}
	return Coverage{w.Name, blocks, share(tests, func(t stat.Test) bool { return t.Lo <= truth && truth <= t.Hi }), half},
		err
}

// CoverageTable is the coverage of both procedures in every world.
func CoverageTable(ctx context.Context, s Study) (Table, error) {
	t := Table{
		Title: "Coverage of 95 % intervals",
		Note: "The treated arm takes 5 % longer. p50: Hodges–Lehmann over per-block log ratios of medians (101 calls a " +
			"block). " +
			"p99: pooled quantiles with the delete-one-block jackknife (500 calls a block). In brackets the mean half width.",
		Columns: []string{"noise", "p50, 10 blocks", "20", "40", "p99, 20 blocks", "40", "80"},
	}
	for _, w := range Worlds() {
		row := []string{w.Name}
		for _, b := range []int{10, 20, 40} {
			c, err := MedianCoverage(ctx, s, w, b)
			if err != nil {
				return t, err
			}
			row = append(row, c.cell())
		}
		for _, b := range []int{20, 40, 80} {
			c, err := TailCoverage(ctx, s, w, b)
			if err != nil {
				return t, err
			}
			row = append(row, c.cell())
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

func (c Coverage) cell() string { return fmt.Sprintf("%s (±%.1f %%)", percent(c.Share), 100*c.Half) }
