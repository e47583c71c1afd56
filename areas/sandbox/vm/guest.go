package vm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/files"
)

// linkDevice is the guest's end of the Link.
const linkDevice = "/dev/ttyS1"

// mounts are the file systems of a guest. Those that a kernel does not have are left out.
var mounts = []struct{ kind, at string }{
	{"devtmpfs", "/dev"},
	{"proc", "/proc"},
	{"sysfs", "/sys"},
	{"securityfs", "/sys/kernel/security"},
	{"bpf", "/sys/fs/bpf"},
	{"cgroup2", "/sys/fs/cgroup"},
	{"selinuxfs", "/sys/fs/selinux"},
}

// timerSlack is how late a thread of a machine with one processor may wake: it then wakes at the clock's tick of 4 ms.
// A Go program has a thread that sleeps for 20 µs at a time. When it is woken within a system call, the kernel charges
// the rest of that call to it (rq_clock_skip_update), and what the call costs appears to be less.
const timerSlack = 20 * time.Millisecond

// InGuest reports whether this machine is one that Boot booted: it is the run's own, and ends with it.
func InGuest() bool {
	line, err := files.Kernel("/proc/cmdline")
	return err == nil && slices.Contains(strings.Fields(string(line)), "rdinit="+GuestSelf)
}

// Init is the first process of a guest: it mounts what programs expect, runs a program whose standard input and output
// are the Link, reaps what it leaves, and switches the machine off. It returns only where it is not the first process.
// console receives what goes wrong.
func Init(ctx context.Context, console io.Writer, program string, args ...string) error {
	if os.Getpid() != 1 {
		return errors.New("this is the first process of a lab VM: tare starts it there by itself")
	}
	if err := runAsInit(ctx, console, program, args); err != nil {
		_, _ = fmt.Fprintln(console, "tare init:", err)
	}
	unix.Sync()
	return unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

func runAsInit(ctx context.Context, console io.Writer, program string, args []string) error {
	for _, m := range mounts {
		_ = os.MkdirAll(m.at, 0o755) // a kernel without this file system has no place for it
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
			_, _ = fmt.Fprintf(console, "tare init: no %s: %v\n", m.kind, err)
		}
	}
	_ = os.Chmod("/tmp", 0o777|os.ModeSticky)
	if err := raiseLimits(); err != nil {
		_, _ = fmt.Fprintln(console, "tare init: limits:", err)
	}
	if err := loopbackUp(); err != nil {
		_, _ = fmt.Fprintln(console, "tare init: loopback:", err)
	}
	line, err := openLink()
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(line, hello); err != nil {
		return err
	}
	if runtime.NumCPU() == 1 {
		runtime.LockOSThread() // whose slack the program inherits
		if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0, 0, 0); err != nil {
			_, _ = fmt.Fprintln(console, "tare init: timer slack:", err)
		}
	}
	c := exec.CommandContext(ctx, program, args...) //nolint:gosec // the program that booted this machine says which
	c.Stdin, c.Stdout, c.Stderr = line, line, console
	c.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "TMPDIR=/tmp"}
	if err := c.Start(); err != nil {
		return err
	}
	return reap(c.Process.Pid)
}

// raiseLimits lets a process open as many files, if it asks for them, as on a distribution; the kernel itself permits
// 4096. It also lifts the limit of a user's threads, which servers with many connections reach.
func raiseLimits() error {
	return errors.Join(
		unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1 << 10, Max: 1 << 19}),
		unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}))
}

// reap waits for all children until the program has ended.
func reap(program int) error {
	for {
		var s unix.WaitStatus
		pid, err := unix.Wait4(-1, &s, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("wait for children: %w", err)
		case pid == program && s.ExitStatus() != 0:
			return fmt.Errorf("the program ended with status %d", s.ExitStatus())
		case pid == program:
			return nil
		}
	}
}

// openLink opens the Link without any translation of bytes.
func openLink() (*os.File, error) {
	f, err := os.OpenFile(linkDevice, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	t, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("set up %s: %w", linkDevice, err)
	}
	t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
	t.Cflag = unix.CS8 | unix.CREAD | unix.CLOCAL | unix.B115200
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, t); err != nil {
		return nil, fmt.Errorf("set up %s: %w", linkDevice, err)
	}
	return f, nil
}

// loopbackUp switches the loopback interface on.
func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s) //nolint:errcheck // nothing to lose
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r)
}

// GuestSelf is the path of this program in a guest.
const GuestSelf = "/bin/tare"

// NewGuest returns the initial file system of a guest: this program, whose path is self, the working folder, what
// programs expect to find, and the named programs.
func NewGuest(ctx context.Context, self string, programs []string) (*Initrd, error) {
	r := NewInitrd()
	path, err := r.Program(ctx, self)
	if err != nil {
		return nil, err
	}
	if err := r.PutSelf(GuestSelf, path); err != nil {
		return nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for _, folder := range []string{dir, "/dev", "/proc", "/sys", "/tmp", "/run", "/root"} {
		r.Folder(folder)
	}
	for at, text := range map[string]string{
		"/etc/passwd":        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
		"/etc/group":         "root:x:0:\nnogroup:x:65534:\n",
		"/etc/hosts":         "127.0.0.1 localhost\n",
		"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	} {
		r.Write(at, []byte(text), 0o644)
	}
	for _, name := range programs {
		if _, err := r.Program(ctx, name); err != nil {
			return nil, fmt.Errorf("the program %q: %w", name, err)
		}
	}
	return r, nil
}
