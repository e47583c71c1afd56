package admission

import (
	"tare/area"
	"tare/internal/design"
	"tare/internal/kit"
)

// Forecast is area.Says.Forecast. On a cluster of the user's it can only read tare's own webhook server, if there
// is one.
func (s *Spec) Forecast(_ area.Asked, t design.Treatment) area.Forecast {
	p, err := s.plan(t)
	if err != nil {
		return area.Forecast{Open: true}
	}
	f := area.Forecast{Operations: []string{defaultOperation}, More: true}
	if !p.foreign || p.kind.NeedsWebhook() {
		f.Metrics = kit.ProcessMetrics()
	}
	if p.foreign {
		f.Unread = "the cluster behind a kubeconfig is not tare's process"
		f.Instead = "leave the budget out, limit response or error, or measure on embedded: {}"
	}
	return f
}
