package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func near(t *testing.T, name string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol) {
		t.Errorf("%s = %v, want %v ± %v", name, got, want, tol)
	}
}

// The quantiles are those of the usual printed table (NIST/SEMATECH e-Handbook, 1.3.6.7.2).
func TestStudentQuantile(t *testing.T) {
	table := []struct{ p, df, want float64 }{
		{0.975, 1, 12.706},
		{0.975, 2, 4.303},
		{0.975, 7, 2.365},
		{0.95, 10, 1.812},
		{0.995, 30, 2.750},
		{0.975, 100, 1.984},
		{0.025, 7, -2.365},
		{0.5, 3, 0},
		{0.9, 1, 3.078},
	}
	for _, c := range table {
		near(t, "StudentQuantile", StudentQuantile(c.p, c.df), c.want, 6e-4)
	}
	if v := StudentQuantile(1, 3); !math.IsNaN(v) {
		t.Errorf("the quantile of certainty is %v", v)
	}
}

func TestBeta(t *testing.T) {
	near(t, "I_0.3(1,1)", Beta(1, 1, 0.3), 0.3, 1e-12)
	near(t, "I_0.5(2,3)", Beta(2, 3, 0.5), 0.6875, 1e-12) // sum over binomials: 11/16
	near(t, "I_0.2(5,2)", Beta(5, 2, 0.2), 6*math.Pow(0.2, 5)-5*math.Pow(0.2, 6), 1e-12)
	near(t, "I_0", Beta(2, 2, 0), 0, 0)
	near(t, "I_1", Beta(2, 2, 1), 1, 0)
}

// The regression is Anscombe's first data set: slope 0.5001, its standard error 0.1179, intercept 3.0001.
func TestRegress(t *testing.T) {
	x := []float64{10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5}
	y := []float64{8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68}
	l, ok := Regress(x, y)
	if !ok {
		t.Fatal("no line")
	}
	near(t, "slope", l.Slope, 0.5001, 1e-4)
	near(t, "se", l.SE, 0.1179, 1e-4)
	near(t, "intercept", l.Intercept, 3.0001, 1e-4)
	if _, ok := Regress([]float64{2, 2}, []float64{1, 5}); ok {
		t.Error("a line through one abscissa")
	}
	if _, ok := Regress(nil, nil); ok {
		t.Error("a line through nothing")
	}
}

func TestEventRate(t *testing.T) {
	r, ok := EventRate([]float64{0.5, 0.75, 1, 1.25, 1.5})
	if !ok {
		t.Fatal("no rate")
	}
	near(t, "rate", r, 4, 1e-9)
}

func TestQuantile(t *testing.T) {
	x := []float64{15, 20, 35, 40, 50} // the nearest-rank example of Wikipedia's "Percentile"
	for p, want := range map[float64]float64{0.05: 15, 0.3: 20, 0.4: 20, 0.5: 35, 1: 50, 0: 15} {
		near(t, "quantile", Quantile(x, p), want, 0)
	}
	rng := rand.New(rand.NewPCG(5, 8))
	for range 500 {
		x := make([]float64, 1+rng.IntN(60))
		for i := range x {
			x[i] = []float64{rng.NormFloat64(), float64(rng.IntN(5)), math.NaN(), math.Inf(1)}[rng.IntN(8)/2%(1+rng.IntN(4))]
		}
		p := rng.Float64()
		got, want := Quantile(x, p), SortedQuantile(slices.Sorted(slices.Values(x)), p)
		if math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("the %v-quantile of %v is %v, want %v", p, x, got, want)
		}
	}
	slowest, order := make([]float64, 1<<16), make([]int, 1<<16) // the pivot is always the smallest value that is left
	for i := range order {
		order[i] = i
	}
	for lo := range slowest {
		mid := lo + (len(order)-1-lo)/2
		slowest[order[mid]] = float64(lo)
		order[lo], order[mid] = order[mid], order[lo]
	}
	if got := Quantile(slowest, 1); got != float64(len(slowest)-1) {
		t.Errorf("the largest value is %v", got)
	}
	if !math.IsNaN(Quantile(nil, 0.5)) {
		t.Error("a quantile of nothing")
	}
}

func TestMeanInterval(t *testing.T) {
	e, ok := MeanInterval([]float64{1, 2, 3, 4}, 0.95)
	if !ok {
		t.Fatal("no interval")
	}
	near(t, "mean", e.Value, 2.5, 1e-12)
	near(t, "half", e.Hi-e.Value, 3.182*math.Sqrt(5.0/3/4), 1e-3)
	near(t, "relative half", e.Half(), (e.Hi-2.5)/2.5, 1e-12)
	if _, ok := MeanInterval([]float64{1}, 0.95); ok {
		t.Error("an interval from one value")
	}
}

func TestMeanIntervalCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	hit := 0
	const runs = 4000
	for range runs {
		x := make([]float64, 8)
		for i := range x {
			x[i] = 10 + rng.NormFloat64()
		}
		if e, _ := MeanInterval(x, 0.95); e.Lo <= 10 && 10 <= e.Hi {
			hit++
		}
	}
	near(t, "coverage", float64(hit)/runs, 0.95, 0.012)
}

func TestRayleigh(t *testing.T) {
	same, even := make([]float64, 100), make([]float64, 100)
	for i := range same {
		same[i], even[i] = float64(i)*0.1+0.03, float64(i)*0.137
	}
	near(t, "coincident", Rayleigh(same, 0.1), 1, 1e-9)
	if r := Rayleigh(even, 0.1); r > 0.1 {
		t.Errorf("spread phases give R = %v", r)
	}
	near(t, "half and half", Rayleigh([]float64{0, 0.25}, 0.5), 0, 1e-9)
	near(t, "quarter", Rayleigh([]float64{0, 0.25}, 1), math.Sqrt2/2, 1e-9)
	near(t, "none", Rayleigh(nil, 1), 0, 0)
}

func FuzzQuantile(f *testing.F) {
	f.Add(1.0, 2.0, 0.5)
	f.Add(math.Inf(1), -1.0, math.NaN())
	f.Fuzz(func(t *testing.T, a, b, p float64) {
		v := Quantile([]float64{a, b}, p)
		if v != a && v != b && !math.IsNaN(a) && !math.IsNaN(b) {
			t.Errorf("Quantile(%v, %v; %v) = %v is neither", a, b, p, v)
		}
	})
}

// TestMeanRatio: the interval holds the ratios of means that Student's test does not exclude. It has no upper end where
// the base may be 0.
func TestMeanRatio(t *testing.T) {
	base, treated := []float64{2, 3, 2.5, 3.5, 2, 3}, []float64{3, 3.5, 4, 4.5, 2.5, 4}
	e, ok := MeanRatio(base, treated, 0.95)
	if !ok || e.N != 6 {
		t.Fatalf("%+v, %v", e, ok)
	}
	near(t, "ratio", e.Value, 21.5/16, 1e-12)
	for _, end := range []float64{e.Lo, e.Hi} {
		d := make([]float64, len(base))
		for i := range d {
			d[i] = treated[i] - end*base[i]
		}
		near(t, "p-value at an end", MeanP(d), 0.05, 1e-9)
	}
	same, _ := MeanRatio([]float64{2, 2, 2}, []float64{3, 3, 3}, 0.95)
	near(t, "lower end of a ratio without variance", same.Lo, 1.5, 1e-12)
	near(t, "upper end of a ratio without variance", same.Hi, 1.5, 1e-12)
	rare := []float64{0, 0, 0, 0, 0, 1}
	often, _ := MeanRatio(rare, []float64{30, 32, 29, 31, 30, 28}, 0.95)
	if !(often.Lo > 40 && often.Lo < 180) || !math.IsInf(often.Hi, 1) {
		t.Errorf("the base may be 0: %+v", often)
	}
	if both, _ := MeanRatio(rare, rare, 0.95); both.Lo != 0 || !math.IsInf(both.Hi, 1) {
		t.Errorf("both may be 0: %+v", both)
	}
	for _, c := range [][2][]float64{{{1}, {1}}, {{0, 0}, {1, 2}}, {{1, 2}, {1, 2, 3}}, {nil, nil}} {
		if e, ok := MeanRatio(c[0], c[1], 0.95); ok {
			t.Errorf("%v gives %+v", c, e)
		}
	}
}

// TestMeanRatioCovers: shares of calls that fail, in blocks that are more or less bad for both arms: each end of the
// interval is beyond the truth as often as it says; where the base may be 0, less often.
func TestMeanRatioCovers(t *testing.T) {
	const repetitions, calls, truth, level = 1000, 300, 1.5, 0.95
	rng := rand.New(rand.NewPCG(11, 2))
	failing := func(p float64) float64 {
		bad := 0.0
		for range calls {
			if rng.Float64() < p {
				bad++
			}
		}
		return bad / calls
	}
	for _, blocks := range []int{10, 40} {
		for _, p := range []float64{0.003, 0.02} {
			below, above, apart := 0, 0, 0
			for range repetitions {
				base, treated := make([]float64, blocks), make([]float64, blocks)
				for i := range base {
					bad := p * (0.5 + rng.Float64())
					base[i], treated[i] = failing(bad), failing(truth*bad)
				}
				e, ok := MeanRatio(base, treated, level)
				if ok && e.Hi < truth {
					below++
				}
				if e.Lo > truth {
					above++
				}
				rng.Shuffle(blocks, func(i, k int) { base[i], base[k] = base[k], base[i] })
				e, _ = MeanRatioApart(base, treated, level)
				if d, err := MeanShift(base, treated, level); err != nil || (d.P < 1-level) != (e.Lo > 1 || e.Hi < 1) {
					t.Fatalf("the interval %+v of the ratio and the test %+v of the difference disagree: %v", e, d, err)
				}
				if e.Hi < truth || e.Lo > truth {
					apart++
				}
			}
			if apart > repetitions*8/100 {
				t.Errorf("%d blocks, %v, no pairs: %d intervals do not hold the truth, of %d", blocks, p, apart, repetitions)
			}
			t.Logf("%d blocks, %v: %d upper ends below the truth, %d lower ends above it", blocks, p, below, above)
			if below > repetitions*4/100 || above > repetitions*4/100 {
				t.Errorf("%d blocks, %v: %d upper ends below the truth, %d lower ends above it, of %d", blocks, p, below, above,
					repetitions)
			}
		}
	}
}

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
