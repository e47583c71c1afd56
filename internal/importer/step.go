package importer

import (
	"math"

	"tare/internal/metric"
)

// leastStep is the least part of a time that a clock's step must be to be kept.
const leastStep = 1e-4

// findStep looks for the step of the clock of which all times of a series are multiples. JMeter's is known.
func (s *Series) findStep(f Format) {
	steps := []float64{1, 1e-3, 1e-6, 1e-9}
	if f == JMeter {
		steps = []float64{1e-3}
	}
	if m, ok := metric.Find(s.Metric); !ok || m.Unit != metric.Seconds && m.Unit != metric.CPUSeconds {
		return
	}
	for _, step := range steps {
		if s.isIn(step, f == JMeter) {
			s.Step = step
			return
		}
	}
}

// isIn reports whether all times are multiples of a step, and half of them at least are not very much longer than it.
// Nothing but zeros shows no step, unless it is known.
func (s *Series) isIn(step float64, known bool) bool {
	const slack = 1e-6 // of a step: what is read was divided
	long, all, seen := 0, 0, known
	for i := range s.Repetitions {
		for _, v := range s.Repetitions[i].Values {
			n := v / step
			if math.Abs(n-math.Round(n)) > slack+1e-12*n || v != 0 && n < 0.5 {
				return false
			}
			if all++; n > 1/leastStep {
				long++
			}
			seen = seen || v != 0
		}
	}
	return seen && 2*long < all
}
