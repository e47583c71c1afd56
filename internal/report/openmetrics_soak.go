package report

import (
	"maps"
	"slices"
)

// soak writes the course of a long run, and the counts of answers, which other questions have as well.
func (e *exposition) soak(r *Report) {
	e.lengths(r)
	e.drifts(r)
	e.answers(r)
}

// lengths writes the durations of a soak. It does not repeat the calls, because a sum over operations has them.
func (e *exposition) lengths(r *Report) {
	name := func(s *Soak) labels { return labels{{"treatment", s.Treatment}} }
	write(e, r.treatmentSoaks(), name,
		gauges("soak_measured", inSeconds, "How long a soak was measured, after its warm-up.",
			func(s *Soak) *float64 { return &s.Seconds }),
		gauges("soak_planned", inSeconds, "How long a soak was planned to be measured.",
			func(s *Soak) *float64 { return nonZero(s.Planned) }),
		gauges("soak_warm_up", inSeconds, "How long the load ran before measuring began.",
			func(s *Soak) *float64 { return nonZero(s.WarmUpSeconds) }),
		gauges("soak_workers", "", "Callers of a closed loop.",
			func(s *Soak) *float64 { return nonZero(float64(s.Workers)) }),
		gauges("soak_offered", inPerSecond, "The rate of an open loop.", func(s *Soak) *float64 { return nonZero(s.Rate) }),
		counters("soak_restarts", "", "Times that a process of the target was replaced.",
			func(s *Soak) *float64 { return new(float64(len(s.Restarts))) }),
		counters("soak_outages", "", "Stretches without a good answer.",
			func(s *Soak) *float64 { return new(float64(len(s.Outages))) }),
		counters("soak_outage", inSeconds, "How long there was no good answer.", func(s *Soak) *float64 {
			sum := 0.0
			for _, o := range s.Outages {
				sum += o.End - o.Start
			}
			return nonZero(sum)
		}),
		gauges("soak_cpu_per_call", inSeconds, "CPU time of all parts of the target for each call that was answered well.",
			func(s *Soak) *float64 { return orZero(s.Total).CPUPerOp }),
		gauges("soak_in_progress", "", "Rate × mean response: by Little's law the calls in progress.",
			func(s *Soak) *float64 {
				return within(orZero(s.Total).Little, func(l *Little) *float64 { return &l.Observed })
			}),
		gauges("soak_in_progress_expected", "", "The calls in progress that a closed loop keeps up.", func(s *Soak) *float64 {
			return within(orZero(s.Total).Little, func(l *Little) *float64 { return &l.Expected })
		}),
		familyOf[Soak]{
			"soak_response", gauge, inSeconds, "Quantiles of the response times of all operations together.",
			func(s *Soak) []sample { return orZero(s.Total).Response.samples() },
		},
	)
}

// nonZero returns a value, or nil if it is 0, which stands for unknown.
func nonZero(v float64) *float64 {
	if v == 0 {
		return nil
	}
	return &v
}

// A namedDrift is the trend of a metric over a soak.
type namedDrift struct {
	Drift
	of     *Soak
	metric string
}

func (d *namedDrift) labels() labels {
	return labels{{"treatment", d.of.Treatment}, {"operation", d.of.Operation}, {"metric", d.metric}}
}

// drifts writes slopes per second, the base unit of time; the metrics' units differ and are labels.
func (e *exposition) drifts(r *Report) {
	var all []*namedDrift
	for _, s := range few(r.Soak) {
		for _, metric := range driftNames(s.Drift) {
			all = append(all, &namedDrift{s.Drift[metric], s, metric})
		}
	}
	perSecond := func(v *float64) *float64 {
		return within(v, func(v *float64) *float64 { return new(*v / 3600) })
	}
	known := func(d *namedDrift, v *float64) *float64 {
		if !d.Known() {
			return nil
		}
		return v
	}
	united := func(d *namedDrift) labels { return d.labels().with(label{"unit", unitWord(d.Unit)}) }
	write(e, all, united,
		gauges("drift_slope", "", "The trend of a metric over a soak: its change per second, in the unit of the label.",
			func(d *namedDrift) *float64 { return perSecond(known(d, &d.PerHour)) }),
		gauges("drift_slope_lower", "", "The lower bound of a trend, per second.",
			func(d *namedDrift) *float64 { return perSecond(d.Lo) }),
		gauges("drift_slope_upper", "", "The upper bound of a trend, per second.",
			func(d *namedDrift) *float64 { return perSecond(d.Hi) }),
		gauges("drift_change", "", "The total change of a trend over the measured time, in the unit of the label.",
			func(d *namedDrift) *float64 { return known(d, &d.Total) }),
		gauges("drift_windows", "", "The number of windows behind a trend.",
			func(d *namedDrift) *float64 { return new(float64(d.N)) }),
	)
	e.begin("drift_verdict", stateset, "", "The verdict on a trend.")
	for _, d := range all {
		e.states(string(d.Verdict), stateNames(EffectVerdicts()), d.labels()...)
	}
}

// answers writes what the answers said, and the counts of both sides.
func (e *exposition) answers(r *Report) {
	write(e, pointers(r.Operations), (*Operation).labels,
		familyOf[Operation]{
			"answers", counter, "", "What the answers said, by operation.",
			func(o *Operation) (out []sample) {
				for _, a := range slices.Sorted(maps.Keys(o.Answers)) {
					out = append(out, sample{new(float64(o.Answers[a])), labels{{"answer", a}}})
				}
				return out
			},
		})
	name := func(c *AnswerCheck) labels { return labels{{"treatment", c.Treatment}, {"answer", c.Answer}} }
	write(e, pointers(r.Answers), name,
		counters("answers_seen", "", "Answers that the callers got over all load.",
			func(c *AnswerCheck) *float64 { return new(float64(c.Client)) }),
		counters("answers_counted", "", "Answers that the target counted over all load.",
			func(c *AnswerCheck) *float64 { return &c.Target }),
		counters("answers_unanswered", "", "Calls whose answer did not come, and which the target may have counted.",
			func(c *AnswerCheck) *float64 { return new(float64(c.Unanswered)) }),
		gauges("answers_agree", "", "1 if both sides counted the same.",
			func(c *AnswerCheck) *float64 { return new(boolean(c.Agrees)) }),
	)
}
