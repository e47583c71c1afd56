package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tare/internal/area"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/proc"
)

// TestMain lets this test binary be its own child, as tare's binary is.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "serve" && os.Args[2] == areaName {
		serveChild(os.Args[3])
	}
	goleak.VerifyTestMain(m)
}

func serveChild(name string) {
	if what := hostileWorker(); what != "" && name == serverWorker {
		misbehave(what)
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := proc.Serve(ctx, os.Stdin, os.Stdout, func(ctx context.Context, config json.RawMessage,
		ready func(any) error,
	) error {
		return Area{}.Serve(ctx, name, config, ready)
	})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// memory is a journal that remembers.
type memory struct {
	mu      sync.Mutex
	changes []area.Change
	open    map[string]area.Change
	deny    func(area.Change) error // what Intend answers, if set
}

func (m *memory) Intend(c area.Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.deny != nil {
		if err := m.deny(c); err != nil {
			return err
		}
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
	return area.Env{Dir: t.TempDir(), Self: self, Log: slog.New(slog.DiscardHandler), Clock: clock.System{}}
}

// treatment has the levels of "factor", "level", … in turn.
func treatment(levels ...string) design.Treatment {
	m := map[string]string{}
	for i := 0; i+1 < len(levels); i += 2 {
		m[levels[i]] = levels[i+1]
	}
	return design.Treatment{ID: design.ID(m), Levels: m}
}

func bare() design.Treatment {
	t := treatment("enforcer", "none")
	t.Baseline = true
	return t
}

// prepared opens spec and prepares treatments; all is taken down at the end of the test, and must then be undone.
func prepared(t testing.TB, spec *Spec, treatments ...design.Treatment) (*target, *memory) {
	t.Helper()
	opened, err := Area{}.Open(t.Context(), spec, testEnv(t))
	if err != nil {
		t.Fatal(err)
	}
	tg, ok := opened.(*target)
	if !ok {
		t.Fatalf("a target of type %T", opened)
	}
	j := &memory{}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := tg.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		if n := j.left(); n > 0 {
			t.Errorf("%d changes are left: %v", n, j.open)
		}
		for _, c := range j.changes {
			if c.Kind != changeFolder {
				continue
			}
			if _, err := os.Lstat(c.Data["path"]); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is left: %v", c.Data["path"], err)
			}
		}
	})
	for _, tr := range treatments {
		if err := tg.Prepare(t.Context(), tr, j); err != nil {
			t.Fatal(err)
		}
	}
	return tg, j
}

// entered brings the treatment in force, or skips the test where this kernel cannot.
func entered(t testing.TB, tg *target, tr design.Treatment) {
	t.Helper()
	needs(t, tr.Levels[factorEnforcer])
	if err := tg.Enter(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
}

// needs skips where the kernel does not have the enforcer. Where it has, an enforcer that cannot be put in force is a
// failure.
func needs(t testing.TB, enforcer string) {
	t.Helper()
	switch enforcer {
	case enforcerLandlock:
		if _, err := landlockRights(); err != nil {
			t.Skipf("THIS HOST CANNOT: %v", err)
		}
	case enforcerSeccomp:
		if _, err := os.Stat("/proc/sys/kernel/seccomp/actions_avail"); err != nil {
			t.Skipf("THIS HOST CANNOT: %v", err)
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil || !strings.Contains(string(status), "\nSeccomp:\t0\n") {
		t.Skipf("THIS HOST CANNOT: these tests run under a filter already, or it cannot be seen: %v", err)
	}
}
