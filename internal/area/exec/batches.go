package exec

import (
	"time"

	"tare/internal/area"
)

var _ area.Batcher = (*Spec)(nil)

// Batches implements area.Batcher, without starting the program: an operation whose rounds and span are the program's own is counted as a usual
// one, and where all are to be timed, however many there are, as one that has no name.
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
