package proc

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/clock"
)

// A Throttle replaces a control group on hosts that allow none: it admits work only while this process has CPU time
// left in the period, first come, first served. A server behind it serves and stalls as under the CFS bandwidth
// controller.
//
// All CPU time of the process counts, as in a control group, but the throttle can only delay work that passes through
// it, between two pieces of it. What a piece uses beyond the quota is deducted from the next periods, so the long-run
// rate is exact.
type Throttle struct {
	quota, period time.Duration
	clock         clock.Clock
	cpu           func() (time.Duration, error)
	slots         chan struct{} // as many as CPUs granted; Go queues blocked senders in order of arrival
	start         time.Time

	mu     sync.Mutex
	left   time.Duration // CPU time left in the period; negative: debt
	seen   time.Duration // CPU time at the last reading
	index  int64         // period of the last reading
	stats  ThrottleStats
	marked int64 // last period that was counted as throttled
}

// ThrottleStats are the counters of a control group's cpu.stat.
type ThrottleStats struct {
	Periods   uint64 // periods that have begun since the start
	Throttled uint64 // periods in which work was delayed
	// total delay, summed over the slots (at most ⌈Share⌉ pieces at once; pieces queued behind them are not counted)
	Time time.Duration
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

// Do runs work when it is its turn and CPU time is left. If the context ends first, or the CPU clock fails, it returns
// that error and work has not run.
func (t *Throttle) Do(ctx context.Context, work func()) error {
	select {
	case t.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-t.slots }()
	for {
		wait, err := t.charge()
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

// charge deducts the CPU time used since the last reading and returns how long to wait for more; 0: some is left.
func (t *Throttle) charge() (time.Duration, error) {
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
		// A refill never raises the rest above one quota: unused time is lost, as without cpu.cfs_burst_us. Debt is paid off
		// first.
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

// refill returns n quotas, and does not overflow after a long sleep.
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

// ProcessCPU returns the CPU time, user and system, of all threads of this process (CLOCK_PROCESS_CPUTIME_ID).
func ProcessCPU() (time.Duration, error) { return cpuClock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// ThreadCPU returns the CPU time of the calling thread (CLOCK_THREAD_CPUTIME_ID). Lock the goroutine to its thread
// before comparing two readings.
func ThreadCPU() (time.Duration, error) { return cpuClock(unix.CLOCK_THREAD_CPUTIME_ID) }

// CPUOf returns the CPU time, user and system, of all threads of a living process, in nanoseconds. The clock's id is
// made from the pid as clock_getcpuclockid(3) does: CPUCLOCK_SCHED (2) of the whole process.
func CPUOf(pid int) (time.Duration, error) { return cpuClock(int32(^pid<<3 | 2)) }

func cpuClock(id int32) (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0, fmt.Errorf("read CPU clock: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}
