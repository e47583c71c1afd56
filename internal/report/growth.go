package report

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/internal/unit"
)

// Descriptions of growth laws, for text and Markdown.

// measured names what grows: "create-pod.rss of etcd".
func (g *Growth) measured() string {
	of := Measured(g.Operation, g.Metric, g.Quantile)
	if g.Part != "" {
		of += " of " + g.Part
	}
	return of
}

// headline describes one fitted law: "linear, 1.19 µs [1.1, 1.3] + 31 ns·rules [29, 33], over 0–50"; or says why there
// is none.
func (g *Growth) headline() string {
	over := "over " + g.span()
	switch {
	case g.Exact && g.Law != "":
		return "constant, exactly " + Quantity(g.Unit)(g.Coefficients.C0) + " at every size, " + over
	case g.Law != "":
		return g.form(g.Law) + ", " + over + g.tied("; ")
	case g.Step != nil && g.Best == "":
		return "no single law: " + g.Step.words(g.Factor) + "; " + g.Reason + ", " + over
	case g.Step != nil:
		return "no single law: " + g.Step.words(g.Factor) + "; up to there " + g.form(g.Best) + inBrackets(g.tied("")) +
			", beyond it " + g.Step.multiple() + " that, " + over
	case g.Bend != nil && g.Knee != nil:
		return "no single law: " + g.Bend.words(g) + ", " + over
	case g.Best != "":
		return "no law is named" + because(g.Reason) + "; the best form is " + g.form(g.Best) + ", " + over + " only" +
			g.tied("; ")
	}
	return "no law is named" + because(orElse(g.Reason, "nothing was fitted")) + "; " + over
}

// tied says which laws fit as well as the best, behind a separator; "" if none does.
func (g *Growth) tied(separator string) string {
	if len(g.Tied) == 0 {
		return ""
	}
	return separator + listed(g.Tied) + plural(len(g.Tied), " fits", " fit") + " as well"
}

// form returns a law with its formula: "linear, 1.19 µs + 31 ns·rules".
func (g *Growth) form(law string) string { return law + ", " + g.formula(law) }

// between returns the sizes of a step: "records = 1999 and 2001".
func (s *Step) between(factor string) string {
	return equals(factor, Exactly(s.From)+" and "+Exactly(s.To))
}

// equals returns "records = 1999"; without a name, the value.
func equals(factor, value string) string {
	if factor == "" {
		return value
	}
	return factor + " = " + value
}

// words returns "step between records = 1999 and 2001: ×5.6 [5.2, 6]": the cost at the larger size as a multiple of
// that at the smaller.
func (s *Step) words(factor string) string {
	return "step between " + s.between(factor) + ": " + s.Jump()
}

// Jump returns the cost beyond the step as a multiple of the cost before it: "×5.8 [5.7, 5.9]".
func (s *Step) Jump() string {
	if s.Across == nil {
		return s.multiple()
	}
	return multiples(*s.Across, s.AcrossLo, s.AcrossHi)
}

// multiple returns the factor by which the form is multiplied.
func (s *Step) multiple() string { return multiples(s.Factor, s.Lo, s.Hi) }

func multiples(v float64, lo, hi *float64) string {
	text := multiple(v)
	if lo != nil && hi != nil {
		text += " [" + bounded(*lo, unit.Number) + ", " + bounded(*hi, unit.Number) + "]"
	}
	return text
}

// multiple prints a factor: "×5.6".
func multiple(v float64) string { return "×" + unit.Number(v) }

// Exactly returns a size with all its digits: neighbouring sizes such as 1999 and 2001 must not both become 2000.
func Exactly(n float64) string {
	if n == math.Trunc(n) && math.Abs(n) < 1e15 {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return unit.Decimal(n, 6)
}

// words returns "bends at rules = 700 [650, 740]: 100 µs [98, 102] + 20 ns·rules [18, 22] up to there, 200 ns [190,
// 210] for each beyond".
func (b *Bend) words(g *Growth) string {
	show, factor := Quantity(g.Unit), orElse(g.Factor, "N")
	text := "bends at " + g.Knee.at(g.Factor) + ": "
	switch {
	case b.Ceiling != nil:
		return text + b.Base.text(show) + " up to there, beyond it rises as 1 − " + unit.Number(g.Knee.Value) + "/" + factor +
			" towards " + b.Ceiling.text(show)
	case b.Slope != nil && b.Steeper != nil:
		return text + b.Base.text(show) + " + " + show(b.Slope.Value) + "·" + factor + spread(show(b.Slope.Value), b.Slope.Lo,
			b.Slope.Hi, show) +
			" up to there, " + b.Steeper.text(show) + " for each beyond"
	}
	return text + b.Base.text(show)
}

// text returns the constant with its interval.
func (c *Coefficient) text(show func(float64) string) string {
	s := show(c.Value)
	return s + spread(s, c.Lo, c.Hi, show)
}

// asGrowth returns the growth on one side of a step as a Growth.
func (s *GrowthSide) asGrowth(g *Growth) *Growth {
	return &Growth{
		Factor: g.Factor, Unit: g.Unit, Law: s.Law, Best: s.Best, Tied: s.Tied, Range: s.Range, Coefficients: s.Coefficients,
		C0Lo: s.C0Lo, C0Hi: s.C0Hi, Lo: s.Lo, Hi: s.Hi, Constant: s.Constant, Reason: s.Reason,
	}
}

// span returns the range of measured sizes.
func (g *Growth) span() string { return Exactly(g.Range.Lo) + "–" + Exactly(g.Range.Hi) }

// formula returns c0 + c1·f(N) in the metric's unit, with the intervals of both.
func (g *Growth) formula(law string) string {
	show := Quantity(g.Unit)
	c := g.Coefficients
	c0 := show(c.C0) + spread(show(c.C0), g.C0Lo, g.C0Hi, show)
	if law == "constant" {
		return c0
	}
	c1 := show(c.C1)
	return c0 + " + " + c1 + "·" + term(law, orElse(g.Factor, "N")) + spread(c1, g.Lo, g.Hi, show)
}

// spread returns " [lo, hi]" for an estimate that has been printed, or "" unless both are known.
func spread(estimate string, lo, hi *float64, show func(float64) string) string {
	if lo == nil || hi == nil {
		return ""
	}
	l, h := sameUnit(estimate, bounded(*lo, show), bounded(*hi, show))
	return " [" + l + ", " + h + "]"
}

// term returns a law's f(N) for a factor.
func term(law, n string) string {
	switch law {
	case "log":
		return "log₂(1+" + n + ")"
	case "sqrt":
		return "√" + n
	case "linear":
		return n
	case "linearithmic":
		return n + "·log₂(1+" + n + ")"
	case "quadratic":
		return n + "²"
	}
	return law + "(" + n + ")"
}

// remarks returns further findings about a growth: where it breaks its budget, where it bends, and by how much it can
// have grown at most.
func (g *Growth) remarks() []string {
	var out []string
	if c := g.BreaksBudgetAt; c != nil {
		out = append(out, "breaks "+orElse(g.Budget, "its budget")+" "+c.where(g))
	}
	if g.Law != "" || g.Step != nil && g.Best != "" || g.Bend != nil { // the headline does not give the reason
		for part := range strings.SplitSeq(g.Reason, "; ") {
			if strings.HasPrefix(part, "the budget") {
				out = append(out, part)
			}
		}
	}
	if g.Step != nil {
		for _, side := range []*GrowthSide{g.Step.Before, g.Step.After} {
			if side != nil && (side.Law != "" || side.Best != g.Best) { // otherwise it would repeat the headline
				out = append(out, "by themselves, "+side.asGrowth(g).span()+": "+side.asGrowth(g).brief())
			}
		}
	}
	if g.Knee != nil && g.Bend == nil {
		out = append(out, "bends at "+g.Knee.at(g.Factor))
	}
	if c := g.Constant; c != nil && !g.Exact {
		x := Effect{Kind: asRatio, Estimate: (c.Lo + c.Hi) / 2, Lo: c.Lo, Hi: c.Hi}
		show := x.scale()
		if c.Lo > manifold {
			show = func(v float64) string { return bounded(1+v, multiple) }
		}
		out = append(out, "its growth from the smallest to the largest size lies between "+show(c.Lo)+" and "+show(c.Hi))
	}
	return out
}

// brief describes the law of one side.
func (g *Growth) brief() string {
	if g.Law != "" {
		return g.form(g.Law)
	}
	return "best " + g.form(g.Best) + g.tied(", ")
}

// where describes where a budget breaks: at a level, or in a step.
func (c *Crossing) where(g *Growth) string {
	switch {
	case g.Best == "" && g.Bend == nil && !c.InStep && c.Lo != nil && c.Hi != nil: // no form fits
		return "between " + equals(g.Factor, Exactly(*c.Lo)+" and "+Exactly(*c.Hi))
	case !c.InStep || g.Step == nil:
		return "at " + c.at(g.Factor)
	case c.Lo == nil || c.Hi == nil || *c.Lo != g.Step.From || *c.Hi != g.Step.To:
		return "at " + c.at(g.Factor) + ", in the step"
	}
	return "between " + g.Step.between(g.Factor) + ", in the step"
}

// at returns the level with its interval.
func (c *Crossing) at(factor string) string {
	s := equals(factor, unit.Number(c.Value))
	if c.Lo != nil || c.Hi != nil {
		number := func(v float64) string { return bounded(v, unit.Number) }
		s += " [" + orElse(opt(c.Lo, number), "-∞") + ", " + orElse(opt(c.Hi, number), "∞") + "]"
	}
	if c.Extrapolated {
		s += " (extrapolated beyond what was measured)"
	}
	return s
}

// growth returns one sentence per law.
func (r *Report) growth() []string { return each(pointers(r.Growth), r.law) }

// law describes one law in a sentence.
func (r *Report) law(g *Growth) string {
	head := g.measured()
	if g.Treatment != "" && len(r.Treatments) > 1 {
		head += " under " + r.short(g.Treatment)
	}
	return head + ": " + strings.Join(append([]string{g.headline()}, g.remarks()...), "; ")
}

// sizes returns a table for each factor with the cost of each size: rows are sizes and columns measurements.
func (r *Report) sizes() []table {
	var out []table
	for _, factor := range distinct(pointers(r.Growth), func(g *Growth) string { return g.Factor }) {
		t := table{{head: orElse(factor, "N")}}
		var sizes []float64
		for i := range r.Growth {
			if g := &r.Growth[i]; g.Factor == factor && len(g.Points) > 0 {
				t = append(t, &column{head: r.growthName(g)})
				for _, p := range g.Points {
					sizes = append(sizes, p.N)
				}
			}
		}
		slices.Sort(sizes)
		for _, n := range slices.Compact(sizes) {
			row := []string{Exactly(n)}
			for i := range r.Growth {
				if g := &r.Growth[i]; g.Factor == factor && len(g.Points) > 0 {
					row = append(row, g.cost(n))
				}
			}
			t.add(row...)
		}
		if t.rows() > 0 {
			out = append(out, t)
		}
	}
	return out
}

// growthName returns the column name of a growth: the measurement, and with several treatments, the treatment.
func (r *Report) growthName(g *Growth) string {
	if len(distinct(pointers(r.Growth), func(g *Growth) string { return g.Treatment })) > 1 {
		return sanitize(g.measured() + ", " + named(r.labels(), g.Treatment))
	}
	return sanitize(g.measured())
}

// cost returns the cost of a size with its interval.
func (g *Growth) cost(n float64) string {
	show := Quantity(g.Unit)
	for _, p := range g.Points {
		if p.N == n || math.IsNaN(p.N) && math.IsNaN(n) {
			s := show(p.Value)
			return s + spread(s, p.Lo, p.Hi, show)
		}
	}
	return ""
}

func pointers[T any](all []T) []*T {
	out := make([]*T, len(all))
	for i := range all {
		out[i] = &all[i]
	}
	return out
}
