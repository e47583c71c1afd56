package stat

import (
	"math"
	"strings"
	"testing"
)

// cache is sizes around a cache of 2,000.
var cache = []float64{10, 50, 100, 200, 500, 1000, 1500, 1999, 2001, 2500, 3500, 5000, 10000}

// jumping is a law that jumps by a factor beyond 2,000.
func jumping(factor float64, law func(n float64) float64) func(n float64) float64 {
	return func(n float64) float64 {
		if n > 2000 {
			return factor * law(n)
		}
		return law(n)
	}
}

func four(float64) float64 { return 4e-6 }

func TestFitGrowthStep(t *testing.T) {
	for name, c := range map[string]struct {
		factor float64
		law    func(n float64) float64
		best   Law
		noise  float64
	}{
		"up":              {5.6, four, Constant, 0.03},
		"a half more":     {1.5, four, Constant, 0.03},
		"down":            {0.6, four, Constant, 0.03},
		"on a line":       {2, func(n float64) float64 { return 100 + 0.2*n }, Linear, 0.01},
		"on a logarithm":  {2, func(n float64) float64 { return 4 + 2*math.Log2(1+n) }, Log, 0.01},
		"without a noise": {3, four, Constant, 0},
	} {
		g := fit(t, cache, costsOf(cache, jumping(c.factor, c.law), 10, c.noise), math.NaN())
		s := g.Step
		if s == nil {
			t.Errorf("%s: no step: %s", name, g.Reason)
			continue
		}
		if s.From != 1999 || s.To != 2001 || s.Law.Law != c.best || g.Named || g.Knee != nil || g.Reason == "" {
			t.Errorf("%s: %+v, named %v, knee %+v, %q", name, s, g.Named, g.Knee, g.Reason)
		}
		tight := 1 + 5*c.noise/math.Sqrt(3)
		if f := s.Factor; !(f.Lo <= c.factor*(1+1e-9) && f.Hi >= c.factor*(1-1e-9)) || f.Hi > f.Lo*tight*tight+1e-9 {
			t.Errorf("%s: factor %+v", name, f)
		}
		for _, n := range []float64{10, 1999, 2001, 10000} {
			near(t, name, math.Log(g.Band(n).Value/jumping(c.factor, c.law)(n)), 0, 3*c.noise+1e-6)
		}
		if s.Before == nil || s.After != nil { // 8 sizes and 5
			t.Errorf("%s: before %+v, after %+v", name, s.Before, s.After)
		}
	}
}

// The factor does not depend on the unit of the cost, and the place not on the order of the sizes.
func TestStepEquivariance(t *testing.T) {
	blocks := costsOf(cache, jumping(1.5, four), 8, 0.02)
	g := fit(t, cache, blocks, 5e-6)
	n, scaled := make([]float64, len(cache)), make([][]float64, len(cache))
	for i := range cache {
		k := len(cache) - 1 - i
		n[k] = cache[i]
		for _, v := range blocks[i] {
			scaled[k] = append(scaled[k], 1e9*v)
		}
	}
	s := fit(t, n, scaled, 5e3)
	if g.Step == nil || s.Step == nil {
		t.Fatal(g.Step, s.Step)
	}
	near(t, "factor", s.Step.Factor.Value, g.Step.Factor.Value, 1e-6)
	near(t, "factor, lo", s.Step.Factor.Lo, g.Step.Factor.Lo, 1e-6)
	near(t, "break", s.Breaks.Value, g.Breaks.Value, 1e-6)
}

// By hand: two levels, each of two costs in turn; the factor is the ratio of their geometric means.
func TestFitStepByHand(t *testing.T) {
	n := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	y := []float64{0, 2, 0, 2, 5, 7, 5, 7}
	p, ok := lawProfile(Constant, n)
	s := fitStep(Constant, p, ok, y, 4)
	near(t, "factor", s.factor, 5, 1e-12)
	near(t, "level", s.fit.C0, math.E, 1e-12)
	near(t, "RSS", s.fit.RSS, 8, 1e-12)
	near(t, "BIC", s.fit.BIC, 8*math.Log(1)+5*math.Log(8), 1e-9)
	for i := range y { // a slope that the line explains, and nothing else
		y[i] = math.Log(3 + 2*n[i])
	}
	p, ok = lawProfile(Linear, n)
	s = fitStep(Linear, p, ok, y, 4)
	near(t, "no factor", s.factor, 0, 1e-4)
	near(t, "c0", s.fit.C0, 3, 1e-3)
	near(t, "c1", s.fit.C1, 2, 1e-3)
}

func TestNoStep(t *testing.T) {
	for name, at := range map[string]func(n float64) float64{
		"flat":              four,
		"line":              func(n float64) float64 { return 110e-6 + 0.88e-6*n },
		"saturates":         func(n float64) float64 { return 4 + 19*n/(n+2000) },
		"power":             func(n float64) float64 { return 10 + math.Pow(n, 0.7) },
		"falls":             func(n float64) float64 { return 10 + 1000/n },
		"less than a limit": jumping(1.01, four), // 1 % is below the margin
	} {
		for _, noise := range []float64{0, 0.001, 0.03} {
			g := fit(t, cache, costsOf(cache, at, 10, noise), math.NaN())
			if g.Step != nil {
				t.Errorf("%s, noise %v: %+v", name, noise, g.Step)
			}
		}
	}
	if g := fit(t, cache, costsOf(cache, jumping(5.6, four), 1, 0.03), math.NaN()); g.Step != nil {
		t.Errorf("a step from one block, which has no interval: %+v", g.Step)
	}
	short := []float64{1, 2, 3, 1999, 2001, 2500}
	if g := fit(t, short, costsOf(short, jumping(5.6, four), 10, 0.01), math.NaN()); g.Step != nil && g.Step.From != 3 {
		t.Errorf("a step with two sizes on one side: %+v", g.Step)
	}
}

// TestSmoothCurvesHaveNoStep: a smooth curve that no form describes is not said to jump where a step would describe it
// best; a jump that is more than what the curve does beside it is.
func TestSmoothCurvesHaveNoStep(t *testing.T) {
	sizes := []float64{1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 30000}
	falls := func(n float64) float64 { return 10 + 1000/(n+10) + 0.02*n }
	for name, at := range map[string]func(n float64) float64{
		"cost of an item in a batch": falls,
		"falls at first":             func(n float64) float64 { return 10 + 1000/n + 0.1*n },
		"falls as a root":            func(n float64) float64 { return 5 + 100/math.Sqrt(n) + 0.01*n },
		"falls as a square":          func(n float64) float64 { return 10 + 3000/(n*n+9) + 1e-6*n*n },
	} {
		for _, noise := range []float64{0.002, 0.02} {
			g := fit(t, sizes, costsOf(sizes, at, 10, noise), math.NaN())
			if g.Step != nil || g.Named || g.Unfit == nil || !strings.Contains(g.Reason, "no jump") {
				t.Errorf("%s, noise %v: step %+v, named %v, %q", name, noise, g.Step, g.Named, g.Reason)
			}
		}
	}
	jumps := func(n float64) float64 { // a hump on either side, which no form describes
		y := 10 + 3*math.Exp(-math.Pow(math.Log(n/10), 2))
		if n >= 300 {
			y *= 8
		}
		return y
	}
	g := fit(t, sizes, costsOf(sizes, jumps, 10, 0.002), math.NaN())
	if s := g.Step; s == nil || s.From != 100 || s.To != 300 || g.Unfit == nil {
		t.Errorf("a jump beside a hump: %+v, %+v, %q", s, g.Unfit, g.Reason)
	}
}

func TestCeiling(t *testing.T) {
	at := func(n float64) float64 { return 4e-6 + 19e-6*max(0, 1-2000/n) }
	g := fit(t, cache, costsOf(cache, at, 20, 0.02), 10e-6)
	if g.Knee == nil || g.Knee.Ceiling == nil || g.Step != nil || g.Named {
		t.Fatalf("%+v, step %+v, %s", g.Knee, g.Step, g.Reason)
	}
	near(t, "knee", g.Knee.Value, 2000, 40)
	near(t, "base", g.Knee.Base.Value, 4e-6, 0.1e-6)
	near(t, "ceiling", g.Knee.Ceiling.Value, 23e-6, 0.6e-6)
	near(t, "break", g.Breaks.Value, 2000/(1-6.0/19), 60)
	if never := fit(t, cache, costsOf(cache, at, 20, 0.02), 30e-6); never.Breaks != nil ||
		!strings.Contains(never.Reason, "not reached") {
		t.Errorf("a budget above the ceiling breaks at %+v, %q", never.Breaks, never.Reason)
	}
}

func TestBreaksWithStep(t *testing.T) {
	for name, c := range map[string]struct {
		at         func(n float64) float64
		budget     float64
		in         bool
		lo, hi     float64 // that the value lies between
		reason     string
		far, never bool
	}{
		"in the step":     {at: jumping(5.6, four), budget: 10e-6, in: true, lo: 1999, hi: 2001},
		"below all":       {at: jumping(5.6, four), budget: 3e-6, reason: "exceeded at every size"},
		"above all":       {at: jumping(5.6, four), budget: 30e-6, reason: "not reached"},
		"before the step": {at: jumping(3, func(n float64) float64 { return 100 + 0.2*n }), budget: 200, lo: 470, hi: 530},
		"after the step": {
			at: jumping(3, func(n float64) float64 { return 100 + 0.2*n }), budget: 3600,
			lo: 5200, hi: 5800,
		},
		"far beyond": {
			at: jumping(3, func(n float64) float64 { return 100 + 0.2*n }), budget: 36000, lo: 55000,
			hi: 64000, far: true,
		},
		"down, only first": {at: jumping(0.5, four), budget: 3e-6, reason: "exceeded at 10–1999, kept at 2001–10000"},
	} {
		g := fit(t, cache, costsOf(cache, c.at, 10, 0.01), c.budget)
		if g.Step == nil {
			t.Errorf("%s: no step", name)
			continue
		}
		b := g.Breaks
		switch {
		case c.reason != "":
			if b != nil || !strings.Contains(g.Reason, c.reason) {
				t.Errorf("%s: %+v, %q", name, b, g.Reason)
			}
		case b == nil || g.BreaksInStep != c.in || g.Extrapolated != c.far || !(c.lo <= b.Value && b.Value <= c.hi) ||
			!(b.Lo <= b.Value && b.Value <= b.Hi):
			t.Errorf("%s: %+v, in the step %v, extrapolated %v", name, b, g.BreaksInStep, g.Extrapolated)
		case c.in && (b.Lo != 1999 || b.Hi != 2001):
			t.Errorf("%s: %+v", name, b)
		case !c.in && b.Lo == b.Hi:
			t.Errorf("%s: no interval: %+v", name, b)
		}
	}
}

func TestFitGrowthOfCounts(t *testing.T) {
	g := fit(t, cache, costsOf(cache, func(float64) float64 { return 8 }, 5, 0), 10)
	if g.Best.Law != Constant || !g.Named || !g.Exact || !g.Flat || g.C0.Lo != 8 || g.C0.Hi != 8 || g.Band(77).Hi != 8 ||
		g.Constant.Lo != 0 || g.Constant.Hi != 0 {
		t.Errorf("always 8: %+v", g)
	}
	if g.Breaks != nil || !strings.Contains(g.Reason, "not reached") {
		t.Errorf("8 of 10 breaks at %+v, %q", g.Breaks, g.Reason)
	}
	if zero := fit(t, cache[:2], [][]float64{{0, 0}, {0, 0}}, math.NaN()); !zero.Exact || zero.C0.Hi != 0 {
		t.Errorf("always 0: %+v", zero)
	}
	if _, err := FitGrowth([]float64{5, 5}, [][]float64{{8}, {8}},
		GrowthOptions{Level: 0.95, Budget: math.NaN()}); err == nil {
		t.Error("one size twice: no error")
	}
	if _, err := FitGrowth([]float64{1, math.NaN()}, [][]float64{{8}, {8}},
		GrowthOptions{Level: 0.95, Budget: math.NaN()}); err == nil {
		t.Error("a size that is none: no error")
	}
	jump := fit(t, cache, costsOf(cache, jumping(66.0/8, func(float64) float64 { return 8 }), 5, 0), math.NaN())
	if jump.Step == nil || math.Abs(jump.Step.Factor.Lo-8.25) > 1e-9 || math.Abs(jump.Step.Factor.Hi-8.25) > 1e-9 {
		t.Errorf("8 and 66: %+v", jump.Step)
	}
	rising := fit(t, ladder, costsOf(ladder, func(n float64) float64 { return 97 + 2*n }, 5, 0), math.NaN())
	if rising.Best.Law != Linear || !rising.Named || math.Abs(rising.C1.Lo-2) > 1e-6 || math.Abs(rising.C1.Hi-2) > 1e-6 {
		t.Errorf("97 + 2·N: %+v", rising)
	}
	// The last digits of a count can follow a law that is of no consequence.
	trifle := fit(t, ladder, costsOf(ladder, func(n float64) float64 { return 8 + 1e-6*n }, 10, 1e-7), math.NaN())
	if trifle.Named || !trifle.Flat || !strings.Contains(trifle.Reason, "within the margin") {
		t.Errorf("8 + 10⁻⁶·N: named %v, %q", trifle.Named, trifle.Reason)
	}
}

// Curves that none of the six laws describes are not given the name of one.
func TestNoLawForOtherCurves(t *testing.T) {
	for name, at := range map[string]func(n float64) float64{
		"power":    func(n float64) float64 { return 10 + math.Pow(n, 0.7) },
		"two laws": func(n float64) float64 { return 20 + 5*math.Log2(1+n) + 0.05*n },
		"falls":    func(n float64) float64 { return 10 + 1000/n },
	} {
		if g := fit(t, cache, costsOf(cache, at, 10, 0.01), math.NaN()); g.Named || g.Reason == "" {
			t.Errorf("%s is named %s: %s", name, g.Best.Law, g.Reason)
		}
	}
}

// A law that misses no size by more than the margin is named, however surely another curve fits better.
func TestLawWithinTheMargin(t *testing.T) {
	for name, at := range map[string]func(n float64) float64{
		"a power": func(n float64) float64 { return 17 + 2.8*math.Pow(n, 0.995) },
		"a bend":  func(n float64) float64 { return 17 + 2.8*n + 0.05*max(0, n-1000) },
		"a step":  func(n float64) float64 { return (17 + 2.8*n) * (1 + 0.012*min(1, max(0, n-999))) },
	} {
		blocks := costsOf(cache, at, 10, 0.002)
		for margin, named := range map[float64]bool{0.02: true, 0.001: false} {
			g, err := FitGrowth(cache, blocks, GrowthOptions{Level: 0.95, Budget: math.NaN(), Margin: margin})
			if err != nil {
				t.Fatal(err)
			}
			if g.Named != named || named && (g.Best.Law != Linear || g.Step != nil || g.Knee != nil) {
				t.Errorf("%s, margin %v: named %v (%s), step %v, knee %v, %q", name, margin, g.Named, g.Best.Law, g.Step,
					g.Knee, g.Reason)
			}
		}
	}
}

// What is measured across a step is free of the form: here one that grows before it and is constant beyond, which no
// form times a factor is.
func TestAcrossAStep(t *testing.T) {
	sizes := []float64{10, 20, 50, 100, 200, 500, 1000, 1999, 2001, 3000, 5000, 7000, 10000}
	at := func(n float64) float64 {
		if n < 2000 {
			return 2.5 + 0.13*math.Log2(1+n)
		}
		return 23
	}
	g := fit(t, sizes, costsOf(sizes, at, 10, 0.005), math.NaN())
	if g.Step == nil || g.Step.From != 1999 || g.Step.To != 2001 {
		t.Fatalf("step %+v, %q", g.Step, g.Reason)
	}
	want := 23 / at(1999)
	if a := g.Step.Across; a.Lo > want || a.Hi < want || a.Hi-a.Lo > 0.1*want ||
		math.Abs(g.Step.Factor.Value/want-1) < 0.02 {
		t.Errorf("across %+v, want %v; the form's factor is %v", a, want, g.Step.Factor.Value)
	}
}
