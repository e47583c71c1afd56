package stat

import (
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// depression is the Hamilton depression scale factor of nine patients before and after tranquilizer therapy: Hollander
// & Wolfe, Nonparametric Statistical Methods, table 3.1. Examples 3.1–3.4 give θ̂ = −0.46, T+ = 5 and the interval
// (−0.786, −0.010) of confidence 0.961; R's wilcox.test gives V = 5 and p = 0.03906.
var depression = [2][]float64{
	{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30},
	{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29},
}

func TestHodgesLehmannDepression(t *testing.T) {
	var d []float64
	for i, x := range depression[0] {
		d = append(d, depression[1][i]-x)
	}
	h, err := HodgesLehmann(d, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "estimate", h.Value, -0.46, 1e-9)
	near(t, "lo", h.Lo, -0.786, 1e-9)
	near(t, "hi", h.Hi, -0.010, 1e-9)
	near(t, "p", h.P, 0.0390625, 1e-12)
	if h.N != 9 || h.Level != 0.95 {
		t.Errorf("N %d at level %v", h.N, h.Level)
	}
	if wider, _ := HodgesLehmann(d, 0.962); !(wider.Hi > h.Hi) { // 0.961 is the most that this interval has
		t.Errorf("the interval at 0.962 ends at %v as at 0.95", wider.Hi)
	}
}

// Darwin's heights of maize, crossed minus self-fertilised in eighths of an inch (Fisher, The Design of Experiments,
// section 17): the ranks of the two negative differences sum to 24, exact p = 0.0413.
func TestHodgesLehmannMaize(t *testing.T) {
	h, err := HodgesLehmann([]float64{49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48}, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "p", h.P, 0.0413, 5e-5)
	if !(h.Lo > 0 && h.Hi < 75) {
		t.Errorf("interval %v … %v", h.Lo, h.Hi)
	}
}

// The critical values are those of the usual printed table (Wilcoxon, Katti & Wilcox 1970), two-sided.
func TestSignedRankTable(t *testing.T) {
	for _, c := range []struct {
		n     int
		alpha float64
		want  int
	}{
		{5, 0.05, -1},
		{6, 0.05, 0},
		{8, 0.05, 3},
		{10, 0.05, 8},
		{10, 0.01, 3},
		{20, 0.05, 52},
		{20, 0.01, 37},
		{25, 0.05, 89},
		{30, 0.05, 137},
		{50, 0.05, 434},
		{50, 0.01, 373},
	} {
		if got := critical(c.n*(c.n+1)/2, c.alpha, signedRank(c.n)); got != c.want {
			t.Errorf("critical value of %d at %v is %d, want %d", c.n, c.alpha, got, c.want)
		}
	}
}

// The table must agree with counting all 2^n assignments of signs.
func TestSignedRankEnumerated(t *testing.T) {
	for n := 1; n <= 12; n++ {
		count := make([]int, n*(n+1)/2+1)
		for set := range uint(1) << n {
			sum := 0
			for rest := set; rest != 0; rest &= rest - 1 {
				sum += bits.TrailingZeros(rest) + 1
			}
			count[sum]++
		}
		total := 0
		for c, p := range signedRankTable(n) {
			total += count[c]
			near(t, "P(W ≤ c)", p, float64(total)/float64(uint(1)<<n), 1e-14)
		}
	}
}

func TestSignedRankNormal(t *testing.T) {
	exact := signedRankTable(exactBlocks)
	f := float64(exactBlocks)
	mean, sd := f*(f+1)/4, math.Sqrt(f*(f+1)*(2*f+1)/24)
	for c, p := range exact {
		approximate := NormalCDF((float64(c) + 0.5 - mean) / sd)
		near(t, "normal approximation", approximate, p, 5e-4)
		if p < LookAlpha/2 {
			near(t, "normal approximation of the tail", approximate, p, 1e-4)
		}
	}
}

// A sample beyond the exact range must be handled in the same way, and quickly.
func TestHodgesLehmannMany(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	d := make([]float64, 2000)
	for i := range d {
		d[i] = 0.1 + r.NormFloat64()
	}
	h, err := HodgesLehmann(d, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "estimate", h.Value, 0.1, 0.08)
	near(t, "half width", (h.Hi-h.Lo)/2, 1.96/math.Sqrt(2000*3/math.Pi), 0.004) // the estimator's efficiency is 3/π
}

func TestHodgesLehmannRefuses(t *testing.T) {
	for name, d := range map[string][]float64{
		"none": nil, "one": {1}, "NaN": {1, math.NaN()},
		"Inf": {1, math.Inf(-1), 2},
	} {
		if _, err := HodgesLehmann(d, 0.95); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, level := range []float64{0, 1, -1, math.NaN()} {
		if _, err := HodgesLehmann([]float64{1, 2}, level); !errors.Is(err, ErrLevel) {
			t.Errorf("level %v: %v", level, err)
		}
	}
	few, err := HodgesLehmann([]float64{1, 2, 3, 4, 5}, 0.95)
	if err != nil || !math.IsInf(few.Lo, -1) || !math.IsInf(few.Hi, 1) || few.Value != 3 {
		t.Errorf("five values at 95 %%: %+v, %v", few, err)
	}
	near(t, "p of five", few.P, 0.0625, 1e-15)
	// 0.0625 is exactly the error of five values: the level 0.9375 is attainable.
	if e, _ := HodgesLehmann([]float64{1, 2, 3, 4, 5}, 0.9375); e.Lo != 1 || e.Hi != 5 {
		t.Errorf("five values at 93.75 %%: %+v", e)
	}
}

func TestHodgesLehmannZeros(t *testing.T) {
	h, err := HodgesLehmann(make([]float64, 20), 0.95)
	if err != nil || h.P != 1 || h.Value != 0 || h.Lo != 0 || h.Hi != 0 {
		t.Errorf("twenty zeros: %+v, %v", h, err)
	}
	// Zeros speak for no difference: adding some must not lower P.
	d := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	bare, _ := HodgesLehmann(d, 0.95)
	with, _ := HodgesLehmann(append(slices.Clone(d), 0, 0, 0, 0), 0.95)
	if !(with.P > bare.P) {
		t.Errorf("P %v with zeros, %v without", with.P, bare.P)
	}
}

// values draws two or more; whole numbers give ties and zeros.
func values(t *rapid.T, most int) []float64 {
	var x []float64
	if rapid.Bool().Draw(t, "ties") {
		for _, v := range rapid.SliceOfN(rapid.IntRange(-5, 5), 2, most).Draw(t, "x") {
			x = append(x, float64(v))
		}
		return x
	}
	return rapid.SliceOfN(rapid.Float64Range(-100, 100), 2, most).Draw(t, "x")
}

func walsh(d []float64) []float64 {
	var w []float64
	for i := range d {
		for j := i; j < len(d); j++ {
			w = append(w, d[i]/2+d[j]/2)
		}
	}
	slices.Sort(w)
	return w
}

// The interval must be what the definition gives: all Walsh averages, sorted.
func TestHodgesLehmannProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := values(t, 25)
		level := rapid.Float64Range(0.5, 0.999).Draw(t, "level")
		h, err := HodgesLehmann(d, level)
		if err != nil {
			t.Fatal(err)
		}
		w := walsh(d)
		m := len(w)
		if c := critical(m, 1-level, signedRank(len(d))); c >= 0 && (h.Lo != w[c] || h.Hi != w[m-1-c]) {
			t.Fatalf("%v … %v, want %v … %v", h.Lo, h.Hi, w[c], w[m-1-c])
		}
		if want := w[(m-1)/2]/2 + w[m/2]/2; math.Abs(h.Value-want) > 1e-12*math.Abs(want) {
			t.Fatalf("median %v, want %v", h.Value, want)
		}
		if out := h.Lo > 0 || h.Hi < 0; out != (h.P <= (1-level)*(1+1e-12)) {
			t.Fatalf("P = %v but the interval at %v is %v … %v", h.P, level, h.Lo, h.Hi)
		}
		if narrow, _ := HodgesLehmann(d, level*0.9); narrow.Lo < h.Lo || narrow.Hi > h.Hi {
			t.Fatalf("the interval at %v is not within that at %v", level*0.9, level)
		}
	})
}

func TestHodgesLehmannEquivariance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := values(t, 25)
		shift, scale := rapid.Float64Range(-10, 10).Draw(t, "shift"), rapid.Float64Range(0.1, 10).Draw(t, "scale")
		h, _ := HodgesLehmann(d, 0.9)
		moved, mirrored := make([]float64, len(d)), make([]float64, len(d))
		for i, v := range d {
			moved[i], mirrored[len(d)-1-i] = shift+scale*v, -v
		}
		m, _ := HodgesLehmann(moved, 0.9)
		for _, p := range [][2]float64{
			{m.Value, shift + scale*h.Value},
			{m.Lo, shift + scale*h.Lo},
			{m.Hi, shift + scale*h.Hi},
		} {
			if p[0] != p[1] && !(math.Abs(p[0]-p[1]) < 1e-9) {
				t.Fatalf("moved: %v, want %v", p[0], p[1])
			}
		}
		if n, _ := HodgesLehmann(mirrored, 0.9); n.Value != -h.Value || n.Lo != -h.Hi || n.Hi != -h.Lo || n.P != h.P {
			t.Fatalf("mirrored and reversed: %+v of %+v", n, h)
		}
	})
}

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
