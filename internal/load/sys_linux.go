//go:build amd64 || arm64 || riscv64

package load

import (
	"net/netip"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The hot path makes raw system calls: the runtime's bookkeeping around ordinary ones, and its net poller, cost more
// than the engine's own work. A raw call keeps the scheduler's processor, so a shard releases it where it may block for
// long.

// recv reads what has arrived.
func recv(fd int, b []byte) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])),
		uintptr(len(b)), 0, 0, 0)
	return int(n), e
}

// send writes b, or the part of it that fits. A closed peer is EPIPE, never a signal.
func send(fd int, b []byte) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
		unix.MSG_NOSIGNAL, 0, 0)
	return int(n), e
}

// unacknowledged returns how many bytes sent on fd the peer's kernel has not acknowledged.
func unacknowledged(fd int) int { return queued(fd, unix.SIOCOUTQ) }

// unread returns how many bytes have arrived on fd and were not read.
func unread(fd int) int { return queued(fd, unix.SIOCINQ) }

func queued(fd int, what uintptr) int {
	var n int32
	if _, _, e := syscall.RawSyscall(unix.SYS_IOCTL, uintptr(fd), what, uintptr(unsafe.Pointer(&n))); e != 0 {
		return 0
	}
	return int(n)
}

// stamped reads what has arrived, with the instant at which the kernel received it.
type stamped struct {
	msg unix.Msghdr
	iov unix.Iovec
	ctl [64]byte
}

// recv also returns the receive time in ns of CLOCK_REALTIME, 0 if the kernel gave none. It is that of the last packet
// read.
func (s *stamped) recv(fd int, b []byte) (n int, at int64, e syscall.Errno) {
	s.iov.Base = &b[0]
	s.iov.SetLen(len(b))
	s.msg.Iov, s.msg.Iovlen = &s.iov, 1
	s.msg.Control = &s.ctl[0]
	s.msg.SetControllen(len(s.ctl))
	r, _, e := syscall.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&s.msg)), 0)
	if e != 0 {
		return 0, 0, e
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&s.ctl[0]))
	if s.msg.Controllen >= unix.SizeofCmsghdr+16 && h.Level == unix.SOL_SOCKET && h.Type == unix.SCM_TIMESTAMPNS {
		ts := (*unix.Timespec)(unsafe.Pointer(&s.ctl[unix.SizeofCmsghdr]))
		at = ts.Nano()
	}
	return int(r), at, 0
}

// poller waits for events with nanosecond timeouts.
type poller struct {
	fd     int
	events [512]unix.EpollEvent
	ts     unix.Timespec
	old    bool // before Linux 5.11: no epoll_pwait2
}

// oldSlice is how long a poller on an old kernel sleeps at a time when less than a millisecond is left.
const oldSlice = 50_000

// wait waits up to ns nanoseconds, indefinitely if ns is negative, and returns the number of events. With handoff other
// goroutines can use the processor while it blocks; an indefinite wait needs it.
func (p *poller) wait(ns int64, handoff bool) int {
	if p.old {
		return p.waitOld(ns, handoff)
	}
	if handoff && ns != 0 {
		// Under load there are always events, and the scheduler need not be told.
		if n := p.waitRaw(0); n > 0 || p.old {
			return n
		}
		p.ts = unix.NsecToTimespec(max(ns, 0))
		timeout := &p.ts
		if ns < 0 {
			timeout = nil
		}
		n, _, e := syscall.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events[0])),
			uintptr(len(p.events)), uintptr(unsafe.Pointer(timeout)), 0, 0)
		if e != 0 {
			return 0
		}
		return int(n)
	}
	return p.waitRaw(max(ns, 0))
}

// waitRaw waits without telling the Go scheduler, which keeps the processor reserved for this thread.
func (p *poller) waitRaw(ns int64) int {
	p.ts = unix.NsecToTimespec(ns)
	n, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events[0])),
		uintptr(len(p.events)), uintptr(unsafe.Pointer(&p.ts)), 0, 0)
	if e == unix.ENOSYS {
		p.old = true
	}
	if e != 0 {
		return 0
	}
	return int(n)
}

func (p *poller) waitOld(ns int64, handoff bool) int {
	ms := -1
	if ns >= 0 {
		ms = int(min(ns/1e6, 1<<30))
	}
	if ns > 0 && ms == 0 {
		nap(min(ns, oldSlice), handoff)
	}
	n, _, e := syscall.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events[0])),
		uintptr(len(p.events)), uintptr(ms), 0, 0)
	if e != 0 {
		return 0
	}
	return int(n)
}

// nap sleeps for ns nanoseconds, or until a signal comes.
func nap(ns int64, handoff bool) {
	ts := unix.NsecToTimespec(ns)
	if handoff {
		_, _, _ = syscall.Syscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
		return
	}
	_, _, _ = syscall.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
}

// clearTimerSlack makes this thread's timers fire immediately instead of up to 50 µs late.
func clearTimerSlack() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

// setPriority makes this thread run as soon as it wakes, before all others on its processor, or reverts that. Only a
// thread that mostly sleeps may ask: in an open loop it does, in a closed loop it would starve the target. Without the
// right to it (CAP_SYS_NICE, or RLIMIT_RTPRIO) it gets a short time slice instead (Linux 6.12; ignored before), which
// needs no right: among equals, the thread with the shorter slice is woken sooner.
//
// A process with one processor gets no more than that either. The Go runtime spins while it waits for a garbage
// collector's thread that is scanning this goroutine's stack; when this thread has preempted that one, and there is no
// other processor for it, both stall until the kernel throttles real-time threads: 950 ms, again and again.
func setPriority(on bool) error { return setThreadPriority(0, on) }

// setThreadPriority does so for a thread of this process, 0 for the calling one. Threads of equal priority take turns,
// so one that spins, waiting for another, does not block that one indefinitely.
func setThreadPriority(id int, on bool) error {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	if on && processors() > 1 {
		first := attr
		first.Policy, first.Priority = unix.SCHED_FIFO, 1
		if id != 0 {
			first.Policy = unix.SCHED_RR
		}
		if unix.SchedSetAttr(id, &first, 0) == nil {
			return nil
		}
	}
	if on {
		attr.Runtime = uint64(shortSlice)
	}
	return unix.SchedSetAttr(id, &attr, 0)
}

// realTime reports whether this thread has a real-time priority already.
func realTime() bool {
	attr, err := unix.SchedGetAttr(0, 0)
	return err == nil && (attr.Policy == unix.SCHED_FIFO || attr.Policy == unix.SCHED_RR)
}

// shortSlice is the shortest time slice that the kernel grants.
const shortSlice = 100 * time.Microsecond

// processors returns how many processors this thread may run on.
func processors() int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return 1
	}
	return set.Count()
}

// address converts an address for connect and bind.
func address(a netip.AddrPort) (sa unix.Sockaddr, family int) {
	if ip := a.Addr().Unmap(); ip.Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: ip.As4()}, unix.AF_INET
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}, unix.AF_INET6
}
