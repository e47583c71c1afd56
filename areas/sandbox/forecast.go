package sandbox

import (
	"slices"

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
