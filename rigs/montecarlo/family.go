package montecarlo

import (
	"context"
	"math"
	"math/rand/v2"

	"tare/internal/stat"
)

// Family is the error over a family of five metrics, at α = 5 %.
type Family struct {
	Name string
	// AnyRaw, AnyHolm: some true hypothesis rejected. BeyondMargin: some interval at its Holm level lies beyond a
	// margin that the true effect does not exceed. Discoveries: the mean share of false ones among Benjamini and
	// Hochberg's.
	AnyRaw, AnyHolm, BeyondMargin, Discoveries float64
	// share of the false hypotheses that Holm rejects; NaN if there are none
	Found float64
}

const familyAlpha = 0.05

// families are the true effects of the metrics.
func families() map[string][]float64 {
	m := math.Log1p(margin)
	return map[string][]float64{
		"no effect":                  {0, 0, 0, 0, 0},
		"two of +3 %":                {math.Log1p(0.03), math.Log1p(0.03), 0, 0, 0},
		"all exactly at +2 % margin": {m, m, m, m, m},
	}
}

// FamilyError measures it for 20 blocks with 2 % noise; the metrics of a block share half of their variance.
func FamilyError(ctx context.Context, s Study, name string) (Family, error) {
	effects := families()[name]
	runs, err := repeat(ctx, s, "family "+name, func(r *rand.Rand) outcome { return judge(r, effects) })
	f := Family{
		Name:         name,
		AnyRaw:       share(runs, func(o outcome) bool { return o.raw }),
		AnyHolm:      share(runs, func(o outcome) bool { return o.holm }),
		BeyondMargin: share(runs, func(o outcome) bool { return o.beyond }),
		Found:        math.NaN(),
	}
	found, genuine := 0, 0
	for _, e := range effects {
		if e != 0 {
			genuine++
		}
	}
	for _, o := range runs {
		f.Discoveries += o.discoveries / float64(len(runs))
		found += o.found
	}
	if genuine > 0 {
		f.Found = float64(found) / float64(genuine*len(runs))
	}
	return f, err
}

// outcome is what was found in one family.
type outcome struct {
	raw, holm, beyond bool
	discoveries       float64
	found             int
}

// judge tests one family drawn with the true effects.
func judge(r *rand.Rand, effects []float64) outcome {
	d, p := metrics(r, effects)
	adjusted, bh, levels := stat.Holm(p), stat.BenjaminiHochberg(p), stat.HolmLevels(p, familyAlpha)
	var o outcome
	wrong, all := 0.0, 0.0
	for i, e := range effects {
		if bh[i] <= familyAlpha {
			all++
			if e == 0 {
				wrong++
			}
		}
		if e == 0 {
			o.raw, o.holm = o.raw || p[i] <= familyAlpha, o.holm || adjusted[i] <= familyAlpha
		} else if adjusted[i] <= familyAlpha {
			o.found++
		}
		at := interval(stat.HodgesLehmann(d[i], 1-levels[i]))
		o.beyond = o.beyond || at.Lo > math.Log1p(margin) && e <= math.Log1p(margin)
	}
	o.discoveries = wrong / max(1, all)
	return o
}

// metrics is the differences and p-values of a family.
func metrics(r *rand.Rand, effects []float64) (d [][]float64, p []float64) {
	const blocks, sd = 20, 0.02
	shared := Noises()[0].differences(r, blocks, 0, sd*math.Sqrt(0.5))
	for _, e := range effects {
		x := Noises()[0].differences(r, blocks, e, sd*math.Sqrt(0.5))
		for b := range x {
			x[b] += shared[b]
		}
		d, p = append(d, x), append(p, pValue(stat.HodgesLehmann(x, 0.95)))
	}
	return d, p
}

// FamilyTable is the error of all families.
func FamilyTable(ctx context.Context, s Study) (Table, error) {
	t := Table{
		Title: "Errors over a family of five metrics",
		Note: "20 blocks, 2 % noise, half of its variance common to the metrics, α = 5 % for the family. *Beyond the " +
			"margin*: some interval " +
			"at its Holm level lies beyond 2 % though no true effect does.",
		Columns: []string{
			"true effects", "any false rejection, unadjusted",
			"any, Holm", "any beyond the margin, Holm levels", "false share of discoveries, Benjamini–Hochberg",
			"real effects found, Holm",
		},
	}
	for _, name := range []string{"no effect", "two of +3 %", "all exactly at +2 % margin"} {
		f, err := FamilyError(ctx, s, name)
		if err != nil {
			return t, err
		}
		found := "–"
		if !math.IsNaN(f.Found) {
			found = percent(f.Found)
		}
		t.Rows = append(t.Rows, []string{
			f.Name, percent(f.AnyRaw), percent(f.AnyHolm), percent(f.BeyondMargin),
			percent(f.Discoveries), found,
		})
	}
	return t, nil
}
