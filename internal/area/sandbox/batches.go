package sandbox

import (
	"tare/internal/area"
)

var _ area.Batcher = (*Spec)(nil)

// Batches implements area.Batcher. How long a command line takes is not known beforehand: it is counted as one batch of the usual length.
func (s *Spec) Batches() []area.Batches {
	var out []area.Batches
	for _, o := range s.offered(plan{}) {
		out = append(out, area.Batches{Operation: o.name, Rounds: s.Rounds, Span: o.span}.OrUsual())
	}
	return out
}
