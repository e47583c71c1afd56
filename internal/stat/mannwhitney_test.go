package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Permeability of the human chorioamnion at term and at 12 to 26 weeks: Hollander & Wolfe, table 4.1 and examples
// 4.1–4.3: the statistic is 30 (R: W = 35), one-sided p = 0.1272, the shift −0.305 with the 96 % interval (−0.76,
// 0.15).
func TestHodgesLehmannShiftPermeability(t *testing.T) {
	x := []float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}
	y := []float64{1.15, 0.88, 0.90, 0.74, 1.21}
	h, err := HodgesLehmannShift(x, y, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "estimate", h.Value, -0.305, 1e-9)
	near(t, "p", h.P, 2*0.1272, 1e-4)
	near(t, "lo", h.Lo, -0.76, 1e-9)
	near(t, "hi", h.Hi, 0.15, 1e-9)
}

// The critical values are those of the usual printed table of U, two-sided 5 %.
func TestMannWhitneyTable(t *testing.T) {
	for _, c := range []struct{ n, m, want int }{
		{3, 4, -1},
		{4, 4, 0},
		{5, 5, 2},
		{8, 8, 13},
		{10, 10, 23},
		{10, 20, 55},
		{20, 20, 127},
	} {
		for _, p := range [][2]int{{c.n, c.m}, {c.m, c.n}} {
			if got := critical(c.n*c.m, 0.05, mannWhitney(p[0], p[1])); got != c.want {
				t.Errorf("critical value of %v is %d, want %d", p, got, c.want)
			}
		}
	}
}

func TestMannWhitneyNormal(t *testing.T) {
	exact := mannWhitneyTable(exactRuns, exactRuns)
	mean, sd := 1250.0, math.Sqrt(2500*101/12.0)
	for c, p := range exact {
		approximate := NormalCDF((float64(c) + 0.5 - mean) / sd)
		near(t, "normal approximation", approximate, p, 2e-3)
		if p < LookAlpha/2 {
			near(t, "normal approximation of the tail", approximate, p, 3e-4)
		}
	}
	r := rand.New(rand.NewPCG(5, 6))
	x, y := make([]float64, 400), make([]float64, 300)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	for i := range y {
		y[i] = 0.5 + r.NormFloat64()
	}
	h, err := HodgesLehmannShift(x, y, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "shift", h.Value, 0.5, 0.25)
	near(t, "half width", (h.Hi-h.Lo)/2, 1.96*math.Sqrt(math.Pi/3*(1/400.0+1/300.0)), 0.02)
}

func TestHodgesLehmannShiftProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := values(t, 12), values(t, 12)
		h, err := HodgesLehmannShift(x, y, 0.9)
		if err != nil {
			t.Fatal(err)
		}
		var all []float64
		for _, a := range x {
			for _, b := range y {
				all = append(all, b-a)
			}
		}
		slices.Sort(all)
		if c := critical(len(all), 0.1, mannWhitney(len(x), len(y))); c >= 0 &&
			(h.Lo != all[c] || h.Hi != all[len(all)-1-c]) {
			t.Fatalf("%v … %v of %v, leaving out %d", h.Lo, h.Hi, all, c)
		}
		if out := h.Lo > 0 || h.Hi < 0; out != (h.P <= 0.1*(1+1e-9)) {
			t.Fatalf("P = %v but the interval is %v … %v", h.P, h.Lo, h.Hi)
		}
		if back, _ := HodgesLehmannShift(y, x, 0.9); back.Value != -h.Value || back.Lo != -h.Hi ||
			math.Abs(back.P-h.P) > 1e-12 {
			t.Fatalf("swapped: %+v of %+v", back, h)
		}
	})
}

func TestHodgesLehmannShiftRefuses(t *testing.T) {
	ok := []float64{1, 2, 3}
	for name, p := range map[string][2][]float64{
		"empty": {nil, ok}, "one": {ok, {1}}, "NaN": {ok, {1, math.NaN()}},
		"Inf": {{math.Inf(1), 2}, ok},
	} {
		if _, err := HodgesLehmannShift(p[0], p[1], 0.95); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := HodgesLehmannShift(ok, ok, 1); err == nil {
		t.Error("no error for certainty")
	}
}
