package bpflsm

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tare/rigs/hosttest"
)

// The parts that this test binary plays as its own child, which the variable roleEnv names.
const (
	roleEnv     = "BPFLSM_TEST_ROLE"
	enrollEnv   = "BPFLSM_TEST_ENROLL"
	roleWorker  = "worker"  // try what standard input asks for
	roleShim    = "shim"    // enrol, then become a worker
	roleTraced  = "traced"  // ask to be traced, exit with the errno
	roleHolder  = "holder"  // hold the programs attached until killed
	roleLoader  = "loader"  // try to load the programs
	roleNothing = "nothing" // exit
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "":
		hosttest.Main(m)
	case roleShim:
		fmt.Println(shim())
	case roleWorker:
		work()
	case roleTraced:
		_, _, errno := unix.RawSyscall(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0)
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(errno), 0, 0)
	case roleLoader:
		_, err := Load(Options{})
		fmt.Printf("%v: %s\n", err, hintOf(err))
	case roleHolder:
		p, err := Load(Options{})
		if err == nil {
			err = p.Attach()
		}
		fmt.Println(err)
		time.Sleep(time.Hour)
	}
}

// shim enrols itself and executes the worker. It returns only errors.
func shim() error {
	var id, slot uint32
	if _, err := fmt.Sscanf(os.Getenv(enrollEnv), "%d %d", &id, &slot); err != nil {
		return err
	}
	if err := Enroll(id, slot); err != nil {
		return err
	}
	return syscall.Exec("/proc/self/exe", os.Args, []string{roleEnv + "=" + roleWorker})
}

// work answers each line, a try in JSON, with the number of the error, or with the number that "time" or "repeat" asks
// for.
func work() {
	runtime.LockOSThread()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var args []string
		if err := json.Unmarshal(in.Bytes(), &args); err != nil {
			panic(err)
		}
		switch args[0] {
		case "time":
			fmt.Println(timeTries(args[1:]))
			continue
		case "repeat":
			fmt.Println(countRefusals(args[1:]))
			continue
		}
		err := try(args[0], args[1:])
		var errno syscall.Errno
		if err != nil && !errors.As(err, &errno) {
			panic(err)
		}
		fmt.Println(int(errno))
	}
}

// load loads the programs, or skips the test where the kernel refuses.
func load(t testing.TB, key Key) *Programs {
	t.Helper()
	p, err := Load(Options{Key: key})
	if err != nil {
		if os.Getenv("TARE_IN_VM") != "" {
			t.Fatal(err)
		}
		hosttest.Missing(t, err.Error(), hintOf(err))
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// attached loads the programs and attaches them.
func attached(t testing.TB, key Key) *Programs {
	t.Helper()
	p := load(t, key)
	if err := p.Attach(); err != nil {
		t.Fatal(err)
	}
	return p
}

// worker is a child that tries accesses.
type worker struct {
	t   testing.TB
	cmd *exec.Cmd
	in  *json.Encoder
	out *bufio.Scanner
}

func profilesID(t testing.TB, p *Programs) uint32 {
	t.Helper()
	id, err := p.ProfilesID()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// unconfined starts a worker without a profile, in a mount namespace of its own.
func unconfined(t testing.TB) *worker {
	t.Helper()
	return start(t, &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}, roleEnv+"="+roleWorker)
}

// confined starts a worker that enrols itself in a slot.
func confined(t testing.TB, p *Programs, slot uint32) *worker {
	t.Helper()
	w := start(t, nil, roleEnv+"="+roleShim, fmt.Sprintf("%s=%d %d", enrollEnv, profilesID(t, p), slot))
	w.wantAllowed("getpid") // it has enrolled
	c, err := p.Confined(w.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if c.Slot != slot {
		t.Errorf("the worker is confined by slot %d, want %d", c.Slot, slot)
	}
	t.Cleanup(func() { // before the programs are closed
		if err := c.Forget(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func start(t testing.TB, attr *syscall.SysProcAttr, env ...string) *worker {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env, cmd.SysProcAttr, cmd.Stderr = env, attr, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &worker{t, cmd, json.NewEncoder(in), bufio.NewScanner(out)}
}

// try makes the worker try an access and returns the number of the error.
func (w *worker) try(args ...string) syscall.Errno {
	w.t.Helper()
	return syscall.Errno(w.ask(args...))
}

func (w *worker) ask(args ...string) int {
	w.t.Helper()
	w.send(args...)
	return w.receive()
}

func (w *worker) send(args ...string) {
	w.t.Helper()
	if err := w.in.Encode(args); err != nil {
		w.t.Fatal(err)
	}
}

func (w *worker) receive() int {
	w.t.Helper()
	if !w.out.Scan() {
		w.t.Fatalf("the worker ended: %v", w.out.Err())
	}
	var n int
	if _, err := fmt.Sscan(w.out.Text(), &n); err != nil {
		w.t.Fatalf("the worker said %q", w.out.Text())
	}
	return n
}

func (w *worker) wantAllowed(args ...string) {
	w.t.Helper()
	if errno := w.try(args...); errno != 0 {
		w.t.Errorf("%s: %v, want no error", strings.Join(args, " "), errno)
	}
}

func (w *worker) wantRefused(args ...string) {
	w.t.Helper()
	if errno := w.try(args...); errno != unix.EPERM {
		w.t.Errorf("%s: error %d, want EPERM", strings.Join(args, " "), int(errno))
	}
}

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
