package report

import (
	"slices"
	"strings"
	"testing"
)

// TestWhatABucketDoesNotSay: a quantile in the first bucket is no more than below its bound, however it is
// interpolated.
func TestWhatABucketDoesNotSay(t *testing.T) {
	s := Served{N: 100, P50: new(0.025), P90: new(0.045), P99: new(0.075), First: new(0.05), Last: new(60.)}
	if got, want := s.percentiles(), []string{"<50ms", "<50ms", "75ms", "100"}; !slices.Equal(got, want) {
		t.Errorf("percentiles %q, want %q", got, want)
	}
	coarse := SLO{Formula: Official, Verdict: Pass, Value: new(0.0495), Lo: new(0.), Hi: new(0.05), Limit: 1}
	if got := coarse.Word(); !strings.HasSuffix(got, "<50 ms") {
		t.Errorf("a value within the first bucket reads %q", got)
	}
	clock := SLO{Formula: ClientClock, Verdict: Pass, Value: new(0.0495), Lo: new(0.), Hi: new(0.05), Limit: 1}
	if got := clock.Word(); !strings.HasSuffix(got, "49.5 ms") {
		t.Errorf("a value of our own clock reads %q", got)
	}
}

// TestPublishedFormNeedsPods: without pods that start there is no table of their start.
func TestPublishedFormNeedsPods(t *testing.T) {
	r := &Report{
		Treatments: []Treatment{{ID: "a"}},
		SLO: []SLO{{
			Treatment: "a", Name: "mutating", Subject: "POST pods", Formula: ClusterLoader2, Verdict: Pass,
			Limit: 1,
		}},
	}
	if n := r.published().rows(); n != 0 {
		t.Errorf("%d rows without a pod", n)
	}
	r.Phases = []Phase{{Treatment: "a", Operation: "pod-startup", Phase: startup, N: 1, P50: 1, P90: 1, P99: 1, Max: 1}}
	if n := r.published().rows(); n != 1 {
		t.Errorf("%d rows with pods", n)
	}
}
