package admission

import (
	"tare/internal/area"
	"tare/internal/design"
)

var _ area.Forecaster = (*Spec)(nil)

// Forecast implements area.Forecaster. On a cluster of the user's it can only read tare's own webhook server, if there
// is one.
func (s *Spec) Forecast(_ design.Question, t design.Treatment) area.Forecast {
	p, err := s.plan(t)
	if err != nil {
		return area.Forecast{Open: true}
	}
	f := area.Forecast{Operations: []string{defaultOperation}}
	if !p.foreign || p.kind.NeedsWebhook() {
		f.Metrics = area.ProcessMetrics()
	}
	if p.foreign {
		f.Unread = "the cluster behind a kubeconfig is not tare's process"
		f.Instead = "leave the budget out, limit response or error, or measure on embedded: {}"
	}
	return f
}
