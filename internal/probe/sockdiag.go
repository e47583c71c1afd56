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
	diagRqueueAt   = 56 // idiag_rqueue: for a listening socket the length of its accept queue
	diagWqueueAt   = 60 // idiag_wqueue: for a listening socket its backlog
	stateListen    = 10 // TCP_LISTEN
)

// acceptQueues are those of the sockets that listen on a port, summed.
type acceptQueues struct {
	depth, limit float64
	found        bool
}

func (q *acceptQueues) add(more acceptQueues) {
	q.depth, q.limit, q.found = q.depth+more.depth, q.limit+more.limit, q.found || more.found
}

// askListeners asks the kernel for the accept queues of the sockets that listen on port, in tare's own network
// namespace. /proc/net/tcp does not show their limit, and takes some 10 ms of the kernel's time, since it goes through
// all connections, and through the table for those that there may be.
func askListeners(port uint16) (sum acceptQueues) {
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		sum.add(dumpListeners(family, port))
	}
	return sum
}

func dumpListeners(family byte, port uint16) (sum acceptQueues) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return acceptQueues{}
	}
	defer func() { _ = unix.Close(fd) }()
	// The kernel answers at once; the bound is for a kernel that does not support the request.
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}); err != nil {
		return acceptQueues{}
	}
	if err := unix.Sendto(fd, diagRequest(family), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return acceptQueues{}
	}
	buf := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			return acceptQueues{}
		}
		some, done := parseDiag(buf[:n], port)
		if sum.add(some); done {
			return sum
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

// parseDiag sums the accept queues in one datagram of answers. done is true for the last datagram and for one that is
// malformed.
func parseDiag(b []byte, port uint16) (sum acceptQueues, done bool) {
	for len(b) >= unix.SizeofNlMsghdr {
		size, kind := int(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint16(b[4:])
		if size < unix.SizeofNlMsghdr || size > len(b) || kind == unix.NLMSG_DONE || kind == unix.NLMSG_ERROR {
			return sum, true
		}
		msg := b[unix.SizeofNlMsghdr:size]
		if kind == diagByFamily && len(msg) >= diagMessageLen && binary.BigEndian.Uint16(msg[diagPortAt:]) == port {
			sum.add(acceptQueues{
				float64(binary.NativeEndian.Uint32(msg[diagRqueueAt:])), float64(binary.NativeEndian.Uint32(msg[diagWqueueAt:])),
				true,
			})
		}
		b = b[min(len(b), align(size)):]
	}
	return sum, false
}

// align rounds up to netlink's alignment of 4.
func align(n int) int { return (n + 3) &^ 3 }
