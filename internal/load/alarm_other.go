//go:build !linux || !(amd64 || arm64 || riscv64)

package load

import "time"

// alarm lets one goroutine sleep, and lets others wake it. It uses the runtime's timers, which are up to a millisecond
// late.
type alarm struct{ bell chan struct{} }

func newAlarm() (*alarm, error) { return &alarm{bell: make(chan struct{}, 1)}, nil }

// ring wakes the sleeper, or makes its next sleep short.
func (a *alarm) ring() {
	select {
	case a.bell <- struct{}{}:
	default:
	}
}

// sleep waits for ns nanoseconds, indefinitely if negative, or until ring.
func (a *alarm) sleep(ns int64) {
	if ns < 0 {
		<-a.bell
		return
	}
	t := time.NewTimer(time.Duration(ns))
	defer t.Stop()
	select {
	case <-a.bell:
	case <-t.C:
	}
}

func (a *alarm) close() {}

func sharpen() {}
