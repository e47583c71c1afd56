package workload

import (
	"errors"
	"slices"
	"syscall"
	"testing"
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
