package report

import (
	"math"
	"slices"
	"strings"

	"tare/internal/unit"
)

// Growth laws in words, for text and Markdown alike.

// law is one fitted law: "linear, 1.19 µs + 31 ns·rules [29, 33], over 0–50".
func (g *Growth) headline() string {
	over := "over " + g.span()
	switch {
	case g.Law != "":
		s := g.Law + ", " + g.formula(g.Law) + ", " + over
		if len(g.Tied) > 0 {
			s += "; " + strings.Join(g.Tied, ", ") + " fits as well"
		}
		return s
	case g.Best != "":
		s := "no law" + because(g.Reason) + "; best " + g.Best + ", " + g.formula(g.Best) + ", " + over + " only"
		if len(g.Tied) > 0 {
			s += "; as good: " + strings.Join(g.Tied, ", ")
		}
		return s
	}
	return "no law" + because(orElse(g.Reason, "nothing was fitted")) + "; " + over
}

// span is the range of sizes that was measured.
func (g *Growth) span() string { return unit.Number(g.Range.Lo) + "–" + unit.Number(g.Range.Hi) }

// formula is c0 + c1·f(N) in the metric's unit, with the interval of c1.
func (g *Growth) formula(law string) string {
	show := Quantity(g.Unit)
	c := g.Coefficients
	if law == "constant" {
		return show(c.C0)
	}
	c1 := show(c.C1)
	return show(c.C0) + " + " + c1 + "·" + term(law, orElse(g.Factor, "N")) + spread(c1, g.Lo, g.Hi, show)
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
		out = append(out, "breaks "+orElse(g.Budget, "its budget")+" at "+c.at(g.Factor))
	}
	if g.Knee != nil {
		out = append(out, "bends at "+g.Knee.at(g.Factor))
	}
	if c := g.Constant; c != nil {
		x := Effect{Kind: asRatio, Estimate: (c.Lo + c.Hi) / 2, Lo: c.Lo, Hi: c.Hi}
		show := x.scale()
		out = append(out, "its growth over the range lies between "+show(c.Lo)+" and "+show(c.Hi))
	}
	return out
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
func (r *Report) growth() []string {
	labels := r.labels()
	var out []string
	for i := range r.Growth {
		g := &r.Growth[i]
		head := g.measured()
		if g.Treatment != "" && len(r.Treatments) > 1 {
			head += " under " + named(labels, g.Treatment)
		}
		out = append(out, head+": "+strings.Join(append([]string{g.headline()}, g.remarks()...), "; "))
	}
	return out
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
