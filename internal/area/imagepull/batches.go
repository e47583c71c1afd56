package imagepull

import (
	"time"

	"tare/internal/area"
)

var _ area.Batcher = (*Spec)(nil)

const (
	// usualSpan is how long a batch lasts where the file does not say: before each the program collects its garbage, which takes some milliseconds and is
	// not to be most of the run.
	usualSpan = 20 * time.Millisecond
	// collecting is about what that takes.
	collecting = 8 * time.Millisecond
)

func (s *Spec) span() time.Duration {
	if s.Span == 0 {
		return usualSpan
	}
	return s.Span.Std()
}

// Batches implements area.Batcher. What a batch lasts whose single call is longer than its span is not known beforehand.
func (s *Spec) Batches() []area.Batches {
	var out []area.Batches
	for _, name := range s.operations() {
		out = append(out, area.Batches{Operation: name, Rounds: s.Rounds, Span: s.span() + collecting}.OrUsual())
	}
	return out
}
