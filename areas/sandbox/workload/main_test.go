package workload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"tare/rigs/hosttest"
)

const (
	// workerDir is the variable that turns the test binary into a worker with that scratch directory.
	workerDir = "TARE_TEST_WORKER_DIR"
	// workerDenies names a system call that a filter refuses to that worker with EPERM.
	workerDenies = "TARE_TEST_WORKER_DENIES"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(workerDir); dir != "" {
		if err := work(dir, os.Getenv(workerDenies)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(hosttest.Sharing(m))
}

func work(dir, denied string) error {
	if err := AdoptOrphans(); err != nil {
		return err
	}
	if denied != "" {
		err := seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionAllow,
			Syscalls: []seccomp.SyscallGroup{{
				Action: seccomp.ActionErrno | seccomp.Action(syscall.EPERM),
				Names:  []string{denied},
			}},
		}})
		if err != nil {
			return err
		}
	}
	return Serve(context.Background(), os.Stdin, os.Stdout, dir, Own{})
}

// start starts a worker process with a filled scratch directory.
func start(t testing.TB) (*Client, string) {
	t.Helper()
	dir := t.TempDir()
	if err := Setup(dir); err != nil {
		t.Fatal(err)
	}
	return startIn(t, dir, ""), dir
}

// startIn starts a worker in a directory that is filled, denied one system call unless that is empty.
func startIn(t testing.TB, dir, denied string) *Client {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerDir+"="+dir, workerDenies+"="+denied)
	cmd.Stderr = os.Stderr
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
	c := NewClient(in, out)
	t.Cleanup(func() {
		_ = c.Close()
		stuck := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // by its error, when a test broke it on purpose
		if !stuck.Stop() {
			t.Error("the worker does not end when its client is gone")
		}
	})
	return c
}

// ranOn is the thread on which endingThread ran what the main thread gave it.
var ranOn = func() (id int) {
	endingThread(func() { id = unix.Gettid() }) // variables are initialized on the main thread
	return id
}()

// TestMainThreadIsNotConfined: the main thread does not end with its goroutine, so a policy of it would stay in force.
func TestMainThreadIsNotConfined(t *testing.T) {
	if ranOn == 0 || ranOn == os.Getpid() {
		t.Errorf("what the main thread %d gave ran on thread %d", os.Getpid(), ranOn)
	}
}

// refuseKeyctl confines the calling thread: a filter refuses keyctl to it with EPERM.
func refuseKeyctl() error {
	return seccomp.LoadFilter(seccomp.Filter{Policy: seccomp.Policy{
		DefaultAction: seccomp.ActionAllow,
		Syscalls: []seccomp.SyscallGroup{{
			Action: seccomp.ActionErrno | seccomp.Action(syscall.EPERM), Names: []string{"keyctl"},
		}},
	}})
}

// filtered counts the threads of this process that are under a filter.
func filtered(t *testing.T) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(all) == 0 {
		t.Fatalf("%d threads: %v", len(all), err)
	}
	for _, path := range all {
		text, _ := os.ReadFile(path) // a thread may have ended
		if strings.Contains(string(text), "\nSeccomp:\t2\n") {
			n++
		}
	}
	return n
}

// refused makes an attempt where own says, and returns its errno.
func refused(t *testing.T, own Own) (errno syscall.Errno) {
	t.Helper()
	if err := own.Aside(func() { errno, _ = trySyscall("keyctl") }); err != nil {
		t.Fatal(err)
	}
	return errno
}

func goOn() bool { return false }

// TestFreshConfinesEachThread: every call confines a thread of its own, which ends, and no other.
func TestFreshConfinesEachThread(t *testing.T) {
	if filtered(t) > 0 {
		hosttest.Missing(t, "the tests run under a seccomp filter, or it cannot be seen", "run them without one")
	}
	dir := t.TempDir()
	if err := Setup(dir); err != nil {
		t.Fatal(err)
	}
	calls := 0
	released, loaded := 0, 0
	add := func(to *int, n int) func() error { return func() error { *to += n; return nil } }
	f, err := NewFresh(Steps{
		Confine: func() error { calls++; return refuseKeyctl() }, Release: add(&released, 1),
		Load: add(&loaded, 10), Unload: add(&loaded, 1),
	}, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{KindConfine, KindFirst, KindLater, KindStart} {
		calls = 0
		cost, err := f.Own().Batches[kind](5, goOn)
		if err != nil || cost.N != 5 || cost.Wall <= 0 || cost.CPU <= 0 || cost.CPU > 100*cost.Wall {
			t.Errorf("%s: %+v: %v", kind, cost, err)
		}
		if calls != 5 || released != 5 {
			t.Errorf("%s confined %d threads and released %d, want 5", kind, calls, released)
		}
		released = 0
	}
	if errno := refused(t, f.Own()); errno != syscall.EPERM {
		t.Errorf("keyctl on a confined thread: %v, want EPERM", errno)
	}
	if released != 0 {
		t.Error("the thread of an attempt did not stay")
	}
	if _, err := f.Own().Batches[KindLoad](3, goOn); err != nil || loaded != 33 || released != 1 {
		t.Errorf("3 loads and unloads make %d, and %d threads were released: %v", loaded, released, err)
	}
	if err := f.Own().Close(); err != nil {
		t.Error(err)
	}
	for range 200 {
		_ = onThread(func() error {
			if unix.Gettid() == os.Getpid() {
				t.Error("the main thread, which does not end, is to be confined")
			}
			if errno, _ := trySyscall("keyctl"); errno == syscall.EPERM {
				t.Error("a thread is confined before it is to be")
			}
			return nil
		})
	}
}

// TestFreshReportsFailures: a policy that cannot be applied is an error, and so is an access that it refuses.
func TestFreshReportsFailures(t *testing.T) {
	broken := errors.New("no policy")
	f, err := NewFresh(Steps{Confine: func() error { return broken }, Load: func() error { return broken }}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for kind, batch := range f.Own().Batches {
		if _, err := batch(1, goOn); !errors.Is(err, broken) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if err := f.Own().Aside(func() { t.Error("an attempt was made without the policy") }); !errors.Is(err, broken) {
		t.Errorf("an attempt: %v", err)
	}
	missing, err := NewFresh(Steps{}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := missing.Own().Batches[KindFirst](1, goOn); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("a first access that fails: %v", err)
	}
	if _, err := missing.Own().Batches[KindFirst](1, func() bool { return true }); !errors.Is(err, errHalted) {
		t.Errorf("a halted batch: %v", err)
	}
}

// TestOthersHold: as many threads as asked for are under the policy, until they are released.
func TestOthersHold(t *testing.T) {
	if filtered(t) > 0 {
		hosttest.Missing(t, "the tests run under a seccomp filter, or it cannot be seen", "run them without one")
	}
	released := errors.New("released")
	steps := Steps{Confine: refuseKeyctl}
	o := NewOthers(steps.And(Steps{}))
	own := o.Own()
	if err := own.Aside(func() {}); err == nil {
		t.Error("an attempt on none of the threads")
	}
	for _, n := range []int{20, 3, 60} {
		cost, err := own.Batches[KindHold](n, goOn)
		if err != nil || cost.N != n || cost.Wall <= 0 {
			t.Fatalf("hold %d: %+v: %v", n, cost, err)
		}
		if got := filtered(t); got != n {
			t.Errorf("%d threads are confined, want %d", got, n)
		}
		if errno := refused(t, own); errno != syscall.EPERM {
			t.Errorf("keyctl on a held thread: %v, want EPERM", errno)
		}
	}
	if _, err := own.Batches[KindRelease](1, goOn); err != nil || filtered(t) != 0 {
		t.Errorf("after the release %d threads are confined: %v", filtered(t), err)
	}
	broken := errors.New("no policy")
	failing := NewOthers(Steps{Confine: func() error { return broken }})
	if _, err := failing.hold(4, goOn); !errors.Is(err, broken) {
		t.Errorf("hold what cannot be applied: %v", err)
	}
	if err := failing.release(); err != nil {
		t.Error(err)
	}
	failing = NewOthers(Steps{Release: func() error { return released }})
	if _, err := failing.hold(2, goOn); err != nil {
		t.Fatal(err)
	}
	if err := failing.release(); !errors.Is(err, released) {
		t.Errorf("a policy that cannot be released: %v", err)
	}
}
