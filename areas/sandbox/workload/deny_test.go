package workload

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"tare/rigs/hosttest"
)

// TestDeniedCallIsAnError denies a worker one system call at a time: the workloads that make it must fail and name it,
// and not be fast.
func TestDeniedCallIsAnError(t *testing.T) {
	kinds := map[string][]string{ // denied: kinds that make it
		"execve":     {"exec", "spawn", "shell", "fork"},
		"openat":     {"open", "create"},
		"newfstatat": {"stat"},
		"unlinkat":   {"create"},
		"pread64":    {"read"},
		"socket":     {"connect", "udpconnect"},
		"connect":    {"connect", "udpconnect"},
		"accept4":    {"connect"},
		"wait4":      {"fork", "spawn", "exec"},
		"getppid":    {"syscall"},
	}
	dir := t.TempDir()
	if err := Setup(dir); err != nil {
		t.Fatal(err)
	}
	for call, names := range kinds {
		t.Run(call, func(t *testing.T) {
			for _, name := range names {
				_, err := startIn(t, dir, call).Run(t.Context(), name, 3)
				f, ok := errors.AsType[*Failure](err)
				if !ok || f.Call != call || f.Op != name || !errors.Is(err, syscall.EPERM) {
					t.Errorf("%s without %s: %v; want a failure of that call with EPERM", name, call, err)
				}
			}
			c := startIn(t, dir, call)
			if cost, err := c.Run(t.Context(), "compute", 100); err != nil || cost.CPU <= 0 {
				t.Errorf("compute without %s: %v, %v", call, cost, err)
			}
			s, err := c.Status(t.Context())
			if err != nil || s.Seccomp != 2 || !s.NoNewPrivs || s.PID <= 0 {
				t.Errorf("status under a filter: %+v, %v", s, err)
			}
			if slices.Contains(Syscalls(), call) {
				if errno, err := c.Try(t.Context(), "syscall", call); err != nil || errno != syscall.EPERM {
					t.Errorf("try %s: %v, %v; want EPERM", call, errno, err)
				}
			}
		})
	}
}

// TestWorkloadSurvivesItsFailure runs a kind that fails, then another one and the first one again, in the same worker.
func TestWorkloadSurvivesItsFailure(t *testing.T) {
	c, dir := start(t)
	if _, err := c.Run(t.Context(), "exec", 5); err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct{ file, kind, call string }{
		{programFile, "exec", "execve"},
		{programFile, "spawn", "execve"},
		{plainFile, "open", "openat"},
	} {
		restore := hide(t, dir, f.file)
		_, err := c.Run(t.Context(), f.kind, 5)
		if g, ok := errors.AsType[*Failure](err); !ok || g.Call != f.call || g.Errno != syscall.ENOENT {
			t.Errorf("%s without its file: %v", f.kind, err)
		}
		restore()
		for _, kind := range []string{f.kind, "switch", "fork"} {
			if _, err := c.Run(t.Context(), kind, 5); err != nil {
				t.Errorf("%s after a failure of %s: %v", kind, f.kind, err)
			}
		}
	}
}

// requireNew skips the test where no program can be made for a new process.
func requireNew(t *testing.T) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		hosttest.Missing(t, "programs of attempts are made for amd64", "run on amd64")
	}
}

// TestNewProcessTriesTheSame: a new process gives what the worker gives, where nothing is enforced.
func TestNewProcessTriesTheSame(t *testing.T) {
	requireNew(t)
	c, dir := start(t)
	all := [][]string{
		{"open", filepath.Join(dir, plainFile)},
		{"open", filepath.Join(dir, "missing")},
		{"write", filepath.Join(dir, plainFile)},
		{"fifo", filepath.Join(dir, "pipe")},
		{"fifo", filepath.Join(dir, plainFile)},
		{"exec", filepath.Join(dir, programFile)},
		{"exec", filepath.Join(dir, plainFile)},
		{TryUmount},
		{TryAlarm},
	}
	for _, name := range Syscalls() {
		all = append(all, []string{"syscall", name})
	}
	for _, attempt := range all {
		want, err := c.Try(t.Context(), attempt[0], attempt[1:]...)
		if err != nil {
			t.Fatalf("%v: %v", attempt, err)
		}
		for range 2 {
			if got, err := c.Try(t.Context(), TryNew, attempt...); err != nil || got != want {
				t.Errorf("%v gives %v in a new process, %v; want %v", attempt, got, err, want)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "pipe")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the named pipe is left: %v", err)
	}
	if CanTryNew("connect", "1") || CanTryNew("open") || CanTryNew("syscall", "no such") {
		t.Error("a new process can try what is no single call")
	}
	if _, err := c.Try(t.Context(), TryNew, "connect", "1"); err == nil {
		t.Error("a new process tried what is no single call")
	}
}

// TestNewProcessIsRefused: what a filter refuses to the worker it refuses to a new process, and a program that is not
// executed has tried nothing.
func TestNewProcessIsRefused(t *testing.T) {
	requireNew(t)
	dir := t.TempDir()
	if err := Setup(dir); err != nil {
		t.Fatal(err)
	}
	for call, attempt := range map[string][]string{
		"getppid":        {"syscall", "getppid"},
		"umount2":        {TryUmount},
		"timerfd_create": {TryAlarm},
		"mknodat":        {"fifo", filepath.Join(dir, "pipe")},
	} {
		c := startIn(t, dir, call)
		if got, err := c.Try(t.Context(), TryNew, attempt...); err != nil || got != syscall.EPERM {
			t.Errorf("%v without %s: %v, %v", attempt, call, got, err)
		}
	}
	for _, call := range []string{"execve", "openat", "clone"} {
		c := startIn(t, dir, call)
		_, err := c.Try(t.Context(), TryNew, TryUmount)
		if f, ok := errors.AsType[*Failure](err); !ok || !slices.Contains([]string{"execve", "write"}, f.Call) {
			t.Errorf("without %s: %v", call, err)
		}
		if _, err := c.Try(t.Context(), "syscall", "getppid"); err != nil {
			t.Errorf("without %s the worker has ended: %v", call, err)
		}
	}
}
