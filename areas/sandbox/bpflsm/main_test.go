package bpflsm

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

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
