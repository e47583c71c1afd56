package drive

import (
	"testing"
	"time"

	"tare/internal/run"
)

// TestLongestSearch: a file that does not bound a search leaves it the time that plans and docs/reference/experiment.md
// name, of which some is left for other settings where the generator is the limit.
func TestLongestSearch(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{0: 3 * time.Minute, time.Minute: time.Minute} {
		if got := longestSearch(&run.Load{MaxTime: given}); got != want || got < leastAttempt {
			t.Errorf("max_time %v: %v, want %v", given, got, want)
		}
	}
}
