package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestBinomialIntervalAgainstTables: intervals of Clopper and Pearson as published tables and R's binom.test give them.
func TestBinomialIntervalAgainstTables(t *testing.T) {
	for _, x := range []struct {
		k, n   uint64
		lo, hi float64
	}{
		{1, 10, 0.002529, 0.445016},
		{5, 10, 0.187086, 0.812914},
		{2, 100, 0.002431, 0.070384},
		{500, 1000, 0.468554, 0.531446},
		{3, 100_000, 6.18687e-06, 8.767047e-05},
	} {
		e, ok := BinomialInterval(x.k, x.n, 0.95)
		if !ok || math.Abs(e.Lo/x.lo-1) > 1e-3 || math.Abs(e.Hi/x.hi-1) > 1e-3 {
			t.Errorf("%d of %d: [%v, %v], want [%v, %v]", x.k, x.n, e.Lo, e.Hi, x.lo, x.hi)
		}
	}
	if e, _ := BinomialInterval(0, 12_408, 0.95); e.Lo != 0 || math.Abs(e.Hi-2.4141e-4) > 1e-7 {
		t.Errorf("0 of 12408: %+v", e)
	}
	if e, _ := BinomialInterval(50, 50, 0.95); e.Hi != 1 || math.Abs(e.Lo-math.Pow(0.05, 0.02)) > 1e-12 {
		t.Errorf("50 of 50: %+v", e)
	}
	for _, bad := range [][2]uint64{{0, 0}, {2, 1}} {
		if e, ok := BinomialInterval(bad[0], bad[1], 0.95); ok {
			t.Errorf("%d of %d has the interval %+v", bad[0], bad[1], e)
		}
	}
}

// TestBinomialIntervalCovers: 95 % intervals hold the truth in 93 to 99.5 % of 2,000 draws at each of several shares;
// exact intervals of discrete counts cover more than their level where counts are small.
func TestBinomialIntervalCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	for _, p := range []float64{0.001, 0.01, 0.1, 0.5, 0.98} {
		const n, draws = 5000, 2000
		held := 0
		for range draws {
			var k uint64
			for range n {
				if rng.Float64() < p {
					k++
				}
			}
			if e, ok := BinomialInterval(k, n, 0.95); ok && e.Lo <= p && p <= e.Hi {
				held++
			}
		}
		if share := float64(held) / draws; share < 0.93 || share > 0.995 {
			t.Errorf("share %v: %.1f %% of the intervals hold it", p, 100*share)
		}
	}
}

func TestTrialsToBound(t *testing.T) {
	for p, want := range map[float64]uint64{0.01: 299, 0.001: 2995, 0.0001: 29956} {
		if got := TrialsToBound(p, 0.95); got != want {
			t.Errorf("%v: %d trials, want %d", p, got, want)
		}
		n := TrialsToBound(p, 0.95)
		if e, _ := BinomialInterval(0, n, 0.95); e.Hi > p {
			t.Errorf("0 of %d is below %v, not below %v", n, e.Hi, p)
		}
	}
	if TrialsToBound(0, 0.95) != 0 {
		t.Error("no number of trials shows a share of 0")
	}
}
