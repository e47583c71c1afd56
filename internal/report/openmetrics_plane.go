package report

import "strconv"

// controlPlane writes the service levels, and what a control plane measured itself.
func (e *exposition) controlPlane(r *Report) {
	levels := few(r.SLO)
	e.begin("slo_verdict", stateset, "", "The verdict of a formula on a service level objective.")
	for _, s := range levels {
		e.states(string(s.Verdict), stateNames(Verdicts()), s.labels()...)
	}
	write(e, levels, (*SLO).labels,
		gauges("slo_value", inSeconds, "The value of a formula for a service level objective.",
			func(s *SLO) *float64 { return s.Value }),
		gauges("slo_value_lower", inSeconds, "The lower bound of the value of a formula.",
			func(s *SLO) *float64 { return s.Lo }),
		gauges("slo_value_upper", inSeconds, "The upper bound of the value of a formula.",
			func(s *SLO) *float64 { return s.Hi }),
		gauges("slo_limit", inSeconds, "The limit of a service level objective.", func(s *SLO) *float64 { return &s.Limit }),
	)
	e.attribution(r)
	e.phases(r)
	e.served(r)
}

func (s *SLO) labels() labels {
	out := labels{
		{"treatment", s.Treatment},
		{"objective", s.Name},
		{"subject", s.Subject},
		{"operation", s.Operation},
		{"formula", string(s.Formula)},
	}
	if s.Rate != nil {
		out = out.with(label{"rate", strconv.FormatFloat(*s.Rate, 'g', -1, 64)})
	}
	return out
}

// attribution writes the parts of one call's mean time; they add up to the whole.
func (e *exposition) attribution(r *Report) {
	name := func(x *Attribution) labels { return labels{{"treatment", x.Treatment}, {"operation", x.Operation}} }
	write(e, pointers(r.Attribution), name, familyOf[Attribution]{
		"call_part", gauge, inSeconds,
		"The part of one call's mean time that was spent there.",
		func(x *Attribution) []sample {
			return []sample{
				{x.Client, labels{{"part", "client"}}},
				{x.Webhook, labels{{"part", "webhook"}}},
				{x.Admission, labels{{"part", "admission"}}},
				{x.Storage, labels{{"part", "storage"}}},
				{x.Other, labels{{"part", "other"}}},
			}
		},
	})
}

// phases writes quantiles of the phases of long calls.
func (e *exposition) phases(r *Report) {
	name := func(p *Phase) labels {
		return labels{{"treatment", p.Treatment}, {"operation", p.Operation}, {"phase", p.Phase}}
	}
	write(e, few(r.Phases), name,
		familyOf[Phase]{"phase", gauge, inSeconds, "Quantiles of the phases of long calls.", func(p *Phase) []sample {
			return quantiles(quantile{"0.5", &p.P50}, quantile{"0.9", &p.P90}, quantile{"0.99", &p.P99}, quantile{"1", &p.Max})
		}},
		gauges("phase_mean", inSeconds, "Mean of the phases of long calls.", func(p *Phase) *float64 { return &p.Mean }),
		counters("phase_calls", "", "Calls in which the phase was observed.",
			func(p *Phase) *float64 { return new(float64(p.N)) }),
	)
}

// served writes requests by the server's own clock.
func (e *exposition) served(r *Report) {
	name := func(s *Served) labels {
		return labels{{"treatment", s.Treatment}, {"verb", s.Verb}, {"resource", s.Resource}, {"scope", s.Scope}}
	}
	write(e, few(r.Served), name,
		counters("served_requests", "", "Requests that the target served, by its own count.",
			func(s *Served) *float64 { return new(float64(s.N)) }),
		familyOf[Served]{
			"served_request", gauge, inSeconds, "Quantiles of requests by the target's own clock, from its buckets.",
			func(s *Served) []sample {
				return quantiles(quantile{"0.5", s.P50}, quantile{"0.9", s.P90}, quantile{"0.99", s.P99})
			},
		},
		gauges("served_request_mean", inSeconds, "Mean of requests by the target's own clock.",
			func(s *Served) *float64 { return &s.Mean }),
	)
}
