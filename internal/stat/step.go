package stat

import (
	"cmp"
	"math"
	"slices"
)

const (
	stepSides = 3 // the least number of sizes on either side of a step
	// stepPlaces is the number of parameters that the position of a step counts as, since it is searched for (see the
	// false positives in package montecarlo).
	stepPlaces = 2
	sideSizes  = 6 // from this number of sizes on a side has a law of its own
)

// Step is a jump of the cost between two neighbouring sizes: cost = c0 + c1·f(N) up to From, and Factor times that from
// To on.
type Step struct {
	From, To float64 // the largest size before the jump and the smallest after it
	Factor   Estimate
	// Across is the measured cost at To as a multiple of that at From, independent of any law: the centre of the blocks'
	// ratios.
	Across Estimate
	// Law is the law without the step; Tied are the laws that fit as well.
	Law    Fit
	Tied   []Law
	C0, C1 Estimate // of the sizes up to From
	// Before and After are fits of each side alone; nil with fewer than 6 sizes, and where no law fits them.
	Before, After *GrowthFit
}

// stepFit is a law with a step before size number split.
type stepFit struct {
	fit    Fit
	split  int
	factor float64 // its logarithm
}

// fitSteps fits every law with a step at every position, the best first.
func fitSteps(n, y []float64) []stepFit {
	var out []stepFit
	for _, l := range Laws() {
		var best *stepFit
		p, ok := lawProfile(l, n)
		for split := stepSides; split+stepSides <= len(n); split++ {
			s := fitStep(l, p, ok, y, split)
			if best == nil || s.fit.RSS < best.fit.RSS {
				best = &s
			}
		}
		if best != nil {
			out = append(out, *best)
		}
	}
	slices.SortStableFunc(out, func(a, b stepFit) int { return cmp.Compare(a.fit.BIC, b.fit.BIC) })
	return out
}

func lawProfile(l Law, n []float64) (profile, bool) {
	f := make([]float64, len(n))
	for i, v := range n {
		f[i] = l.F(v)
	}
	return newProfile(f)
}

// fitStep fits one law with a step at one position; without a profile the law is constant.
func fitStep(l Law, p profile, varies bool, y []float64, split int) stepFit {
	parameters := 3 + stepPlaces // c0, the factor, the place, the variance
	if !varies {
		s := scaleTo(make([]float64, len(y)), y, split)
		return stepFit{
			fit: Fit{Law: l, C0: math.Exp(s.left), RSS: s.rss, BIC: bic(s.rss, len(y), parameters)}, split: split,
			factor: s.right - s.left,
		}
	}
	s := p.fit(y, split)
	f := Fit{Law: l, RSS: s.rss, BIC: bic(s.rss, len(y), parameters+1)}
	f.C0, f.C1 = p.coefficients(s)
	return stepFit{fit: f, split: split, factor: s.right - s.left}
}

// step describes the chosen step: its factor, the law without it, and fits of each side that has enough sizes.
func (g *GrowthFit) step(d costs, without [][]float64, steps []stepFit, o GrowthOptions) {
	s := &steps[0]
	p, ok := lawProfile(s.fit.Law, d.n)
	out := &Step{From: d.n[s.split-1], To: d.n[s.split], Law: s.fit}
	out.Factor = exponential(spread(s.factor, s.deletions(d.n, without, func(f stepFit) float64 { return f.factor }),
		o.Level))
	out.Across = d.across(s.split, o.Level)
	out.C0, out.C1 = coefficients(s.fit, without, o.Level,
		func(y []float64) Fit { return fitStep(s.fit.Law, p, ok, y, s.split).fit })
	for _, other := range steps[1:] {
		if other.fit.BIC-s.fit.BIC <= tiedBIC {
			out.Tied = append(out.Tied, other.fit.Law)
		}
	}
	out.Before, out.After = side(d, 0, s.split, without, o), side(d, s.split, len(d.n), without, o)
	g.Step = out
}

// across returns the cost of size number i as a multiple of that of the previous size.
func (d costs) across(i int, level float64) Estimate {
	ratio := make([]float64, d.blocks())
	for b := range ratio {
		ratio[b] = d.log[i][b] - d.log[i-1][b]
	}
	t, err := HodgesLehmann(ratio, level)
	if err != nil { // too few blocks for an interval
		t.Estimate = spread(Median(ratio), nil, level)
	}
	return exponential(t.Estimate)
}

// jumps reports whether the cost is known to change from size number i−1 to i more than twice as much as it changes on
// either side of them, in the same direction and by as large a factor of the size. A smooth curve, however steep,
// changes similarly between neighbouring sizes.
func (d costs) jumps(i int, level float64) bool {
	width := func(i int) float64 { return math.Log(d.n[i]) - math.Log(d.n[i-1]) }
	up := math.Copysign(1, math.Log(d.across(i, level).Value))
	for _, beside := range []int{i - 1, i + 1} {
		times, more := 2*max(1, width(i)/width(beside)), make([]float64, d.blocks())
		for b := range more {
			more[b] = up * (d.log[i][b] - d.log[i-1][b] - times*(d.log[beside][b]-d.log[beside-1][b]))
		}
		if t, err := HodgesLehmann(more, level); err != nil || !(t.Lo > 0) {
			return false
		}
	}
	return true
}

// side fits the sizes of one side alone.
func side(d costs, from, to int, without [][]float64, o GrowthOptions) *GrowthFit {
	if to-from < sideSizes {
		return nil
	}
	part := costs{n: d.n[from:to], log: d.log[from:to]}
	cut := make([][]float64, len(without))
	for b, y := range without {
		cut[b] = y[from:to]
	}
	y := part.centre(-1)
	g := fitCosts(part, y, cut, o)
	deleted := make([]course, len(cut))
	for b, without := range cut {
		deleted[b] = fitLaw(g.Best.Law, part.n, without)
	}
	if part.missed(g.Best, deleted, y, cut, o) != nil {
		return nil
	}
	if err := g.growth(part, o); err != nil {
		return nil
	}
	return &g
}

// sameCost returns the cost of all sizes in all blocks, if they are identical.
func sameCost(n []float64, blocks [][]float64) (v float64, same bool) {
	if len(n) < 2 || len(n) != len(blocks) || len(blocks[0]) == 0 {
		return 0, false
	}
	v = blocks[0][0]
	for _, x := range blocks {
		if len(x) != len(blocks[0]) || slices.ContainsFunc(x, func(c float64) bool { return c != v }) {
			return 0, false
		}
	}
	return v, v >= 0 && !math.IsInf(v, 0) && distinctSizes(n)
}

func distinctSizes(n []float64) bool {
	s := slices.Clone(n)
	slices.Sort(s)
	return s[0] >= 0 && !math.IsInf(s[len(s)-1], 0) && len(slices.Compact(s)) == len(n)
}

// exactly returns the fit of costs that are all v.
func exactly(v float64, blocks int, o GrowthOptions) GrowthFit {
	point := func(x float64) Estimate { return Estimate{Value: x, Lo: x, Hi: x, Level: o.Level, N: blocks} }
	g := GrowthFit{
		Best: Fit{Law: Constant, C0: v}, Named: true, Exact: true, C0: point(v), C1: point(0),
		Flat: o.Margin > 0,
	}
	g.Fits = []Fit{g.Best}
	none := point(0)
	g.Constant = &none
	g.Band = func(float64) Estimate { return point(v) }
	if !math.IsNaN(o.Budget) {
		g.Reason = "the budget is not reached at any size"
		if v > o.Budget {
			g.Reason = "the budget is exceeded at every size"
		}
	}
	return g
}
