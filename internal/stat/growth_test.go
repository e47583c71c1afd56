package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var ladder = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000}

// costsOf is the cost in each of so many blocks, with relative noise.
func costsOf(n []float64, at func(n float64) float64, blocks int, noise float64) [][]float64 {
	r := rand.New(rand.NewPCG(19, 20))
	out := make([][]float64, len(n))
	for i := range n {
		for range blocks {
			out[i] = append(out[i], at(n[i])*math.Exp(noise*r.NormFloat64()))
		}
	}
	return out
}

func fit(t *testing.T, n []float64, blocks [][]float64, budget float64) GrowthFit {
	t.Helper()
	g, err := FitGrowth(n, blocks, GrowthOptions{Level: 0.95, Budget: budget, Margin: 0.02})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// norrisX and norrisY are NIST's data set Norris: a linear regression with the certified slope 1.00211681802045 and
// intercept −0.262323073774029.
var (
	norrisX = []float64{
		0.2, 337.4, 118.2, 884.6, 10.1, 226.5, 666.3, 996.3, 448.6, 777.0, 558.2, 0.4, 0.6, 775.5, 666.9, 338.0, 447.5, 11.6,
		556.0, 228.1, 995.8, 887.6, 120.2, 0.3, 0.3, 556.8, 339.1, 887.2, 999.0, 779.0, 11.1, 118.3, 229.2, 669.1, 448.9, 0.5,
	}
	norrisY = []float64{
		0.1, 338.8, 118.1, 888.0, 9.2, 228.1, 668.5, 998.5, 449.1, 778.9, 559.2, 0.3, 0.1, 778.1, 668.8, 339.3, 448.9, 10.8,
		557.7, 228.3, 998.0, 888.8, 119.6, 0.3, 0.6, 557.6, 339.3, 888.0, 998.5, 778.9, 10.2, 117.6, 228.9, 668.4, 449.2, 0.2,
	}
)

// NIST/SEMATECH Statistical Reference Datasets, NoInt1 and NoInt2: lines through the origin, certified slopes
// 2.07438016528926 and 0.727272727272727; and Norris (the instrument's calibration), intercept −0.262323073774029, so
// the bound c ≥ 0 binds, and slope 1.00211681802045.
func TestLeastSquares(t *testing.T) {
	var x, y []float64
	for i := range 11 {
		x, y = append(x, float64(60+i)), append(y, float64(130+i))
	}
	c, ok := leastSquares([][]float64{x}, ones(len(x)), y, 1, make([]float64, 100))
	if !ok {
		t.Fatal("no solution")
	}
	near(t, "NoInt1", c[0], 2.07438016528926, 1e-13)
	c, _ = leastSquares([][]float64{{4, 5, 6}}, ones(3), []float64{3, 4, 4}, 1, make([]float64, 100))
	near(t, "NoInt2", c[0], 0.727272727272727, 1e-14)
	x, y = norrisX, slices.Clone(norrisY)
	if c, ok := leastSquares([][]float64{ones(len(x)), x}, ones(len(x)), y, 3, make([]float64, 100)); ok {
		t.Errorf("Norris: %v although the intercept is negative", c)
	}
	for i := range y {
		y[i]++ // the same line, raised by 1
	}
	c, ok = leastSquares([][]float64{ones(len(x)), x}, ones(len(x)), y, 3, make([]float64, 100))
	if !ok {
		t.Fatal("no solution")
	}
	near(t, "Norris, intercept", c[0], 1-0.262323073774029, 1e-11)
	near(t, "Norris, slope", c[1], 1.00211681802045, 1e-13)
	if c, ok := leastSquares([][]float64{ones(3), ones(3)}, ones(3), []float64{1, 2, 3}, 3, make([]float64, 100)); ok {
		t.Errorf("parallel columns give %v", c)
	}
}

// Counts that are known exactly (Knuth, The Art of Computer Programming, volume 3): the comparisons of a sort by
// insertion in the worst case, N(N−1)/2, and of an unsuccessful binary search, about log2(N+1).
func TestFitGrowthAlgorithms(t *testing.T) {
	sizes := []float64{8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192}
	for law, count := range map[Law]func(n float64) float64{
		Quadratic: func(n float64) float64 { return n * (n - 1) / 2 },
		Log:       func(n float64) float64 { return math.Floor(math.Log2(n)) + 1 },
		Linear:    func(n float64) float64 { return n - 1 }, // of finding the maximum
	} {
		if g := fit(t, sizes, costsOf(sizes, count, 1, 0), math.NaN()); g.Best.Law != law {
			t.Errorf("%s is taken for %+v, tied %v", law, g.Best, g.Tied)
		}
	}
}

func TestFitGrowthExact(t *testing.T) {
	for _, l := range Laws()[1:] {
		at := func(n float64) float64 { return 30 + 2*l.F(n) }
		g := fit(t, ladder, costsOf(ladder, at, 3, 0), at(700))
		if g.Best.Law != l || !g.Named || g.Reason != "" || len(g.Tied) > 0 || g.Knee != nil {
			t.Errorf("%s: %+v", l, g)
		}
		near(t, "c0", g.C0.Value, 30, 1e-6)
		near(t, "c1", g.C1.Value, 2, 1e-6)
		if g.Breaks == nil || g.Extrapolated {
			t.Fatalf("%s: %+v", l, g.Breaks)
		}
		near(t, "break", g.Breaks.Value, 700, 1e-3)
		near(t, "band", g.Band(300).Value, at(300), 1e-4*at(300))
		near(t, "growth", g.Constant.Value, at(10000)/at(1)-1, 1e-9*at(10000))
		near(t, "BIC", g.Best.BIC, 13*math.Log(max(g.Best.RSS/13, 1e-18))+3*math.Log(13), 1e-9)
		if far := fit(t, ladder, costsOf(ladder, at, 3, 0), at(40000)); far.Breaks == nil || !far.Extrapolated {
			t.Errorf("%s: a break at 40 000 is no extrapolation: %+v", l, far.Breaks)
		}
	}
}

// An exact case by hand: costs 1, 2 and 4 times the same at sizes in pairs have RSS (ln 2)²·… under the constant law.
func TestFitGrowthConstantByHand(t *testing.T) {
	n := []float64{1, 2, 3, 4, 5, 6}
	g := fit(t, n, [][]float64{{4}, {1}, {2}, {2}, {4}, {1}}, math.NaN())
	c := g.Fits[0]
	near(t, "c0", c.C0, 2, 1e-9) // the geometric mean
	near(t, "RSS", c.RSS, 4*math.Ln2*math.Ln2, 1e-9)
	near(t, "BIC", c.BIC, 6*math.Log(4*math.Ln2*math.Ln2/6)+2*math.Log(6), 1e-9)
	if g.Constant != nil || !math.IsInf(g.C0.Hi, 1) {
		t.Errorf("intervals from one block: %+v, %+v", g.Constant, g.C0)
	}
}

func TestFitGrowthNamesNothing(t *testing.T) {
	linear := func(n float64) float64 { return 100 + n }
	for name, n := range map[string][]float64{
		"9 sizes":     ladder[:9],
		"two decades": {1, 2, 5, 10, 20, 30, 40, 50, 60, 80, 100},
	} {
		if g := fit(t, n, costsOf(n, linear, 10, 0.001), math.NaN()); g.Named || g.Reason == "" || g.Best.Law != Linear {
			t.Errorf("%s: named %v, %q, best %s", name, g.Named, g.Reason, g.Best.Law)
		}
	}
	flat := fit(t, ladder, costsOf(ladder, func(float64) float64 { return 100 }, 20, 0.01), 500)
	if flat.Named || flat.Breaks != nil || flat.Reason == "" || !flat.Flat {
		t.Errorf("flat costs: %+v", flat)
	}
	if over := fit(t, ladder, costsOf(ladder, linear, 10, 0.01), 50); over.Breaks != nil || over.Reason == "" {
		t.Errorf("a budget below every cost breaks at %+v", over.Breaks)
	}
	rough := costsOf(ladder, func(n float64) float64 { return 100 + 0.01*n + 0.0025*n*math.Log2(1+n) }, 4, 0.02)
	for i, x := range rough { // every other size 10 % above, the rest 10 % below
		for b := range x {
			x[b] *= math.Exp(0.1 - 0.2*float64(i%2))
		}
	}
	noisy := fit(t, ladder, rough, math.NaN())
	if both := slices.Concat(noisy.Tied, []Law{noisy.Best.Law}); noisy.Named || !slices.Contains(both, Linear) ||
		!slices.Contains(both, Linearithmic) {
		t.Errorf("linear and linearithmic are told apart though the truth lies between them: %+v", noisy)
	}
}

func TestFitGrowthKnee(t *testing.T) {
	at := func(n float64) float64 { return 100 + 0.5*max(0, n-700) }
	g := fit(t, ladder, costsOf(ladder, at, 20, 0.03), math.NaN())
	if g.Knee == nil {
		t.Fatal("no knee")
	}
	near(t, "knee", g.Knee.Value, 700, 60)
	if g.Named || !(g.Knee.Lo < 700 && 700 < g.Knee.Hi) {
		t.Errorf("named %v, knee %+v", g.Named, g.Knee)
	}
}

func TestFitGrowthEquivariance(t *testing.T) {
	blocks := costsOf(ladder, func(n float64) float64 { return 40 + 0.3*n }, 8, 0.05)
	g := fit(t, ladder, blocks, 1000)
	reversed, scaled := slices.Clone(ladder), slices.Clone(blocks)
	slices.Reverse(reversed)
	slices.Reverse(scaled)
	for i, x := range scaled {
		scaled[i] = nil
		for _, v := range slices.Backward(x) {
			scaled[i] = append(scaled[i], 1e-6*v)
		}
	}
	s := fit(t, reversed, scaled, 1000e-6)
	near(t, "c0", s.C0.Value*1e6, g.C0.Value, 1e-6)
	near(t, "c1", s.C1.Value*1e6, g.C1.Value, 1e-6)
	near(t, "c1, lo", s.C1.Lo*1e6, g.C1.Lo, 1e-6)
	near(t, "break", s.Breaks.Value, g.Breaks.Value, 1e-3)
	near(t, "break, hi", s.Breaks.Hi, g.Breaks.Hi, 1e-2)
	if d := cmp.Diff(g.Tied, s.Tied); d != "" || s.Best.Law != g.Best.Law {
		t.Error(d, s.Best.Law)
	}
}

func TestFitGrowthRefuses(t *testing.T) {
	good := costsOf(ladder, func(n float64) float64 { return n }, 3, 0)
	with := func(i int, x []float64) [][]float64 {
		b := slices.Clone(good)
		b[i] = x
		return b
	}
	for name, c := range map[string]struct {
		n      []float64
		blocks [][]float64
	}{
		"five sizes":       {ladder[:5], good[:5]},
		"other length":     {ladder, good[1:]},
		"zero cost":        {ladder, with(2, []float64{1, 0, 1})},
		"NaN":              {ladder, with(2, []float64{1, math.NaN(), 1})},
		"other blocks":     {ladder, with(2, []float64{1, 2})},
		"no block":         {ladder[:6], make([][]float64, 6)},
		"size there twice": {slices.Concat(ladder[:12], []float64{1}), good},
		"negative size":    {slices.Concat(ladder[:12], []float64{-1}), good},
		"NaN size":         {slices.Concat(ladder[:12], []float64{math.NaN()}), good},
	} {
		if _, err := FitGrowth(c.n, c.blocks, GrowthOptions{Level: 0.95, Budget: math.NaN()}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := FitGrowth(ladder, good, GrowthOptions{}); err == nil {
		t.Error("no level: no error")
	}
	from := slices.Concat([]float64{0}, ladder)
	if g := fit(t, from, costsOf(from, func(n float64) float64 { return 5 + n }, 3, 0),
		math.NaN()); g.Best.Law != Linear || !g.Named {
		t.Errorf("sizes from 0: %+v", g.Best)
	}
}

// TestKneeNeedsSlopesApart: where two segments fit better, but the intervals of their slopes overlap, no bend is
// claimed and no law is named; a claimed one has slopes that are apart.
func TestKneeNeedsSlopesApart(t *testing.T) {
	open, claimed := 0, 0
	for _, noise := range []float64{0.02, 0.05, 0.1, 0.2} {
		for _, times := range []float64{2, 4, 10} {
			at := func(n float64) float64 { return 100 + n + (times-1)*max(0, n-300) }
			for _, blocks := range []int{2, 3, 5, 10} {
				g := fit(t, ladder, costsOf(ladder, at, blocks, noise), math.NaN())
				if g.Knee != nil {
					if claimed++; !g.Knee.apart() {
						t.Errorf("%+v is claimed", *g.Knee)
					}
				}
				if strings.HasSuffix(g.Reason, "not known") {
					if open++; g.Knee != nil || g.Named {
						t.Errorf("knee %v, named %v: %s", g.Knee, g.Named, g.Reason)
					}
				}
			}
		}
	}
	if open == 0 || claimed == 0 {
		t.Errorf("%d bends are claimed, %d left open", claimed, open)
	}
}

// TestNoFormWhereTheBestMisses: where a size's own cost contradicts the best form, no form is given, a break lies
// between sizes that were measured, and growth between the ends is not called none.
func TestNoFormWhereTheBestMisses(t *testing.T) {
	sizes := []float64{1, 3, 10, 30, 100, 300, 1000, 3000}
	for name, c := range map[string]struct {
		at     func(n float64) float64
		unfit  bool
		lo, hi float64 // 0: no break
	}{
		"jumps at its last size": {func(n float64) float64 { return 10 + 20*(1+math.Copysign(1, n-2000)) }, true, 1000, 3000},
		"more at one size":       {func(n float64) float64 { return 10 + 20*math.Exp(-math.Abs(n-100)) }, true, 30, 100},
		"a hump": {func(n float64) float64 {
			return 10 + 20*math.Exp(-math.Pow(math.Log(n/30), 4))
		}, true, 3, 10},
		"falls":            {func(n float64) float64 { return 10 + 40/n }, true, 0, 0},
		"linear":           {func(n float64) float64 { return 10 + n/100 }, false, 190, 210},
		"bends within 2 %": {func(n float64) float64 { return 10 + n/100 + 0.1*min(1, n/300) }, false, 150, 210},
	} {
		g := fit(t, sizes, costsOf(sizes, c.at, 10, 0.003), 12)
		said := strings.Contains(g.Reason, "no form fits")
		if (g.Unfit != nil) != c.unfit || said != c.unfit || c.unfit && (g.Named || g.Flat || g.Knee != nil) {
			t.Errorf("%s: missed %+v, named %v, flat %v, knee %v, %q", name, g.Unfit, g.Named, g.Flat, g.Knee, g.Reason)
		}
		switch b := g.Breaks; {
		case b == nil:
			if c.hi > 0 {
				t.Errorf("%s: no break: %q", name, g.Reason)
			}
			if falls := strings.HasSuffix(g.Reason, "the budget is exceeded at 1–10, kept at 30–3000"); !falls {
				t.Errorf("%s: %q", name, g.Reason)
			}
		case c.unfit && (b.Lo != c.lo || b.Hi != c.hi), b.Lo < c.lo || b.Hi > c.hi:
			t.Errorf("%s breaks at %+v, want between %v and %v", name, *b, c.lo, c.hi)
		}
	}
}

// TestBudgetAtMeasuredSizes: what is said of the budget does not contradict the measured sizes where the cost falls, or
// where one size differs by no more than the margin.
func TestBudgetAtMeasuredSizes(t *testing.T) {
	for name, c := range map[string]struct {
		at     func(n float64) float64
		budget float64
		reason string
	}{
		"falls by 7 %": {
			func(n float64) float64 { return 1.08 - 0.02*math.Log10(n) }, 1.05,
			"exceeded at 1–10, kept at 100–10000, undecided at 30",
		},
		"one size": {bump, 1.05, "exceeded at 100, kept at 1–30 and 300–10000"},
		"rises, one size": {
			func(n float64) float64 { return bump(n) * (1 + n/1e5) }, 1.05,
			"exceeded at 100 and 10000, kept at 1–30 and 300–3000",
		},
		"exceeded by all": {bump, 0.9, "exceeded at every size"},
		"not reached":     {bump, 1.2, "not reached at any size"},
		"at the budget": {
			func(float64) float64 { return 1 }, 1,
			"undecided at every size",
		},
		"falls in a step": {
			jumping(0.95, func(float64) float64 { return 1 }), 0.98,
			"exceeded at 1–1000, kept at 3000–10000",
		},
	} {
		sizes := []float64{1, 3, 10, 30, 100, 300, 1000, 3000, 10000}
		g, err := FitGrowth(sizes, costsOf(sizes, c.at, 10, 0.003), GrowthOptions{Level: 0.95, Budget: c.budget, Margin: 0.1})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(g.Reason, "the budget is "+c.reason) {
			t.Errorf("%s: %q, breaks %+v", name, g.Reason, g.Breaks)
		}
	}
}

func bump(n float64) float64 {
	if n == 100 {
		return 1.09
	}
	return 1
}

// TestBreaksHoldForOtherForms: where a budget breaks between measured sizes, the interval holds the truth also of costs
// that follow none of the laws, and stays narrow.
func TestBreaksHoldForOtherForms(t *testing.T) {
	const worlds, noise, blocks = 40, 0.03, 10
	sizes := ladder[:10]
	for name, c := range map[string]struct {
		at   func(n float64) float64
		most float64 // of the mean ratio of the interval's ends
	}{
		"linear":             {func(n float64) float64 { return 10 + 0.02*n }, 1.4},
		"linearithmic":       {func(n float64) float64 { return 10 + 0.003*n*math.Log2(1+n) }, 1.3},
		"quadratic":          {func(n float64) float64 { return 10 + 1e-4*n*n }, 1.1},
		"N^0.6":              {func(n float64) float64 { return 10 + 0.5*math.Pow(n, 0.6) }, 1.6},
		"twice the slope":    {func(n float64) float64 { return 10 + 0.02*n + 0.02*max(0, n-300) }, 1.4},
		"N^1.2":              {func(n float64) float64 { return 10 + 0.01*math.Pow(n, 1.2) }, 1.3},
		"two laws, √N and N": {func(n float64) float64 { return 10 + math.Sqrt(n) + 0.05*n }, 3},
	} {
		r := rand.New(rand.NewPCG(4, 5))
		budget := c.at(1000) / 2
		truth := bisect(1, 1000, func(n float64) bool { return c.at(n) >= budget })
		held, width := 0, 0.0
		for range worlds {
			costs := make([][]float64, len(sizes))
			for i, n := range sizes {
				for range blocks {
					costs[i] = append(costs[i], c.at(n)*math.Exp(noise*math.Sqrt(blocks)*r.NormFloat64()))
				}
			}
			b := fit(t, sizes, costs, budget).Breaks
			if b == nil {
				t.Fatalf("%s: no break", name)
			}
			if b.Lo <= truth && truth <= b.Hi {
				held++
			}
			width += math.Log(b.Hi/b.Lo) / worlds
		}
		t.Logf("%s: %d of %d hold %.0f; the ends are %.2f apart", name, held, worlds, truth, math.Exp(width))
		if held < worlds*9/10 || math.Exp(width) > c.most {
			t.Errorf("%s: %d of %d intervals hold %.0f, and their ends are a factor of %.2f apart, want %v at most", name, held,
				worlds, truth, math.Exp(width), c.most)
		}
	}
}

// 12 sizes × 160 blocks: the most that a look at a run has.
func BenchmarkFitGrowth(b *testing.B) {
	sizes := ladder[1:]
	for name, at := range map[string]func(n float64) float64{
		"linear": func(n float64) float64 { return 110 + 0.88*n },
		"knee":   func(n float64) float64 { return 100 + 0.5*max(0, n-700) },
		"step": func(n float64) float64 {
			if n > 300 {
				return 25
			}
			return 4
		},
	} {
		blocks := costsOf(sizes, at, 160, 0.03)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := FitGrowth(sizes, blocks, GrowthOptions{Level: 0.95, Budget: math.NaN(), Margin: 0.02}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
