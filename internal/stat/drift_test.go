package stat

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestNorris: two pairs at one instant are one of weight 2.
func TestNorris(t *testing.T) {
	order := make([]int, len(norrisX))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(norrisX[a], norrisX[b]) })
	var x, y, w []float64
	for _, i := range order {
		if n := len(x); n > 0 && x[n-1] == norrisX[i] {
			y[n-1], w[n-1] = (y[n-1]+norrisY[i])/2, 2
			continue
		}
		x, y, w = append(x, norrisX[i]), append(y, norrisY[i]), append(w, 1)
	}
	fit, err := Drift(x, y, DriftOptions{Weight: w})
	if err != nil || math.Abs(fit.Value-1.00211681802045) > 1e-12 ||
		math.Abs(fit.Intercepts[0]+0.262323073774029) > 1e-11 || fit.N != 35 {
		t.Errorf("%+v, %v", fit, err)
	}
	if !(fit.Lo < fit.Value && fit.Value < fit.Hi) || fit.Hi-fit.Lo > 0.01 {
		t.Errorf("interval %v to %v", fit.Lo, fit.Hi)
	}
}

// instants are the whole numbers from 0.
func instants(n int) []float64 {
	t := make([]float64, n)
	for i := range t {
		t[i] = float64(i)
	}
	return t
}

func process(rng *rand.Rand, phi float64, n int) []float64 {
	out, x := make([]float64, n), 0.0
	for i := range 100 + n {
		x = phi*x + rng.NormFloat64()
		if i >= 100 {
			out[i-100] = x
		}
	}
	return out
}

// TestStretches: stretches have one slope and intercepts of their own, also where memory falls between them.
func TestStretches(t *testing.T) {
	at, y, stretch := instants(60), make([]float64, 60), make([]int, 60)
	for i := range y {
		stretch[i] = []int{0, 3, 7}[i/20]
		y[i] = 5 + 2*at[i] - 40*float64(i/20)
	}
	fit, err := Drift(at, y, DriftOptions{Stretch: stretch})
	if err != nil || math.Abs(fit.Value-2) > 1e-12 || len(fit.Intercepts) != 3 || math.Abs(fit.Intercepts[2]+75) > 1e-9 {
		t.Errorf("%+v, %v", fit, err)
	}
	if fit.Hi-fit.Lo > 1e-9 {
		t.Errorf("values on the line have the interval %v to %v", fit.Lo, fit.Hi)
	}
	one, err := Drift(at, y, DriftOptions{})
	if err != nil || one.Value > 0.5 {
		t.Errorf("in one stretch the slope is %v, %v", one.Value, err)
	}
	rng, held := rand.New(rand.NewPCG(1, 2)), 0
	for range 400 {
		noise := process(rng, 0.5, 60)
		for i := range y {
			y[i] = 2*at[i] - 40*float64(i/20) + noise[i]
		}
		fit, err := Drift(at, y, DriftOptions{Stretch: stretch, Replicates: 399})
		if err != nil {
			t.Fatal(err)
		}
		if fit.Lo <= 2 && 2 <= fit.Hi {
			held++
		}
	}
	if held < 360 || held > 398 {
		t.Errorf("%d of 400 intervals hold the slope", held)
	}
}

// TestGaps: values that are left out do not make their neighbours neighbours.
func TestGaps(t *testing.T) {
	rng, held, sum := rand.New(rand.NewPCG(5, 6)), 0, 0.0
	for range 300 {
		all := process(rng, 0.8, 240)
		var at, y []float64
		for i, v := range all {
			if i%4 < 2 { // two there, two not
				at, y = append(at, float64(i)), append(y, v)
			}
		}
		fit, err := Drift(at, y, DriftOptions{Replicates: 399})
		if err != nil {
			t.Fatal(err)
		}
		sum += fit.Correlation
		if fit.Lo <= 0 && 0 <= fit.Hi {
			held++
		}
	}
	if mean := sum / 300; held < 268 || mean < 0.74 || mean > 0.86 {
		t.Errorf("%d of 300 hold the slope, the mean correlation is %v", held, mean)
	}
}

// TestCorrelation: that of residuals about a fitted line is too small, and is corrected.
func TestCorrelation(t *testing.T) {
	for _, phi := range []float64{-0.5, 0, 0.3, 0.7} {
		rng, sum := rand.New(rand.NewPCG(7, 8)), 0.0
		for range 400 {
			fit, err := Drift(instants(60), process(rng, phi, 60), DriftOptions{Replicates: 9})
			if err != nil {
				t.Fatal(err)
			}
			sum += fit.Correlation
		}
		if mean := sum / 400; math.Abs(mean-phi) > 0.04 {
			t.Errorf("correlation %v is found as %v", phi, mean)
		}
	}
}

// TestBlockLength: of a process of the first order G/g(0) is 2φ/(1−φ²), so that b = (1.5·(2φ/(1−φ²))²·n)^⅓.
func TestBlockLength(t *testing.T) {
	const n = 20000
	for _, phi := range []float64{0.3, 0.5, 0.7} {
		rng, sum := rand.New(rand.NewPCG(9, 10)), 0.0
		for range 5 {
			sum += BlockLength(process(rng, phi, n)) / 5
		}
		ratio := 2 * phi / (1 - phi*phi)
		if want := math.Cbrt(1.5 * ratio * ratio * n); sum < 0.85*want || sum > 1.15*want {
			t.Errorf("φ %v: %v, want %v", phi, sum, want)
		}
	}
	if b := BlockLength(process(rand.New(rand.NewPCG(1, 1)), 0, n)); b > 6 {
		t.Errorf("white noise has blocks of %v", b)
	}
	if b := BlockLength([]float64{2, 2, 2, 2, 2}); b != 1 {
		t.Errorf("a constant has blocks of %v", b)
	}
	if b, most := BlockLength(instants(90)), 3*math.Sqrt(90); b > math.Ceil(most) || b < 5 {
		t.Errorf("a ramp has blocks of %v", b)
	}
}

// TestDriftMoves: the units of y and t, and what is planted, move the estimate and its interval, and change nothing
// else.
func TestDriftMoves(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	at, y := instants(150), process(rng, 0.6, 150)
	fit, err := Drift(at, y, DriftOptions{Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	u, v := make([]float64, 150), make([]float64, 150)
	for i := range u {
		u[i], v[i] = at[i]/7+100, 1000*y[i]+30*at[i]
	}
	moved, err := Drift(u, v, DriftOptions{Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	scale := func(x float64) float64 { return (1000*x + 30) * 7 }
	for name, pair := range map[string][2]float64{
		"value": {scale(fit.Value), moved.Value},
		"lo":    {scale(fit.Lo), moved.Lo}, "hi": {scale(fit.Hi), moved.Hi},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-6*math.Abs(pair[0]) {
			t.Errorf("%s: %v and %v", name, pair[0], pair[1])
		}
	}
	if moved.Block != fit.Block || moved.Joined != fit.Joined || math.Abs(moved.Correlation-fit.Correlation) > 1e-9 {
		t.Errorf("%+v and %+v", fit, moved)
	}
	again, _ := Drift(at, y, DriftOptions{Seed: 4})
	other, _ := Drift(at, y, DriftOptions{Seed: 5})
	if again.Lo != fit.Lo || other.Lo == fit.Lo || math.Abs(other.Lo-fit.Lo) > 0.2*(fit.Hi-fit.Lo) {
		t.Errorf("%v, again %v, with another seed %v", fit.Lo, again.Lo, other.Lo)
	}
	narrow, _ := Drift(at, y, DriftOptions{Seed: 4, Level: 0.5})
	if narrow.Hi-narrow.Lo > 0.5*(fit.Hi-fit.Lo) {
		t.Errorf("at 50 %% the interval is %v wide, at 95 %% %v", narrow.Hi-narrow.Lo, fit.Hi-fit.Lo)
	}
}

// TestSlowNoise: what is slow and hides behind noise of each value makes the interval wider, by the coarse look.
func TestSlowNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 3))
	y := process(rng, 0.95, 600)
	for i := range y {
		y[i] += 4 * rng.NormFloat64()
	}
	fit, err := Drift(instants(600), y, DriftOptions{})
	if err != nil || fit.Joined != 10 {
		t.Errorf("%+v, %v", fit, err)
	}
}

// TestSeriesMean: values that hang together tell less of their mean.
func TestSeriesMean(t *testing.T) {
	for _, c := range []struct{ phi, least float64 }{{0, 0.92}, {0.7, 0.9}} {
		rng, held := rand.New(rand.NewPCG(13, 3)), 0.0
		for range 400 {
			y := process(rng, c.phi, 80)
			e, err := SeriesMean(instants(80), y, DriftOptions{Replicates: 399})
			if err != nil || math.Abs(e.Value-Mean(y)) > 1e-12 {
				t.Fatal(e, err)
			}
			if e.Lo <= 0 && 0 <= e.Hi {
				held++
			}
		}
		if held/400 < c.least || held/400 > 0.99 {
			t.Errorf("φ %v: %v of 400 hold the mean", c.phi, held)
		}
	}
	w := slices.Repeat([]float64{1, 3}, 20)
	e, err := SeriesMean(instants(40), slices.Repeat([]float64{0, 4}, 20), DriftOptions{Weight: w})
	if err != nil || e.Value != 3 {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestDriftErrors(t *testing.T) {
	y := process(rand.New(rand.NewPCG(1, 1)), 0, 30)
	with := func(v float64) []float64 { z := slices.Clone(y); z[7] = v; return z }
	same := make([]float64, 30)
	for name, c := range map[string]struct {
		t, y []float64
		o    DriftOptions
		want string
	}{
		"lengths":   {instants(29), y, DriftOptions{}, "29 instants"},
		"too few":   {instants(9), y[:9], DriftOptions{}, "at least 10"},
		"stretches": {instants(11), y[:11], DriftOptions{Stretch: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9}}, "at least"},
		"not a":     {instants(30), with(math.NaN()), DriftOptions{}, "finite"},
		"infinite":  {instants(30), with(math.Inf(1)), DriftOptions{}, "finite"},
		"not after": {same, y, DriftOptions{}, "does not come after"},
		"weight":    {instants(30), y, DriftOptions{Weight: same}, "weight"},
		"level":     {instants(30), y, DriftOptions{Level: 1.5}, "level"},
		"descending": {
			instants(30), y,
			DriftOptions{Stretch: append(slices.Repeat([]int{1}, 15), slices.Repeat([]int{0}, 15)...)},
			"does not come after",
		},
	} {
		if _, err := Drift(c.t, c.y, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	alone := make([]int, 30)
	for i := range alone {
		alone[i] = i
	}
	if _, err := Drift(instants(30), y, DriftOptions{Stretch: alone}); err == nil {
		t.Error("stretches of one value each have a slope")
	}
}

// FuzzDrift: whatever the values, there is an error or an interval around the value.
func FuzzDrift(f *testing.F) {
	f.Add(uint64(1), 30, 1.0, 0.5, uint8(2))
	f.Add(uint64(2), 200, 1e300, -0.5, uint8(5))
	f.Add(uint64(3), 12, 1e-300, 0.99, uint8(1))
	f.Fuzz(func(t *testing.T, seed uint64, n int, scale, phi float64, stretches uint8) {
		if n < 0 || n > 400 || !(math.Abs(phi) < 1) {
			return
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		y, at, w, stretch := process(rng, phi, n), make([]float64, n), make([]float64, n), make([]int, n)
		for i := range y {
			y[i] *= scale
			at[i] = float64(i) + rng.Float64()/2
			w[i] = rng.ExpFloat64() + 1e-9
			stretch[i] = i * int(stretches) / max(n, 1)
		}
		fit, err := Drift(at, y, DriftOptions{Weight: w, Stretch: stretch, Replicates: 19})
		if err == nil && !(fit.Lo <= fit.Value && fit.Value <= fit.Hi) {
			t.Errorf("%+v", fit)
		}
	})
}
