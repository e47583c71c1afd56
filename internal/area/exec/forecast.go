package exec

import (
	"tare/internal/area"
	"tare/internal/design"
	"tare/internal/metric"
)

var _ area.Forecaster = (*Spec)(nil)

// Forecast implements area.Forecaster. Operations and metrics are unknown until the program is started.
func (s *Spec) Forecast(design.Question, design.Treatment) area.Forecast {
	return area.Forecast{
		Operations: s.Operations, Rounds: s.Rounds,
		Metrics: []string{
			metric.Wall.Name, metric.CPU.Name, metric.Instructions.Name, metric.Allocations.Name,
			metric.Allocated.Name, metric.Hits.Name, metric.CacheHits.Name, metric.Error.Name,
		},
	}
}
