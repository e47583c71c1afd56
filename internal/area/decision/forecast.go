package decision

import (
	"tare/internal/area"
	"tare/internal/area/decision/engine"
	"tare/internal/design"
	"tare/internal/probe"
	"tare/internal/question"
)

var _ area.Forecaster = (*Spec)(nil)

// Forecast implements area.Forecaster.
func (s *Spec) Forecast(q design.Question, t design.Treatment) area.Forecast {
	p, err := s.plan(t)
	if err != nil {
		return area.Forecast{Open: true}
	}
	f := area.Forecast{}
	for _, x := range p.questions {
		f.Operations = append(f.Operations, x.Name)
	}
	if p.url != nil {
		p.foreseeURL(q, &f)
		return f
	}
	f.Metrics = area.ProcessMetrics()
	switch p.kind {
	case engine.ATT, engine.AuthzForce:
		f.Metrics = append(f.Metrics, probe.HeapUsed.Name, probe.Metaspace.Name)
	case engine.Cedar:
		f.Metrics = append(f.Metrics, probe.HeapUsed.Name, probe.Goroutines.Name)
	case engine.PDPX, engine.OPA:
	}
	return f
}

// foreseeURL says what can be read of a decision point behind a URL. What a process or an endpoint of metrics really
// gives, only the run will tell.
func (p *plan) foreseeURL(q design.Question, f *area.Forecast) {
	named := p.spec.Process
	switch {
	case p.spec.Metrics != nil:
		f.Open = true
	case named != nil && named.Cgroup != "" && !question.Of(q).Drive.LongTrials:
		f.Unread = "a control group has no process of its own"
		f.Instead = "name the process in target: process: {port: N}, or leave the budget out"
	case named != nil && named.Cgroup != "":
		f.Metrics, f.Unread, f.Instead = []string{"cpu"}, "a control group has no process of its own",
			"name the process in target: process: {port: N}, or leave the budget out"
	case named != nil, area.LoopbackHost(p.url.Hostname()):
		f.Metrics = append(area.ProcessMetrics(), probe.HeapUsed.Name, probe.Metaspace.Name)
	default:
		f.Unread = "the decision point is behind a url and not on this host"
		f.Instead = "add to target: process: {port: N} if it is, or metrics: {url: …}, or leave the budget out"
	}
}
