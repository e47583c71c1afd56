package report

import (
	"slices"

	"tare/internal/design"
)

// maxSeries bounds how many treatments' metrics, and how many effects, are written: a store of time series pays for each of them for ever.
// Gating effects come before exploratory ones; what is left out is counted.
const maxSeries = 500

// metrics are the estimates over blocks and the differences from the baseline. Their units differ, so they are labels.
func (e *exposition) metrics(r *Report) {
	var kept []treatmentMetric
	left := 0
	for i := range r.Treatments {
		t := &r.Treatments[i]
		for k := range t.Metrics {
			if len(kept) == maxSeries {
				left++
				continue
			}
			kept = append(kept, treatmentMetric{t.ID, &t.Metrics[k]})
		}
	}
	for _, f := range []struct {
		name, help string
		value      func(*Metric) *float64
	}{
		{"metric_estimate", "A metric's estimate over blocks, in the unit of the label.", func(m *Metric) *float64 { return &m.Value }},
		{"metric_lower", "The lower bound of a metric's estimate.", func(m *Metric) *float64 { return m.Lo }},
		{"metric_upper", "The upper bound of a metric's estimate.", func(m *Metric) *float64 { return m.Hi }},
	} {
		e.begin(f.name, gauge, "", f.help)
		for _, k := range kept {
			e.opt(f.value(k.metric), k.labels()...)
		}
	}
	e.harness(r)
	left += e.effects(r)
	e.begin("left_out", gauge, "", "How many metrics and effects are in the report and, since they are too many, not here.")
	if len(kept)+len(r.Effects) > 0 {
		e.add(float64(left))
	}
	e.design(r)
	e.checks(r)
	e.growth(r)
}

// harness is what a call that does nothing costs; metrics are with it, not less it.
func (e *exposition) harness(r *Report) {
	for _, f := range []struct {
		name, help string
		value      func(*Harness) *float64
	}{
		{"harness_estimate", "What a call that does nothing costs, in the unit of the label: part of every metric of that name.", func(h *Harness) *float64 { return &h.Value }},
		{"harness_lower", "The lower bound of what a call that does nothing costs.", func(h *Harness) *float64 { return h.Lo }},
		{"harness_upper", "The upper bound of what a call that does nothing costs.", func(h *Harness) *float64 { return h.Hi }},
	} {
		e.begin(f.name, gauge, "", f.help)
		for i := range r.Harness[:min(maxSeries, len(r.Harness))] {
			h := &r.Harness[i]
			e.opt(f.value(h), labels{{"treatment", h.Treatment}, {"metric", h.Metric}, {"operation", h.Operation}, {"unit", string(h.Unit)}}...)
		}
	}
}

// A treatmentMetric is a metric with its treatment.
type treatmentMetric struct {
	treatment string
	metric    *Metric
}

func (k treatmentMetric) labels() labels {
	m := k.metric
	return labels{{"treatment", k.treatment}, {"metric", m.Name}, {"operation", m.Operation}, {"quantile", m.Quantile}, {"unit", m.Unit}}
}

func (x *Effect) labels() labels {
	return labels{
		{"treatment", x.Treatment},
		{"baseline", x.Baseline},
		{"metric", x.Metric},
		{"operation", x.Operation},
		{"quantile", x.Quantile},
		{"kind", x.Kind},
	}
}

// effects writes the gating effects, then the others, and says how many it left out.
func (e *exposition) effects(r *Report) (left int) {
	all := pointers(r.Effects)
	slices.SortStableFunc(all, func(a, b *Effect) int { return int(boolean(b.Gating) - boolean(a.Gating)) })
	kept := all[:min(len(all), maxSeries)]
	for _, f := range []struct {
		name, help string
		value      func(*Effect) *float64
	}{
		{"effect_estimate", "How much a treatment differs from the baseline: a ratio or a difference.", func(x *Effect) *float64 { return &x.Estimate }},
		{"effect_lower", "The lower bound of an effect.", func(x *Effect) *float64 { return &x.Lo }},
		{"effect_upper", "The upper bound of an effect.", func(x *Effect) *float64 { return &x.Hi }},
		{"effect_level", "The level of the interval, which is the one that the verdict used.", func(x *Effect) *float64 { return &x.Level }},
		{"effect_detectable", "The smallest effect that would have been seen.", func(x *Effect) *float64 { return x.MDE }},
		{"effect_gating", "1 if verdicts rest on this effect, 0 if it is exploratory.", func(x *Effect) *float64 { return new(boolean(x.Gating)) }},
	} {
		e.begin(f.name, gauge, "", f.help)
		for _, x := range kept {
			e.opt(f.value(x), x.labels()...)
		}
	}
	var words []string
	for _, v := range EffectVerdicts() {
		words = append(words, string(v))
	}
	e.begin("effect_verdict", stateset, "", "The verdict on a gating effect.")
	for _, x := range kept {
		if x.Gating {
			e.states(string(x.Verdict), words, x.labels()...)
		}
	}
	return len(all) - len(kept)
}

// design says how far the experiment came.
func (e *exposition) design(r *Report) {
	d := r.Design
	if d == nil {
		return
	}
	e.begin("blocks", gauge, "", "Complete blocks, in each of which every treatment was measured.")
	e.add(float64(d.Blocks))
	e.begin("blocks_planned", gauge, "", "Blocks at most.")
	e.add(float64(d.Planned))
	e.begin("margin", gauge, inRatio, "The change that is of no interest.")
	e.add(d.Margin)
}

// checks are the experiment's checks of itself.
func (e *exposition) checks(r *Report) {
	if r.AA == nil {
		return
	}
	e.begin("aa_reliable", gauge, "", "0 if the baseline differs from itself: then nothing else here means anything.")
	e.add(boolean(r.AA.Reliable))
	each := func(do func(x *Effect, name labels)) {
		for _, of := range []struct {
			control design.Control
			effects []Effect
		}{{design.AA, r.AA.Effects}, {design.Negative, r.AA.NegativeControls}} {
			for i := range of.effects[:min(len(of.effects), maxSeries)] {
				x := &of.effects[i]
				do(x, x.labels().with(label{"control", string(of.control)}))
			}
		}
	}
	for _, f := range []struct {
		name, help string
		value      func(*Effect) float64
	}{
		{"check_estimate", "An effect where there should be none: of the baseline on itself, or where a control cannot act.", func(x *Effect) float64 { return x.Estimate }},
		{"check_lower", "The lower bound of an effect where there should be none.", func(x *Effect) float64 { return x.Lo }},
		{"check_upper", "The upper bound of an effect where there should be none.", func(x *Effect) float64 { return x.Hi }},
	} {
		e.begin(f.name, gauge, "", f.help)
		each(func(x *Effect, name labels) { e.add(f.value(x), name...) })
	}
}

func (g *Growth) labels() labels {
	return labels{{"factor", g.Factor}, {"treatment", g.Treatment}, {"metric", g.Metric}, {"operation", g.Operation}, {"quantile", g.Quantile}}
}

// growth is the laws by which costs grow; the sizes themselves are treatments.
func (e *exposition) growth(r *Report) {
	kept := pointers(r.Growth)
	kept = kept[:min(len(kept), maxSeries)]
	e.begin("growth_law", info, "", "The form that fits a growth best; named only where the sizes suffice to tell it from others.")
	for _, g := range kept {
		if g.Best != "" || g.Law != "" {
			e.add(1, g.labels().with(label{"law", g.Law}, label{"best", g.Best})...)
		}
	}
	crossing := func(c *Crossing, of func(*Crossing) *float64) *float64 {
		if c == nil {
			return nil
		}
		return of(c)
	}
	value := func(c *Crossing) *float64 { return &c.Value }
	lo := func(c *Crossing) *float64 { return c.Lo }
	hi := func(c *Crossing) *float64 { return c.Hi }
	for _, f := range []struct {
		name, help string
		value      func(*Growth) *float64
	}{
		{"growth_intercept", "The constant part of a growth, in the metric's base unit.", func(g *Growth) *float64 { return g.fitted(g.Coefficients.C0) }},
		{"growth_slope", "The factor of the growing part of a growth, in the metric's base unit.", func(g *Growth) *float64 { return g.fitted(g.Coefficients.C1) }},
		{"growth_slope_lower", "The lower bound of the factor of the growing part.", func(g *Growth) *float64 { return g.Lo }},
		{"growth_slope_upper", "The upper bound of the factor of the growing part.", func(g *Growth) *float64 { return g.Hi }},
		{"growth_breaks_at", "The level of the factor at which a budget breaks.", func(g *Growth) *float64 { return crossing(g.BreaksBudgetAt, value) }},
		{"growth_breaks_at_lower", "The lower bound of the level at which a budget breaks.", func(g *Growth) *float64 { return crossing(g.BreaksBudgetAt, lo) }},
		{"growth_breaks_at_upper", "The upper bound of the level at which a budget breaks.", func(g *Growth) *float64 { return crossing(g.BreaksBudgetAt, hi) }},
		{"growth_knee", "The level of the factor at which a growth bends.", func(g *Growth) *float64 { return crossing(g.Knee, value) }},
		{"growth_step_from", "The largest level of the factor before a jump of the cost.", func(g *Growth) *float64 { return g.jump(func(s *Step) *float64 { return &s.From }) }},
		{"growth_step_to", "The smallest level of the factor after a jump of the cost.", func(g *Growth) *float64 { return g.jump(func(s *Step) *float64 { return &s.To }) }},
		{"growth_step_factor", "What a jump multiplies the cost with.", func(g *Growth) *float64 { return g.jump(func(s *Step) *float64 { return &s.Factor }) }},
		{"growth_step_factor_lower", "The lower bound of what a jump multiplies the cost with.", func(g *Growth) *float64 { return g.jump(func(s *Step) *float64 { return s.Lo }) }},
		{"growth_step_factor_upper", "The upper bound of what a jump multiplies the cost with.", func(g *Growth) *float64 { return g.jump(func(s *Step) *float64 { return s.Hi }) }},
	} {
		e.begin(f.name, gauge, "", f.help)
		for _, g := range kept {
			e.opt(f.value(g), g.labels()...)
		}
	}
}

// jump is a value of the step, if there is one.
func (g *Growth) jump(of func(*Step) *float64) *float64 {
	if g.Step == nil {
		return nil
	}
	return of(g.Step)
}

// fitted is a coefficient, unless nothing was fitted.
func (g *Growth) fitted(c float64) *float64 {
	if g.Best == "" && g.Law == "" {
		return nil
	}
	return &c
}
