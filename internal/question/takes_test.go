package question

import (
	"strings"
	"testing"
	"time"

	"tare/internal/unit"
)

// TestTakes: a plan says how long all treatments take, and speaks of conditions and treatments only if there are any.
func TestTakes(t *testing.T) {
	t.Parallel()
	alone := guardTakes(Forecast{Treatments: 1})
	if !strings.HasPrefix(alone, "about 55s to 5m30s: a search for the capacity and 9 points of 5s to 30s; ") {
		t.Error(alone)
	}
	two := guardTakes(Forecast{
		Treatments: 2, Rates: []float64{1000}, Trespass: 0.5, Conditions: 1,
		Points: []time.Duration{5 * time.Second},
	})
	if !strings.HasPrefix(two, "about 40s to 43s: 1 point and 1 condition of about 15s, for each of 2 treatments; ") {
		t.Error(two)
	}
	// 4 s at 10/s with half of them forbidden are too few for a pass: more points follow.
	few := guardTakes(Forecast{
		Treatments: 1, Rates: []float64{10}, Trespass: 0.5, Duration: unit.Duration(4 * time.Second),
	})
	if !strings.HasPrefix(few, "about 30s to 5m26s: 1 point; ") ||
		!strings.HasSuffix(few, "; the preparation comes before") {
		t.Error(few)
	}
	if got := searchTakes(Forecast{Treatments: 1}); strings.Contains(got, "treatment") {
		t.Error(got)
	}
}
