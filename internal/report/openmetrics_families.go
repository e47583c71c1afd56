package report

import (
	"maps"
	"slices"
)

func (c *Capacity) labels() labels {
	return labels{{"treatment", c.Treatment}, {"operation", c.Operation}}
}

// capacity writes where each treatment breaks, and how.
func (e *exposition) capacity(r *Report) {
	all := pointers(r.Capacity)
	write(e, all, (*Capacity).labels,
		gauges("capacity", inPerSecond, "The rate at which the target breaks.", func(c *Capacity) *float64 { return c.Rate }),
		gauges("capacity_lower", inPerSecond, "The lower bound of the capacity.", func(c *Capacity) *float64 { return c.Lo }),
		gauges("capacity_upper", inPerSecond, "The upper bound of the capacity.", func(c *Capacity) *float64 { return c.Hi }),
		gauges("capacity_at_least", inPerSecond, "A rate that holds, where there is no number.",
			func(c *Capacity) *float64 { return c.AtLeast }),
		gauges("capacity_at_most", inPerSecond, "A rate that breaks, where there is no number.",
			func(c *Capacity) *float64 { return c.AtMost }),
		gauges("capacity_verified_holds", inPerSecond, "A rate that was seen to hold.",
			func(c *Capacity) *float64 { return c.VerifiedLow }),
		gauges("capacity_verified_fails", inPerSecond, "A rate that was seen to fail.",
			func(c *Capacity) *float64 { return c.VerifiedHigh }),
		gauges("capacity_within_slo", inPerSecond, "The highest rate within the latency objective.",
			func(c *Capacity) *float64 { return c.SLORate }),
		gauges("capacity_burst", "", "Calls beyond the rate that were served from a full allowance.",
			func(c *Capacity) *float64 { return c.Burst }),
		gauges("recovery", inSeconds, "How long the target took to answer again after the overload.",
			func(c *Capacity) *float64 { return c.RecoverySeconds }),
		gauges("wedged", "", "1 if the target did not answer again after the overload.",
			func(c *Capacity) *float64 { return new(boolean(c.Wedged)) }),
		gauges("capacity_broke", "", "1 if the target broke.", func(c *Capacity) *float64 { return new(boolean(c.Broke)) }),
		gauges("capacity_valid", "", "0 if the generator was the limit.",
			func(c *Capacity) *float64 { return new(boolean(c.Valid)) }),
		familyOf[Capacity]{"capacity_limit", info, "", "What sets the rate, and how surely.", func(c *Capacity) []sample {
			if c.Limit == nil {
				return nil
			}
			return []sample{{new(1.0), labels{
				{"limit", string(c.Limit.Kind)}, {"certainty", string(c.Limit.Certainty)},
			}}}
		}},
		familyOf[Capacity]{"capacity_failure", info, "", "How it failed, and how surely.", func(c *Capacity) []sample {
			if c.Failure == nil {
				return nil
			}
			return []sample{{new(1.0), labels{
				{"failure", string(c.Failure.Class)}, {"certainty", string(c.Failure.Certainty)},
			}}}
		}},
	)
	e.points(all)
}

// A ladderPoint is a point and the capacity whose ladder it belongs to.
type ladderPoint struct {
	*Point
	of *Capacity
}

// points writes the rates of ladders.
func (e *exposition) points(all []*Capacity) {
	var points []*ladderPoint
	for _, c := range all {
		for k := range c.Points {
			points = append(points, &ladderPoint{&c.Points[k], c})
		}
	}
	name := func(p *ladderPoint) labels {
		return p.of.labels().with(label{"point", p.Name}, label{"rate", metricNumber(p.Rate)})
	}
	write(e, points, name,
		gauges("point_success", inRatio, "The share of a ladder point's calls that were answered well, however late.",
			func(p *ladderPoint) *float64 { return p.Success }),
		gauges("point_goodput", inPerSecond, "Good answers within a ladder point's window.",
			func(p *ladderPoint) *float64 { return p.Goodput }),
		familyOf[ladderPoint]{
			"point_response", gauge, inSeconds, "Response time of all calls of a ladder point that ended.",
			func(p *ladderPoint) []sample {
				return quantiles(quantile{"0.5", p.P50}, quantile{"0.9", p.P90}, quantile{"0.99", p.P99}, quantile{"1", p.Max})
			},
		},
	)
}

func (o *Operation) labels() labels {
	return labels{{"treatment", o.Treatment}, {"operation", o.Operation}}
}

// operations counts calls by their outcome.
func (e *exposition) operations(r *Report) {
	write(e, pointers(r.Operations), (*Operation).labels,
		familyOf[Operation]{"calls", counter, "", "Calls that ended, by outcome.", (*Operation).byOutcome},
		counters("calls_unsent", "", "Timed-out calls that were never sent.",
			func(o *Operation) *float64 { return new(float64(o.Outcomes.Unsent)) }),
		gauges("calls_outstanding", "", "Calls that had not ended when the record was written.",
			func(o *Operation) *float64 { return new(float64(o.Outcomes.Outstanding)) }),
		familyOf[Operation]{
			"calls_by_cause", counter, "", "Calls that did not end well, by outcome and cause.",
			func(o *Operation) (out []sample) {
				for _, c := range o.Causes {
					out = append(out, sample{new(float64(c.Calls)), labels{{"outcome", c.Outcome}, {"cause", c.Cause}}})
				}
				return out
			},
		},
		gauges("offered", inPerSecond, "Calls that were due, per second of the window.",
			func(o *Operation) *float64 { return o.Offered }),
		gauges("achieved", inPerSecond, "Calls that were sent, per second of the window.",
			func(o *Operation) *float64 { return o.Achieved }),
		gauges("goodput", inPerSecond, "Calls that were answered as expected within the window, per second of it.",
			func(o *Operation) *float64 { return o.Goodput }),
		counters("received", inBytes, "Bytes that the target sent.",
			func(o *Operation) *float64 { return countKnown(o.BytesIn) }),
		counters("sent", inBytes, "Bytes that were sent to the target.",
			func(o *Operation) *float64 { return countKnown(o.BytesOut) }),
	)
}

// byOutcome are the calls that ended.
func (o *Operation) byOutcome() (out []sample) {
	n := &o.Outcomes
	for _, c := range []struct {
		outcome string
		n       uint64
	}{
		{"ok", n.OK},
		{"denied", n.Denied},
		{"wrong", n.Wrong},
		{"refused", n.Refused},
		{"timeout", n.Timeout},
		{"conn_failed", n.ConnFailed},
		{"failed", n.Failed},
	} {
		out = append(out, sample{new(float64(c.n)), labels{{"outcome", c.outcome}}})
	}
	return out
}

// countKnown returns a count as a number; nil if it is unknown.
func countKnown(n *uint64) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}

// times writes the distributions of calls: quantiles as gauges, because those of several runs or treatments cannot be
// added up.
func (e *exposition) times(r *Report) {
	for _, f := range []struct {
		name, help string
		of         func(*Operation) *Distribution
	}{
		{
			"response", "from the instant at which a call was due to the end of its answer",
			func(o *Operation) *Distribution { return o.Response },
		},
		{
			"service", "from the sending of a call to the end of its answer",
			func(o *Operation) *Distribution { return o.Service },
		},
		{
			"pool_wait", "for which calls waited for a free connection",
			func(o *Operation) *Distribution { return o.PoolWait },
		},
	} {
		write(e, pointers(r.Operations), (*Operation).labels,
			familyOf[Operation]{
				f.name, gauge, inSeconds, "Quantiles of the time " + f.help + ".",
				func(o *Operation) []sample { return f.of(o).samples() },
			},
			gauges(f.name+"_mean", inSeconds, "Mean of the time "+f.help+".",
				func(o *Operation) *float64 { return within(f.of(o), func(d *Distribution) *float64 { return &d.Mean }) }),
			gauges(f.name+"_calls", "", "How many calls the times "+f.help+" are of.", func(o *Operation) *float64 {
				return within(f.of(o), func(d *Distribution) *float64 { return new(float64(d.N)) })
			}),
		)
	}
}

func (t *Target) labels() labels { return labels{{"treatment", t.Treatment}, {"target", t.Name}} }

// targets writes the resources that the target used.
func (e *exposition) targets(r *Report) {
	write(e, pointers(r.Target), (*Target).labels,
		counters("target_cpu", inSeconds, "CPU time that the target used over its trials.",
			func(t *Target) *float64 { return t.CPUSeconds }),
		gauges("target_cpu_per_call", inSeconds, "CPU time of the target for each call that was answered well.",
			func(t *Target) *float64 { return t.CPUPerOp }),
		gauges("target_resident_before", inBytes, "Resident memory before the load.",
			func(t *Target) *float64 { return orZero(t.RSS).Before }),
		gauges("target_resident_after", inBytes, "Resident memory after the load.",
			func(t *Target) *float64 { return orZero(t.RSS).After }),
		gauges("target_resident_peak", inBytes, "Most resident memory.",
			func(t *Target) *float64 { return orZero(t.RSS).Peak }),
		counters("target_throttled_periods", "", "Periods in which a CPU limit throttled the target.",
			func(t *Target) *float64 { return orZero(t.Throttled).Periods }),
		counters("target_throttled", inSeconds, "Time during which a CPU limit throttled the target.",
			func(t *Target) *float64 { return orZero(t.Throttled).Seconds }),
		gauges("target_start", inSeconds, "How long the target took to start.",
			func(t *Target) *float64 { return t.StartSeconds }),
		gauges("target_load", inSeconds, "How long the target took to load its policies, part of its start.",
			func(t *Target) *float64 { return t.LoadSeconds }),
		gauges("target_heap_before", inBytes, "Heap in use before the load.",
			func(t *Target) *float64 { return orZero(t.Heap).Before }),
		gauges("target_heap_after", inBytes, "Heap in use after the load.",
			func(t *Target) *float64 { return orZero(t.Heap).After }),
		gauges("target_heap_committed", inBytes, "Heap memory that the target had reserved from its host after the load.",
			func(t *Target) *float64 { return orZero(t.Heap).Committed }),
		counters("target_restarts", "", "Times that the target's process was replaced.", (*Target).replaced),
		familyOf[Target]{
			"target_gc_collections", counter, "", "Garbage collections of the target.",
			func(t *Target) []sample { return t.collections(func(g *GC) *float64 { return &g.Count }) },
		},
		familyOf[Target]{
			"target_gc", counter, inSeconds, "How long the target's garbage collections took.",
			func(t *Target) []sample { return t.collections(func(g *GC) *float64 { return &g.Seconds }) },
		},
		familyOf[Target]{
			"target_probe", untyped, "", "Other values that probes of the target read, by their own names and units.",
			func(t *Target) (out []sample) {
				for _, k := range slices.Sorted(maps.Keys(t.Other)) {
					out = append(out, sample{new(t.Other[k]), labels{{"probe", k}}})
				}
				return out
			},
		},
	)
}

// replaced returns how often the process was replaced; nil if never or unknown.
func (t *Target) replaced() *float64 {
	if t.Restarts == 0 {
		return nil
	}
	return new(float64(t.Restarts))
}

// collections writes a value of each garbage collector.
func (t *Target) collections(value func(*GC) *float64) (out []sample) {
	for i := range t.GC {
		out = append(out, sample{value(&t.GC[i]), labels{{"collector", t.GC[i].Name}}})
	}
	return out
}

// generator writes the load generator's audit.
func (e *exposition) generator(g *Generator) {
	if g == nil {
		return
	}
	write(e, []*Generator{g}, func(*Generator) labels { return nil },
		gauges("generator_valid", "", "0 if the generator was the limit, not the target.",
			func(g *Generator) *float64 { return new(boolean(g.Valid)) }),
		gauges("generator_ruled_out", "", "1 if the evidence excludes that the generator shaped the result.",
			func(g *Generator) *float64 { return new(boolean(g.RuledOut())) }),
		familyOf[Generator]{
			"generator_lateness", gauge, inSeconds, "How much later than intended the generator sent calls.",
			func(g *Generator) []sample {
				if g.Lateness == nil {
					return nil
				}
				return quantiles(quantile{"0.5", &g.Lateness.P50}, quantile{"0.99", &g.Lateness.P99},
					quantile{"1", &g.Lateness.Max})
			},
		},
		gauges("generator_achieved", inRatio, "Calls sent by calls due, of those that could be sent.",
			func(g *Generator) *float64 { return g.AchievedRatio }),
		counters("generator_cpu", inSeconds, "CPU time of the generator.",
			func(g *Generator) *float64 { return g.CPUSeconds }),
	)
}
