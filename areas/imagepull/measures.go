package imagepull

import (
	"tare/area"
	"tare/internal/design"
	"tare/internal/metric"
)

// Forecast is area.Says.Forecast: what the pull manager's driver counts of each call.
func (s *Spec) Forecast(area.Asked, design.Treatment) area.Forecast {
	return area.Forecast{
		Operations: s.operations(), Idle: []string{opEmpty, opEmptyTimed},
		Rounds: area.Batches{Rounds: s.Rounds}.OrUsual().Rounds,
		Metrics: []string{
			metric.Wall.Name, metric.CPU.Name, metric.Allocations.Name, metric.Allocated.Name, metric.Hits.Name,
			metric.CacheHits.Name,
		},
	}
}
