package load

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"tare/internal/files"
)

// checkHost raises the soft limit of open files to the hard one and checks that conns connections fit.
func checkHost(conns, sources int) error {
	var l Limits
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err == nil {
		if r.Cur < r.Max {
			raised := unix.Rlimit{Cur: r.Max, Max: r.Max}
			if unix.Setrlimit(unix.RLIMIT_NOFILE, &raised) == nil {
				r = raised
			}
		}
		l.Files = int(min(r.Cur, 1<<30))
	}
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		l.OpenFiles = len(fds)
	}
	if b, err := files.Kernel("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		var lo, hi int
		if n, err := fmt.Sscan(string(b), &lo, &hi); err == nil && n == 2 {
			l.Ports = hi - lo + 1
		}
	}
	return l.Check(conns, sources)
}

// ProcessCPU returns the CPU time of this process so far, in seconds, for differences. 0 where the system does not
// report it.
func ProcessCPU() float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// unacknowledgedOn returns how many bytes sent on c the peer's kernel has not acknowledged.
func unacknowledgedOn(c net.Conn) int { return queuedOn(c, unix.SIOCOUTQ) }

// unreadOn returns how many bytes have arrived on c and were not read.
func unreadOn(c net.Conn) int { return queuedOn(c, unix.SIOCINQ) }

func queuedOn(c net.Conn, what uint) (n int) {
	onSocket(c, func(fd int) {
		if queued, err := unix.IoctlGetInt(fd, what); err == nil {
			n = queued
		}
	})
	return n
}

// abortedOn reports whether the target has reset c: after a FIN alone the client could still send.
func abortedOn(c net.Conn) (aborted bool) {
	onSocket(c, func(fd int) {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		aborted = err == nil && info.State == unix.BPF_TCP_CLOSE
	})
	return aborted
}

func onSocket(c net.Conn, f func(fd int)) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { f(int(fd)) }) // nothing can be said of a closed one
}
