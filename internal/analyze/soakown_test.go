package analyze

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tare/internal/hist"
	"tare/internal/load"
)

// TestOwnDelayIsBounded: what the generator's delay has added to a quantile is never more than is said, whether it fell
// on fast or on slow calls, and although calls queue behind those that came late.
func TestOwnDelayIsBounded(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 3))
		const n = 4000
		share, stop := 0.2*rng.Float64(), 0.03*rng.Float64()
		late, without, with := &hist.Histogram{}, make([]float64, n), &hist.Histogram{}
		free := 0.0 // when the only place of the server is free again
		delayed := 0.0
		service := make([]float64, n)
		for i := range service {
			service[i] = 0.0004 * rng.ExpFloat64()
		}
		at := func(i int) float64 { return 0.001 * float64(i) }
		for i := range n {
			start := max(at(i), free)
			free = start + service[i]
			without[i] = free - at(i)
		}
		free = 0
		for i := range n {
			if rng.Float64() < share/20 {
				delayed = max(delayed, at(i)+stop)
			}
			sent := max(at(i), delayed)
			late.Record(int64((sent - at(i)) * 1e9))
			free = max(sent, free) + service[i]
			with.Record(int64((free - at(i)) * 1e9))
		}
		slices.Sort(without)
		o := ownDelayOf(late, n, nil)
		for _, q := range []float64{.5, .9, .99, .999} {
			truth := without[int(math.Ceil(q*n))-1]
			seen, own := with.Quantile(q)/1e9, o.atMost(with, q)
			if seen-own > truth*1.01+1e-6 {
				t.Errorf("seed %d, q %v: %v was measured, of which at most %v own, and without it it is %v", seed, q, seen,
					own, truth)
			}
		}
	}
}

// TestOwnDelayOfAnswers: answers that waited to be read are the generator's delay, too; a generator in time has none.
func TestOwnDelayOfAnswers(t *testing.T) {
	t.Parallel()
	times, late := &hist.Histogram{}, &hist.Histogram{}
	times.RecordN(5e6, 1000)
	late.RecordN(0, 1000)
	if own := ownDelayOf(late, 1000, nil).atMost(times, .99); own > 1e-9 {
		t.Errorf("a generator in time: %v", own)
	}
	unread := &load.Delays{N: 1000, Mean: 1e-4, P99: 1e-3}
	if own := ownDelayOf(late, 1000, unread).atMost(times, .99); math.Abs(own-1e-3) > 1e-5 {
		t.Errorf("answers that waited up to 1 ms: %v", own)
	}
	if own := ownDelayOf(nil, 1000, unread).atMost(times, .99); math.Abs(own-1e-3) > 1e-5 {
		t.Errorf("without lateness: %v", own)
	}
}
