package workload

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A child of a raw clone has a copy of the Go runtime's memory and nothing else: one thread, no scheduler, and locks
// that other threads held and will never release. So between clone and exit or execve there may only be system calls:
// no call that could grow the stack (nosplit) or that the race detector instruments (norace), and no write barrier. The
// caller blocks signals, so that none can enter the runtime's handler.

// wait waits for a child and returns its status.
func wait(op string, pid uintptr, status *uint32) error {
	for {
		got, _, errno := syscall.RawSyscall6(unix.SYS_WAIT4, pid, uintptr(unsafe.Pointer(status)), 0, 0, 0, 0)
		switch {
		case errno == unix.EINTR:
		case errno != 0:
			return failed(op, "wait4", errno)
		case got != pid:
			return &Failure{Op: op, Call: "wait4", Detail: fmt.Sprintf("returned process %d instead of %d", got, pid)}
		default:
			return nil
		}
	}
}

// ended returns an error if a child did not exit with status 0.
func ended(op, call string, status uint32) error {
	ws := syscall.WaitStatus(status)
	switch {
	case ws.Exited() && ws.ExitStatus() == 0:
		return nil
	case ws.Signaled():
		return &Failure{Op: op, Call: call, Detail: fmt.Sprintf("the child was killed by signal %d (%v)",
			int(ws.Signal()), ws.Signal())}
	}
	return &Failure{Op: op, Call: call, Errno: syscall.Errno(ws.ExitStatus())}
}
