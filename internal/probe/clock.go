package probe

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A Clocked probe can read the CPU time of its subject's processes alone, at the cost of one system call for each. That
// is cheap enough before and after turns of some milliseconds.
type Clocked interface {
	Probe
	// Clock returns what reads the processes' CPU time in seconds. It knows the processes that live now: ok is false
	// once one of them has ended.
	Clock(ctx context.Context) (read func() (seconds float64, ok bool), err error)
}

var _, _ Clocked = Process{}, (*Attached)(nil)

// Clock implements Clocked.
func (p Process) Clock(ctx context.Context) (func() (float64, bool), error) {
	if p.Root != nil {
		return nil, fmt.Errorf("probe %s: the clocks of another machine's processes cannot be read", p.Name)
	}
	all, err := processes(ctx, rootFS(nil))
	if err != nil {
		return nil, fmt.Errorf("probe %s: %w", p.Name, err)
	}
	if top, ok := all[p.PID]; !ok || (p.StartTicks != 0 && top.start != p.StartTicks) {
		return nil, fmt.Errorf("probe %s: process %d: %w", p.Name, p.PID, ErrGone)
	}
	if self := os.Getpid(); p.PID != self {
		delete(all, self)
	}
	pids := tree(all, p.PID)
	return func() (sum float64, ok bool) {
		for _, pid := range pids {
			spent, ok := processClock(pid)
			if !ok {
				return 0, false
			}
			sum += spent
		}
		return sum, true
	}, nil
}

// Clock implements Clocked.
func (a *Attached) Clock(ctx context.Context) (func() (float64, bool), error) {
	a.mu.Lock()
	p := Process{Name: a.Name, PID: a.at.pid, StartTicks: a.at.start, Root: a.Root}
	a.mu.Unlock()
	return p.Clock(ctx)
}

// ClockOf returns the clock of a probe; it fails if the probe has none.
func ClockOf(ctx context.Context, p Probe) (func() (float64, bool), error) {
	c, ok := p.(Clocked)
	if !ok {
		return nil, fmt.Errorf("probe %s has no clock of its own", p.Subject())
	}
	return c.Clock(ctx)
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
