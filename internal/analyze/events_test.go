package analyze

import (
	"math"
	"testing"
)

// TestEventLimits compares with the exact limits of a Poisson mean.
func TestEventLimits(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][2]float64{
		1: {0.0253, 5.5716}, 2: {0.2422, 7.2247}, 3: {0.6187, 8.7673}, 10: {4.7954, 18.3904}, 100: {81.3640, 121.6274},
	} {
		if lo, hi := fewest(n)*float64(n), most(n)*float64(n); math.Abs(lo-want[0]) > 1e-3 || math.Abs(hi-want[1]) > 1e-3 {
			t.Errorf("%d: %v to %v, want %v", n, lo, hi, want)
		}
	}
	if lo, hi := fewest(101), most(101); lo > 0.814 || lo < 0.5 || hi < 1.216 || hi > 1.5 {
		t.Errorf("101: %v to %v", lo, hi)
	}
	if lo, hi := fewest(0), most(0); lo != 0 || !math.IsInf(hi, 1) {
		t.Errorf("0: %v to %v", lo, hi)
	}
}
