package capacity

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestNext: every way in which a search ends without a number has a next step.
func TestNext(t *testing.T) {
	silent := map[Stop]map[bool]bool{StopFound: {true: true}, StopLadder: {true: true, false: true}}
	for _, s := range stops(t) {
		for _, bounded := range []bool{true, false} {
			got := s.Next(bounded)
			if (got == "") != silent[s][bounded] {
				t.Errorf("%s, bounded %t: %q", s, bounded, got)
			}
			if strings.HasSuffix(got, ".") || strings.Contains(got, "\n") {
				t.Errorf("%s: %q is no clause", s, got)
			}
		}
	}
	if got := Stop("other").Next(true); got != "" {
		t.Errorf("an unknown word: %q", got)
	}
}

// stops reads the constants of the type Stop from the source.
func stops(t *testing.T) (all []Stop) {
	t.Helper()
	source, err := os.ReadFile("trace.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\tStop\w+ +Stop += "([a-z-]+)"`).FindAllSubmatch(source, -1) {
		all = append(all, Stop(m[1]))
	}
	if len(all) < 10 {
		t.Fatalf("found %q, want ten ways to end at least", all)
	}
	return all
}
