package sandbox

import (
	"cmp"
	"time"

	"tare/area"
)

// usualRequest is about how long a request to a server takes.
const usualRequest = 100 * time.Microsecond

// Batches is area.Says.Batches. The duration of a command line is unknown in advance: it counts as one batch of the
// usual length.
func (s *Spec) Batches() []area.Batches {
	var out []area.Batches
	for _, o := range s.operations(plan{}) {
		var atLeast time.Duration // of a round on all connections
		if o.whole > 1 {
			atLeast = time.Duration(o.whole) * usualRequest
		}
		if s.On == onLab {
			out = append(out, area.Batches{
				Operation: o.name, Rounds: cmp.Or(s.Rounds, labRounds),
				Span: labSlowdown * max(labRepeat*s.span(labSpan), atLeast),
			})
			continue
		}
		out = append(out, area.Batches{Operation: o.name, Rounds: s.Rounds, Span: max(o.span, atLeast)}.OrUsual())
	}
	return out
}
