package proc

import (
	"errors"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A group is the process group of a child that leads it. Its methods may be called from any goroutine.
type group struct {
	mu     sync.Mutex
	leader int
	fd     int            // pidfd of the leader; -1: none
	early  syscall.Signal // sent before the leader was known
	reaped bool           // the number of the leader may be that of another process, and of another group
	closed bool
}

// follow begins with a leader that has just been started, and takes its pidfd.
func (g *group) follow(leader, fd int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.leader, g.fd = leader, fd
	if g.early != 0 {
		_ = g.send(g.early) // whoever sent it waits for the end, not for this
	}
}

// signal sends sig to all processes of the group; to an empty group it sends nothing. The leader's pidfd means its
// group and no other, even when the leader has ended. Before Linux 6.9 it can only be named by its number, which is its
// own until the leader has been reaped.
func (g *group) signal(sig syscall.Signal) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.leader == 0:
		g.early = sig
		return nil
	case g.closed:
		return nil
	}
	return g.send(sig)
}

func (g *group) send(sig syscall.Signal) error {
	err := error(unix.EINVAL)
	if g.fd >= 0 {
		err = unix.PidfdSendSignal(g.fd, sig, nil, unix.PIDFD_SIGNAL_PROCESS_GROUP)
	}
	if errors.Is(err, unix.EINVAL) { // the kernel does not know the flag
		if g.reaped {
			return nil
		}
		err = syscall.Kill(-g.leader, sig)
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// awaitLeader returns when the leader has ended. It has not been reaped then, and is about to be.
func (g *group) awaitLeader() {
	awaitExit(g.leader)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reaped = true
}

// close ends the use of the group: no further signal reaches it.
func (g *group) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	if g.fd >= 0 {
		_ = unix.Close(g.fd) // nothing to lose
		g.fd = -1
	}
}

// awaitExit returns when the process has ended and before it is reaped: its pid still belongs to it.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return // nil, or an error that the wait that reaps will return too
		}
	}
}
