package report

import (
	"maps"
	"slices"
)

// soak is how a long run went, and the counts of answers, which other questions have as well.
func (e *exposition) soak(r *Report) {
	e.lengths(r)
	e.drifts(r)
	e.answers(r)
}

// lengths are of the whole of a soak. Its calls are not here again: a sum over operations has them.
func (e *exposition) lengths(r *Report) {
	of := func(v float64) *float64 {
		if v == 0 {
			return nil
		}
		return &v
	}
	outages := func(s *Soak) *float64 {
		sum := 0.0
		for _, o := range s.Outages {
			sum += o.End - o.Start
		}
		return of(sum)
	}
	for _, f := range []struct {
		name, kind, unit, help string
		value                  func(*Soak) *float64
	}{
		{"soak_measured", gauge, inSeconds, "How long a soak was measured, after its warm-up.", func(s *Soak) *float64 { return &s.Seconds }},
		{"soak_planned", gauge, inSeconds, "How long a soak was to be measured.", func(s *Soak) *float64 { return of(s.Planned) }},
		{"soak_warm_up", gauge, inSeconds, "Load before what was measured.", func(s *Soak) *float64 { return of(s.WarmUpSeconds) }},
		{"soak_workers", gauge, "", "Callers of a closed loop.", func(s *Soak) *float64 { return of(float64(s.Workers)) }},
		{"soak_offered", gauge, inPerSecond, "The rate of an open loop.", func(s *Soak) *float64 { return of(s.Rate) }},
		{"soak_restarts", counter, "", "Times that a process of the target was replaced.", func(s *Soak) *float64 { return new(float64(len(s.Restarts))) }},
		{"soak_outages", counter, "", "Stretches without a good answer.", func(s *Soak) *float64 { return new(float64(len(s.Outages))) }},
		{"soak_outage", counter, inSeconds, "How long there was no good answer.", outages},
		{"soak_cpu_per_call", gauge, inSeconds, "CPU time of all parts of the target for each call that was answered well.", func(s *Soak) *float64 { return orZero(s.Total).CPUPerOp }},
		{"soak_in_progress", gauge, "", "Rate × mean response: by Little's law the calls in progress.", func(s *Soak) *float64 { return s.little(func(l *Little) float64 { return l.Observed }) }},
		{"soak_in_progress_expected", gauge, "", "The calls in progress that a closed loop keeps up.", func(s *Soak) *float64 { return s.little(func(l *Little) float64 { return l.Expected }) }},
	} {
		e.begin(f.name, f.kind, f.unit, f.help)
		for _, s := range r.wholes() {
			e.opt(f.value(s), label{"treatment", s.Treatment})
		}
	}
	e.begin("soak_response", gauge, inSeconds, "Quantiles of the response times of all operations together.")
	for _, s := range r.wholes() {
		if s.Total == nil || s.Total.Response == nil {
			continue
		}
		for _, q := range s.Total.Response.quantiles() {
			e.opt(q.value, label{"treatment", s.Treatment}, label{"quantile", q.quantile})
		}
	}
}

func (s *Soak) little(of func(*Little) float64) *float64 {
	if s.Total == nil || s.Total.Little == nil {
		return nil
	}
	return new(of(s.Total.Little))
}

// drifts are slopes per second, since that is the base unit of time; the metrics' units differ and are labels.
func (e *exposition) drifts(r *Report) {
	perSecond := func(v *float64) *float64 {
		if v == nil {
			return nil
		}
		return new(*v / 3600)
	}
	for _, f := range []struct {
		name, help string
		value      func(*Drift) *float64
	}{
		{"drift_slope", "The trend of a metric over a soak: its change per second, in the unit of the label.", func(d *Drift) *float64 {
			if !d.Known() {
				return nil
			}
			return perSecond(&d.PerHour)
		}},
		{"drift_slope_lower", "The lower bound of a trend, per second.", func(d *Drift) *float64 { return perSecond(d.Lo) }},
		{"drift_slope_upper", "The upper bound of a trend, per second.", func(d *Drift) *float64 { return perSecond(d.Hi) }},
		{"drift_change", "What a trend adds up to over what was measured, in the unit of the label.", func(d *Drift) *float64 {
			if !d.Known() {
				return nil
			}
			return &d.Total
		}},
		{"drift_windows", "How many windows a trend is of.", func(d *Drift) *float64 { return new(float64(d.N)) }},
	} {
		e.begin(f.name, gauge, "", f.help)
		r.eachDrift(func(d *Drift, name labels) { e.opt(f.value(d), name.with(label{"unit", unitWord(d.Unit)})...) })
	}
	var words []string
	for _, v := range EffectVerdicts() {
		words = append(words, string(v))
	}
	e.begin("drift_verdict", stateset, "", "The verdict on a trend.")
	r.eachDrift(func(d *Drift, name labels) { e.states(string(d.Verdict), words, name...) })
}

func (r *Report) eachDrift(do func(d *Drift, name labels)) {
	for i := range r.Soak[:min(len(r.Soak), maxSeries)] {
		s := &r.Soak[i]
		for _, metric := range driftNames(s.Drift) {
			d := s.Drift[metric]
			do(&d, labels{{"treatment", s.Treatment}, {"operation", s.Operation}, {"metric", metric}})
		}
	}
}

// answers are what the calls were told, and both sides' counts of it.
func (e *exposition) answers(r *Report) {
	e.begin("answers", counter, "", "What the answers said, by operation.")
	for i := range r.Operations {
		o := &r.Operations[i]
		for _, a := range slices.Sorted(maps.Keys(o.Answers)) {
			e.add(float64(o.Answers[a]), o.labels().with(label{"answer", a})...)
		}
	}
	for _, f := range []struct {
		name, kind, help string
		value            func(*AnswerCheck) float64
	}{
		{"answers_seen", counter, "Answers that the callers got over all load.", func(c *AnswerCheck) float64 { return float64(c.Client) }},
		{"answers_counted", counter, "Answers that the target counted over all load.", func(c *AnswerCheck) float64 { return c.Target }},
		{"answers_unanswered", counter, "Calls whose answer did not come, and which the target may have counted.", func(c *AnswerCheck) float64 { return float64(c.Unanswered) }},
		{"answers_agree", gauge, "1 if both sides counted the same.", func(c *AnswerCheck) float64 { return boolean(c.Agrees) }},
	} {
		e.begin(f.name, f.kind, "", f.help)
		for i := range r.Answers {
			c := &r.Answers[i]
			e.add(f.value(c), label{"treatment", c.Treatment}, label{"answer", c.Answer})
		}
	}
}
