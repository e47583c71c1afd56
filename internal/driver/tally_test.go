package driver

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/internal/load"
	"tare/internal/metric"
)

func TestTally(t *testing.T) {
	var y tally
	one := func(v float64) []load.BatchSample { return []load.BatchSample{{Metric: metric.Wall.Name, Value: v}} }
	for _, b := range []struct {
		calls int
		value float64
	}{{1, 100}, {10, 50}, {100, 3}, {25, 70}, {100, 1}, {100, 2}} {
		y.add(b.calls, 1, one(b.value))
	}
	if d := cmp.Diff([]float64{3, 1, 2}, y.values["wall"]); d != "" || y.calls != 100 || len(y.passed) != 3 {
		t.Errorf("got %+v, values (-want +got):\n%s", y, d)
	}
	if got := y.stopwatch("x", []float64{0.1, 0.01, 0.3}); !strings.Contains(got,
		"asking alone takes 100 ms, which is 10% of a batch of 100 calls") {
		t.Error(got)
	}
}
