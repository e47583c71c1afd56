package stat

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A course is a fitted cost by size: a law, a law with a step, or one with a bend.
type course interface {
	// At is the cost at size n.
	At(n float64) float64
}

// stepCourse is a law with a step. Between its two sizes it is that of the sizes before.
type stepCourse struct {
	fit      Fit
	from, to float64
	factor   float64
}

// At is the cost at size n.
func (s stepCourse) At(n float64) float64 {
	if n < s.to {
		return s.fit.At(n)
	}
	return s.factor * s.fit.At(n)
}

// describe computes the band and the break from the best description, and describes a step or a knee.
// A step that does not describe the costs is named only where it is a jump.
func (g *GrowthFit) describe(d costs, y []float64, without [][]float64, t turn, o GrowthOptions) {
	full, refit := g.course(d, t)
	deleted := make([]course, len(without))
	for b, part := range without {
		deleted[b] = refit(part)
	}
	along := func(of func(course) float64) Estimate {
		part := make([]float64, len(deleted))
		for i, c := range deleted {
			part[i] = of(c)
		}
		return spread(of(full), part, o.Level)
	}
	g.Band = func(n float64) Estimate {
		return exponential(along(func(c course) float64 { return math.Log(c.At(n)) }))
	}
	g.Unfit = d.missed(full, deleted, y, without, o)
	if len(t.steps) > 0 && g.Unfit != nil && !d.jumps(t.steps[0].split, o.Level) {
		g.Reason = fmt.Sprintf("a step between %v and %v fits better than any one law, but is no jump: the cost changes "+
			"similarly beside it", d.n[t.steps[0].split-1], d.n[t.steps[0].split])
		g.describe(d, y, without, turn{reason: g.Reason}, o)
		return
	}
	if g.Unfit != nil {
		g.unfit(d, y, without, t, o)
		return
	}
	switch {
	case len(t.steps) > 0:
		g.step(d, without, t.steps, o)
		g.breaksWithStep(d, y, full.(stepCourse), o)
		return
	case t.hinge != nil || t.ceiling != nil:
		k := kneeOf(full, d.placed(full, y, o.Level), along)
		if !k.apart() {
			g.Reason = "a bend fits better than any one law, but the intervals of its two sides overlap: whether it bends is " +
				"not known"
			g.describe(d, y, without, turn{}, o)
			return
		}
		g.Knee = k
	}
	g.breaks(d, y, full, deleted, o)
}

// unfit says that no form fits, gives the break by what was measured alone, and describes a step, which was measured
// whatever the form.
func (g *GrowthFit) unfit(d costs, y []float64, without [][]float64, t turn, o GrowthOptions) {
	best, reason := string(g.Best.Law), t.reason
	switch {
	case len(t.steps) > 0:
		best, reason = string(t.steps[0].fit.Law)+" beside a step", ""
	case t.at() > 0:
		best, reason = "one with a bend", ""
	}
	g.Named, g.Reason = false, joined(fmt.Sprintf("no form fits: the best, %s, misses the cost at %v by %.0f %%", best,
		g.Unfit.N, 100*g.Unfit.By), reason)
	g.breaksBetween(d, y, o)
	if len(t.steps) > 0 {
		g.step(d, without, t.steps, o)
		g.BreaksInStep = g.Breaks != nil && g.Breaks.Lo == g.Step.From && g.Breaks.Hi == g.Step.To
	}
}

// missed returns the size whose cost a description misses most, of those that it is known to miss by more than the
// margin, at an error of 1 % over all sizes; nil if there is none. What blocks share cancels, since the description is
// fitted without each block as well.
func (d costs) missed(full course, deleted []course, y []float64, without [][]float64, o GrowthOptions) (m *Miss) {
	for i, n := range d.n {
		off := func(y []float64, c course) float64 { return math.Log(c.At(n)) - y[i] }
		part := make([]float64, len(deleted))
		for b, c := range deleted {
			part[b] = off(without[b], c)
		}
		e := spread(off(y, full), part, 1-0.01/float64(len(d.n)))
		by := math.Abs(math.Expm1(e.Value))
		if margin := math.Log1p(o.Margin); (e.Lo > margin || e.Hi < -margin) && (m == nil || by > m.By) {
			m = &Miss{N: n, By: by}
		}
	}
	return m
}

// breaksBetween finds the neighbouring sizes between which the cost first exceeds the budget, by what was measured
// alone: it is below the budget up to Lo, and above it at Hi. If a larger size keeps the budget again, the reason says
// which sizes do.
func (g *GrowthFit) breaksBetween(d costs, y []float64, o GrowthOptions) {
	if math.IsNaN(o.Budget) {
		return
	}
	limit := math.Log(o.Budget)
	first := slices.IndexFunc(y, func(v float64) bool { return v >= limit })
	if first <= 0 {
		g.unbroken(d, o.Budget)
		return
	}
	lo, hi := first-1, first
	for ; lo >= 0 && d.own(lo, o.Level).Hi >= limit; lo-- {
	}
	for ; hi < len(y) && d.own(hi, o.Level).Lo < limit; hi++ {
	}
	e := Estimate{Value: (d.n[first-1] + d.n[first]) / 2, Lo: 0, Hi: math.Inf(1), Level: o.Level, N: d.blocks()}
	if lo >= 0 {
		e.Lo = d.n[lo]
	}
	if hi < len(y) {
		e.Hi = d.n[hi]
	}
	g.Breaks = &e
	if d.contradicts(&e, o.Budget) {
		g.unbroken(d, o.Budget)
	}
}

// contradicts reports whether a size below a break's interval is known to exceed the budget, or one above to keep it.
func (d costs) contradicts(e *Estimate, budget float64) bool {
	for i, n := range d.n {
		switch s := d.side(i, budget); {
		case s == exceeded && n < e.Lo, s == kept && n > e.Hi:
			return true
		}
	}
	return false
}

// What a size's own interval says of the budget.
const (
	exceeded = iota
	kept
	undecided
)

// side returns on which side of the budget size number i lies, by the interval with which a budget on it is judged.
func (d costs) side(i int, budget float64) int {
	e, err := MedianInterval(d.log[i], 1-LookAlpha)
	switch limit := math.Log(budget); {
	case err != nil:
		return undecided
	case e.Lo > limit:
		return exceeded
	case e.Hi <= limit:
		return kept
	}
	return undecided
}

// unbroken adds to the reason at which measured sizes the budget is exceeded and kept, by their own intervals.
func (g *GrowthFit) unbroken(d costs, budget float64) {
	var at [undecided + 1][]string
	for i := 0; i < len(d.n); i++ {
		s, sizes, from := d.side(i, budget), fmt.Sprint(d.n[i]), i
		for i+1 < len(d.n) && d.side(i+1, budget) == s {
			i++
		}
		if i > from {
			sizes += fmt.Sprintf("–%v", d.n[i])
		}
		at[s] = append(at[s], sizes)
	}
	if len(at[exceeded]) == 0 && len(at[undecided]) == 0 {
		g.Reason = joined(g.Reason, "the budget is not reached at any size")
		return
	}
	var said []string
	for s, word := range []string{exceeded: "exceeded", kept: "kept", undecided: "undecided"} {
		switch {
		case len(at[s]) == 1 && len(at[exceeded])+len(at[kept])+len(at[undecided]) == 1:
			said = append(said, word+" at every size")
		case len(at[s]) > 0:
			said = append(said, word+" at "+strings.Join(at[s], " and "))
		}
	}
	g.Reason = joined(g.Reason, "the budget is "+strings.Join(said, ", "))
}

// own is the interval of one size's logarithm by itself; the whole line for few blocks.
func (d costs) own(i int, level float64) Estimate {
	e, err := HodgesLehmann(d.log[i], level)
	if err != nil {
		return spread(Median(d.log[i]), nil, level)
	}
	return e.Estimate
}

// apart reports whether the costs on both sides of a knee are known to differ in kind: the slopes, or the constant and
// the ceiling, have intervals that do not overlap.
func (k *Knee) apart() bool {
	if k.Ceiling != nil {
		return k.Base.Hi < k.Ceiling.Lo
	}
	return k.Slope.Hi < k.Steeper.Lo
}

// kneeOf describes a bend; along returns the jackknife estimate of a property of the bend.
func kneeOf(full course, place Estimate, along func(of func(course) float64) Estimate) *Knee {
	k := &Knee{Estimate: place, Base: along(func(c course) float64 { return c.At(0) })}
	if _, linear := full.(hinge); linear {
		slope := along(func(c course) float64 { return c.(hinge).c[1] })
		steeper := along(func(c course) float64 { return c.(hinge).steeper() })
		k.Slope, k.Steeper = &slope, &steeper
		return k
	}
	top := along(func(c course) float64 { return c.(ceiling).c0 + c.(ceiling).c1 })
	k.Ceiling = &top
	return k
}

// course returns the chosen description, and a function that fits it to the costs without a block.
func (g *GrowthFit) course(d costs, t turn) (full course, refit func(y []float64) course) {
	switch {
	case len(t.steps) > 0:
		best := t.steps[0]
		p, ok := lawProfile(best.fit.Law, d.n)
		as := func(s stepFit) course {
			return stepCourse{fit: s.fit, from: d.n[s.split-1], to: d.n[s.split], factor: math.Exp(s.factor)}
		}
		return as(best), func(y []float64) course { return as(fitStep(best.fit.Law, p, ok, y, best.split)) }
	case t.hinge != nil:
		return *t.hinge, func(y []float64) course {
			h, _ := bestHinge(d.n, y)
			return h
		}
	case t.ceiling != nil:
		at := t.ceiling.at
		near := d.neighbours(at)
		return *t.ceiling, func(y []float64) course {
			c, _ := ceilingWithin(d.n, y, near[0], near[1], 2)
			return c
		}
	}
	return g.Best, func(y []float64) course { return fitLaw(g.Best.Law, d.n, y) }
}

// neighbours returns the sizes two places below and above n: without a block a bend near n lies between them.
func (d costs) neighbours(n float64) [2]float64 {
	i, _ := slices.BinarySearch(d.n, n)
	lo, hi := max(i-2, kneeSides-1), min(i+1, len(d.n)-kneeSides)
	if d.n[lo] == 0 {
		lo++
	}
	return [2]float64{d.n[lo], d.n[hi]}
}

// reach returns the size at which a non-decreasing cost reaches budget; +Inf if it never does.
func reach(c course, budget float64) float64 {
	if c.At(0) >= budget {
		return 0
	}
	lo, hi := 0.0, 1.0
	for c.At(hi) < budget {
		if hi *= 2; hi > farthest*1e3 {
			return math.Inf(1)
		}
	}
	return bisect(lo, hi, func(n float64) bool { return c.At(n) >= budget })
}

// bisect finds the size at which is becomes true.
func bisect(lo, hi float64, is func(n float64) bool) float64 {
	for range 100 {
		if mid := (lo + hi) / 2; is(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// breaks finds where the cost exceeds the budget, with an interval on the scale of log N.
func (g *GrowthFit) breaks(d costs, y []float64, full course, deleted []course, o GrowthOptions) {
	if math.IsNaN(o.Budget) {
		return
	}
	at := reach(full, o.Budget)
	if at == 0 || at > farthest {
		g.unbroken(d, o.Budget)
		return
	}
	part, never := make([]float64, len(deleted)), false
	for i, c := range deleted {
		n := reach(c, o.Budget)
		never = never || n > farthest
		part[i] = math.Log(max(n, math.SmallestNonzeroFloat64))
	}
	e := Estimate{Value: at, Lo: 0, Hi: math.Inf(1), Level: o.Level, N: len(deleted)}
	if !never {
		e = exponential(spread(math.Log(at), part, o.Level))
		if at <= d.n[len(d.n)-1] {
			g.otherForms(d, y, &e, o)
		}
	}
	if d.contradicts(&e, o.Budget) {
		g.breaksBetween(d, y, o)
		return
	}
	g.Breaks, g.Extrapolated = &e, at > extrapolated*d.n[len(d.n)-1]
}

// otherForms widens the interval of a break between measured sizes by where other forms put it, laws, curves or a bend,
// that fit about as well as the best of all: their places have the relative interval of the first.
func (g *GrowthFit) otherForms(d costs, y []float64, e *Estimate, o GrowthOptions) {
	forms := curves(d.n, y)
	for _, f := range g.Fits {
		forms = append(forms, curve{f.At, f.BIC})
	}
	if h, ok := bestHinge(d.n, y); ok {
		forms = append(forms, curve{h.At, bic(h.rss, len(y), 5)})
	}
	lowest := math.Inf(1)
	for _, f := range forms {
		lowest = min(lowest, f.bic)
	}
	down, up := e.Lo/e.Value, e.Hi/e.Value
	for _, f := range forms {
		if f.bic > lowest+turnBIC {
			continue
		}
		if at := reach(f, o.Budget); at > 0 && at <= farthest {
			e.Lo, e.Hi = min(e.Lo, at*down), max(e.Hi, at*up)
		}
	}
}

// joined joins two reasons; either may be empty.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// breaksWithStep finds where the cost exceeds the budget if the cost jumps. A jackknife on the scale of N does not
// apply to a jump: the interval is where the band's upper and lower bound reach the budget.
func (g *GrowthFit) breaksWithStep(d costs, y []float64, s stepCourse, o GrowthOptions) {
	if math.IsNaN(o.Budget) {
		return
	}
	at, in := s.reach(s.At, o.Budget)
	if at == 0 || at > farthest {
		g.unbroken(d, o.Budget)
		return
	}
	lo, inLo := s.reach(func(n float64) float64 { return g.Band(n).Hi }, o.Budget)
	hi, inHi := s.reach(func(n float64) float64 { return g.Band(n).Lo }, o.Budget)
	if inLo {
		lo = s.from
	}
	if inHi {
		hi = s.to
	}
	if hi > farthest {
		hi = math.Inf(1)
	}
	g.Breaks = &Estimate{Value: at, Lo: min(lo, at), Hi: max(hi, at), Level: o.Level, N: d.blocks()}
	if d.contradicts(g.Breaks, o.Budget) {
		g.breaksBetween(d, y, o)
		return
	}
	g.BreaksInStep, g.Extrapolated = in, at > extrapolated*d.n[len(d.n)-1]
}

// reach returns the size at which a cost that jumps first reaches budget; in the jump, the middle of its two sizes.
func (s stepCourse) reach(at func(n float64) float64, budget float64) (n float64, inStep bool) {
	over := func(n float64) bool { return at(n) >= budget }
	switch {
	case over(0):
		return 0, false
	case over(s.from):
		return bisect(0, s.from, over), false
	case over(s.to):
		if s.from == 0 {
			return s.to / 2, true
		}
		return math.Sqrt(s.from * s.to), true
	}
	hi := s.to
	for !over(hi) {
		if hi *= 2; hi > farthest*1e3 {
			return math.Inf(1), false
		}
	}
	return bisect(s.to, hi, over), false
}
