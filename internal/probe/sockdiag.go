package probe

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Sizes and offsets of sock_diag(7) and linux/inet_diag.h; all integers are in host order, except ports.
const (
	diagByFamily   = 20 // SOCK_DIAG_BY_FAMILY
	diagRequestLen = 56 // struct inet_diag_req_v2
	diagMessageLen = 72 // struct inet_diag_msg
	diagPortAt     = 4  // id.idiag_sport
	diagWqueueAt   = 60 // idiag_wqueue: for a listening socket its backlog
	stateListen    = 10 // TCP_LISTEN
)

// listenLimit asks the kernel for the backlog of the sockets that listen on port, summed; /proc/net/tcp does not show
// it.
func listenLimit(port uint16) (float64, bool) {
	var sum float64
	found := false
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		n, ok := dumpListeners(family, port)
		sum += n
		found = found || ok
	}
	return sum, found
}

func dumpListeners(family byte, port uint16) (limit float64, found bool) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, false
	}
	defer func() { _ = unix.Close(fd) }()
	// The kernel answers at once; the bound is for a kernel that does not support the request.
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}); err != nil {
		return 0, false
	}
	if err := unix.Sendto(fd, diagRequest(family), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, false
	}
	buf := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			return 0, false
		}
		sum, some, done := parseDiag(buf[:n], port)
		limit += sum
		found = found || some
		if done {
			return limit, found
		}
	}
}

func diagRequest(family byte) []byte {
	b := make([]byte, unix.SizeofNlMsghdr+diagRequestLen)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], diagByFamily)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	req := b[unix.SizeofNlMsghdr:]
	req[0], req[1] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(req[4:], 1<<stateListen)
	return b
}

// parseDiag sums the backlogs in one datagram of answers. done is true for the last datagram and for one that is
// malformed.
func parseDiag(b []byte, port uint16) (sum float64, found, done bool) {
	for len(b) >= unix.SizeofNlMsghdr {
		size, kind := int(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint16(b[4:])
		if size < unix.SizeofNlMsghdr || size > len(b) || kind == unix.NLMSG_DONE || kind == unix.NLMSG_ERROR {
			return sum, found, true
		}
		msg := b[unix.SizeofNlMsghdr:size]
		if kind == diagByFamily && len(msg) >= diagMessageLen && binary.BigEndian.Uint16(msg[diagPortAt:]) == port {
			sum += float64(binary.NativeEndian.Uint32(msg[diagWqueueAt:]))
			found = true
		}
		b = b[min(len(b), align(size)):]
	}
	return sum, found, false
}

// align rounds up to netlink's alignment of 4.
func align(n int) int { return (n + 3) &^ 3 }
