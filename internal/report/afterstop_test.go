package report

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"tare/internal/capacity"
)

// TestAfterStop: every way in which a search ends without a number has a next step.
func TestAfterStop(t *testing.T) {
	silent := map[capacity.Stop]map[bool]bool{
		capacity.StopFound: {true: true}, capacity.StopLadder: {true: true, false: true},
	}
	for _, s := range searchStops(t) {
		for _, bounded := range []bool{true, false} {
			got := afterStop(s, bounded)
			if (got == "") != silent[s][bounded] {
				t.Errorf("%s, bounded %t: %q", s, bounded, got)
			}
			if strings.HasSuffix(got, ".") || strings.Contains(got, "\n") {
				t.Errorf("%s: %q is no clause", s, got)
			}
		}
	}
	if got := afterStop("other", true); got != "" {
		t.Errorf("an unknown word: %q", got)
	}
}

// searchStops reads the constants of the type Stop from the source.
func searchStops(t *testing.T) (all []capacity.Stop) {
	t.Helper()
	source, err := os.ReadFile("../capacity/trace.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\tStop\w+ +Stop += "([a-z-]+)"`).FindAllSubmatch(source, -1) {
		all = append(all, capacity.Stop(m[1]))
	}
	if len(all) < 10 {
		t.Fatalf("found %q, want ten ways to end at least", all)
	}
	return all
}
