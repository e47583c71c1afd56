//go:build linux

package hosttest

import (
	"runtime"
	"syscall"
	"testing"
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
