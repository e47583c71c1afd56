package workload

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The children of a raw clone share nothing of the Go runtime but a copy of its memory: they have one thread, no scheduler, and locks that other threads
// held for ever. So between clone and exit or execve there may be nothing but system calls: no call that could grow the stack (nosplit), none that
// the race detector instruments (norace), no write barrier. Signals are blocked by the caller, so that none can enter the runtime's handler.

// rawFork makes a child that ends at once.
//
//go:norace
//go:nosplit
//go:noinline
func rawFork() (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno == 0 && pid == 0 {
		for {
			_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	return pid, errno
}

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

// ended says how a child ended that should have ended with status 0.
func ended(op, call string, status uint32) error {
	ws := syscall.WaitStatus(status)
	switch {
	case ws.Exited() && ws.ExitStatus() == 0:
		return nil
	case ws.Signaled():
		return &Failure{Op: op, Call: call, Detail: fmt.Sprintf("the child was killed by signal %d (%v)", int(ws.Signal()), ws.Signal())}
	}
	return &Failure{Op: op, Call: call, Errno: syscall.Errno(ws.ExitStatus())}
}

// fork is the routine of that name.
type fork struct {
	plain

	status uint32
	made   int // children in all
}

func (f *fork) batch(n int, halt *atomic.Bool) error {
	for range n {
		if halt.Load() {
			return errHalted
		}
		pid, errno := rawFork()
		if errno != 0 {
			return failed("fork", "clone", errno)
		}
		if err := wait("fork", pid, &f.status); err != nil {
			return err
		}
		if f.status != 0 {
			return ended("fork", "exit_group", f.status)
		}
		f.made++
	}
	return nil
}
