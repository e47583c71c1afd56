package apparmor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"tare/area"
)

// Values of linux/audit.h.
const (
	auditReadLog  = 1 // AUDIT_NLGRP_READLOG, the group that receives all records
	auditGet      = 1000
	auditStatus   = 8 // words of struct audit_status up to backlog
	auditLostWord = 6
	mostRecord    = 64 << 10 // a record has at most 8970 bytes (MAX_AUDIT_MESSAGE_LENGTH)
	receiveBuffer = 16 << 20
	answerWithin  = 2 * time.Second
)

// openAudit returns a socket that receives the kernel's audit records, beside an audit daemon or without one.
func openAudit() (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_AUDIT)
	if err != nil {
		return -1, noAudit(err)
	}
	// Best effort: with the default buffer a flood is lost sooner, which is reported.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer)
	err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1 << (auditReadLog - 1)})
	if err != nil {
		return -1, errors.Join(noAudit(err), unix.Close(fd))
	}
	return fd, nil
}

// noAudit adds the cause and the next step to an error of opening the audit log.
func noAudit(err error) error {
	err = fmt.Errorf("read the kernel's audit records: %w", err)
	switch {
	case errors.Is(err, unix.EPERM):
		return area.WithHint(err, "run tare as root on the host: this needs CAP_AUDIT_READ")
	case errors.Is(err, unix.EPROTONOSUPPORT), errors.Is(err, unix.ECONNREFUSED):
		return area.WithHint(err, "boot without audit=0, with a kernel built with CONFIG_AUDIT")
	}
	return err
}

// receive waits for messages and calls do with the type and body of each. It returns errLost if the kernel dropped some
// because they were not read in time. It is no error if none comes.
func receive(fd int, wait time.Duration, do func(kind uint16, body []byte)) error {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}} //nolint:gosec // a descriptor
	n, err := unix.Poll(fds, int(wait/time.Millisecond))
	if errors.Is(err, unix.EINTR) || (err == nil && n == 0) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("wait for audit records: %w", err)
	}
	buffer := make([]byte, mostRecord)
	n, from, err := unix.Recvfrom(fd, buffer, 0)
	switch {
	case errors.Is(err, unix.ENOBUFS):
		return errLost
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return nil
	case err != nil:
		return fmt.Errorf("receive audit records: %w", err)
	}
	// One message is a datagram. Its length field is of no use: the audit subsystem leaves the header out of it.
	if sender, ok := from.(*unix.SockaddrNetlink); ok && sender.Pid == 0 && n >= unix.NLMSG_HDRLEN { // from the kernel
		do(binary.NativeEndian.Uint16(buffer[4:]), buffer[unix.NLMSG_HDRLEN:n])
	}
	return nil
}

var errLost = errors.New("the kernel dropped audit records")

// lostRecords returns how many audit records the kernel has dropped since it started, because of its limits.
func lostRecords() (uint32, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_AUDIT)
	if err != nil {
		return 0, noAudit(err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing is written
	var request [unix.NLMSG_HDRLEN]byte
	order := binary.NativeEndian
	order.PutUint32(request[0:], uint32(len(request)))
	order.PutUint16(request[4:], auditGet)
	order.PutUint16(request[6:], unix.NLM_F_REQUEST)
	if err := unix.Sendto(fd, request[:], 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, noAudit(err)
	}
	var lost uint32
	var answered bool
	refusal := unix.Errno(0)
	err = receive(fd, answerWithin, func(kind uint16, body []byte) {
		switch {
		case kind == auditGet && len(body) >= 4*auditStatus:
			lost, answered = order.Uint32(body[4*auditLostWord:]), true
		case kind == unix.NLMSG_ERROR && len(body) >= 4:
			refusal = unix.Errno(-int32(order.Uint32(body))) //nolint:gosec // a negative errno
		}
	})
	switch {
	case err != nil:
		return 0, err
	case refusal != 0:
		return 0, noAudit(fmt.Errorf("ask for the number of dropped ones: %w", refusal))
	case !answered:
		return 0, fmt.Errorf("the kernel did not say within %s how many audit records it dropped", answerWithin)
	}
	return lost, nil
}
