package workload

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// tryAbstract connects a datagram socket to an abstract Unix socket, which it makes before if that is to be its own.
func tryAbstract(name string, own bool) (syscall.Errno, error) {
	at := &unix.SockaddrUnix{Name: "@" + name}
	if own {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return errnoOf(err)
		}
		defer func() { _ = unix.Close(fd) }()
		if err := unix.Bind(fd, at); err != nil {
			return errnoOf(err)
		}
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return errnoOf(err)
	}
	defer func() { _ = unix.Close(fd) }()
	return errnoOf(unix.Connect(fd, at))
}

// trySignal checks the permission to send a signal.
func trySignal(who string) (syscall.Errno, error) {
	switch who {
	case "self":
		return errnoOf(unix.Tgkill(os.Getpid(), unix.Gettid(), 0))
	case "parent":
		return errnoOf(unix.Kill(os.Getppid(), 0))
	}
	return 0, fmt.Errorf("signal: there is no %.40q to send it to", who)
}
