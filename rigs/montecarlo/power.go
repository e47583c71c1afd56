package montecarlo

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"tare/internal/stat"
)

const margin = 0.02

// Power is how often one look reaches each finding.
type Power struct {
	SD, Effect                     float64
	Blocks                         int
	Regressed, Differs, Equivalent float64
}

// PowerAt is the power of one look for every effect and block noise given. The same noise is used for all of them,
// which the estimator's equivariance makes exact: only its scale and place differ.
func PowerAt(ctx context.Context, s Study, blocks int, sds, effects []float64) ([]Power, error) {
	runs, err := repeat(ctx, s, fmt.Sprintf("power %d", blocks), func(r *rand.Rand) stat.Estimate {
		return interval(stat.HodgesLehmann(Noises()[0].differences(r, blocks, 0, 1), 1-stat.LookAlpha))
	})
	var out []Power
	m := math.Log1p(margin)
	for _, sd := range sds {
		for _, e := range effects {
			shift := math.Log1p(e)
			out = append(out, Power{
				SD: sd, Effect: e, Blocks: blocks,
				Regressed:  share(runs, func(e stat.Estimate) bool { return shift+sd*e.Lo > m }),
				Differs:    share(runs, func(e stat.Estimate) bool { return shift+sd*e.Lo > 0 || shift+sd*e.Hi < 0 }),
				Equivalent: share(runs, func(e stat.Estimate) bool { return stat.Equivalent(place(e, shift, sd), -m, m) }),
			})
		}
	}
	return out, err
}

// interval is a test's interval; data on which it fails has none.
func interval(t stat.Test, err error) stat.Estimate {
	if err != nil {
		return stat.Estimate{Lo: math.Inf(-1), Hi: math.Inf(1)}
	}
	return t.Estimate
}

func place(e stat.Estimate, shift, scale float64) stat.Estimate {
	e.Value, e.Lo, e.Hi = shift+scale*e.Value, shift+scale*e.Lo, shift+scale*e.Hi
	return e
}

// PowerTable is the power of each look.
func PowerTable(ctx context.Context, s Study) (Table, error) {
	sds, effects := []float64{0.005, 0.01, 0.02, 0.05}, []float64{0, 0.01, 0.02, 0.05, 0.1}
	t := Table{
		Title: "Power of one look",
		Note: fmt.Sprintf("Share of comparisons found *regressed beyond 2 %%* / *different from 0* / *equivalent within 2 "+
			"%%* at one look "+
			"(α = %v), by true effect, standard deviation of a block's log ratio, and blocks. Normal noise.", stat.LookAlpha),
		Columns: []string{"block noise", "true effect"},
	}
	cells := map[int][]Power{}
	for _, b := range Looks() {
		t.Columns = append(t.Columns, fmt.Sprintf("%d blocks", b))
		p, err := PowerAt(ctx, s, b, sds, effects)
		if err != nil {
			return t, err
		}
		cells[b] = p
	}
	for i, p := range cells[Looks()[0]] {
		row := []string{fmt.Sprintf("%.1f %%", 100*p.SD), fmt.Sprintf("%+.0f %%", 100*p.Effect)}
		for _, b := range Looks() {
			c := cells[b][i]
			row = append(row, fmt.Sprintf("%.0f / %.0f / %.0f %%", 100*c.Regressed, 100*c.Differs, 100*c.Equivalent))
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// PowerAtMDE is the share of fresh comparisons that exclude 0 when the true effect is the minimum detectable effect
// that an earlier one announced.
func PowerAtMDE(ctx context.Context, s Study, noise Noise, blocks int) (float64, error) {
	runs, err := repeat(ctx, s, fmt.Sprintf("mde %s %d", noise.Name, blocks), func(r *rand.Rand) bool {
		e := interval(stat.HodgesLehmann(noise.differences(r, blocks, 0, 0.02), 1-stat.LookAlpha))
		mde := stat.DetectableEffect(stat.StandardError(e), stat.LookAlpha, 0.8)
		return pValueOrOne(stat.HodgesLehmann(noise.differences(r, blocks, mde, 0.02), 0.95)) <= stat.LookAlpha
	})
	return share(runs, func(found bool) bool { return found }), err
}

func pValueOrOne(t stat.Test, err error) float64 {
	if err != nil {
		return 1
	}
	return t.P
}

// MDETable is PowerAtMDE under all noises.
func MDETable(ctx context.Context, s Study) (Table, error) {
	t := Table{
		Title: "Calibration of the minimum detectable effect",
		Note: "Share of fresh comparisons that exclude 0 when the true effect is the announced minimum detectable " +
			"effect. Promised: 80 %.",
		Columns: []string{"noise", "10 blocks", "20", "40", "80", "160"},
	}
	for _, n := range Noises() {
		row := []string{n.Name}
		for _, b := range Looks() {
			p, err := PowerAtMDE(ctx, s, n, b)
			if err != nil {
				return t, err
			}
			row = append(row, percent(p))
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// Promise is what became of the numbers of blocks that stat.BlocksToDecide announced.
type Promise struct {
	Effect    float64
	Blocks    int     // at which they were announced
	Announced float64 // share of comparisons that were undecided and got a number of at most longest blocks
	Median    int     // of the numbers
	Kept      float64 // share of these that were decided at the number
}

// longest is the most blocks that the simulation of a promise is willing to run.
const longest = 2000

// Promised measures it for one true effect at one look. The comparison goes on with the blocks it has.
func Promised(ctx context.Context, s Study, effect float64, blocks int) (Promise, error) {
	type promise struct {
		blocks int
		kept   bool
	}
	m, shift := math.Log1p(margin), math.Log1p(effect)
	runs, err := repeat(ctx, s, fmt.Sprintf("promise %v %d", effect, blocks), func(r *rand.Rand) promise {
		d := Noises()[0].differences(r, blocks, shift, 0.03)
		if decided(d, m) {
			return promise{}
		}
		e := interval(stat.HodgesLehmann(d, 1-stat.LookAlpha))
		n, ok := stat.BlocksToDecide(e, m, stat.LookAlpha, 0.8)
		if !ok || n > longest {
			return promise{}
		}
		d = append(d, Noises()[0].differences(r, n-blocks, shift, 0.03)...)
		return promise{n, decided(d, m)}
	})
	var numbers []float64
	kept := 0
	for _, p := range runs {
		if p.blocks > 0 {
			numbers = append(numbers, float64(p.blocks))
			if p.kept {
				kept++
			}
		}
	}
	out := Promise{Effect: effect, Blocks: blocks, Announced: float64(len(numbers)) / float64(max(1, len(runs)))}
	if len(numbers) > 0 {
		out.Median, out.Kept = int(stat.Quantile(numbers, 0.5)), float64(kept)/float64(len(numbers))
	}
	return out, err
}

// decided says whether one look calls d regressed, improved or equivalent.
func decided(d []float64, m float64) bool {
	e := interval(stat.HodgesLehmann(d, 1-stat.LookAlpha))
	return e.Lo > m || e.Hi < -m || stat.Equivalent(e, -m, m)
}

// PromiseTable is Promised for several effects.
func PromiseTable(ctx context.Context, s Study) (Table, error) {
	t := Table{
		Title: "Blocks to decide",
		Note: "Block noise 3 %. Of the comparisons undecided after so many blocks: the share that got a number of up to " +
			"2000 blocks, the median " +
			"number, and the share that were decided when so many had been run.",
		Columns: []string{"true effect", "blocks so far", "got a number", "median number", "decided at it"},
	}
	for _, e := range []float64{0, 0.01, 0.03, 0.05} {
		for _, b := range []int{10, 20, 40} {
			p, err := Promised(ctx, s, e, b)
			if err != nil {
				return t, err
			}
			row := []string{fmt.Sprintf("%+.0f %%", 100*e), fmt.Sprint(b), percent(p.Announced), "–", "–"}
			if p.Announced > 0 {
				row[3], row[4] = fmt.Sprint(p.Median), percent(p.Kept)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t, nil
}
