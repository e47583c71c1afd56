//go:build !linux || !(amd64 || arm64 || riscv64)

package load

import "time"

// alarm lets one goroutine sleep, and others wake it. The runtime's timers are as good as it gets here: up to a millisecond late.
type alarm struct{ bell chan struct{} }

func newAlarm() (*alarm, error) { return &alarm{bell: make(chan struct{}, 1)}, nil }

// ring wakes the sleeper, or makes its next sleep short.
func (a *alarm) ring() {
	select {
	case a.bell <- struct{}{}:
	default:
	}
}

// sleep waits for ns nanoseconds, for ever when negative, or until ring.
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
