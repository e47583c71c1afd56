package report

import "strconv"

// controlPlane is what service levels came to, and what a control plane measured itself.
func (e *exposition) controlPlane(r *Report) {
	levels := pointers(r.SLO)
	levels = levels[:min(len(levels), maxSeries)]
	name := func(s *SLO) labels {
		out := labels{{"treatment", s.Treatment}, {"objective", s.Name}, {"subject", s.Subject}, {"operation", s.Operation}, {"formula", string(s.Formula)}}
		if s.Rate != nil {
			out = out.with(label{"rate", strconv.FormatFloat(*s.Rate, 'g', -1, 64)})
		}
		return out
	}
	e.begin("slo_verdict", stateset, "", "The verdict of a formula on a service level objective.")
	for _, s := range levels {
		e.states(string(s.Verdict), verdictWords(), name(s)...)
	}
	for _, f := range []struct {
		name, help string
		value      func(*SLO) *float64
	}{
		{"slo_value", "What a formula comes to for a service level objective.", func(s *SLO) *float64 { return s.Value }},
		{"slo_value_lower", "The lower bound of what a formula comes to.", func(s *SLO) *float64 { return s.Lo }},
		{"slo_value_upper", "The upper bound of what a formula comes to.", func(s *SLO) *float64 { return s.Hi }},
		{"slo_limit", "The limit of a service level objective.", func(s *SLO) *float64 { return &s.Limit }},
	} {
		e.begin(f.name, gauge, inSeconds, f.help)
		for _, s := range levels {
			e.opt(f.value(s), name(s)...)
		}
	}
	e.attribution(r)
	e.phases(r)
	e.served(r)
}

// attribution has the parts of one call's mean time; they add up to the whole.
func (e *exposition) attribution(r *Report) {
	e.begin("call_part", gauge, inSeconds, "The part of one call's mean time that was spent there.")
	for i := range r.Attribution {
		x := &r.Attribution[i]
		for _, p := range []struct {
			part  string
			value *float64
		}{{"client", x.Client}, {"webhook", x.Webhook}, {"admission", x.Admission}, {"storage", x.Storage}, {"other", x.Other}} {
			e.opt(p.value, label{"treatment", x.Treatment}, label{"operation", x.Operation}, label{"part", p.part})
		}
	}
}

// phases are quantiles of the phases of long calls.
func (e *exposition) phases(r *Report) {
	all := pointers(r.Phases)
	all = all[:min(len(all), maxSeries)]
	name := func(p *Phase) labels {
		return labels{{"treatment", p.Treatment}, {"operation", p.Operation}, {"phase", p.Phase}}
	}
	e.begin("phase", gauge, inSeconds, "Quantiles of the phases of long calls.")
	for _, p := range all {
		for _, q := range []quantileValue{{"0.5", &p.P50}, {"0.9", &p.P90}, {"0.99", &p.P99}, {"1", &p.Max}} {
			e.opt(q.value, name(p).with(label{"quantile", q.quantile})...)
		}
	}
	e.begin("phase_mean", gauge, inSeconds, "Mean of the phases of long calls.")
	for _, p := range all {
		e.add(p.Mean, name(p)...)
	}
	e.begin("phase_calls", counter, "", "Calls that a phase was seen of.")
	for _, p := range all {
		e.add(float64(p.N), name(p)...)
	}
}

// served are requests by the server's own clock.
func (e *exposition) served(r *Report) {
	all := pointers(r.Served)
	all = all[:min(len(all), maxSeries)]
	name := func(s *Served) labels {
		return labels{{"treatment", s.Treatment}, {"verb", s.Verb}, {"resource", s.Resource}, {"scope", s.Scope}}
	}
	e.begin("served_requests", counter, "", "Requests that the target served, by its own count.")
	for _, s := range all {
		e.add(float64(s.N), name(s)...)
	}
	e.begin("served_request", gauge, inSeconds, "Quantiles of requests by the target's own clock, from its buckets.")
	for _, s := range all {
		for _, q := range []quantileValue{{"0.5", s.P50}, {"0.9", s.P90}, {"0.99", s.P99}} {
			e.opt(q.value, name(s).with(label{"quantile", q.quantile})...)
		}
	}
	e.begin("served_request_mean", gauge, inSeconds, "Mean of requests by the target's own clock.")
	for _, s := range all {
		e.add(s.Mean, name(s)...)
	}
}
