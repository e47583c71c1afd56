package exec

import (
	"tare/area"
	"tare/internal/design"
	"tare/internal/metric"
)

// Forecast is area.Says.Forecast. Operations and metrics are unknown until the program is started.
func (s *Spec) Forecast(area.Asked, design.Treatment) area.Forecast {
	return area.Forecast{
		Operations: s.Operations, Rounds: s.Rounds,
		Metrics: []string{
			metric.Wall.Name, metric.CPU.Name, metric.Instructions.Name, metric.Allocations.Name,
			metric.Allocated.Name, metric.Hits.Name, metric.CacheHits.Name, metric.Error.Name,
		},
	}
}
