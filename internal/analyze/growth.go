package analyze

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/report"
)

// leastSizes is how many sizes a growth law needs; below it there are points and no law.
const leastSizes = 6

// A line is a row of treatments that differ in the size of one factor only.
type line struct {
	factor string
	rest   string // the other levels, as an ID; "" if there are none
	sizes  []float64
	arms   []design.Treatment // in the order of sizes
}

// growing are the metrics whose growth is fitted: those that decide, and the memory that the target holds, and each of
// its parts if there are several.
func (c *comparison) growing() []gate {
	out := gates{}
	for _, g := range c.gates.all {
		out.add(g)
	}
	for _, m := range c.measures {
		if m.metric.Name == probe.RSS.Name && c.wholeMix(m.operation) {
			out.add(gate{m.operation, m.metric.Name, m.main})
		}
	}
	parts := gates{}
	for _, m := range c.parts {
		if c.wholeMix(m.operation) {
			parts.add(gate{m.operation, m.key.metric, m.main})
		}
	}
	if len(parts.all) > 1 {
		for _, g := range parts.all {
			out.add(g)
		}
	}
	return out.all
}

// growth fits how metrics grow with each factor whose levels are numbers.
func (a *analysis) growth(c *comparison, budgets []budget.Budget) {
	lines, ceilings, growing := linesOf(c.arms, a.rec.Plan.Factors), c.ceilings(budgets), c.growing()
	for i := range lines {
		l := &lines[i]
		for _, g := range growing {
			if out, ok := c.grow(l, g, ceilings[g]); ok {
				a.rep.Growth = append(a.rep.Growth, out)
			}
		}
	}
	if _, ok := a.baseline(); ok && len(a.rep.Growth) > 0 {
		addOnce(&a.rep.Notes, "growth is of the metric itself, not of what a treatment adds to its baseline")
	}
}

// linesOf finds the treatments that differ in one numeric factor only.
func linesOf(arms []design.Treatment, factors []record.Factor) []line {
	var out []line
	for _, f := range factorNames(arms, factors) {
		for i := range arms {
			t := &arms[i]
			n, ok := number(t.Levels[f])
			if t.Control != design.None || !ok {
				continue
			}
			rest := without(t, f)
			k := slices.IndexFunc(out, func(l line) bool { return l.factor == f && l.rest == rest })
			if k < 0 {
				k, out = len(out), append(out, line{factor: f, rest: rest})
			}
			l := &out[k]
			at, twice := slices.BinarySearch(l.sizes, n)
			if !twice {
				l.sizes, l.arms = slices.Insert(l.sizes, at, n), slices.Insert(l.arms, at, *t)
			}
		}
	}
	return slices.DeleteFunc(out, func(l line) bool { return len(l.sizes) < 2 })
}

// factorNames are the factors of the plan, or where it names none, those of the treatments.
func factorNames(arms []design.Treatment, factors []record.Factor) []string {
	var out []string
	for _, f := range factors {
		addOnce(&out, f.Name)
	}
	if len(out) > 0 {
		return out
	}
	for i := range arms {
		for _, f := range sortedKeys(arms[i].Levels) {
			addOnce(&out, f)
		}
	}
	return out
}

func number(level string) (float64, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(level), 64)
	return n, err == nil && n >= 0 && !math.IsInf(n, 0)
}

// without is t's ID without a factor.
func without(t *design.Treatment, factor string) string {
	rest := map[string]string{}
	for f, level := range t.Levels {
		if f != factor && strings.Contains(" "+t.ID+" ", " "+f+"="+level+" ") {
			rest[f] = level
		}
	}
	if len(rest) == 0 {
		return ""
	}
	return design.ID(rest)
}

// grow fits one metric along one line.
func (c *comparison) grow(l *line, g gate, ceilings []*budget.Budget) (report.Growth, bool) {
	out := report.Growth{
		Factor: l.factor, Treatment: l.rest, Metric: g.metric, Quantile: g.quantile, Operation: g.operation,
		Range: report.Interval{Lo: l.sizes[0], Hi: l.sizes[len(l.sizes)-1]},
	}
	values := make([][]float64, len(l.arms))
	for i := range l.arms {
		m := c.find(l.arms[i].ID, g.operation, g.metric)
		if m == nil || !c.acts(l.arms[i].ID, g.operation) {
			return out, false
		}
		out.Operation, out.Metric, out.Part, out.Unit = m.operation, m.metric.Name, m.part, m.metric.Unit
		how := c.estimatorFor(m, g.quantile)
		if e, _ := how.alone(m, level); isFinite(e.Value) {
			out.Points = append(out.Points, report.GrowthPoint{
				N: l.sizes[i], Value: e.Value, Lo: finite(e.Lo), Hi: finite(e.Hi),
			})
		}
		if how.pooled {
			out.Reason = "a law is fitted to the values of single blocks, and this quantile is one of all blocks together"
			continue
		}
		values[i] = m.values(g.quantile)
	}
	if len(out.Points) == 0 {
		return out, false
	}
	if out.Reason == "" {
		c.fit(&out, l, values, ceilings)
	}
	return out, true
}

// ceilings are the budgets that bound a metric in absolute terms, by gate.
func (c *comparison) ceilings(budgets []budget.Budget) map[gate][]*budget.Budget {
	out := map[gate][]*budget.Budget{}
	for i := range budgets {
		b := &budgets[i]
		if b.Op != budget.AtMost || b.Limit.Against != budget.Absolute {
			continue
		}
		for _, g := range c.named(b) {
			out[g] = append(out[g], b)
		}
	}
	return out
}

// lowestCeiling is the lowest of the budgets that hold along the whole of a line; nil if none does.
func lowestCeiling(ceilings []*budget.Budget, l *line) (out *budget.Budget) {
	for _, b := range ceilings {
		all := !slices.ContainsFunc(
			l.arms, func(t design.Treatment) bool { return b.Treatment != "" && !t.Named(b.Treatment) },
		)
		if all && (out == nil || b.Limit.Value < out.Limit.Value) {
			out = b
		}
	}
	return out
}
