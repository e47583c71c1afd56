package identity

import (
	"tare/area"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/probe"
)

// Forecast is area.Says.Forecast. Of an endpoint behind a URL only its answers are seen.
func (s *Spec) Forecast(_ area.Asked, t design.Treatment) area.Forecast {
	p, err := s.plan(t)
	if err != nil {
		return area.Forecast{Open: true}
	}
	f := area.Forecast{Operations: []string{p.operation}, Metrics: []string{probe.Distinct.Name}}
	if p.url != nil {
		f.Unread, f.Instead = "the endpoint is behind a url", "leave the budget out, or limit response, error or goodput"
		return f
	}
	f.Metrics = append(f.Metrics, probe.Upstream.Name, probe.CacheHits.Name, probe.CacheMisses.Name,
		probe.CacheRenewed.Name)
	f.Metrics = append(f.Metrics, kit.ProcessMetrics()...)
	return f
}
