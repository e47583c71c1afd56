package config

import (
	"testing"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/unit"
)

// readSpec is a target of which a run can read these metrics.
type readSpec struct {
	fakeSpec
	metrics []string
}

func (s *readSpec) Under(area.Treatment) (area.Spec, error) { return s, nil }

func (s *readSpec) Says() area.Says {
	return area.Says{Forecast: func(area.Asked, area.Treatment) area.Forecast {
		return area.Forecast{Operations: []string{"token"}, Metrics: s.metrics}
	}}
}

// TestDefaultDurationDecides: where no CPU time decides, trials are as long as the median response needs to decide, if
// that is a minute at most.
func TestDefaultDurationDecides(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		metrics     []string
		rate        float64
		given, want time.Duration
	}{
		"CPU time is read":       {[]string{"cpu", "response"}, 50, 0, 10 * time.Second},
		"no CPU time":            {[]string{"response"}, 50, 0, 21 * time.Second},
		"no CPU time, fast":      {[]string{"response"}, 500, 0, 10 * time.Second},
		"no CPU time, slow":      {[]string{"response"}, 10, 0, 10 * time.Second},
		"the file says how long": {[]string{"response"}, 50, 5 * time.Second, 5 * time.Second},
	} {
		e := &Experiment{
			Name: "x", Area: "turnpike", Question: design.Compare, Target: &readSpec{metrics: c.metrics},
			Baseline: Levels{"mode": "off"}, Alternatives: []Levels{{"mode": "on"}},
			Load: Load{Rate: unit.Rate(c.rate), Turns: TurnsOff, Duration: unit.Duration(c.given)},
		}
		if got := time.Duration(e.WithDefaults().Load.Duration); got != c.want {
			t.Errorf("%s: trials of %v, want %v", name, got, c.want)
		}
	}
}
