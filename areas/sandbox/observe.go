package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"

	"tare/internal/clock"
	"tare/internal/files"
	"tare/internal/proc"
)

// A watcher finds out what a profile would refuse of what is done.
type watcher interface {
	// during does something, and returns what would have been refused to the process meanwhile.
	during(ctx context.Context, process string, do func() error) ([]string, error)
	// missed returns how many reports have been lost, at least.
	missed() int
}

var _ watcher = (*observer)(nil)

// An observer finds out which system calls of processes a filter would refuse. The processes run under a program that
// reports such calls instead (filterCode.observed), and the observer lets each of them go on.
type observer struct {
	program filterCode
	clock   clock.Clock

	mu      sync.Mutex
	calls   map[string][]string // by the name of the process that was started: its calls since the last take
	err     error               // the first failure to observe
	serving sync.WaitGroup
	ended   chan struct{}
}

func newObserver(p filterCode, c clock.Clock) *observer {
	return &observer{program: p, clock: c, calls: map[string][]string{}, ended: make(chan struct{})}
}

// take returns the calls that would have been refused to a process and its descendants since the last take, in
// alphabetical order and without duplicates, such as "clone3 (ENOSYS)".
func (o *observer) take(process string) ([]string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	calls := o.calls[process]
	delete(o.calls, process)
	slices.Sort(calls)
	return calls, o.err
}

// during implements watcher.
func (o *observer) during(_ context.Context, process string, do func() error) ([]string, error) {
	if err := do(); err != nil {
		return nil, err
	}
	return o.take(process)
}

// missed implements watcher: a call waits until it is answered.
func (*observer) missed() int { return 0 }

// close ends the observation. Processes that still run under an observed program get ENOSYS from then on.
func (o *observer) close() {
	close(o.ended)
	o.serving.Wait()
}

// attach observes a process that is about to install its filter.
func (o *observer) attach(process string, pid int) {
	o.serving.Go(func() {
		listener, err := o.listenerOf(pid)
		if err != nil {
			o.fail(fmt.Errorf("observe the calls of process %d: %w", pid, err))
			return
		}
		defer unix.Close(listener) //nolint:errcheck // nothing is written
		o.serve(process, listener)
	})
}

func (o *observer) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = errors.Join(o.err, err)
}

// listenerWithin bounds the time from the start of a process to the installation of its filter.
const listenerWithin = 10 * time.Second

// listenerOf waits until the process has a listener, and returns a copy of it. The process cannot pass it on by itself,
// since the filter may report any call that it would make for that.
func (o *observer) listenerOf(pid int) (int, error) {
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(pidfd) //nolint:errcheck // nothing is written
	for range listenerWithin / time.Millisecond {
		fd, err := findListener(pid)
		if err != nil {
			return 0, err
		}
		if fd >= 0 {
			return unix.PidfdGetfd(pidfd, fd, 0)
		}
		select {
		case <-o.ended:
			return 0, errors.New("it ended before it had a filter")
		default:
		}
		if err := o.clock.Sleep(context.Background(), time.Millisecond); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("it had no filter within %s", listenerWithin)
}

// findListener returns the descriptor of the process that is a seccomp listener, or -1.
func findListener(pid int) (int, error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	all, err := os.ReadDir(dir)
	if err != nil {
		return -1, err
	}
	for _, e := range all {
		to, _ := files.Leads(filepath.Join(dir, e.Name())) // it may be closed by now
		var fd int
		if _, err := fmt.Sscan(e.Name(), &fd); err == nil && strings.HasPrefix(to, "anon_inode:seccomp notify") {
			return fd, nil
		}
	}
	return -1, nil
}

// Sizes of the structs of seccomp_unotify(2).
const (
	notificationSize = 80 // struct seccomp_notif
	responseSize     = 24 // struct seccomp_notif_resp
)

// serve answers notifications until all processes under the program have ended.
func (o *observer) serve(process string, listener int) {
	fds := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
	for {
		select {
		case <-o.ended:
			return
		default:
		}
		const pause = 20 // ms
		n, err := unix.Poll(fds, pause)
		switch {
		case errors.Is(err, unix.EINTR), err == nil && n == 0:
			continue
		case err != nil:
			o.fail(fmt.Errorf("wait for calls: %w", err))
			return
		case fds[0].Revents&unix.POLLIN != 0:
			if err := o.answer(process, listener); err != nil {
				o.fail(err)
				return
			}
		default:
			return // POLLHUP: no process is left
		}
	}
}

// answer notes one call and lets the kernel make it.
func (o *observer) answer(process string, listener int) error {
	var notification [notificationSize]byte
	if err := ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, notification[:]); err != nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINTR) {
			return nil // the caller was killed meanwhile
		}
		return fmt.Errorf("receive a call: %w", err)
	}
	order := binary.NativeEndian
	number, architecture := order.Uint32(notification[16:]), order.Uint32(notification[20:])
	var args [6]uint64
	for i := range args {
		args[i] = order.Uint64(notification[32+8*i:])
	}
	if number == observedCall {
		_, _ = o.take(process) // those that the shim made itself
	} else {
		o.note(process, architecture, number, args)
	}
	var response [responseSize]byte
	copy(response[:8], notification[:8])
	order.PutUint32(response[20:], unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE)
	if err := ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, response[:]); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("let a call go on: %w", err)
	}
	return nil
}

func ioctl(fd int, request uintptr, data []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request,
		uintptr(unsafe.Pointer(&data[0]))) //nolint:gosec // ioctl(2) takes a pointer
	if errno != 0 {
		return errno
	}
	return nil
}

func (o *observer) note(process string, architecture, number uint32, args [6]uint64) {
	action, err := o.program.verdict(architecture, number, args)
	info, known := arch.GetInfo("")
	if err = errors.Join(err, known); err != nil {
		o.fail(err)
		return
	}
	call := info.SyscallNumbers[int(number)]
	switch {
	case architecture != uint32(info.ID):
		call = fmt.Sprintf("system call %d of another architecture", number)
	case call == "":
		call = fmt.Sprintf("system call %d", number)
	}
	call += " (" + actionName(action) + ")"
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Contains(o.calls[process], call) {
		o.calls[process] = append(o.calls[process], call)
	}
}

// begin starts a process through the shim, observed if the launcher has an observer.
func (l launcher) begin(ctx context.Context, spec proc.Spec, c shimConfig) (*proc.Child, error) {
	if l.observer == nil {
		spec.Config = c
		return proc.Start(ctx, spec)
	}
	c.Observe = true
	spec.Config = c
	born := spec.Born
	spec.Born = func(id proc.ID) error {
		if born != nil {
			if err := born(id); err != nil {
				return err
			}
		}
		l.observer.attach(spec.Name, id.PID)
		return nil
	}
	return proc.Start(ctx, spec)
}
