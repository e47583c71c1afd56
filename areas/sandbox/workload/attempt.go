package workload

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"tare/internal/files"
)

// Attempts lists what Try can attempt, with its arguments:
//
//	open PATH      open a file for reading
//	write PATH     open a file for writing
//	create PATH    create a file that must not exist, and remove it
//	fifo PATH      make a named pipe that must not exist, and remove it
//	list PATH      open a directory and read it
//	connect PORT   connect a TCP socket to this port of 127.0.0.1
//	bind PORT      bind a TCP socket to this port of 127.0.0.1; 0: any
//	socket FAMILY TYPE   make a socket, by numbers
//	exec PATH      fork and execute a program that ends with status 0
//	datagram ADDRESS:PORT   connect a UDP socket, which sends nothing
//	mount TYPE     mount a file system of a type that no kernel has; it begins with "tare"
//	umount         let the mount of the root folder expire, which the kernel never does
//	alarm          make a timer that could wake the machine, and close it
//	abstract NAME  connect a datagram socket to an abstract Unix socket of another process
//	ownabstract NAME   make an abstract Unix socket and connect to it
//	signal WHO     send no signal to "self" or "parent": only the permission is checked
//	syscall NAME   make a system call with arguments that change nothing: see Syscalls
//	new WHAT ARGUMENT…   execute a program whose first system call makes another attempt: see CanTryNew
func Attempts() []string {
	return []string{
		"open", "write", "create", "fifo", "list", "connect", "bind", "socket", "exec", "syscall", "abstract", "ownabstract",
		"signal", TryDatagram, TryMount, TryUmount, TryAlarm, TryNew,
	}
}

// attempt makes one attempt. The error means that it could not be made.
func attempt(what string, args []string) (syscall.Errno, error) {
	want := 1
	switch what {
	case "socket":
		want = 2
	case TryAlarm, TryUmount:
		want = 0
	}
	if !slices.Contains(Attempts(), what) {
		return 0, fmt.Errorf("unknown attempt %.40q", what)
	}
	if len(args) != want {
		return 0, fmt.Errorf("%s takes %d arguments, not %d", what, want, len(args))
	}
	switch what {
	case "open":
		return tryOpen(args[0], unix.O_RDONLY)
	case "write":
		return tryOpen(args[0], unix.O_WRONLY)
	case "create":
		return tryCreate(args[0])
	case "fifo":
		return tryFifo(args[0])
	case "list":
		_, err := os.ReadDir(args[0])
		return errnoOf(err)
	case "exec":
		return tryExec(args[0])
	case "syscall":
		return trySyscall(args[0])
	case TryDatagram, TryMount, TryUmount, TryAlarm:
		return tryPrivileged(what, args)
	case "abstract", "ownabstract":
		return tryAbstract(args[0], what == "ownabstract")
	case "signal":
		return trySignal(args[0])
	}
	return trySocket(what, args)
}

// errnoOf extracts the errno from an error; it returns an error that has none.
func errnoOf(err error) (syscall.Errno, error) {
	var errno syscall.Errno
	if err == nil || errors.As(err, &errno) {
		return errno, nil
	}
	return 0, err
}

func tryOpen(path string, flags int) (syscall.Errno, error) {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return errnoOf(err)
	}
	return 0, unix.Close(fd)
}

func tryCreate(path string) (syscall.Errno, error) {
	errno, err := errnoOf(os.WriteFile(path, nil, 0o600))
	if _, e := os.Lstat(path); errno != 0 || err != nil || e != nil {
		return errno, err
	}
	return 0, os.Remove(path)
}

// tryFifo creates a named pipe: no workload needs one, so an enforcer can be seen to refuse it while it allows all
// else.
func tryFifo(path string) (syscall.Errno, error) {
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return errnoOf(err)
	}
	return 0, os.Remove(path)
}

func tryExec(path string) (syscall.Errno, error) {
	if !filepath.IsAbs(path) {
		return 0, fmt.Errorf("exec: %q is not absolute", path)
	}
	e, err := newSpawn("exec", path)
	if err != nil {
		return 0, err
	}
	unblock, err := blockSignals()
	if err != nil {
		return 0, err
	}
	defer unblock()
	return errnoOf(e.once())
}

// trySocket makes an attempt with sockets.
func trySocket(what string, args []string) (syscall.Errno, error) {
	var n [2]int
	for i, a := range args {
		v, err := strconv.ParseUint(a, 10, 16)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", what, err)
		}
		n[i] = int(v)
	}
	family, kind := unix.AF_INET, unix.SOCK_STREAM
	if what == "socket" {
		family, kind = n[0], n[1]
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return errnoOf(err)
	}
	defer func() { _ = unix.Close(fd) }()
	at := &unix.SockaddrInet4{Port: n[0], Addr: [4]byte{127, 0, 0, 1}}
	switch what {
	case "connect":
		err = unix.Connect(fd, at)
	case "bind":
		err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1), unix.Bind(fd, at))
	}
	return errnoOf(err)
}

// trySyscall makes the system call of that name.
func trySyscall(name string) (syscall.Errno, error) {
	c, ok := syscalls()[name]
	if !ok {
		return 0, fmt.Errorf("unknown system call %.40q", name)
	}
	_, _, errno := syscall.RawSyscall6(c.number, c.args[0], c.args[1], c.args[2], c.args[3], 0, 0)
	return errno, nil
}

// status reads the thread's own /proc entry: restrictions are per thread. If /proc is not readable, it asks the kernel
// directly.
func status() (Status, error) {
	s := Status{PID: unix.Gettid(), Filters: -1}
	text, err := files.Kernel("/proc/thread-self/status")
	if err != nil || !s.parse(text) {
		return s, s.ask()
	}
	return s, nil
}

// StatusOf returns the kernel's view of another process.
func StatusOf(pid int) (Status, error) {
	s := Status{PID: pid, Filters: -1}
	path := fmt.Sprintf("/proc/%d/status", pid)
	text, err := files.Kernel(path)
	if err != nil {
		return s, err
	}
	if !s.parse(text) {
		return s, fmt.Errorf("%s: the lines Seccomp and NoNewPrivs are missing", path)
	}
	return s, nil
}

// parse reads the lines of a status file, and reports whether those that are needed were there.
func (s *Status) parse(text []byte) bool {
	seen := 0
	for line := range bytes.Lines(text) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		n, err := strconv.Atoi(string(bytes.TrimSpace(value)))
		if err != nil {
			continue
		}
		switch string(key) {
		case "Seccomp":
			s.Seccomp = n
			seen++
		case "Seccomp_filters":
			s.Filters = n
		case "NoNewPrivs":
			s.NoNewPrivs = n == 1
			seen++
		}
	}
	return seen == 2
}

func (s *Status) ask() error {
	privs, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil {
		return fmt.Errorf("ask for no_new_privs: %w", err)
	}
	mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	if err != nil {
		return fmt.Errorf("ask for seccomp's mode: %w", err)
	}
	s.NoNewPrivs, s.Seccomp = privs == 1, mode
	return nil
}

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
