package exec

import (
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/driver"
	"tare/internal/metric"
)

// Batches is area.Says.Batches without starting the program. Operations whose rounds and span the program chooses
// count with the usual ones. If all operations are to be timed, their number is unknown, and they count as one without
// a name.
func (s *Spec) Batches() []area.Batches {
	names := s.Operations
	if len(names) == 0 {
		names = []string{""}
	}
	out := make([]area.Batches, 0, len(names))
	for _, name := range names {
		out = append(out, area.Batches{Operation: name, Rounds: s.Rounds, Span: time.Duration(s.Span)}.OrUsual())
	}
	return out
}

// described returns the batches that the program describes, as the file changes them.
func (s *Spec) described(d driver.Description) []area.Batches {
	var out []area.Batches
	for _, o := range d.Timed(s.Operations) {
		b := area.Batches{
			Operation: o.Name, Rounds: o.Rounds, NoCPU: o.NoCPU,
			Span: time.Duration(o.SpanMS * float64(time.Millisecond)),
		}
		if s.Rounds > 0 {
			b.Rounds = s.Rounds
		}
		if s.Span > 0 {
			b.Span = time.Duration(s.Span)
		}
		out = append(out, b.OrUsual())
	}
	return out
}

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
