package kit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A HeldPort is a port of loopback that this process keeps bound, without listening there, for servers that listen
// there one after another, by Listen. Between two of them connections are refused, and no other user gets the port: the
// kernel shares one by SO_REUSEPORT among the sockets of one user only.
type HeldPort struct {
	Addr netip.AddrPort
	fd   int
}

// HoldPort returns a port that was free.
func HoldPort() (*HeldPort, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("hold a port: %w", err)
	}
	h := &HeldPort{fd: fd}
	var name unix.Sockaddr
	if err = reusePort(fd); err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil {
		name, err = unix.Getsockname(fd)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("hold a port: %w", err), h.Close())
	}
	if in, ok := name.(*unix.SockaddrInet4); ok {
		h.Addr = netip.AddrPortFrom(netip.AddrFrom4(in.Addr), uint16(in.Port))
	}
	return h, nil
}

// Close gives the port up. It may be called twice, and without a port.
func (h *HeldPort) Close() error {
	if h == nil || h.fd < 0 {
		return nil
	}
	fd := h.fd
	h.fd = -1
	return unix.Close(fd)
}

// Listen listens at a TCP address of this host. If another process of this user holds it, it shares the port; one where
// a server listens is in use.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if !errors.Is(err, syscall.EADDRINUSE) {
		return l, err
	}
	if c, serves := (&net.Dialer{}).DialContext(ctx, "tcp", addr); serves == nil {
		return nil, errors.Join(err, c.Close())
	}
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = reusePort(int(fd)) })
		return errors.Join(err, failed)
	}}
	return lc.Listen(ctx, "tcp", addr)
}

func reusePort(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) }

// IsPortTaken reports whether a child has ended because another process listens at its port: all quote the kernel.
func IsPortTaken(err error) bool {
	return err != nil && strings.Contains(err.Error(), syscall.EADDRINUSE.Error())
}
