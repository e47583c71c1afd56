package report

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/internal/unit"
)

// Growth laws in words, for text and Markdown alike.

// headline is one fitted law: "linear, 1.19 µs [1.1, 1.3] + 31 ns·rules [29, 33], over 0–50"; or what there is instead of one.
func (g *Growth) headline() string {
	over := "over " + g.span()
	also := ""
	if len(g.Tied) > 0 {
		also = "as good: " + strings.Join(g.Tied, ", ")
	}
	switch {
	case g.Exact && g.Law != "":
		return "constant, exactly " + Quantity(g.Unit)(g.Coefficients.C0) + " at every size, " + over
	case g.Law != "":
		s := g.Law + ", " + g.formula(g.Law) + ", " + over
		if len(g.Tied) > 0 {
			s += "; " + strings.Join(g.Tied, ", ") + " fits as well"
		}
		return s
	case g.Step != nil:
		s := "no one law: " + g.Step.words(g.Factor) + "; up to there " + g.form(g.Best)
		if also != "" {
			s += " (" + also + ")"
		}
		return s + ", beyond it " + g.Step.multiple() + " that, " + over
	case g.Bend != nil && g.Knee != nil:
		return "no one law: " + g.Bend.words(g) + ", " + over
	case g.Best != "":
		s := "no law" + because(g.Reason) + "; best " + g.form(g.Best) + ", " + over + " only"
		if also != "" {
			s += "; " + also
		}
		return s
	}
	return "no law" + because(orElse(g.Reason, "nothing was fitted")) + "; " + over
}

// form is a law with its formula: "linear, 1.19 µs + 31 ns·rules".
func (g *Growth) form(law string) string { return law + ", " + g.formula(law) }

// words are "step between 1999 and 2001 records: ×5.6 [5.2, 6]": the cost at the one size as a multiple of that at the other.
func (s *Step) words(factor string) string {
	return "step between " + strings.TrimSpace(Exactly(s.From)+" and "+Exactly(s.To)+" "+factor) + ": " + s.Jump()
}

// Jump is what was measured on one side of the step as a multiple of what was on the other: "×5.8 [5.7, 5.9]".
func (s *Step) Jump() string {
	if s.Across == nil {
		return s.multiple()
	}
	return multiples(*s.Across, s.AcrossLo, s.AcrossHi)
}

// multiple is the factor by which the form is multiplied.
func (s *Step) multiple() string { return multiples(s.Factor, s.Lo, s.Hi) }

func multiples(v float64, lo, hi *float64) string {
	text := multiple(v)
	if lo != nil && hi != nil {
		text += " [" + bounded(*lo, unit.Number) + ", " + bounded(*hi, unit.Number) + "]"
	}
	return text
}

// multiple is a factor: "×5.6".
func multiple(v float64) string { return "×" + unit.Number(v) }

// Exactly is a size with all its digits: where two of them are neighbours, 1999 and 2001 must not both become 2000.
func Exactly(n float64) string {
	if n == math.Trunc(n) && math.Abs(n) < 1e15 {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return unit.Decimal(n, 6)
}

// words are "bends at 700 [650, 740] rules, 100 µs [98, 102] + 20 ns·rules [18, 22] up to there, 200 ns [190, 210] for each beyond".
func (b *Bend) words(g *Growth) string {
	show, factor := Quantity(g.Unit), orElse(g.Factor, "N")
	text := "bends at " + g.Knee.at(g.Factor) + ": "
	switch {
	case b.Ceiling != nil:
		return text + b.Base.text(show) + " up to there, beyond it rises as 1 − " + unit.Number(g.Knee.Value) + "/" + factor + " towards " + b.Ceiling.text(show)
	case b.Slope != nil && b.Steeper != nil:
		return text + b.Base.text(show) + " + " + show(b.Slope.Value) + "·" + factor + spread(show(b.Slope.Value), b.Slope.Lo, b.Slope.Hi, show) +
			" up to there, " + b.Steeper.text(show) + " for each beyond"
	}
	return text + b.Base.text(show)
}

// text is the constant with its interval.
func (c *Coefficient) text(show func(float64) string) string {
	s := show(c.Value)
	return s + spread(s, c.Lo, c.Hi, show)
}

// as is how one side of a step grows, as a growth of its own.
func (s *GrowthSide) as(g *Growth) *Growth {
	return &Growth{
		Factor: g.Factor, Unit: g.Unit, Law: s.Law, Best: s.Best, Tied: s.Tied, Range: s.Range, Coefficients: s.Coefficients,
		C0Lo: s.C0Lo, C0Hi: s.C0Hi, Lo: s.Lo, Hi: s.Hi, Constant: s.Constant, Reason: s.Reason,
	}
}

// span is the range of sizes that was measured.
func (g *Growth) span() string { return unit.Number(g.Range.Lo) + "–" + unit.Number(g.Range.Hi) }

// formula is c0 + c1·f(N) in the metric's unit, with the intervals of both.
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

// spread is " [lo, hi]" behind an estimate that is printed already, or nothing unless both are known.
func spread(estimate string, lo, hi *float64, show func(float64) string) string {
	if lo == nil || hi == nil {
		return ""
	}
	l, h := sameUnit(estimate, bounded(*lo, show), bounded(*hi, show))
	return " [" + l + ", " + h + "]"
}

// term is a law's f(N) for a factor.
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

// remarks are what else is known of a growth: where it breaks its budget, where it bends, and how much it can have grown at all.
func (g *Growth) remarks() []string {
	var out []string
	if c := g.BreaksBudgetAt; c != nil {
		out = append(out, "breaks "+orElse(g.Budget, "its budget")+" "+c.where(g))
	}
	if g.BreaksBudgetAt == nil && (g.Step != nil || g.Bend != nil || g.Exact) { // whose headline is without the reason
		for part := range strings.SplitSeq(g.Reason, "; ") {
			if strings.HasPrefix(part, "the budget") {
				out = append(out, part)
			}
		}
	}
	if g.Step != nil {
		for _, side := range []*GrowthSide{g.Step.Before, g.Step.After} {
			if side != nil && (side.Law != "" || side.Best != g.Best) { // else it says the same again
				out = append(out, "by themselves, "+side.as(g).span()+": "+side.as(g).brief())
			}
		}
	}
	if g.Knee != nil && g.Bend == nil {
		out = append(out, "bends at "+g.Knee.at(g.Factor))
	}
	if c := g.Constant; c != nil && !g.Exact {
		x := Effect{Kind: asRatio, Estimate: (c.Lo + c.Hi) / 2, Lo: c.Lo, Hi: c.Hi}
		show := x.scale()
		out = append(out, "its growth over the range lies between "+show(c.Lo)+" and "+show(c.Hi))
	}
	return out
}

// brief is the law of one side.
func (g *Growth) brief() string {
	s := orElse(g.Law, "best "+g.Best) + ", " + g.formula(orElse(g.Law, g.Best))
	if g.Law == "" && len(g.Tied) > 0 {
		s += ", as good: " + strings.Join(g.Tied, ", ")
	}
	return s
}

// where is where a budget breaks: at a level, or in a step.
func (c *Crossing) where(g *Growth) string {
	if !c.InStep || g.Step == nil {
		return "at " + c.at(g.Factor)
	}
	if c.Lo == nil || c.Hi == nil || *c.Lo != g.Step.From || *c.Hi != g.Step.To {
		return "at " + c.at(g.Factor) + ", in the step"
	}
	return strings.TrimSpace("between "+Exactly(g.Step.From)+" and "+Exactly(g.Step.To)+" "+g.Factor) + ", in the step"
}

// at is the level with its interval.
func (c *Crossing) at(factor string) string {
	s := unit.Number(c.Value)
	if c.Lo != nil || c.Hi != nil {
		number := func(v float64) string { return bounded(v, unit.Number) }
		s += " [" + orElse(opt(c.Lo, number), "-∞") + ", " + orElse(opt(c.Hi, number), "∞") + "]"
	}
	s += " " + factor
	if c.Extrapolated {
		s += " (extrapolated beyond what was measured)"
	}
	return strings.TrimSpace(s)
}

// growth is each law in a sentence.
func (r *Report) growth() []string { return each(pointers(r.Growth), r.law) }

// law is one law in a sentence.
func (r *Report) law(g *Growth) string {
	head := g.measured()
	if g.Treatment != "" && len(r.Treatments) > 1 {
		head += " under " + r.short(g.Treatment)
	}
	return head + ": " + strings.Join(append([]string{g.headline()}, g.remarks()...), "; ")
}

// sizes are the tables of what each size cost, one for each factor: rows are sizes and columns what was measured.
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
			row := []string{unit.Number(n)}
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

// growthName is the column of a growth: what was measured, and where several treatments were, under which.
func (r *Report) growthName(g *Growth) string {
	if len(distinct(pointers(r.Growth), func(g *Growth) string { return g.Treatment })) > 1 {
		return clean(g.measured() + ", " + named(r.labels(), g.Treatment))
	}
	return clean(g.measured())
}

// cost is what a size cost, with its interval.
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
