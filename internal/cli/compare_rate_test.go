package cli

import (
	"testing"
	"time"
)

// TestFastServersAreCalledMoreOften, within bounds; where nothing was timed the usual rate stays.
func TestFastServersAreCalledMoreOften(t *testing.T) {
	for _, c := range []struct {
		arms int
		took time.Duration
		want float64
	}{
		{3, 0, 600},
		{3, 20 * time.Microsecond, 2000},
		{3, 300 * time.Microsecond, 1000},
		{3, 500 * time.Microsecond, 600},
		{3, time.Second, 600},
		{6, 300 * time.Microsecond, 1200},
		{20, 100 * time.Microsecond, 4000},
	} {
		if got := rateInTurns(c.arms, c.took); got != c.want {
			t.Errorf("%d arms of %v are called at %v/s, want %v/s", c.arms, c.took, got, c.want)
		}
	}
}
