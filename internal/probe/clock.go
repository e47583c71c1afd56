package probe

import (
	"context"
	"slices"

	"golang.org/x/sys/unix"
)

// Clocks are the CPU clocks of the processes that probes have read, by subject. Reading one takes a system call, which
// is cheap enough before and after a turn of some milliseconds, where reading a probe is not.
type Clocks struct{ pids map[string][]int }

type clocksKey struct{}

// WithClocks returns a context in which readings of probes add the processes of this machine to the clocks, whatever
// area a probe belongs to. One goroutine may use it.
func WithClocks(ctx context.Context) (context.Context, *Clocks) {
	c := &Clocks{pids: map[string][]int{}}
	return context.WithValue(ctx, clocksKey{}, c), c
}

// addClocks adds the processes of a subject to the clocks of ctx, if it has any.
func addClocks(ctx context.Context, subject string, pids []int) {
	if c, ok := ctx.Value(clocksKey{}).(*Clocks); ok {
		for _, pid := range pids {
			if !slices.Contains(c.pids[subject], pid) {
				c.pids[subject] = append(c.pids[subject], pid)
			}
		}
	}
}

// Has reports whether a subject has processes with clocks.
func (c *Clocks) Has(subject string) bool { return len(c.pids[subject]) > 0 }

// Each reads the CPU time of every subject's processes, in seconds; ok is false once one of them has ended.
func (c *Clocks) Each(take func(subject string, seconds float64, ok bool)) {
	for subject, pids := range c.pids {
		sum, all := 0.0, true
		for _, pid := range pids {
			spent, ok := processClock(pid)
			sum, all = sum+spent, all && ok
		}
		take(subject, sum, all)
	}
}

// processClock reads the CPU clock of a process, in seconds. The clock's id is made from the pid as
// clock_getcpuclockid(3) does: CPUCLOCK_SCHED (2) of the whole process.
func processClock(pid int) (seconds float64, ok bool) {
	var ts unix.Timespec
	if unix.ClockGettime(int32(^pid<<3|2), &ts) != nil {
		return 0, false
	}
	return float64(ts.Nano()) / 1e9, true
}
