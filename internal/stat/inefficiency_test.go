package stat

import (
	"math/rand/v2"
	"testing"
)

// TestInefficiency: of an autoregressive series it is (1+φ)/(1−φ).
func TestInefficiency(t *testing.T) {
	for _, c := range []struct{ phi, lo, hi float64 }{{0, 1, 1.8}, {0.5, 2.5, 4.5}, {0.9, 14, 28}, {0.98, 60, 150}} {
		sum := 0.0
		const series = 20
		for seed := range uint64(series) {
			rng := rand.New(rand.NewPCG(seed, 1))
			x, at := make([]float64, 20000), 0.0
			for i := range x {
				at = c.phi*at + rng.NormFloat64()
				x[i] = at
			}
			sum += Inefficiency(x) / series
		}
		if sum < c.lo || sum > c.hi {
			t.Errorf("φ = %g: %.3g on average, want %g to %g", c.phi, sum, c.lo, c.hi)
		}
	}
	for _, x := range [][]float64{nil, {1}, make([]float64, 1000)} {
		if got := Inefficiency(x); got != 1 {
			t.Errorf("%d equal values: %g", len(x), got)
		}
	}
}
