package imagepull

import (
	"time"

	"tare/area"
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
