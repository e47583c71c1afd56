package exec

import (
	"time"

	"tare/internal/area"
)

var _ area.Batcher = (*Spec)(nil)

// Batches implements area.Batcher without starting the program. Operations whose rounds and span the program chooses
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
