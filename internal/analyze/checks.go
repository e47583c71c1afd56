package analyze

import (
	"fmt"

	"tare/internal/design"
	"tare/internal/report"
	"tare/internal/stat"
)

// runInvalid is why nothing is judged in an invalid run, whose verdict says why it is.
const runInvalid = "the run is invalid"

// unreliable is what a run is called whose own checks found effects where there can be none.
const unreliable = "unreliable on this host"

// checks looks for effects where there can be none: between the baseline and itself, and on operations that a treatment
// cannot reach. One that is distinguished from 0 and is larger than half the margin makes the run invalid.
func (a *analysis) checks(c *comparison) {
	if c.unblocked || a.pairing != nil {
		return
	}
	out := &report.AA{Reliable: true}
	found, skipped := false, skips{}
	for i := range c.arms {
		t := &c.arms[i]
		base, ok := c.baselineOf(t)
		if !ok || base.ID == t.ID {
			continue
		}
		var gates []gate
		if t.Control == design.AA {
			gates = c.gates.all
		} else if !t.Baseline {
			gates = c.checkable(t.ID)
		}
		family := c.family(base.ID, t.ID, gates, skipped)
		if t.Control == design.AA {
			judged := a.check(family, design.AA, out)
			for _, x := range family {
				if x.unbounded() {
					skipped.add(x.failed, gate{x.effect.Operation, x.effect.Metric, x.effect.Quantile})
				}
			}
			found = found || len(judged) > 0
			out.Effects = append(out.Effects, judged...)
			continue
		}
		a.negatives = append(a.negatives, family...)
	}
	// One family over all treatments: the more places are searched, the more would be found by chance.
	out.NegativeControls = a.check(a.negatives, design.Negative, out)
	if !found {
		out.Unchecked, out.Remedy = a.unchecked(c, skipped)
		a.flaws.open = append(a.flaws.open, out.Unchecked)
		out.Reliable = false
	}
	a.rep.AA = out
}

// check judges a family of effects that ought to be none.
func (a *analysis) check(family []*contrast, control design.Control, aa *report.AA) []report.Effect {
	if undecidable(family, "", stat.Holm) != "" { // a check must be able to fail
		for _, x := range family {
			if x.effect.Blocks >= fewestFor(stat.LookAlpha) {
				x.byMean()
				_ = x.estimate(stat.LookAlpha) // the rank test could be estimated: this one can
			}
		}
	}
	p := pValues(family)
	adjusted, alphas := stat.Holm(p), stat.HolmLevels(p, stat.LookAlpha)
	var out []report.Effect
	for i, x := range family {
		if err := x.estimate(alphas[i]); err != nil {
			continue
		}
		e := &x.effect
		e.Control, e.Gating, e.Adjusted = control, control == design.AA, &adjusted[i]
		x.fill(alphas[i])
		if x.unbounded() {
			continue
		}
		out = append(out, *e)
		if !e.Measurable || adjusted[i] > stat.LookAlpha {
			continue
		}
		what := fmt.Sprintf("%s differs from %s in %s by %s", e.Treatment, e.Baseline, nameOf(e), e.Change())
		if control == design.Negative {
			what += ", though it cannot act there"
		}
		if abs(e.Estimate) > x.margin/2 {
			aa.Reliable = false
			a.flaws.invalid = append(a.flaws.invalid, unreliable+": "+what)
			continue
		}
		a.warn("", "%s: less than half the margin, yet more than chance explains", what)
	}
	return out
}

func abs(v float64) float64 { return max(v, -v) }

// withdrawEffects takes the effects and the laws out of a run that is not to be trusted. What was measured under each
// treatment stays, and so do the checks that found the fault.
func (a *analysis) withdrawEffects() {
	if len(a.flaws.invalid) == 0 {
		return
	}
	a.rep.Effects, a.rep.Additions = nil, nil
	for i := range a.rep.Growth {
		g := &a.rep.Growth[i]
		points := g.Points
		for k := range points {
			points[k].Fitted, points[k].FittedLo, points[k].FittedHi = nil, nil, nil
		}
		*g = report.Growth{
			Factor: g.Factor, Treatment: g.Treatment, Metric: g.Metric, Part: g.Part, Quantile: g.Quantile,
			Operation: g.Operation, Unit: g.Unit, Range: g.Range, Points: points, Reason: runInvalid,
		}
	}
}

// nameOf is what an effect is on, as a budget would name it.
func nameOf(e *report.Effect) string { return gate{e.Operation, e.Metric, e.Quantile}.String() }
