package workload

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// inet is an IPv4 socket address as the kernel reads it: port and address in network byte order.
type inet struct {
	family uint16
	port   [2]byte
	addr   [4]byte
	_      [8]byte
}

func loopback(port int) inet {
	return inet{family: unix.AF_INET, port: [2]byte{byte(port >> 8), byte(port)}, addr: [4]byte{127, 0, 0, 1}}
}

// connect is the routine "connect", over TCP.
type connect struct {
	plain

	listener int
	to       inet
	made     int
}

func newConnect(port int) (*connect, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, asFailure("connect", "socket", err)
	}
	c := &connect{listener: fd}
	call := "setsockopt"
	// Accepted sockets inherit it: closing them sends a reset, which leaves no TIME_WAIT on either side.
	err = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	if err == nil && port > 0 {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}
	if err == nil {
		call, err = "bind", unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil {
		call, err = "listen", unix.Listen(fd, 8)
	}
	var name unix.Sockaddr
	if err == nil {
		call = "getsockname"
		name, err = unix.Getsockname(fd)
	}
	if err != nil {
		c.close()
		return nil, asFailure("connect", call, err)
	}
	if in, ok := name.(*unix.SockaddrInet4); ok {
		c.to = loopback(in.Port)
	}
	return c, nil
}

func (c *connect) batch(n int, halt *atomic.Bool) error {
	for range n {
		if halt.Load() {
			return errHalted
		}
		fd, _, errno := syscall.RawSyscall(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if errno != 0 {
			return failed("connect", "socket", errno)
		}
		if err := c.once(fd); err != nil {
			_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
			return err
		}
		if _, _, errno := syscall.RawSyscall(unix.SYS_CLOSE, fd, 0, 0); errno != 0 {
			return failed("connect", "close", errno)
		}
		c.made++
	}
	return nil
}

// once connects fd and closes the connection from the other side. On loopback the connection is established when
// connect returns, so accept does not wait.
func (c *connect) once(fd uintptr) error {
	if _, _, errno := syscall.RawSyscall(unix.SYS_CONNECT, fd, uintptr(unsafe.Pointer(&c.to)),
		unsafe.Sizeof(c.to)); errno != 0 {
		return failed("connect", "connect", errno)
	}
	peer, _, errno := syscall.RawSyscall6(unix.SYS_ACCEPT4, uintptr(c.listener), 0, 0, unix.SOCK_CLOEXEC, 0, 0)
	if errno != 0 {
		return failed("connect", "accept4", errno)
	}
	if _, _, errno := syscall.RawSyscall(unix.SYS_CLOSE, peer, 0, 0); errno != 0 {
		return failed("connect", "close", errno)
	}
	return nil
}

func (c *connect) close() { _ = unix.Close(c.listener) }

// udpConnect is the routine "udpconnect".
type udpConnect struct {
	plain

	fd int
	to inet
}

func newUDPConnect() (*udpConnect, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, asFailure("udpconnect", "socket", err)
	}
	return &udpConnect{fd: fd, to: loopback(9)}, nil // 9 is discard; nothing is sent
}

func (c *udpConnect) batch(n int, halt *atomic.Bool) error {
	for range n {
		if halt.Load() {
			return errHalted
		}
		if _, _, errno := syscall.RawSyscall(unix.SYS_CONNECT, uintptr(c.fd), uintptr(unsafe.Pointer(&c.to)),
			unsafe.Sizeof(c.to)); errno != 0 {
			return failed("udpconnect", "connect", errno)
		}
	}
	return nil
}

func (c *udpConnect) close() { _ = unix.Close(c.fd) }
