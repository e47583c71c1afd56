package stat_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"tare/internal/stat"
)

// TestFindJump: jumps are found, with their place and size, and lines, curves and noise that hangs together are none.
func TestFindJump(t *testing.T) {
	const n, runs = 60, 200
	jump := func(at float64) func(float64) float64 {
		return func(x float64) float64 {
			if x < at {
				return 0
			}
			return 1
		}
	}
	line := func(x float64) float64 { return x }
	nothing := func(float64) float64 { return 0 }
	for name, c := range map[string]struct {
		of           func(x float64) float64 // of the part of the series that is over
		noise, hangs float64                 // of its values, and how much of it each has from the one before
		least, most  int
	}{
		"a jump":                     {jump(0.54), 0.1, 0, runs, runs},
		"a jump early":               {jump(0.2), 0.1, 0, runs, runs},
		"a jump late":                {jump(0.85), 0.1, 0, runs, runs},
		"a jump in noise":            {jump(0.5), 0.5, 0, runs / 6, runs},
		"a jump, and what hangs":     {jump(0.5), 0.2, 0.6, runs / 5, runs},
		"a line":                     {line, 0.05, 0, 0, 0},
		"a line in noise":            {line, 0.4, 0, 0, 1},
		"a line in noise that hangs": {line, 0.3, 0.7, 0, 4},
		"nothing":                    {nothing, 1, 0, 0, 0},
		"nothing that hangs":         {nothing, 1, 0.7, 0, 4},
		"a walk":                     {nothing, 1, 1, 0, 8},
		"a bend":                     {func(x float64) float64 { return max(0, x-0.5) }, 0.02, 0, 0, 0},
		"what speeds up":             {func(x float64) float64 { return math.Exp(5*x - 5) }, 0.02, 0, 0, 0},
		"what comes to an end":       {func(x float64) float64 { return 1 - math.Exp(-8*x) }, 0.02, 0, 0, 0},
		"a jump and a line":          {func(x float64) float64 { return jump(0.5)(x) + 2*x }, 0.1, 0, 0, 0},
	} {
		random := rand.New(rand.NewPCG(7, 11)) //nolint:gosec // repeatable
		found := 0
		for range runs {
			at, y := make([]float64, n), make([]float64, n)
			carried := 0.0
			for i := range n {
				at[i] = float64(i) / n
				carried = c.hangs*carried + c.noise*random.NormFloat64()
				y[i] = 5 + c.of(at[i]) + carried
			}
			j, ok := stat.FindJump(at, y, nil)
			if !ok {
				continue
			}
			found++
			if c.noise == 0.1 && (math.Abs(j.After-j.Before-1) > 0.2 || c.of(j.At-0.02) != 0 || c.of(j.At+0.02) != 1) {
				t.Errorf("%s: %+v", name, j)
			}
		}
		t.Logf("%s: %d of %d", name, found, runs)
		if found < c.least || found > c.most {
			t.Errorf("%s: %d of %d series are said to jump, want %d to %d", name, found, runs, c.least, c.most)
		}
	}
}
