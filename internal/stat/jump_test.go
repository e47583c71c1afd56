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

// TestJumpDividesBest: a jump is where two levels leave the least, and is found at once in a series as long as a soak
// of a week, whose windows are of ten seconds.
func TestJumpDividesBest(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5)) //nolint:gosec // repeatable
	series := func(n int, base, size float64) (at, y, w []float64) {
		jump := n/8 + random.IntN(3*n/4)
		for i := range n {
			level := base
			if i >= jump {
				level += size
			}
			at, y, w = append(at, float64(i)), append(y, level+random.NormFloat64()), append(w, 0.1+random.Float64())
		}
		return at, y, w
	}
	for range 200 {
		at, y, w := series(80, 3e7, 3)
		j, ok := stat.FindJump(at, y, w)
		if !ok {
			continue
		}
		least, best := math.Inf(1), 0.0
		for i := 8; i <= 72; i++ {
			if left := around(y[:i], w[:i]) + around(y[i:], w[i:]); left < least {
				least, best = left, (at[i-1]+at[i])/2
			}
		}
		if j.At != best {
			t.Errorf("the jump is at %v, two levels leave the least at %v", j.At, best)
		}
	}
	if j, ok := stat.FindJump(series(60_480, 0, 5)); !ok || math.Abs(j.After-j.Before-5) > 0.1 {
		t.Errorf("%+v, %t", j, ok)
	}
}

// around is the sum of the squares of values around their mean.
func around(y, w []float64) (squares float64) {
	sum, all := 0.0, 0.0
	for i := range y {
		sum, all = sum+w[i]*y[i], all+w[i]
	}
	for i := range y {
		squares += w[i] * (y[i] - sum/all) * (y[i] - sum/all)
	}
	return squares
}

// TestFindJumpBoundsTheChange: only what changes from one value to the next, or nearly, is said to do so at once; the
// bounds of a slower change hold it, and neither what settles from the beginning nor a wave is a change of level.
func TestFindJumpBoundsTheChange(t *testing.T) {
	const runs = 60
	change := func(from, to float64) func(x, phase float64) float64 {
		return func(x, _ float64) float64 { return min(1, max(0, (x-from)/max(1e-9, to-from))) }
	}
	settles := func(by float64) func(x, phase float64) float64 {
		return func(x, _ float64) float64 { return math.Exp(-x / by) }
	}
	wave := func(x, phase float64) float64 { return math.Sin(2*math.Pi*(x+phase)) / 2 }
	for name, c := range map[string]struct {
		of                func(x, phase float64) float64
		values            int
		noise             float64
		from, to          float64
		least, most, once int // said to change, and to change at once
	}{
		"at once":                    {change(0.5, 0.5), 120, 0.1, 0.5, 0.5, runs, runs, runs},
		"at once in noise":           {change(0.5, 0.5), 300, 0.3, 0.5, 0.5, runs, runs, runs},
		"more values than places":    {change(0.5, 0.5), 800, 0.1, 0.5, 0.5, runs, runs, runs},
		"a twentieth":                {change(0.4, 0.45), 120, 0.1, 0.4, 0.45, runs, runs, 0},
		"a tenth":                    {change(0.4, 0.5), 120, 0.1, 0.4, 0.5, runs, runs, 0},
		"a tenth in noise":           {change(0.4, 0.5), 300, 0.3, 0.4, 0.5, runs * 9 / 10, runs, 0},
		"a tenth that hardly varies": {change(0.4, 0.5), 300, 0.001, 0.4, 0.5, runs, runs, 0},
		"three tenths in noise":      {change(0.4, 0.7), 120, 0.3, 0.4, 0.7, 0, runs / 10, 0},
		"settles":                    {settles(0.05), 120, 0.1, 0, 0, 0, 1, 0},
		"settles slowly":             {settles(0.1), 120, 0.1, 0, 0, 0, 1, 0},
		"settles in noise":           {settles(0.1), 300, 0.3, 0, 0, 0, 1, 0},
		"a wave":                     {wave, 300, 0.1, 0, 0, 0, 1, 0},
		"a wave in noise":            {wave, 300, 0.3, 0, 0, 0, runs / 20, 0},
	} {
		random := rand.New(rand.NewPCG(3, 5)) //nolint:gosec // repeatable
		found, atOnce, missed := 0, 0, 0
		for range runs {
			at, y := make([]float64, c.values), make([]float64, c.values)
			phase := random.Float64()
			for i := range at {
				at[i] = (float64(i) + 0.5) / float64(c.values)
				y[i] = 5 + c.of(at[i], phase) + c.noise*random.NormFloat64()
			}
			j, ok := stat.FindJump(at, y, nil)
			if !ok {
				continue
			}
			found++
			if j.AtOnce {
				atOnce++
			}
			if apart := 1 / float64(c.values); j.From > c.from+apart || j.To < c.to-apart {
				missed++
			}
		}
		t.Logf("%s: %d of %d change, %d at once, %d with wrong bounds", name, found, runs, atOnce, missed)
		if found < c.least || found > c.most || atOnce > c.once || c.least > 0 && missed > runs/20 {
			t.Errorf("%s: %d of %d change, want %d to %d; %d at once, want %d at most; the bounds of %d do not hold", name,
				found, runs, c.least, c.most, atOnce, c.once, missed)
		}
	}
}
