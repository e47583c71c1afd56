package sandbox

import (
	"time"

	"tare/internal/area"
)

var _ area.Batcher = (*Spec)(nil)

// What the runner takes where an operation does not say.
const (
	usualRounds = 16
	usualSpan   = 5 * time.Millisecond
)

// Batches implements area.Batcher. How long a command line takes is not known beforehand: it is counted as one batch of the usual length.
func (s *Spec) Batches() []area.Batches {
	var out []area.Batches
	for _, o := range s.offered(plan{}) {
		b := area.Batches{Operation: o.name, Rounds: s.Rounds, Span: o.span}
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
