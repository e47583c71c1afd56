package workload

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The attempts at what enforcers refuse beyond files and system calls.
const (
	TryDatagram = "datagram"
	TryMount    = "mount"
	TryUmount   = "umount"
	TryAlarm    = "alarm"
)

// noFileSystem begins the types that can be tried: no file system has such a name, so nothing is ever mounted.
const noFileSystem = "tare"

// tryPrivileged makes one of these attempts. Without an enforcer each fails as well, or has no effect.
func tryPrivileged(what string, args []string) (syscall.Errno, error) {
	switch what {
	case TryDatagram:
		return tryDatagram(args[0])
	case TryMount:
		if !strings.HasPrefix(args[0], noFileSystem) {
			return 0, fmt.Errorf("mount: want a type that begins with %q, which no kernel has, not %.40q", noFileSystem, args[0])
		}
		return errnoOf(unix.Mount("none", "/proc", args[0], 0, ""))
	case TryUmount:
		// The root folder's mount cannot expire: enforcers are asked first, and then the kernel says EINVAL.
		return errnoOf(unix.Unmount("/", unix.MNT_EXPIRE))
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME_ALARM, unix.TFD_CLOEXEC)
	if err != nil {
		return errnoOf(err)
	}
	return 0, unix.Close(fd)
}

// tryDatagram connects a UDP socket, which sends nothing.
func tryDatagram(to string) (syscall.Errno, error) {
	at, err := netip.ParseAddrPort(to)
	if err != nil || !at.Addr().Is4() {
		return 0, fmt.Errorf("datagram: want an IPv4 address with a port, not %.40q", to)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return errnoOf(err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing to lose
	return errnoOf(unix.Connect(fd, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}))
}
