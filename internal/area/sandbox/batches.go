package sandbox

import (
	"cmp"

	"tare/internal/area"
)

var _ area.Batcher = (*Spec)(nil)

// Batches implements area.Batcher. The duration of a command line is unknown in advance: it counts as one batch of the
// usual length.
func (s *Spec) Batches() []area.Batches {
	var out []area.Batches
	for _, o := range s.operations(plan{}) {
		if s.On == onLab {
			out = append(out, area.Batches{
				Operation: o.name, Rounds: cmp.Or(s.Rounds, labRounds), Span: labSlowdown * labRepeat * s.span(labSpan),
			})
			continue
		}
		out = append(out, area.Batches{Operation: o.name, Rounds: s.Rounds, Span: o.span}.OrUsual())
	}
	return out
}
