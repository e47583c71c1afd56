package sandbox

import (
	"cmp"
	"slices"
	"time"

	"tare/area"
	"tare/internal/design"
)

// Forecast is area.Says.Forecast. It cannot know whether the host counts instructions.
func (s *Spec) Forecast(_ area.Asked, t design.Treatment) area.Forecast {
	p, err := s.plan(t)
	if err != nil {
		return area.Forecast{Open: true}
	}
	f := area.Forecast{
		Operations: slices.Clone(s.Workloads), Metrics: []string{metricWall, metricCPU, metricInstructions},
		Rounds: area.Batches{Rounds: s.Rounds}.OrUsual().Rounds,
	}
	if s.On == onLab {
		f.Metrics = []string{metricInstructions}
	}
	if slices.Contains(s.SetUp, kindMemory) {
		f.Metrics = append(f.Metrics, metricMemory)
	}
	for _, o := range s.setUpOperations() {
		f.Operations = append(f.Operations, o.name)
	}
	if p.command != "" {
		f.Operations = append(f.Operations, commandOperation)
	} else {
		for _, c := range s.Commands {
			f.Operations = append(f.Operations, c.Name)
		}
	}
	f.Operations = append(f.Operations, s.programs()...)
	for _, l := range s.loads() {
		f.Operations = append(f.Operations, l.Name())
	}
	return f
}

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
