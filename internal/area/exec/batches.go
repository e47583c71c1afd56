package exec

import (
	"time"

	"tare/internal/area"
)

var _ area.Batcher = (*Spec)(nil)

// What the runner takes where neither the file nor the program says.
const (
	usualRounds = 16
	usualSpan   = 5 * time.Millisecond
)

// Batches implements area.Batcher, without starting the program: an operation whose rounds and span are the program's own is counted as a usual
// one, and where all are to be timed, however many there are, as one that has no name.
func (s *Spec) Batches() []area.Batches {
	names := s.Operations
	if len(names) == 0 {
		names = []string{""}
	}
	out := make([]area.Batches, 0, len(names))
	for _, name := range names {
		b := area.Batches{Operation: name, Rounds: s.Rounds, Span: time.Duration(s.Span)}
		if b.Rounds == 0 {
			b.Rounds = usualRounds
		}
		if b.Span == 0 {
			b.Span = usualSpan
		}
		out = append(out, b)
	}
	return out
}
