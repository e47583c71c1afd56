package importer

import "testing"

// TestStep: the step of a clock is the longest of which all times are multiples, whatever they are short of.
func TestStep(t *testing.T) {
	for name, c := range map[string]struct {
		format Format
		values []float64
		want   float64
	}{
		"nanoseconds":               {GoBench, []float64{902e-9, 26e-9, 1200e-9}, 1e-9},
		"parts of nanoseconds":      {GoBench, []float64{902e-9, 26.5e-9}, 0},
		"microseconds":              {K6, []float64{0.000011, 0.003}, 1e-6},
		"milliseconds":              {K6, []float64{0.039, 0.04, 1.5}, 1e-3},
		"seconds":                   {K6, []float64{1, 4, 0}, 1},
		"far longer than the step":  {K6, []float64{0.020001, 0.030001, 0.000001}, 0},
		"zeros":                     {K6, []float64{0, 0}, 0},
		"zeros of JMeter":           {JMeter, []float64{0, 0}, 1e-3},
		"whole seconds of JMeter":   {JMeter, []float64{1, 2}, 1e-3},
		"no milliseconds of JMeter": {JMeter, []float64{0.0015}, 0},
	} {
		s := Series{Metric: "service", Repetitions: []Repetition{{Values: c.values}}}
		if s.findStep(c.format); s.Step != c.want {
			t.Errorf("%s: %v, want %v", name, s.Step, c.want)
		}
	}
}
