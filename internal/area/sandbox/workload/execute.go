package workload

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// image holds the arguments of execve. Its strings and vectors are on the heap, where they do not move.
type image struct {
	path *byte
	argv [3]*byte // path, and for a chain its counter
}

func newImage(op, path string) (image, error) {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return image{}, fmt.Errorf("%s: path %q: %w", op, path, err)
	}
	return image{path: p, argv: [3]*byte{p}}, nil
}

// rawForkExec forks a child that executes path, or exits with the errno as its status. The rules of rawFork apply.
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

// spawn is the routine "spawn".
type spawn struct {
	plain
	image

	op     string
	status uint32
	made   int // children in total
}

func newSpawn(op, path string) (*spawn, error) {
	i, err := newImage(op, path)
	return &spawn{op: op, image: i}, err
}

func (s *spawn) batch(n int, halt *atomic.Bool) error {
	for range n {
		if halt.Load() {
			return errHalted
		}
		if err := s.once(); err != nil {
			return err
		}
		s.made++
	}
	return nil
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

// chain is the routine "exec": a child executes the program, which executes itself, and so on, n times in total. begin
// forks the child, which then waits at a gate, so that the fork is not timed.
type chain struct {
	image

	gate    duplex
	child   uintptr
	counter [counterDigits + 1]byte // a C string
	token   [1]byte
	status  uint32
}

// maxLinks is how many times one child executes: about 0.1 s, after which the batch can be halted. A longer batch
// includes one fork per maxLinks.
const maxLinks = 2000

func newChain(path string) (*chain, error) {
	i, err := newImage("exec", path)
	if err != nil {
		return nil, err
	}
	c := &chain{image: i}
	c.argv[1] = &c.counter[0]
	return c, nil
}

// rawGated forks a child that reports that it runs, waits for its counter, and executes. The rules of rawFork apply.
//
//go:norace
//go:nosplit
//go:noinline
func rawGated(path, argv, counter unsafe.Pointer, from, to, otherTo uintptr) (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, otherTo, 0, 0) // otherwise the gate would not end with the other process
	_, _, errno = syscall.RawSyscall(unix.SYS_WRITE, to, uintptr(counter), 1)
	if errno == 0 {
		var n uintptr
		n, _, errno = syscall.RawSyscall(unix.SYS_READ, from, uintptr(counter), counterDigits)
		if errno == 0 && n == counterDigits {
			_, _, errno = syscall.RawSyscall(unix.SYS_EXECVE, uintptr(path), uintptr(argv), 0)
		}
	}
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(errno), 0, 0)
	}
}

func (c *chain) begin() error {
	if err := c.gate.open("exec"); err != nil {
		return err
	}
	if err := c.fork(); err != nil {
		return errors.Join(err, c.end())
	}
	return nil
}

// fork starts the child and waits until it is at the gate.
func (c *chain) fork() error {
	pid, errno := rawGated(unsafe.Pointer(c.path), unsafe.Pointer(&c.argv), unsafe.Pointer(&c.counter),
		uintptr(c.gate.there[0]), uintptr(c.gate.back[1]), uintptr(c.gate.there[1]))
	if errno != 0 {
		return failed("exec", "clone", errno)
	}
	c.child = pid
	got, _, errno := syscall.RawSyscall(unix.SYS_READ, uintptr(c.gate.back[0]), uintptr(unsafe.Pointer(&c.token)), 1)
	return checkCount("exec", "read", got, 1, errno)
}

func (c *chain) companion() (pid int, survives bool) { return int(c.child), false }

func (c *chain) batch(n int, halt *atomic.Bool) error {
	for n > 0 {
		if halt.Load() {
			return errHalted
		}
		if c.child == 0 {
			if err := c.fork(); err != nil {
				return err
			}
		}
		links := min(n, maxLinks)
		if err := c.run(links); err != nil {
			return err
		}
		n -= links
	}
	return nil
}

// run lets the child at the gate execute links times, including the first, and waits for its end.
func (c *chain) run(links int) error {
	c.count(links - 1)
	got, _, errno := syscall.RawSyscall(unix.SYS_WRITE, uintptr(c.gate.there[1]),
		uintptr(unsafe.Pointer(&c.counter)), counterDigits)
	if err := checkCount("exec", "write", got, counterDigits, errno); err != nil {
		return err
	}
	if err := wait("exec", c.child, &c.status); err != nil {
		return err
	}
	c.child = 0
	if c.status != 0 {
		return ended("exec", "execve", c.status)
	}
	return nil
}

// count writes n into the counter.
func (c *chain) count(n int) {
	for i := counterDigits - 1; i >= 0; i-- {
		c.counter[i] = '0' + byte(n%10)
		n /= 10
	}
}

// end ends a child that still waits at the gate.
func (c *chain) end() error {
	c.gate.close()
	if c.child == 0 {
		return nil
	}
	_ = unix.Kill(int(c.child), unix.SIGKILL)
	err := wait("exec", c.child, &c.status)
	c.child = 0
	return err
}

func (c *chain) close() { _ = c.end() }
