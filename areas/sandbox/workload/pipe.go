package workload

import (
	"errors"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pipe is the routine "pipe".
type pipe struct {
	plain

	fds [2]int
	buf [512]byte
}

func newPipe() (*pipe, error) {
	p := &pipe{}
	if err := unix.Pipe2(p.fds[:], unix.O_CLOEXEC); err != nil {
		return nil, asFailure("pipe", "pipe2", err)
	}
	return p, nil
}

func (p *pipe) batch(n int, halt *atomic.Bool) error {
	for range n {
		if halt.Load() {
			return errHalted
		}
		if err := pass("pipe", p.fds[1], p.fds[0], p.buf[:]); err != nil {
			return err
		}
	}
	return nil
}

// pass writes buf to one descriptor and reads as much from the other.
func pass(op string, to, from int, buf []byte) error {
	got, _, errno := syscall.RawSyscall(unix.SYS_WRITE, uintptr(to), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
	if err := checkCount(op, "write", got, len(buf), errno); err != nil {
		return err
	}
	got, _, errno = syscall.RawSyscall(unix.SYS_READ, uintptr(from), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
	return checkCount(op, "read", got, len(buf), errno)
}

func (p *pipe) close() { closeAll(p.fds[:]) }

func closeAll(fds []int) {
	for i, fd := range fds {
		if fd > 0 {
			_ = unix.Close(fd)
		}
		fds[i] = 0
	}
}

// duplex is a pair of pipes between this process and a child, each with its read end first.
type duplex struct{ there, back [2]int }

func (d *duplex) open(op string) error {
	for _, fds := range [...][]int{d.there[:], d.back[:]} {
		if err := unix.Pipe2(fds, unix.O_CLOEXEC); err != nil {
			d.close()
			return asFailure(op, "pipe2", err)
		}
	}
	return nil
}

func (d *duplex) close() {
	closeAll(d.there[:])
	closeAll(d.back[:])
}

// pingpong is the routine "switch": a token goes to a forked partner and back. The partner lives for one batch; its
// start and end are not timed. Both are bound to one CPU, so each pass is a context switch and not a wake-up of another
// CPU.
type pingpong struct {
	pipes   duplex
	partner uintptr
	status  uint32
	token   [4]byte
}

// rawEcho forks a child that returns tokens until its pipe ends. The rules of rawForkExec apply.
//
//go:norace
//go:nosplit
//go:noinline
func rawEcho(from, to, otherFrom, otherTo uintptr, token unsafe.Pointer) (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	// The other process's ends are closed; otherwise the pipe would never end.
	_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, otherFrom, 0, 0)
	_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, otherTo, 0, 0)
	n := uintptr(4)
	for errno == 0 && n == 4 {
		n, _, errno = syscall.RawSyscall(unix.SYS_READ, from, uintptr(token), 4)
		if errno == 0 && n == 4 {
			n, _, errno = syscall.RawSyscall(unix.SYS_WRITE, to, uintptr(token), 4)
		}
	}
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(errno), 0, 0)
	}
}

func (p *pingpong) begin() error {
	if err := p.pipes.open("switch"); err != nil {
		return err
	}
	there, back := &p.pipes.there, &p.pipes.back
	pid, errno := rawEcho(uintptr(there[0]), uintptr(back[1]), uintptr(there[1]), uintptr(back[0]),
		unsafe.Pointer(&p.token))
	if errno != 0 {
		p.pipes.close()
		return failed("switch", "clone", errno)
	}
	p.partner = pid
	closeAll(there[:1]) // otherwise the pipes would survive a partner that ended
	closeAll(back[1:])
	if err := pass("switch", there[1], back[0], p.token[:]); err != nil { // the partner runs
		return errors.Join(err, p.end())
	}
	return nil
}

func (p *pingpong) companion() (pid int, survives bool) { return int(p.partner), true }

func (p *pingpong) batch(n int, halt *atomic.Bool) error {
	for range n {
		if halt.Load() {
			return errHalted
		}
		if err := pass("switch", p.pipes.there[1], p.pipes.back[0], p.token[:]); err != nil {
			return err
		}
	}
	return nil
}

// end closes the pipes, so that the partner ends, and waits for it.
func (p *pingpong) end() error {
	p.pipes.close()
	if p.partner == 0 {
		return nil
	}
	err := wait("switch", p.partner, &p.status)
	p.partner = 0
	if err == nil {
		err = ended("switch", "exit_group", p.status)
	}
	return err
}

func (p *pingpong) close() { _ = p.end() }
