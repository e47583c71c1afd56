package analyze

import (
	"fmt"
	"math"
	"strings"

	"tare/internal/budget"
	"tare/internal/report"
	"tare/internal/stat"
	"tare/internal/unit"
)

// fit adds the law, its band, the size at which a budget breaks, and the step or the knee.
func (c *comparison) fit(out *report.Growth, l *line, values [][]float64, ceilings []*budget.Budget) {
	blocks, reason := fittable(l, values)
	if reason != "" {
		out.Reason = reason
		return
	}
	limit := lowestCeiling(ceilings, l)
	o := stat.GrowthOptions{Level: level, Budget: math.NaN(), Margin: c.margin}
	if limit != nil {
		o.Budget, out.Budget = limit.Limit.Value, limit.Text
	}
	f, err := stat.FitGrowth(l.sizes, blocks, o)
	if err != nil {
		out.Reason = err.Error()
		return
	}
	lv := level
	out.Level, out.Exact, out.Reason = &lv, f.Exact, f.Reason
	if f.Unfit == nil {
		law(out, &f)
		for i := range out.Points {
			p := &out.Points[i]
			e := f.Band(p.N)
			p.Fitted, p.FittedLo, p.FittedHi = finite(e.Value), finite(e.Lo), finite(e.Hi)
		}
	}
	out.Constant = extent(f.Constant)
	if f.Breaks != nil {
		if out.BreaksBudgetAt = crossing(f.Breaks, out.Range.Hi); out.BreaksBudgetAt != nil {
			out.BreaksBudgetAt.InStep = f.BreaksInStep
		}
	}
	switch {
	case f.Step != nil:
		stepped(out, &f)
	case f.Knee != nil:
		bent(out, f.Knee)
	}
}

// fittable is the costs of the blocks that a law can be fitted to, or why there are none. Costs that are the same
// everywhere need nothing: they are constant, few sizes or many, 0 or not.
func fittable(l *line, values [][]float64) (blocks [][]float64, reason string) {
	if all := commonBlocks(values, func(v float64) bool { return isFinite(v) && v >= 0 }); exact(l, all) {
		return all, ""
	}
	if len(l.sizes) < leastSizes {
		return nil, fmt.Sprintf(
			"%d sizes are too few to tell one form from another: a fit needs %d", len(l.sizes), leastSizes,
		)
	}
	if at := zeros(l, values); len(at) > 0 {
		return nil, fmt.Sprintf("0 at %s: a law is fitted to relative differences, and 0 has none", someOf(at, len(l.sizes)))
	}
	if blocks = commonBlocks(values, func(v float64) bool { return isFinite(v) && v > 0 }); len(blocks[0]) == 0 {
		return nil, "no block measured every size"
	}
	return blocks, ""
}

// exact reports whether all sizes cost the same in all blocks.
func exact(l *line, blocks [][]float64) bool {
	if len(blocks[0]) == 0 {
		return false
	}
	f, err := stat.FitGrowth(l.sizes, blocks, stat.GrowthOptions{Level: level, Budget: math.NaN()})
	return err == nil && f.Exact
}

// zeros are the sizes that cost nothing in half of their blocks or more.
func zeros(l *line, values [][]float64) []string {
	var out []string
	for i, x := range values {
		none, some := 0, 0
		for _, v := range x {
			switch {
			case v == 0:
				none++
			case isFinite(v):
				some++
			}
		}
		if none > 0 && none >= some {
			out = append(out, unit.Number(l.sizes[i]))
		}
	}
	return out
}

// someOf is "3 of 12 sizes (10, 20, 50)", at most five of them.
func someOf(sizes []string, of int) string {
	s := fmt.Sprintf("%d of %d sizes (", len(sizes), of)
	if len(sizes) > 5 {
		return s + strings.Join(sizes[:5], ", ") + " …)"
	}
	return s + strings.Join(sizes, ", ") + ")"
}

// law is the best law, or its name if it may be named.
func law(out *report.Growth, f *stat.GrowthFit) {
	out.Best = string(f.Best.Law)
	if f.Named {
		out.Law = string(f.Best.Law)
	}
	out.Tied = lawNames(f.Tied)
	out.Coefficients = report.Coefficients{C0: f.Best.C0, C1: f.Best.C1}
	out.C0Lo, out.C0Hi, out.Lo, out.Hi = finite(f.C0.Lo), finite(f.C0.Hi), finite(f.C1.Lo), finite(f.C1.Hi)
}

func lawNames(laws []stat.Law) []string {
	var out []string
	for _, l := range laws {
		out = append(out, string(l))
	}
	return out
}

// stepped replaces the best law of all sizes, which does not hold, by the form apart from the step, if one fits.
func stepped(out *report.Growth, f *stat.GrowthFit) {
	s := f.Step
	if f.Unfit == nil {
		law(out, &stat.GrowthFit{Best: s.Law, Tied: s.Tied, C0: s.C0, C1: s.C1})
	}
	out.Step = &report.Step{
		From: s.From, To: s.To, Factor: s.Factor.Value, Lo: finite(s.Factor.Lo), Hi: finite(s.Factor.Hi),
	}
	out.Step.Across, out.Step.AcrossLo, out.Step.AcrossHi = &s.Across.Value, finite(s.Across.Lo), finite(s.Across.Hi)
	side := func(f *stat.GrowthFit, lo, hi float64) *report.GrowthSide {
		if f == nil {
			return nil
		}
		g := report.Growth{}
		law(&g, f)
		return &report.GrowthSide{
			Range: report.Interval{Lo: lo, Hi: hi}, Law: g.Law, Best: g.Best, Tied: g.Tied, Coefficients: g.Coefficients,
			C0Lo: g.C0Lo, C0Hi: g.C0Hi, Lo: g.Lo, Hi: g.Hi, Constant: extent(f.Constant), Reason: f.Reason,
		}
	}
	out.Step.Before, out.Step.After = side(s.Before, out.Range.Lo, s.From), side(s.After, s.To, out.Range.Hi)
}

// bent replaces the best law of all sizes, which does not hold, by the form with the knee.
func bent(out *report.Growth, k *stat.Knee) {
	if out.Knee = crossing(&k.Estimate, out.Range.Hi); out.Knee == nil {
		return
	}
	out.Law, out.Best, out.Tied, out.Coefficients = "", "", nil, report.Coefficients{}
	out.C0Lo, out.C0Hi, out.Lo, out.Hi = nil, nil, nil, nil
	of := func(e *stat.Estimate) *report.Coefficient {
		if e == nil {
			return nil
		}
		return &report.Coefficient{Value: e.Value, Lo: finite(e.Lo), Hi: finite(e.Hi)}
	}
	out.Bend = &report.Bend{Base: *of(&k.Base), Slope: of(k.Slope), Steeper: of(k.Steeper), Ceiling: of(k.Ceiling)}
}

func extent(e *stat.Estimate) *report.Interval {
	if e == nil || !isFinite(e.Lo) || !isFinite(e.Hi) {
		return nil
	}
	return &report.Interval{Lo: e.Lo, Hi: e.Hi}
}

func crossing(e *stat.Estimate, largest float64) *report.Crossing {
	if !isFinite(e.Value) {
		return nil
	}
	return &report.Crossing{Value: e.Value, Lo: finite(e.Lo), Hi: finite(e.Hi), Extrapolated: e.Value > largest}
}

// commonBlocks keeps the blocks in which every size has a value of use.
func commonBlocks(values [][]float64, use func(v float64) bool) [][]float64 {
	out := make([][]float64, len(values))
	for b := range values[0] {
		whole := true
		for _, v := range values {
			whole = whole && b < len(v) && use(v[b])
		}
		if !whole {
			continue
		}
		for i, v := range values {
			out[i] = append(out[i], v[b])
		}
	}
	return out
}
