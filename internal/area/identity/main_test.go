package identity

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tare/internal/area"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/proc"
)

// TestMain lets this test binary be its own child, as tare's binary is.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "serve" && os.Args[2] == areaName {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
		err := proc.Serve(ctx, os.Stdin, os.Stdout, func(ctx context.Context, config json.RawMessage,
			ready func(any) error,
		) error {
			return Area{}.Serve(ctx, os.Args[3], config, ready)
		})
		stop()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 2 && os.Args[1] == sweeper {
		sweepGroups(os.Getppid())
		os.Exit(0)
	}
	swept, err := startSweeper()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	swept()
	os.Exit(code)
}

// sweeper is the argument that makes this binary remove the control groups of its parent, when that has ended. Tests
// remove their groups themselves, but for one that panics, and with it all others, as at a time-out.
const sweeper = "sweep-groups"

// testRun begins the names of all runs of a process of tests.
func testRun(pid int) string { return fmt.Sprintf("p%dx", pid) }

// startSweeper starts one for this process. done ends it.
func startSweeper() (done func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.Command(self, sweeper)
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	return func() { _ = in.Close(); _ = c.Wait() }, nil
}

// sweepGroups waits for the end of standard input, which is that of the process pid, and removes its control groups.
func sweepGroups(pid int) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT) // they are meant for the tests
	_, _ = io.Copy(io.Discard, os.Stdin)
	path, err := proc.PlanCgroup(proc.CgroupName(testRun(pid), serverEndpoint))
	if err != nil {
		return // this host has no groups
	}
	for range 100 { // the processes in them end with their parent, a moment later
		left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "tare-"+testRun(pid)+"*"))
		for _, group := range left {
			_ = os.Remove(group)
		}
		if len(left) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// memory is a journal that remembers.
type memory struct {
	mu      sync.Mutex
	changes []area.Change
	open    map[string]area.Change
	deny    error // what Intend answers, if set
}

func (m *memory) Intend(c area.Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.deny != nil {
		return m.deny
	}
	if m.open == nil {
		m.open = map[string]area.Change{}
	}
	if _, twice := m.open[c.ID]; twice {
		return fmt.Errorf("%s is journaled twice", c.ID)
	}
	m.changes = append(m.changes, c)
	m.open[c.ID] = c
	return nil
}

func (m *memory) Undone(c area.Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.open[c.ID]; !ok {
		return fmt.Errorf("%s was never journaled", c.ID)
	}
	delete(m.open, c.ID)
	return nil
}

func (m *memory) left() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.open)
}

func testEnv(t testing.TB) area.Env {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return area.Env{
		Dir: t.TempDir(), Run: testRun(os.Getpid()) + strings.ToLower(rand.Text()[:6]), Self: self,
		Log: slog.New(slog.DiscardHandler), Clock: clock.System{},
	}
}

// prepared opens spec and prepares one treatment; everything is taken down at the end of the test, and must then be
// undone.
func prepared(t testing.TB, spec *Spec, tr design.Treatment, adjust ...func(*target)) (*target, *memory) {
	t.Helper()
	if tr.ID == "" {
		tr.ID = design.ID(tr.Levels)
	}
	opened, err := Area{}.Open(t.Context(), spec, testEnv(t))
	if err != nil {
		t.Fatal(err)
	}
	tg, ok := opened.(*target)
	if !ok {
		t.Fatalf("a target of type %T", opened)
	}
	for _, a := range adjust {
		a(tg)
	}
	j := &memory{}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := opened.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		if n := j.left(); n > 0 {
			t.Errorf("%d changes are left: %v", n, j.open)
		}
	})
	if err := opened.Prepare(t.Context(), tr, j); err != nil {
		t.Fatal(err)
	}
	return tg, j
}

func embedded(preset string) *Spec {
	return &Spec{Adapter: "gce-metadata", Embedded: &Embedded{Preset: &preset}}
}

// arm is what Prepare made for a treatment.
func (t *target) arm(id string) *arm {
	a, _ := t.arms.Of(design.Treatment{ID: id})
	return a
}
