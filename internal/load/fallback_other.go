//go:build !amd64 && !arm64 && !riscv64

package load

import (
	"errors"
	"runtime"
	"time"
)

// alarm lets one goroutine sleep, and lets others wake it. It uses the runtime's timers, which are up to a millisecond
// late.
type alarm struct{ waker chan struct{} }

func newAlarm() (*alarm, error) { return &alarm{waker: make(chan struct{}, 1)}, nil }

// wake wakes the sleeper, or makes its next sleep short.
func (a *alarm) wake() {
	select {
	case a.waker <- struct{}{}:
	default:
	}
}

// sleep waits for ns nanoseconds, indefinitely if negative, or until wake.
func (a *alarm) sleep(ns int64) {
	if ns < 0 {
		<-a.waker
		return
	}
	t := time.NewTimer(time.Duration(ns))
	defer t.Stop()
	select {
	case <-a.waker:
	case <-t.C:
	}
}

func (a *alarm) close() {}

func clearTimerSlack() {}

// priority is not available here.
type priority struct{}

func (*priority) update(int64, bool) {}

func (*priority) release() {}

func usableProcessors() int { return min(runtime.GOMAXPROCS(0), runtime.NumCPU()) }

func (e *std) meter(m *Meter) { m.sched, m.bounds = goScheduler() }

const fastMissing = "it needs Linux on amd64, arm64 or riscv64"

func newFast(Config, streamClock) (carrier, error) { return nil, errors.New(fastMissing) }
