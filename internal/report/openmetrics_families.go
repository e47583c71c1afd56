package report

import (
	"maps"
	"slices"
)

// capacity says where each treatment breaks, and how.
func (e *exposition) capacity(r *Report) {
	name := func(c *Capacity) labels { return labels{{"treatment", c.Treatment}, {"operation", c.Operation}} }
	for _, f := range []struct {
		name, unit, help string
		value            func(*Capacity) *float64
	}{
		{"capacity", inPerSecond, "The rate at which the target breaks.", func(c *Capacity) *float64 { return c.Rate }},
		{"capacity_lower", inPerSecond, "The lower bound of the capacity.", func(c *Capacity) *float64 { return c.Lo }},
		{"capacity_upper", inPerSecond, "The upper bound of the capacity.", func(c *Capacity) *float64 { return c.Hi }},
		{"capacity_at_least", inPerSecond, "A rate that holds, where there is no number.", func(c *Capacity) *float64 { return c.AtLeast }},
		{"capacity_at_most", inPerSecond, "A rate that breaks, where there is no number.", func(c *Capacity) *float64 { return c.AtMost }},
		{"capacity_verified_holds", inPerSecond, "A rate that was seen to hold.", func(c *Capacity) *float64 { return c.VerifiedLow }},
		{"capacity_verified_fails", inPerSecond, "A rate that was seen to fail.", func(c *Capacity) *float64 { return c.VerifiedHigh }},
		{"capacity_within_slo", inPerSecond, "The highest rate within the latency objective.", func(c *Capacity) *float64 { return c.SLORate }},
		{"capacity_burst", "", "Calls beyond the rate that were served from a full allowance.", func(c *Capacity) *float64 { return c.Burst }},
		{"recovery", inSeconds, "How long the target took to answer again after the overload.", func(c *Capacity) *float64 { return c.RecoverySeconds }},
		{"wedged", "", "1 if the target did not answer again after the overload.", func(c *Capacity) *float64 { return new(boolean(c.Wedged)) }},
		{"capacity_broke", "", "1 if the target broke.", func(c *Capacity) *float64 { return new(boolean(c.Broke)) }},
		{"capacity_valid", "", "0 if the generator was the limit.", func(c *Capacity) *float64 { return new(boolean(c.Valid)) }},
	} {
		e.begin(f.name, gauge, f.unit, f.help)
		for i := range r.Capacity {
			e.opt(f.value(&r.Capacity[i]), name(&r.Capacity[i])...)
		}
	}
	e.begin("capacity_signature", info, "", "How the target broke.")
	for i := range r.Capacity {
		if c := &r.Capacity[i]; c.Signature != "" {
			e.add(1, name(c).with(label{"signature", string(c.Signature)})...)
		}
	}
	e.points(r)
}

// points are the rates of ladders.
func (e *exposition) points(r *Report) {
	for _, f := range []struct {
		name, unit, help string
		value            func(*Point) *float64
	}{
		{"point_success", inRatio, "The share of a ladder point's calls that were answered well, however late.", func(p *Point) *float64 { return p.Success }},
		{"point_goodput", inPerSecond, "Good answers within a ladder point's window.", func(p *Point) *float64 { return p.Goodput }},
	} {
		e.begin(f.name, gauge, f.unit, f.help)
		e.eachPoint(r, func(p *Point, name labels) { e.opt(f.value(p), name...) })
	}
	e.begin("point_response", gauge, inSeconds, "Response time of all calls of a ladder point that ended.")
	e.eachPoint(r, func(p *Point, name labels) {
		for _, q := range []quantileValue{{"0.5", p.P50}, {"0.9", p.P90}, {"0.99", p.P99}, {"1", p.Max}} {
			e.opt(q.value, name.with(label{"quantile", q.quantile})...)
		}
	})
}

func (e *exposition) eachPoint(r *Report, do func(p *Point, name labels)) {
	for i := range r.Capacity {
		c := &r.Capacity[i]
		for k := range c.Points {
			p := &c.Points[k]
			do(p, labels{
				{"treatment", c.Treatment},
				{"operation", c.Operation},
				{"point", p.Name},
				{"rate", metricNumber(p.Rate)},
			})
		}
	}
}

func (o *Operation) labels() labels {
	return labels{{"treatment", o.Treatment}, {"operation", o.Operation}}
}

// operations counts calls by what became of them.
func (e *exposition) operations(r *Report) {
	e.begin("calls", counter, "", "Calls that ended, by outcome.")
	for i := range r.Operations {
		o := &r.Operations[i]
		n := o.Outcomes
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
			e.add(float64(c.n), o.labels().with(label{"outcome", c.outcome})...)
		}
	}
	e.begin("calls_unsent", counter, "", "Of the calls that timed out, those that were never sent.")
	for i := range r.Operations {
		e.add(float64(r.Operations[i].Outcomes.Unsent), r.Operations[i].labels()...)
	}
	e.begin("calls_outstanding", gauge, "", "Calls that had not ended when the record was written.")
	for i := range r.Operations {
		e.add(float64(r.Operations[i].Outcomes.Outstanding), r.Operations[i].labels()...)
	}
	e.begin("calls_by_cause", counter, "", "Calls that did not end well, by outcome and cause.")
	for i := range r.Operations {
		for _, c := range r.Operations[i].Causes {
			e.add(float64(c.Calls), r.Operations[i].labels().with(label{"outcome", c.Outcome}, label{"cause", c.Cause})...)
		}
	}
	e.rates(r)
	e.traffic(r)
}

func (e *exposition) rates(r *Report) {
	for _, f := range []struct {
		name, help string
		value      func(*Operation) *float64
	}{
		{"offered", "Calls that were due, per second of the window.", func(o *Operation) *float64 { return o.Offered }},
		{"achieved", "Calls that were sent, per second of the window.", func(o *Operation) *float64 { return o.Achieved }},
		{"goodput", "Calls that were answered as expected within the window, per second of it.", func(o *Operation) *float64 { return o.Goodput }},
	} {
		e.begin(f.name, gauge, inPerSecond, f.help)
		for i := range r.Operations {
			e.opt(f.value(&r.Operations[i]), r.Operations[i].labels()...)
		}
	}
}

func (e *exposition) traffic(r *Report) {
	for _, f := range []struct {
		name, help string
		value      func(*Operation) *uint64
	}{
		{"received", "Bytes that the target sent.", func(o *Operation) *uint64 { return o.BytesIn }},
		{"sent", "Bytes that were sent to the target.", func(o *Operation) *uint64 { return o.BytesOut }},
	} {
		e.begin(f.name, counter, inBytes, f.help)
		for i := range r.Operations {
			if n := f.value(&r.Operations[i]); n != nil {
				e.add(float64(*n), r.Operations[i].labels()...)
			}
		}
	}
}

// times are the distributions of calls: quantiles as gauges, since those of several runs or treatments cannot be added up.
func (e *exposition) times(r *Report) {
	for _, f := range []struct {
		name, help string
		value      func(*Operation) *Distribution
	}{
		{"response", "from the instant at which a call was due to the end of its answer", func(o *Operation) *Distribution { return o.Response }},
		{"service", "from the sending of a call to the end of its answer", func(o *Operation) *Distribution { return o.Service }},
		{"pool_wait", "for which calls waited for a free connection", func(o *Operation) *Distribution { return o.PoolWait }},
	} {
		each := func(do func(d *Distribution, name labels)) {
			for i := range r.Operations {
				if d := f.value(&r.Operations[i]); d != nil {
					do(d, r.Operations[i].labels())
				}
			}
		}
		e.begin(f.name, gauge, inSeconds, "Quantiles of the time "+f.help+".")
		each(func(d *Distribution, name labels) {
			for _, q := range d.quantiles() {
				e.opt(q.value, name.with(label{"quantile", q.quantile})...)
			}
		})
		e.begin(f.name+"_mean", gauge, inSeconds, "Mean of the time "+f.help+".")
		each(func(d *Distribution, name labels) { e.add(d.Mean, name...) })
		e.begin(f.name+"_calls", gauge, "", "How many calls the times "+f.help+" are of.")
		each(func(d *Distribution, name labels) { e.add(float64(d.N), name...) })
	}
}

type quantileValue struct {
	quantile string
	value    *float64
}

// quantiles are those of a distribution from the least to the greatest.
func (d *Distribution) quantiles() []quantileValue {
	return []quantileValue{{"0", &d.Min}, {"0.5", d.P50}, {"0.9", d.P90}, {"0.95", d.P95}, {"0.99", d.P99}, {"0.999", d.P999}, {"1", &d.Max}}
}

func (t *Target) labels() labels { return labels{{"treatment", t.Treatment}, {"target", t.Name}} }

// targets is what the target used.
func (e *exposition) targets(r *Report) {
	for _, f := range []struct {
		name, kind, unit, help string
		value                  func(*Target) *float64
	}{
		{"target_cpu", counter, inSeconds, "CPU time that the target used over its trials.", func(t *Target) *float64 { return t.CPUSeconds }},
		{"target_cpu_per_call", gauge, inSeconds, "CPU time of the target for each call that was answered well.", func(t *Target) *float64 { return t.CPUPerOp }},
		{"target_resident_before", gauge, inBytes, "Resident memory before the load.", func(t *Target) *float64 { return t.RSS.get(func(r *RSS) *float64 { return r.Before }) }},
		{"target_resident_after", gauge, inBytes, "Resident memory after the load.", func(t *Target) *float64 { return t.RSS.get(func(r *RSS) *float64 { return r.After }) }},
		{"target_resident_peak", gauge, inBytes, "Most resident memory.", func(t *Target) *float64 { return t.RSS.get(func(r *RSS) *float64 { return r.Peak }) }},
		{"target_throttled_periods", counter, "", "Periods in which a CPU limit held the target back.", func(t *Target) *float64 { return t.Throttled.get(func(x *Throttled) *float64 { return x.Periods }) }},
		{"target_throttled", counter, inSeconds, "For how long a CPU limit held the target back.", func(t *Target) *float64 { return t.Throttled.get(func(x *Throttled) *float64 { return x.Seconds }) }},
		{"target_start", gauge, inSeconds, "How long the target took to start.", func(t *Target) *float64 { return t.StartSeconds }},
		{"target_load", gauge, inSeconds, "How long the target took to load its policies, part of its start.", func(t *Target) *float64 { return t.LoadSeconds }},
		{"target_heap_before", gauge, inBytes, "Heap in use before the load.", func(t *Target) *float64 { return orZero(t.Heap).Before }},
		{"target_heap_after", gauge, inBytes, "Heap in use after the load.", func(t *Target) *float64 { return orZero(t.Heap).After }},
		{"target_heap_committed", gauge, inBytes, "Heap that the target held from its host after the load.", func(t *Target) *float64 { return orZero(t.Heap).Committed }},
		{"target_restarts", counter, "", "Times that the target's process was replaced.", (*Target).replaced},
	} {
		e.begin(f.name, f.kind, f.unit, f.help)
		for i := range r.Target {
			e.opt(f.value(&r.Target[i]), r.Target[i].labels()...)
		}
	}
	e.collections(r)
	e.begin("target_probe", untyped, "", "Other values that probes of the target read, by their own names and units.")
	for i := range r.Target {
		for _, k := range slices.Sorted(maps.Keys(r.Target[i].Other)) {
			e.add(r.Target[i].Other[k], r.Target[i].labels().with(label{"probe", k})...)
		}
	}
}

// replaced is how often the process was; nil if never, or nobody looked.
func (t *Target) replaced() *float64 {
	if t.Restarts == 0 {
		return nil
	}
	return new(float64(t.Restarts))
}

func (r *RSS) get(f func(*RSS) *float64) *float64 {
	if r == nil {
		return nil
	}
	return f(r)
}

func (t *Throttled) get(f func(*Throttled) *float64) *float64 {
	if t == nil {
		return nil
	}
	return f(t)
}

func (e *exposition) collections(r *Report) {
	e.begin("target_gc_collections", counter, "", "Garbage collections of the target.")
	for i := range r.Target {
		for _, g := range r.Target[i].GC {
			e.add(g.Count, r.Target[i].labels().with(label{"collector", g.Name})...)
		}
	}
	e.begin("target_gc", counter, inSeconds, "How long the target's garbage collections took.")
	for i := range r.Target {
		for _, g := range r.Target[i].GC {
			e.add(g.Seconds, r.Target[i].labels().with(label{"collector", g.Name})...)
		}
	}
}

// generator is the load generator's account of itself.
func (e *exposition) generator(g *Generator) {
	if g == nil {
		return
	}
	e.begin("generator_valid", gauge, "", "0 if the generator was the limit, not the target.")
	e.add(boolean(g.Valid))
	e.begin("generator_lateness", gauge, inSeconds, "How much later than it should the generator sent.")
	if l := g.Lateness; l != nil {
		e.add(l.P50, label{"quantile", "0.5"})
		e.add(l.P99, label{"quantile", "0.99"})
		e.add(l.Max, label{"quantile", "1"})
	}
	e.begin("generator_achieved", gauge, inRatio, "Calls sent by calls due, of those that could be sent.")
	e.opt(g.AchievedRatio)
	e.begin("generator_cpu", counter, inSeconds, "CPU time of the generator.")
	e.opt(g.CPUSeconds)
}
