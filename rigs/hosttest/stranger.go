//go:build linux

package hosttest

import (
	"errors"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// stranger is a user whom no test runs as: Debian's nobody.
const stranger = 65534

// AsStranger calls f as another user, and returns its error: sockets that it makes, itself and not in other goroutines,
// are that user's. It skips t unless root runs it.
func AsStranger(t testing.TB, f func() error) error {
	t.Helper()
	NeedsRoot(t)
	out := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // until it ends, and so does the thread
		if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, stranger, stranger, stranger); e != 0 {
			t.Errorf("become another user: %v", e)
		}
		out <- f()
	}()
	return <-out
}

// NoStrangerListens fails t if another user can listen at a port of loopback, with any of the options that let sockets
// share it. It skips t unless root runs it.
func NoStrangerListens(t testing.TB, port uint16) {
	t.Helper()
	for _, at := range []*unix.SockaddrInet4{{Addr: [4]byte{127, 0, 0, 1}}, {}} { // there, and at all addresses
		for _, options := range [][]int{
			nil, {unix.SO_REUSEADDR}, {unix.SO_REUSEPORT}, {unix.SO_REUSEADDR, unix.SO_REUSEPORT},
		} {
			at.Port = int(port)
			if err := AsStranger(t, func() error { return listen(at, options) }); !errors.Is(err, unix.EADDRINUSE) {
				t.Errorf("another user listens at %v:%d with the options %v: %v", at.Addr, port, options, err)
			}
		}
	}
}

func listen(at unix.Sockaddr, options []int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // it has accepted nothing
	for _, o := range options {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, o, 1); err != nil {
			return err
		}
	}
	return errors.Join(unix.Bind(fd, at), unix.Listen(fd, 1))
}
