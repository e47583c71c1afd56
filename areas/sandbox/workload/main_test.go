package workload

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"go.uber.org/goleak"

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
