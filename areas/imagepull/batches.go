package imagepull

import (
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/metric"
)

const (
	// usualSpan is the default length of a batch: before each batch the program collects garbage, which takes some
	// milliseconds and should not be most of the run.
	usualSpan = 20 * time.Millisecond
	// collecting is about the time of that garbage collection.
	collecting = 8 * time.Millisecond
)

func (s *Spec) span() time.Duration {
	if s.Span == 0 {
		return usualSpan
	}
	return s.Span.Std()
}

// Batches is area.Says.Batches. If a single call is longer than the span, the length of a batch is unknown in
// advance.
func (s *Spec) Batches() []area.Batches {
	var out []area.Batches
	for _, name := range s.operations() {
		out = append(out, area.Batches{Operation: name, Rounds: s.Rounds, Span: s.span() + collecting}.OrUsual())
	}
	return out
}

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
