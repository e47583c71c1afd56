package report

import (
	"slices"

	"tare/internal/design"
)

// metrics writes the estimates over blocks and the differences from the baseline. Their units differ, so the units are
// labels.
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
	write(e, pointers(kept), (*treatmentMetric).labels,
		gauges("metric_estimate", "", "A metric's estimate over blocks, in the unit of the label.",
			func(k *treatmentMetric) *float64 { return &k.metric.Value }),
		gauges("metric_lower", "", "The lower bound of a metric's estimate.",
			func(k *treatmentMetric) *float64 { return k.metric.Lo }),
		gauges("metric_upper", "", "The upper bound of a metric's estimate.",
			func(k *treatmentMetric) *float64 { return k.metric.Hi }),
	)
	e.harness(r)
	left += e.effects(r)
	e.begin("left_out", gauge, "", "How many metrics and effects are in the report and, since they are too many, not "+
		"here.")
	if len(kept)+len(r.Effects) > 0 {
		e.add(float64(left))
	}
	e.design(r)
	e.checks(r)
	e.growth(r)
}

// harness writes the cost of a call that does nothing; metrics include this cost.
func (e *exposition) harness(r *Report) {
	name := func(h *Harness) labels {
		return labels{{"treatment", h.Treatment}, {"metric", h.Metric}, {"operation", h.Operation}, {"unit", string(h.Unit)}}
	}
	write(e, few(r.Harness), name,
		gauges("harness_estimate", "",
			"Cost of a call that does nothing, in the unit of the label: part of every metric of that name.",
			func(h *Harness) *float64 { return &h.Value }),
		gauges("harness_lower", "", "The lower bound of the cost of a call that does nothing.",
			func(h *Harness) *float64 { return h.Lo }),
		gauges("harness_upper", "", "The upper bound of the cost of a call that does nothing.",
			func(h *Harness) *float64 { return h.Hi }),
	)
}

// A treatmentMetric is a metric with its treatment.
type treatmentMetric struct {
	treatment string
	metric    *Metric
}

func (k *treatmentMetric) labels() labels {
	m := k.metric
	return labels{
		{"treatment", k.treatment},
		{"metric", m.Name},
		{"operation", m.Operation},
		{"quantile", m.Quantile},
		{"unit", m.Unit},
	}
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

// effects writes the gating effects, then the others, and how many it omitted.
func (e *exposition) effects(r *Report) (left int) {
	all := pointers(r.Effects)
	slices.SortStableFunc(all, func(a, b *Effect) int { return int(boolean(b.Gating) - boolean(a.Gating)) })
	kept := all[:min(len(all), maxSeries)]
	write(e, kept, (*Effect).labels,
		gauges("effect_estimate", "", "How much a treatment differs from the baseline: a ratio or a difference.",
			func(x *Effect) *float64 { return &x.Estimate }),
		gauges("effect_lower", "", "The lower bound of an effect.", func(x *Effect) *float64 { return &x.Lo }),
		gauges("effect_upper", "", "The upper bound of an effect.", func(x *Effect) *float64 { return &x.Hi }),
		gauges("effect_level", "", "The level of the interval, which is the one that the verdict used.",
			func(x *Effect) *float64 { return &x.Level }),
		gauges("effect_detectable", "", "The smallest effect that would have been seen.",
			func(x *Effect) *float64 { return x.MDE }),
		gauges("effect_gating", "", "1 if verdicts rest on this effect, 0 if it is exploratory.",
			func(x *Effect) *float64 { return new(boolean(x.Gating)) }),
	)
	e.begin("effect_verdict", stateset, "", "The verdict on a gating effect.")
	for _, x := range kept {
		if x.Gating {
			e.states(string(x.Verdict), stateNames(EffectVerdicts()), x.labels()...)
		}
	}
	return len(all) - len(kept)
}

// design writes how far the experiment came.
func (e *exposition) design(r *Report) {
	d := r.Design
	if d == nil {
		return
	}
	e.begin("blocks", gauge, "", "Complete blocks, in each of which every treatment was measured.")
	e.add(float64(d.Blocks))
	e.begin("blocks_planned", gauge, "", "Blocks at most.")
	e.add(float64(d.Planned))
	e.begin("margin", gauge, inRatio, "The largest change that counts as no effect.")
	e.add(d.Margin)
}

// checks writes the experiment's self-checks.
func (e *exposition) checks(r *Report) {
	if r.AA == nil {
		return
	}
	e.begin("aa_reliable", gauge, "", "0 if the baseline differs from itself: then nothing else here means anything.")
	e.add(boolean(r.AA.Reliable))
	type check struct {
		*Effect
		control design.Control
	}
	var all []*check
	for _, x := range few(r.AA.Effects) {
		all = append(all, &check{x, design.AA})
	}
	for _, x := range few(r.AA.NegativeControls) {
		all = append(all, &check{x, design.Negative})
	}
	name := func(x *check) labels { return x.labels().with(label{"control", string(x.control)}) }
	write(e, all, name,
		gauges("check_estimate", "", "An effect where there should be none: of the baseline on itself, or where a control "+
			"cannot act.",
			func(x *check) *float64 { return &x.Estimate }),
		gauges("check_lower", "", "The lower bound of an effect where there should be none.",
			func(x *check) *float64 { return &x.Lo }),
		gauges("check_upper", "", "The upper bound of an effect where there should be none.",
			func(x *check) *float64 { return &x.Hi }),
	)
}

func (g *Growth) labels() labels {
	return labels{
		{"factor", g.Factor},
		{"treatment", g.Treatment},
		{"metric", g.Metric},
		{"part", g.Part},
		{"operation", g.Operation},
		{"quantile", g.Quantile},
	}
}

// growth writes the laws by which costs grow; the sizes themselves are treatments.
func (e *exposition) growth(r *Report) {
	value := func(c *Crossing) *float64 { return &c.Value }
	lo := func(c *Crossing) *float64 { return c.Lo }
	hi := func(c *Crossing) *float64 { return c.Hi }
	step := func(of func(*Step) *float64) func(*Growth) *float64 {
		return func(g *Growth) *float64 { return within(g.Step, of) }
	}
	write(e, few(r.Growth), (*Growth).labels,
		familyOf[Growth]{
			"growth_law", info, "",
			"The form that fits a growth best; named only where the sizes suffice to tell it from others.",
			func(g *Growth) []sample {
				return []sample{{g.fitted(1), labels{{"law", g.Law}, {"best", g.Best}}}}
			},
		},
		gauges("growth_intercept", "", "The constant part of a growth, in the metric's base unit.",
			func(g *Growth) *float64 { return g.fitted(g.Coefficients.C0) }),
		gauges("growth_slope", "", "The factor of the growing part of a growth, in the metric's base unit.",
			func(g *Growth) *float64 { return g.fitted(g.Coefficients.C1) }),
		gauges("growth_slope_lower", "", "The lower bound of the factor of the growing part.",
			func(g *Growth) *float64 { return g.Lo }),
		gauges("growth_slope_upper", "", "The upper bound of the factor of the growing part.",
			func(g *Growth) *float64 { return g.Hi }),
		gauges("growth_breaks_at", "", "The level of the factor at which a budget breaks.",
			func(g *Growth) *float64 { return within(g.BreaksBudgetAt, value) }),
		gauges("growth_breaks_at_lower", "", "The lower bound of the level at which a budget breaks.",
			func(g *Growth) *float64 { return within(g.BreaksBudgetAt, lo) }),
		gauges("growth_breaks_at_upper", "", "The upper bound of the level at which a budget breaks.",
			func(g *Growth) *float64 { return within(g.BreaksBudgetAt, hi) }),
		gauges("growth_knee", "", "The level of the factor at which a growth bends.",
			func(g *Growth) *float64 { return within(g.Knee, value) }),
		gauges("growth_step_from", "", "The largest level of the factor before a jump of the cost.",
			step(func(s *Step) *float64 { return &s.From })),
		gauges("growth_step_to", "", "The smallest level of the factor after a jump of the cost.",
			step(func(s *Step) *float64 { return &s.To })),
		gauges("growth_step_factor", "", "The factor by which a jump multiplies the cost.",
			step(func(s *Step) *float64 { return &s.Factor })),
		gauges("growth_step_factor_lower", "", "The lower bound of the factor by which a jump multiplies the cost.",
			step(func(s *Step) *float64 { return s.Lo })),
		gauges("growth_step_factor_upper", "", "The upper bound of the factor by which a jump multiplies the cost.",
			step(func(s *Step) *float64 { return s.Hi })),
	)
}

// fitted returns a coefficient, unless nothing was fitted.
func (g *Growth) fitted(c float64) *float64 {
	if g.Best == "" && g.Law == "" {
		return nil
	}
	return &c
}
