package bpflsm

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// try makes one access on this thread.
func try(what string, args []string) error {
	switch what {
	case "getpid":
		return nil
	case "read":
		return tryOpen(args[0], unix.O_RDONLY)
	case "write":
		return tryOpen(args[0], unix.O_WRONLY)
	case "append":
		return tryOpen(args[0], unix.O_RDWR|unix.O_APPEND)
	case "exec":
		p, err := os.StartProcess(args[0], args, &os.ProcAttr{Env: []string{roleEnv + "=" + roleNothing}})
		if err == nil {
			_, err = p.Wait()
		}
		return err
	case "execute": // fails after the decision, since the file is no program
		return tryExecute(args[0])
	case "connect":
		return tryConnect(netip.MustParseAddrPort(args[0]))
	case "chroot": // takes CAP_SYS_CHROOT
		return unix.Chroot("/")
	case "mount": // source, type, folder
		return tryMount(args[0], args[1], args[2])
	case "umount":
		return unix.Unmount(args[0], 0)
	case "seize":
		return trySeize(args[0])
	case "traced":
		return tryTraced()
	case "remount": // source, file: fails after the decision, since the file is no mount point
		return unix.Mount(args[0], args[1], "tmpfs", unix.MS_REMOUNT, "")
	case "expire": // folder: marks a mount for unmounting, and takes the mark away
		err := unix.Unmount(args[0], unix.MNT_EXPIRE)
		return errors.Join(err, unix.Access(args[0], unix.F_OK))
	case "readlink":
		_, err := unix.Readlink(args[0], make([]byte, unix.PathMax))
		return err
	}
	return fmt.Errorf("there is no %s", what)
}

func tryOpen(path string, flags int) error {
	fd, err := unix.Open(path, flags, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func tryExecute(path string) error {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	nothing := new([1]*byte)
	_, _, errno := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(p)), uintptr(unsafe.Pointer(nothing)),
		uintptr(unsafe.Pointer(nothing)))
	return errno
}

// tryConnect connects a datagram socket, which sends nothing.
func tryConnect(to netip.AddrPort) error {
	family, addr := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Port: int(to.Port())})
	if to.Addr().Is4() {
		addr.(*unix.SockaddrInet4).Addr = to.Addr().As4()
	} else {
		family, addr = unix.AF_INET6, &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Connect(fd, addr), unix.Close(fd))
}

func tryMount(source, fsType, dir string) error {
	if err := unix.Mount(source, dir, fsType, 0, ""); err != nil {
		return err
	}
	return unix.Unmount(dir, 0)
}

func trySeize(pid string) error {
	n, err := strconv.Atoi(pid)
	if err != nil {
		return err
	}
	if err := unix.PtraceSeize(n); err != nil {
		return err
	}
	if err := unix.PtraceInterrupt(n); err != nil {
		return err
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(n, &status, unix.WALL, nil); err != nil {
		return err
	}
	return unix.PtraceDetach(n)
}

func tryTraced() error {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{roleEnv + "=" + roleTraced}
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return syscall.Errno(exit.ExitCode())
	}
	return err
}

// countRefusals returns how many of some tries were refused. Its arguments are their number and the try.
func countRefusals(args []string) (refused int) {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		panic(err)
	}
	for range n {
		if errors.Is(try(args[1], args[2:]), unix.EPERM) {
			refused++
		}
	}
	return refused
}
