//go:build unix

package hostile

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// bound is a socket that has an address and does not listen.
func bound() (fd int, addr netip.AddrPort, err error) {
	if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); err != nil {
		return 0, addr, err
	}
	unix.CloseOnExec(fd)
	sa, err := func() (unix.Sockaddr, error) {
		if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			return nil, err
		}
		return unix.Getsockname(fd)
	}()
	if err != nil {
		_ = unix.Close(fd)
		return 0, addr, err
	}
	port := 0
	if in, ok := sa.(*unix.SockaddrInet4); ok {
		port = in.Port
	}
	return fd, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)), nil
}

// begun is a Running on a socket that is not accepted from before it is mended.
func begun(ctx context.Context) (r *Running, fd int, err error) {
	fd, addr, err := bound()
	if err != nil {
		return nil, 0, err
	}
	f := os.NewFile(uintptr(fd), "hostile")
	r = newRunning(ctx, good)
	r.Addr = addr
	r.release = func() { _ = f.Close() }
	r.listen = func() (net.Listener, error) {
		if err := unix.Listen(fd, 128); err != nil {
			return nil, err
		}
		return net.FileListener(f)
	}
	return r, fd, nil
}

// refusing has an address at which nobody listens.
func refusing(ctx context.Context) (*Running, error) {
	r, _, err := begun(ctx)
	return r, err
}

// crowded listens with the shortest queue, and accepts nobody: the first connections are made and never served, more
// cannot be made.
func crowded(ctx context.Context) (*Running, error) {
	r, fd, err := begun(ctx)
	if err != nil {
		return nil, err
	}
	if err := unix.Listen(fd, 1); err != nil {
		r.Stop()
		return nil, fmt.Errorf("listen: %w", err)
	}
	return r, nil
}

// narrow accepts connections with the smallest receive buffer there is, and reads nothing.
func narrow(ctx context.Context) (*Running, error) {
	r, err := serve(ctx, deaf)
	if err != nil {
		return nil, err
	}
	l, ok := r.listener.(*net.TCPListener)
	if !ok {
		return r, nil
	}
	raw, err := l.SyscallConn()
	if err != nil {
		r.Stop()
		return nil, err
	}
	// Connections inherit the buffer of the socket that listens, and with it their window.
	err = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 1) })
	return r, err
}
