package workload

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// image holds the arguments of execve. Its strings and vectors are on the heap, where they do not move.
type image struct {
	path *byte
	argv [4]*byte // path and up to two arguments
}

func newImage(op, path string) (image, error) {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return image{}, fmt.Errorf("%s: path %q: %w", op, path, err)
	}
	return image{path: p, argv: [4]*byte{p}}, nil
}

// rawForkExec forks a child that executes path, or exits with the errno as its status. The rules above apply.
//
//go:norace
//go:nosplit
//go:noinline
func rawForkExec(path, argv unsafe.Pointer) (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno == 0 && pid == 0 {
		_, _, errno = syscall.RawSyscall(unix.SYS_EXECVE, uintptr(path), uintptr(argv), 0)
		for {
			_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(errno), 0, 0)
		}
	}
	return pid, errno
}

// spawn forks a child that executes a program, and waits for it.
type spawn struct {
	image

	op     string
	status uint32
}

func newSpawn(op, path string) (*spawn, error) {
	i, err := newImage(op, path)
	return &spawn{op: op, image: i}, err
}

func (s *spawn) once() error {
	pid, errno := rawForkExec(unsafe.Pointer(s.path), unsafe.Pointer(&s.argv))
	if errno != 0 {
		return failed(s.op, "clone", errno)
	}
	if err := wait(s.op, pid, &s.status); err != nil {
		return err
	}
	if s.status != 0 {
		return ended(s.op, "execve", s.status)
	}
	return nil
}

// tiny is the routines "exec", "fork" and "spawn". The program of Setup makes the calls, since it has next to no
// memory: what it costs to create or replace a process depends on the memory of that process, and workers differ in
// theirs. The program's start is not timed: it waits at a gate. Its end is.
type tiny struct {
	image

	op      string
	call    string // may fail in the program, besides clone
	gate    duplex
	child   uintptr
	counter [counterDigits + 1]byte // a C string, as is orders
	orders  [4]byte                 // what to do, and the descriptors of the gate
	token   [1]byte
	status  uint32
}

// maxLinks is how many calls one program makes: about 0.1 s, after which the batch can be halted. A longer batch
// includes the start of a program per maxLinks.
const maxLinks = 2000

func newTiny(op, path string, do byte, call string) (*tiny, error) {
	i, err := newImage(op, path)
	if err != nil {
		return nil, err
	}
	t := &tiny{image: i, op: op, call: call}
	t.orders[0] = do
	t.argv[1], t.argv[2] = &t.counter[0], &t.orders[0]
	return t, nil
}

func (t *tiny) begin() error {
	if err := t.start(); err != nil {
		return errors.Join(err, t.end())
	}
	return nil
}

// start starts the program and waits until it is at the gate.
func (t *tiny) start() error {
	t.gate.close()
	if err := t.gate.open(t.op); err != nil {
		return err
	}
	inherited := [2]int{t.gate.there[0], t.gate.back[1]}
	for i, fd := range inherited {
		if fd > math.MaxUint8 {
			return &Failure{Op: t.op, Call: "pipe2", Detail: fmt.Sprintf("descriptor %d: the program takes a byte", fd)}
		}
		t.orders[1+i] = byte(fd)
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return asFailure(t.op, "fcntl", err)
		}
	}
	t.count(0)
	pid, errno := rawForkExec(unsafe.Pointer(t.path), unsafe.Pointer(&t.argv))
	if errno != 0 {
		return failed(t.op, "clone", errno)
	}
	t.child = pid
	closeAll(t.gate.there[:1]) // otherwise the pipes would survive a program that ended
	closeAll(t.gate.back[1:])
	got, _, errno := syscall.RawSyscall(unix.SYS_READ, uintptr(t.gate.back[0]), uintptr(unsafe.Pointer(&t.token)), 1)
	if errno == 0 && got == 0 {
		return t.reap("execve")
	}
	return checkCount(t.op, "read", got, 1, errno)
}

func (t *tiny) companion() (pid int, survives bool) { return int(t.child), false }

func (t *tiny) batch(n int, halt *atomic.Bool) error {
	for n > 0 {
		if halt.Load() {
			return errHalted
		}
		if t.child == 0 {
			if err := t.start(); err != nil {
				return err
			}
		}
		links := min(n, maxLinks)
		if err := t.run(links); err != nil {
			return err
		}
		n -= links
	}
	return nil
}

// run lets the program at the gate make n calls, and waits for its end.
func (t *tiny) run(n int) error {
	t.count(n)
	got, _, errno := syscall.RawSyscall(unix.SYS_WRITE, uintptr(t.gate.there[1]),
		uintptr(unsafe.Pointer(&t.counter)), counterDigits)
	if err := checkCount(t.op, "write", got, counterDigits, errno); err != nil {
		return err
	}
	return t.reap(t.call)
}

// reap waits for the program's end. If it failed, then at that call, unless it says that it was a clone.
func (t *tiny) reap(call string) error {
	if err := wait(t.op, t.child, &t.status); err != nil {
		return err
	}
	t.child = 0
	ws := syscall.WaitStatus(t.status)
	if ws.Exited() && ws.ExitStatus()&refusedClone != 0 {
		return failed(t.op, "clone", unix.Errno(ws.ExitStatus()&^refusedClone))
	}
	if t.status != 0 {
		return ended(t.op, call, t.status)
	}
	return nil
}

// count writes n into the counter.
func (t *tiny) count(n int) {
	for i := counterDigits - 1; i >= 0; i-- {
		t.counter[i] = '0' + byte(n%10)
		n /= 10
	}
}

// end ends a program that still waits at the gate.
func (t *tiny) end() error {
	t.gate.close()
	if t.child == 0 {
		return nil
	}
	_ = unix.Kill(int(t.child), unix.SIGKILL)
	err := wait(t.op, t.child, &t.status)
	t.child = 0
	return err
}

func (t *tiny) close() { _ = t.end() }
