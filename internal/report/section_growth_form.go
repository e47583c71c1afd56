package report

import (
	"tare/internal/chart"
	"tare/internal/unit"
)

// formula is a fitted law with its coefficients: "80 µs [78 µs, 82 µs] + 38 µs [37 µs, 39 µs] × N".
func formula(g *Growth, law string) string {
	show := Quantity(g.Unit)
	c0 := show(g.Coefficients.C0) + interval(g.C0Lo, g.C0Hi, show)
	f, ok := forms[law]
	if !ok {
		f.term = law
	}
	if f.term == "" {
		return c0
	}
	s := show(g.Coefficients.C1) + interval(g.Lo, g.Hi, show) + " × " + f.term
	if g.Coefficients.C0 != 0 {
		s = c0 + " + " + s
	}
	return s
}

// between is the place of a step.
func between(s *Step) string { return Exactly(s.From) + " and " + Exactly(s.To) }

// factor is what a step multiplies the cost with.
func factor(s *Step) string {
	return "×" + unit.Number(s.Factor) + interval(s.Lo, s.Hi, unit.Number)
}

// multipleOf is the jump without its interval.
func multipleOf(s *Step) string {
	if s.Across != nil {
		return "×" + unit.Number(*s.Across)
	}
	return "×" + unit.Number(s.Factor)
}

func stepSentence(g *Growth) string {
	text := "Between " + g.Factor + " = " + between(g.Step) + " it jumps: " + g.Step.Jump() + ". Up to there it is " + lawName(g.Best) + ", " + formula(g, g.Best)
	var tied []string
	for _, l := range g.Tied {
		tied = append(tied, lawName(l))
	}
	if len(tied) > 0 {
		text += "; " + joinedWords(tied) + " " + fits(len(tied)) + " as well"
	}
	return text + "; beyond, " + factor(g.Step) + " that."
}

func bendSentence(g *Growth) string {
	b, show := g.Bend, Quantity(g.Unit)
	value := func(c *Coefficient) string { return show(c.Value) + interval(c.Lo, c.Hi, show) }
	place := g.Factor + " = " + unit.Number(g.Knee.Value) + interval(g.Knee.Lo, g.Knee.Hi, unit.Number)
	switch {
	case b.Ceiling != nil:
		return "It is constant, " + value(&b.Base) + ", up to a bend at " + place + "; beyond, it rises towards " + value(b.Ceiling) + ", as 1 − " + unit.Number(g.Knee.Value) + "/N does."
	case b.Slope != nil && b.Steeper != nil:
		return "It bends at " + place + ": " + value(&b.Base) + " + " + value(b.Slope) + " × N up to there, " + value(b.Steeper) + " for each more beyond."
	}
	return "It bends at " + place + "."
}

// sides say what the sizes on either side of a step are like by themselves.
func sides(g *Growth) []string {
	var out []string
	for _, s := range []*GrowthSide{g.Step.Before, g.Step.After} {
		if s == nil {
			continue
		}
		alone := Growth{Unit: g.Unit, Coefficients: s.Coefficients, C0Lo: s.C0Lo, C0Hi: s.C0Hi, Lo: s.Lo, Hi: s.Hi}
		law, word := s.Law, "grow as "
		if law == "" {
			law, word = s.Best, "fit best as "
		}
		out = append(out, "By themselves, the sizes from "+Exactly(s.Range.Lo)+" to "+Exactly(s.Range.Hi)+" "+word+lawName(law)+", "+formula(&alone, law)+".")
	}
	return out
}

// broken is where the budget breaks: " at N = 12 [10, 15]", or in a step.
func broken(g *Growth) string {
	b, s := g.BreaksBudgetAt, g.Step
	at := " at " + g.Factor + " = " + unit.Number(b.Value) + interval(b.Lo, b.Hi, unit.Number)
	switch {
	case !b.InStep || s == nil:
		return at
	case b.Lo != nil && b.Hi != nil && *b.Lo == s.From && *b.Hi == s.To:
		return " between " + g.Factor + " = " + between(s) + ", in the step"
	}
	return at + ", in the step"
}

// fittedLines are the lines of the fitted form: one, or with a step two, since nothing is known between its sizes.
func fittedLines(g *Growth) []chart.Series {
	name := "fitted: " + lawName(orElse(g.Law, g.Best))
	switch {
	case g.Step != nil:
		name += " with a step"
	case g.Bend != nil:
		name = "fitted: with a bend"
	}
	line := chart.Series{Name: name, Kind: chart.Color(1), Line: true, Dash: true}
	after := line
	after.Name = ""
	return []chart.Series{line, after}
}

// crossings are the marks of budget, knee and step.
func crossings(r *Report, g *Growth) (rules []chart.Rule, spans []chart.Span) {
	mark := func(c *Crossing, label string, kind chart.Kind) {
		if c == nil {
			return
		}
		label += " " + unit.Number(c.Value)
		if c.Extrapolated {
			label += " (extrapolated)"
		}
		rules = append(rules, chart.Rule{At: c.Value, Vertical: true, Label: label, Kind: kind})
		if c.Lo != nil && c.Hi != nil {
			spans = append(spans, chart.Span{From: *c.Lo, To: *c.Hi, Kind: kind})
		}
	}
	if b := g.BreaksBudgetAt; b == nil || !b.InStep {
		mark(b, "breaks the budget at", chart.Bad)
	}
	mark(g.Knee, "slope changes at", chart.Color(3))
	if s := g.Step; s != nil {
		label, kind := "step "+multipleOf(s), chart.Color(3)
		if b := g.BreaksBudgetAt; b != nil && b.InStep {
			label, kind = label+", breaks the budget", chart.Bad
		}
		rules = append(rules, chart.Rule{At: s.To, Vertical: true, Label: label, Kind: kind})
		spans = append(spans, chart.Span{From: s.From, To: s.To, Kind: kind})
	}
	if limit, ok := limitOf(r, g); ok {
		rules = append(rules, chart.Rule{At: limit, Label: "budget " + Quantity(g.Unit)(limit), Kind: chart.Color(1)})
	}
	return rules, spans
}
