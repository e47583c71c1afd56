package proc

import (
	"context"
	"math"
	"sync"
	"time"

	"tare/internal/clock"
)

// A Throttle stands in for a control group where there is none: it lets work through only while this process has CPU time left in the
// period, first come first served, so that a server behind it serves and stalls as one under the CFS bandwidth controller does.
//
// All CPU time of the process counts, as in a control group, but only work that passes through the throttle can be held back, and
// only between two pieces of it. What a piece uses beyond the quota is taken from the next periods, so the long-run rate is exact.
type Throttle struct {
	quota, period time.Duration
	clock         clock.Clock
	cpu           func() (time.Duration, error)
	slots         chan struct{} // as many as CPUs granted; Go queues blocked senders in order of arrival
	start         time.Time

	mu     sync.Mutex
	left   time.Duration // CPU time left in the period; negative: debt
	seen   time.Duration // CPU time at the last look
	index  int64         // period of the last look
	stats  ThrottleStats
	marked int64 // last period that was counted as throttled
}

// ThrottleStats counts as cpu.stat of a control group does.
type ThrottleStats struct {
	Periods   uint64        // periods that have begun since the start
	Throttled uint64        // periods in which work was held back
	Time      time.Duration // for how long, summed over the slots (at most ⌈Share⌉ pieces at once; those that queue behind are not counted)
}

// NewThrottle starts the first period now.
func NewThrottle(q Quota, c clock.Clock) (*Throttle, error) {
	return newThrottle(q, c, ProcessCPU)
}

func newThrottle(q Quota, c clock.Clock, cpu func() (time.Duration, error)) (*Throttle, error) {
	q, err := q.withDefaults()
	if err != nil {
		return nil, err
	}
	used, err := cpu()
	if err != nil {
		return nil, err
	}
	return &Throttle{
		quota: q.perPeriod(), period: q.Period, clock: c, cpu: cpu,
		slots: make(chan struct{}, max(1, int(math.Ceil(q.Share)))),
		start: c.Now(), left: q.perPeriod(), seen: used, marked: -1,
	}, nil
}

// Do runs work when it is its turn and there is CPU time left. The error is the context's, if that ended first, or the CPU clock's; work has then
// not run.
func (t *Throttle) Do(ctx context.Context, work func()) error {
	select {
	case t.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-t.slots }()
	for {
		wait, err := t.look()
		if err != nil {
			return err
		}
		if wait <= 0 {
			break
		}
		if err := t.clock.Sleep(ctx, wait); err != nil {
			return err
		}
		t.count(wait)
	}
	work()
	return nil
}

// look charges what has been used since the last look and says how long to wait for CPU time; 0: there is some.
func (t *Throttle) look() (time.Duration, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	used, err := t.cpu()
	if err != nil {
		return 0, err
	}
	t.left -= used - t.seen
	t.seen = used
	since := t.clock.Now().Sub(t.start)
	index := int64(since / t.period)
	if n := index - t.index; n > 0 {
		// A refill never lifts the rest above one quota: unused time is lost, as without cpu.cfs_burst_us. Debt is paid off first.
		t.left = min(t.quota, t.left+refill(n, t.quota))
		t.index = index
	}
	if t.left > 0 {
		return 0, nil
	}
	if t.marked != index {
		t.marked = index
		t.stats.Throttled++
	}
	return time.Duration(index+1)*t.period - since, nil
}

// refill is n quotas, without overflow after a long sleep.
func refill(n int64, quota time.Duration) time.Duration {
	if n > math.MaxInt64/4/int64(quota) {
		return math.MaxInt64 / 4
	}
	return time.Duration(n) * quota
}

func (t *Throttle) count(waited time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.Time += waited
}

// Stats returns the counters since the start.
func (t *Throttle) Stats() ThrottleStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stats
	s.Periods = uint64(t.clock.Now().Sub(t.start)/t.period) + 1
	return s
}
