package analyze

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"tare/internal/budget"
	"tare/internal/hist"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/record"
	"tare/rigs/hosttest"
)

// stalling is a minute of calls to a server that now and then stands still for a while, 100 in each second.
func stalling(rng *rand.Rand, windows int, stalls float64) (*soak, *hist.Histogram) {
	const calls = 100
	t := &record.Trial{}
	all := &hist.Histogram{}
	left := 0.0 // of a stall, in seconds
	for w := range windows {
		h := &hist.Histogram{}
		for range calls {
			v := 0.002 * math.Exp(0.2*rng.NormFloat64())
			if rng.Float64() < stalls/calls {
				left = 0.05 * rng.ExpFloat64()
			}
			v += left
			left = max(0, left-1.0/calls)
			h.Record(int64(v * 1e9))
		}
		all.Merge(h)
		t.Slices = append(t.Slices, record.Slice{
			Start: time.Duration(w) * time.Second, End: time.Duration(w+1) * time.Second,
			Operations: []record.SliceOperation{{
				Operation: "get", Outcomes: []record.SliceOutcome{{Outcome: load.OK, Count: calls}},
				Mean: h.Mean() / 1e9, P50: h.Quantile(.5) / 1e9, P90: h.Quantile(.9) / 1e9, Max: float64(h.Max()) / 1e9,
			}},
		})
	}
	s := newSoak(t)
	s.hists = &timings{
		all:  map[record.Measure]*hist.Histogram{record.Response: all},
		good: all, lateness: &hist.Histogram{},
	}
	return s, all
}

// TestTailIntervals: intervals of p99 hold the true value as often as they say, although slow calls come in bunches,
// and one slow window does not open them to infinity, nor those of p90, which is not above p99.
func TestTailIntervals(t *testing.T) {
	t.Parallel()
	hosttest.SkipIfShort(t)
	const repetitions = 200
	rng := rand.New(rand.NewPCG(7, 7))
	for _, x := range []struct{ stalls, q float64 }{{0.2, .99}, {1, .99}, {3, .99}, {1, .9}} {
		stalls := x.stalls
		_, long := stalling(rng, 20000, stalls)
		truth := long.Quantile(x.q) / 1e9
		held, open := 0, 0
		for range repetitions {
			s, h := stalling(rng, 60, stalls)
			f, _ := s.quantileFinding(&budget.Budget{Metric: metric.Response.Name}, h, x.q)
			if f.verdict != "" {
				t.Fatalf("no interval: %s", f.how)
			}
			if f.Lo <= truth && truth <= f.Hi {
				held++
			}
			if math.IsInf(f.Hi, 1) {
				open++
			}
		}
		t.Logf("%v stalls a window: p%v %.4f held in %d of %d, %d open", stalls, 100*x.q, truth, held, repetitions, open)
		if held < repetitions*88/100 || open > repetitions/5 {
			t.Errorf("%v stalls a window: p%v %.4f held in %d of %d intervals, %d of them open", stalls, 100*x.q, truth,
				held, repetitions, open)
		}
	}
}
