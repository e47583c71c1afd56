//go:build amd64 || arm64 || riscv64

package load

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// alarm lets one goroutine, on its own thread, sleep with microsecond precision, and lets others wake it.
type alarm struct {
	poller poller
	waker  int
}

func newAlarm() (*alarm, error) {
	a := &alarm{}
	var err error
	if a.poller.fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("create epoll: %w", err)
	}
	if a.waker, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		_ = unix.Close(a.poller.fd)
		return nil, fmt.Errorf("create eventfd: %w", err)
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: wakerSlot}
	if err = unix.EpollCtl(a.poller.fd, unix.EPOLL_CTL_ADD, a.waker, &ev); err != nil {
		a.close()
		return nil, fmt.Errorf("register eventfd: %w", err)
	}
	return a, nil
}

// wakerSlot marks the eventfd among the events.
const wakerSlot = -1

// wake wakes the sleeper, or makes its next sleep short.
func (a *alarm) wake() { _, _ = unix.Write(a.waker, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// sleep waits for ns nanoseconds, indefinitely if negative, or until wake.
func (a *alarm) sleep(ns int64) {
	if a.poller.wait(ns, true) > 0 {
		a.drain()
	}
}

// drain resets the eventfd after a wake.
func (a *alarm) drain() {
	var b [8]byte
	_, _ = unix.Read(a.waker, b[:])
}

func (a *alarm) close() {
	_ = unix.Close(a.waker)
	_ = unix.Close(a.poller.fd)
}
