package cli

import (
	"testing"
	"time"
)

// TestFastServersAreCalledMoreOften, within bounds; where nothing was timed the usual rate stays.
func TestFastServersAreCalledMoreOften(t *testing.T) {
	for _, c := range []struct {
		arms int
		took []time.Duration
		want float64
	}{
		{3, []time.Duration{0}, 600},
		{3, []time.Duration{20 * time.Microsecond}, 2000},
		{3, []time.Duration{300 * time.Microsecond}, 1000},
		{3, []time.Duration{500 * time.Microsecond}, 600},
		{3, []time.Duration{time.Second}, 600},
		{6, []time.Duration{300 * time.Microsecond}, 1200},
		{20, []time.Duration{100 * time.Microsecond}, 4000},
		{3, []time.Duration{20 * time.Microsecond, 300 * time.Microsecond}, 1000}, // the slowest counts
		{3, []time.Duration{20 * time.Microsecond, 0}, 600},                       // one was not timed
	} {
		if got := rateInTurns(c.arms, c.took); got != c.want {
			t.Errorf("%d arms of %v are called at %v/s, want %v/s", c.arms, c.took, got, c.want)
		}
	}
}
