package load

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestDelays: a mean is exact, and a 99th percentile is not below the truth, and at most an eighth above it.
func TestDelays(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var d delays
	var before, after delayCounts
	for range 1000 {
		d.add(int64(1e9)) // before the stretch
	}
	d.addTo(&before)
	var all []int64
	sum := 0.0
	for range 20000 {
		v := int64(math.Exp(rng.NormFloat64()*2 + 10))
		d.add(v)
		all = append(all, v)
		sum += float64(v)
	}
	d.addTo(&after)
	got := after.since(&before)
	slices.Sort(all)
	truth := float64(all[len(all)*99/100-1]) / 1e9
	if got.N != 20000 || math.Abs(got.Mean-sum/20000/1e9) > 1e-12 {
		t.Errorf("%+v, want a mean of %g", got, sum/20000/1e9)
	}
	if got.P99 < truth || got.P99 > truth*9/8*1.01 {
		t.Errorf("p99 %g, want %g", got.P99, truth)
	}
	if after.since(&after) != nil {
		t.Error("nothing was added, and there are delays")
	}
}

// TestDelayBuckets: every delay is below the bound of its bucket, and not below that of the one before.
func TestDelayBuckets(t *testing.T) {
	for v := uint64(0); v < 1<<40; v = v*9/8 + 1 {
		i := delayBucket(v)
		if hi := delayBound(i); float64(v) >= hi {
			t.Errorf("%d is in bucket %d, which ends at %g", v, i, hi)
		}
		if i > 0 && float64(v) < delayBound(i-1) {
			t.Errorf("%d is in bucket %d, and the one before ends at %g", v, i, delayBound(i-1))
		}
	}
}

// TestEffortOfLoops: each loop must keep up by itself, and deliberate spinning is no work.
func TestEffortOfLoops(t *testing.T) {
	before := Meter{
		at: 0, loops: true, ids: []int{7, 8}, spun: []int64{0, 5e8},
		threads: map[int]threadTime{7: {}, 8: {ran: 1e9, queued: 1e9}},
	}
	after := Meter{
		at: 1e9, cpu: 1.2, loops: true, ids: []int{7, 8}, spun: []int64{7e8, 5e8},
		threads: map[int]threadTime{7: {ran: 9e8, queued: 1e7}, 8: {ran: 1.3e9, queued: 1.1e9}},
		host:    &Processors{All: 3, Busy: 2}, // not known before
	}
	e := after.Since(&before)
	if math.Abs(e.Busy-0.3) > 1e-9 || e.Queued == nil || math.Abs(*e.Queued-0.1) > 1e-9 || e.Loops != 2 || e.Host != nil ||
		e.Unread != nil {
		t.Errorf("%+v", e)
	}
	if after.Since(&after) != nil {
		t.Error("no time has passed, and there was an effort")
	}
}

// TestEffortOfThreads: any thread of the process may carry calls, also one that is new.
func TestEffortOfThreads(t *testing.T) {
	before := Meter{threads: map[int]threadTime{7: {queued: 1e9}}, usable: 2}
	after := Meter{at: 2e9, cpu: 3, threads: map[int]threadTime{7: {queued: 2e9}, 9: {queued: 5e8}}, usable: 2}
	e := after.Since(&before)
	if math.Abs(e.Busy-0.75) > 1e-9 || math.Abs(*e.Queued-0.75) > 1e-9 || e.Loops != 0 {
		t.Errorf("%+v", e)
	}
}
