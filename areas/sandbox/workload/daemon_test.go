package workload

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/internal/clock"
	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// launch starts a daemon as its doc says, and ends it with the test.
func launch(t testing.TB, name string, connections int) (*Daemon, *proc.Tree) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), strings.Repeat("a-long-path-", 10)) // beyond what fits into a socket's address
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	d, err := NewDaemon(name, dir, connections)
	if missing, ok := errors.AsType[*Missing](err); ok {
		hosttest.Missing(t, missing.Error(), "install it")
	}
	if err != nil {
		t.Fatal(err)
	}
	line := d.Command
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = d.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	errs := &proc.Tail{}
	cmd.Stdout, cmd.Stderr = errs, errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		_ = cmd.Process.Signal(syscall.SIGTERM)
		stuck := time.AfterFunc(20*time.Second, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		_ = cmd.Wait()
		if !stuck.Stop() {
			t.Errorf("%s does not end by SIGTERM", name)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := d.Ready(ctx, clock.System{}); err != nil {
		t.Fatalf("%v; it says %s", err, errs.LastLine())
	}
	tree, err := proc.NewTree(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return d, tree
}

func TestDaemonsCostPerRequest(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	for _, name := range Daemons() {
		t.Run(name, func(t *testing.T) {
			d, tree := launch(t, name, 1)
			if want := map[string]int{"apache": 2, "nginx": 2, "redis": 1}[name]; len(tree.PIDs()) != want || d.Name != name {
				t.Errorf("%s has the processes %v", d.Name, tree.PIDs())
			}
			perRequest := func(n int) float64 {
				best := 0.0
				for range 3 {
					c, err := Measure(t.Context(), d, tree, Load{Kind: name}, n)
					if err != nil {
						t.Fatal(err)
					}
					if c.N != n || c.Wall <= 0 || c.CPU <= 0 || c.CPU > 2*c.Wall {
						t.Errorf("impossible cost %+v", c)
					}
					if v := float64(c.CPU) / float64(n); best == 0 || v < best {
						best = v
					}
				}
				return best
			}
			few, many := perRequest(200), perRequest(2000)
			if ratio := few / many; ratio < 0.3 || ratio > 3 {
				t.Errorf("%.0f ns a request among 200, %.0f among 2000", few, many)
			}
			t.Logf("%s: %.1f µs of CPU time a request", name, many/1000)
		})
	}
}

// TestDaemonsWriteOnlyInTheirDirectory checks what each has open for writing.
func TestDaemonsWriteOnlyInTheirDirectory(t *testing.T) {
	for _, name := range Daemons() {
		t.Run(name, func(t *testing.T) {
			d, tree := launch(t, name, 1)
			for _, pid := range tree.PIDs() {
				fds, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "fd", "*"))
				if err != nil || len(fds) == 0 {
					t.Fatalf("descriptors of %d: %v, %v", pid, fds, err)
				}
				for _, fd := range fds {
					to, err := os.Readlink(fd)
					if info, e := os.Lstat(fd); e != nil || info.Mode()&0o200 == 0 {
						continue // it is closed by now, or open for reading
					}
					if err == nil && strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "/dev/") && !strings.HasPrefix(to, d.Dir) {
						t.Errorf("%s has %s open", name, to)
					}
				}
			}
		})
	}
}

func TestDaemonGoneIsAnError(t *testing.T) {
	for _, name := range Daemons() {
		t.Run(name, func(t *testing.T) {
			d, tree := launch(t, name, 1)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := Measure(ctx, d, tree, Load{Kind: name}, 10); !errors.Is(err, context.Canceled) {
				t.Errorf("%v; want that it was cancelled", err)
			}
			if err := d.Ready(t.Context(), clock.System{}); err != nil {
				t.Fatal(err)
			}
			for _, pid := range tree.PIDs() {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Measure(t.Context(), d, tree, Load{Kind: name}, 100000); err == nil {
				t.Error("a dead daemon was measured")
			}
			ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if err := d.Ready(ctx, clock.System{}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a dead daemon is ready: %v", err)
			}
			if _, err := Measure(t.Context(), d, tree, Load{Kind: name}, 0); err == nil {
				t.Error("no requests were measured")
			}
		})
	}
}

func TestMissingNamesItsPackage(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := NewProgram("sysbench-cpu")
	m, ok := errors.AsType[*Missing](err)
	if !ok || m.Program != "sysbench" || !strings.Contains(err.Error(), "apt-get install sysbench") {
		t.Errorf("got %v, want that sysbench is missing", err)
	}
	if _, err := newShell(t.TempDir()); err == nil || !strings.Contains(err.Error(), "apt-get install dash") {
		t.Errorf("got %v, want that dash is missing", err)
	}
	if _, err := NewProgram("stress"); err == nil || !strings.Contains(err.Error(), "unknown program") {
		t.Errorf("got %v, want an unknown program", err)
	}
	if _, err := NewDaemon("apache2", t.TempDir(), 1); err == nil || !strings.Contains(err.Error(), "unknown daemon") {
		t.Errorf("got %v, want an unknown daemon", err)
	}
}

func TestProgramsRun(t *testing.T) {
	c, _ := start(t)
	for _, name := range Programs() {
		cmd, err := NewProgram(name)
		if missing, ok := errors.AsType[*Missing](err); ok {
			hosttest.Missing(t, missing.Error(), "install it")
		}
		if err != nil {
			t.Fatal(err)
		}
		cost, err := c.Command(t.Context(), cmd, 1)
		if err != nil || cost.CPU < time.Millisecond {
			t.Errorf("%s: got cost %+v, %v; want at least 1 ms of CPU time", name, cost, err)
		}
		t.Logf("%s: %v of CPU time", name, cost.CPU)
	}
}
