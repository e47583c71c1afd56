package stat

import (
	"fmt"
	"math"
)

const (
	turnBIC  = 6 // by how much the BIC of a step or a bend must improve on one law and on every smooth curve
	clearBIC = 4 // by how much one of the two must improve on the other to be named
)

// Knee is the size from which the cost grows faster. There are two kinds.
type Knee struct {
	Estimate
	// Base is the cost at N = 0.
	Base Estimate
	// Slope and Steeper are the slopes before and after the knee, of the kind that is linear on both sides; nil for the
	// other kind.
	Slope, Steeper *Estimate
	// Ceiling is the limit of the kind that is constant up to the knee and then saturates as Base + (Ceiling−Base)·(1 −
	// knee/N); nil for the other kind.
	Ceiling *Estimate
}

// turn is an alternative to a single law: at most one of step, hinge and ceiling is chosen.
type turn struct {
	steps   []stepFit // the best first
	hinge   *hinge
	ceiling *ceiling
	reason  string // why no single law is named
}

// turns decides between one law, a step and a bend, by BIC.
func (g *GrowthFit) turns(d costs, y []float64, without [][]float64, o GrowthOptions) turn {
	if g.Named && g.Best.within(d.n, y, o.Margin) {
		return turn{}
	}
	smooth := math.NaN() // computed on demand only
	curve := func() float64 {
		if math.IsNaN(smooth) {
			smooth = smoothest(d.n, y)
		}
		return smooth
	}
	beats := func(b float64) bool { return g.Best.BIC-b >= turnBIC && curve()-b >= turnBIC }
	if g.Named && g.Best.BIC-curve() >= turnBIC {
		g.Named, g.Reason = false, "a curve other than the six laws fits better"
	}
	bend, bendBIC := g.bend(d, y, beats)
	steps := fitSteps(d.n, y)
	if len(steps) == 0 || !beats(steps[0].fit.BIC) || !steps[0].holds(d, without, o) {
		return bend
	}
	s := &steps[0]
	switch at := bend.at(); {
	case s.fit.BIC <= bendBIC-clearBIC:
		return turn{steps: steps, reason: "a step fits better than any one law"}
	case math.IsNaN(at) || bendBIC <= s.fit.BIC-clearBIC:
		return bend
	default:
		return turn{reason: fmt.Sprintf("a step between %v and %v and a bend near %.3g fit equally well", d.n[s.split-1],
			d.n[s.split], at)}
	}
}

// within reports whether the fit misses no size by more than the margin. A better description of such costs is
// irrelevant, however significant.
func (f Fit) within(n, y []float64, margin float64) bool {
	for i := range n {
		if math.Abs(y[i]-math.Log(f.At(n[i]))) > math.Log1p(margin) {
			return false
		}
	}
	return true
}

// bend returns the better kind of bend, if it may be named, and the lowest BIC of both, named or not.
func (g *GrowthFit) bend(d costs, y []float64, beats func(bic float64) bool) (t turn, lowest float64) {
	lowest = math.Inf(1)
	if h, ok := bestHinge(d.n, y); ok {
		lowest = bic(h.rss, len(y), 5)
		if g.Best.BIC-lowest >= turnBIC {
			t = turn{hinge: &h, reason: "two segments fit better than any one law"}
		}
	}
	if c, ok := bestCeiling(d.n, y); ok {
		b := bic(c.rss, len(y), 4)
		if b < lowest && beats(b) {
			t = turn{ceiling: &c, reason: "a cost that is constant up to a bend fits better than any one law"}
		}
		lowest = min(lowest, b)
	}
	return t, lowest
}

// at returns the position of the bend; NaN if there is none.
func (t turn) at() float64 {
	switch {
	case t.hinge != nil:
		return t.hinge.at
	case t.ceiling != nil:
		return t.ceiling.at
	}
	return math.NaN()
}

// holds reports whether the blocks agree on a step: its factor exceeds the margin, and its interval excludes 1 at an
// error of 5 % over all positions that were tried.
func (s *stepFit) holds(d costs, without [][]float64, o GrowthOptions) bool {
	places := len(d.n) - 2*stepSides + 1
	e := spread(s.factor, s.deletions(d.n, without, func(f stepFit) float64 { return f.factor }), 1-0.05/float64(places))
	return (e.Lo > 0 || e.Hi < 0) && math.Abs(s.factor) > math.Log1p(o.Margin)
}

// deletions returns of for the fits without each block, at the same position and with the same law.
func (s *stepFit) deletions(n []float64, without [][]float64, of func(stepFit) float64) []float64 {
	out := make([]float64, len(without))
	p, ok := lawProfile(s.fit.Law, n)
	for b, y := range without {
		out[b] = of(fitStep(s.fit.Law, p, ok, y, s.split))
	}
	return out
}
