package signature

import (
	"math"
	"math/rand/v2"
	"testing"
)

// burstsAt are events in short bursts that begin at some instants.
func burstsAt(begins ...float64) (t []float64) {
	for _, b := range begins {
		for k := range 5 {
			t = append(t, b+0.004*float64(k))
		}
	}
	return t
}

// TestCycle: bursts are a limiter's windows if their beginnings are evenly spaced, and not if chance has spaced them.
func TestCycle(t *testing.T) {
	for name, c := range map[string]struct {
		begins []float64 // of which the first is not seen to begin
		period float64   // 0: none
		cycles int
	}{
		"even":                   {[]float64{1, 2, 3, 4, 5}, 1, 3},
		"nearly even":            {[]float64{1, 2.02, 3.01, 4.02, 5}, 1, 3},
		"uneven by a tenth":      {[]float64{1, 2, 3.1, 4, 5.1}, 0, 0},
		"one of them was missed": {[]float64{1, 2, 4, 5, 6}, 0, 0},
		"a second apart":         {[]float64{1, 2.5, 4}, 1.5, 1},
		"soon after":             {[]float64{1, 1.5, 2}, 0, 0},
		"one":                    {[]float64{1}, 0, 0},
	} {
		period, from, to, cycles := Cycle(burstsAt(c.begins...))
		if math.Abs(period-c.period) > 0.02 || cycles != c.cycles || cycles > 0 && (from != c.begins[1] ||
			to != c.begins[len(c.begins)-1]) {
			t.Errorf("%s: period %v from %v to %v, %d cycles", name, period, from, to, cycles)
		}
	}
	rhythms := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 3))
		var begins []float64
		for at := 0.0; len(begins) < 6; at += 0.2 + r.ExpFloat64() {
			begins = append(begins, at)
		}
		if _, _, _, cycles := Cycle(burstsAt(begins...)); cycles > 0 {
			rhythms++
		}
	}
	if rhythms > 10 {
		t.Errorf("in %d of 1000 bursts by chance there is a rhythm", rhythms)
	}
}
