package decision

import (
	"tare/area"
	"tare/areas/decision/engine"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/probe"
)

// Forecast is area.Says.Forecast.
func (s *Spec) Forecast(q area.Asked, t design.Treatment) area.Forecast {
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
	f.Metrics = kit.ProcessMetrics()
	switch p.kind {
	case engine.ATT, engine.AuthzForce:
		f.Metrics = append(f.Metrics, probe.HeapUsed.Name, probe.Metaspace.Name)
	case engine.Cedar:
		f.Metrics = append(f.Metrics, probe.HeapUsed.Name, probe.Goroutines.Name)
	case engine.PDPX, engine.OPA, engine.OpenFGA:
	}
	return f
}

// foreseeURL says what can be read of a decision point behind a URL. What a process or an endpoint of metrics really
// gives, only the run will tell.
func (p *plan) foreseeURL(q area.Asked, f *area.Forecast) {
	named := p.spec.Process
	switch {
	case p.spec.Metrics != nil:
		f.Open = true
	case named != nil && named.Cgroup != "" && !q.LongTrials:
		f.Unread = "a control group has no process of its own"
		f.Instead = "name the process in target: process: {port: N}, or leave the budget out"
	case named != nil && named.Cgroup != "":
		f.Metrics, f.Unread, f.Instead = []string{"cpu"}, "a control group has no process of its own",
			"name the process in target: process: {port: N}, or leave the budget out"
	case named != nil, kit.LoopbackHost(p.url.Hostname()):
		f.Metrics = append(kit.ProcessMetrics(), probe.HeapUsed.Name, probe.Metaspace.Name)
	default:
		f.Unread = "the decision point is behind a url and not on this host"
		f.Instead = "add to target: process: {port: N} if it is, or metrics: {url: …}, or leave the budget out"
	}
}
