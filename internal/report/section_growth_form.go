package report

import (
	"tare/internal/chart"
	"tare/internal/unit"
)

// factor prints the factor by which a step multiplies the cost.
func factor(s *Step) string {
	return "×" + unit.Number(s.Factor) + interval(s.Lo, s.Hi, unit.Number)
}

// multipleOf returns the jump without its interval.
func multipleOf(s *Step) string {
	if s.Across != nil {
		return "×" + unit.Number(*s.Across)
	}
	return "×" + unit.Number(s.Factor)
}

// fittedLines returns the lines of the fitted form: one, or with a step two, because nothing is known between its
// sizes.
func fittedLines(g *Growth) []chart.Series {
	name := "fitted: " + orElse(g.Law, g.Best)
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

// crossings returns the marks of budget, knee and step.
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
