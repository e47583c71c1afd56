package admission

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tare/internal/area"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/plane"
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
	os.Exit(m.Run())
}

// memory is a journal that remembers.
type memory struct {
	mu      sync.Mutex
	changes []area.Change
	open    map[string]area.Change
}

func (m *memory) Intend(c area.Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
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

func (m *memory) left() []area.Change {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []area.Change
	for _, c := range m.open {
		out = append(out, c)
	}
	return out
}

func testEnv(t testing.TB, operations ...string) area.Env {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return area.Env{
		Dir: t.TempDir(), Run: strings.ToLower(rand.Text()[:12]), Self: self,
		Log: slog.New(slog.DiscardHandler), Clock: clock.System{}, Getenv: os.LookupEnv, Operations: operations,
	}
}

// haveBinary skips, loudly, where there is no control plane of that release yet: tests do not build for minutes.
func haveBinary(t testing.TB, v plane.Version) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: control planes are started, which -short leaves out")
	}
	if _, ok := plane.Cached(t.Context(), v, plane.Host{Log: slog.New(slog.DiscardHandler), Getenv: os.LookupEnv}); !ok {
		t.Skipf("SKIPPED: there is no control plane of Kubernetes %s yet: tare plane up builds one", v)
	}
}

// opened opens spec. Everything is taken down at the end of the test, and must then be undone.
func opened(t testing.TB, spec *Spec, env area.Env) (*target, *memory) {
	t.Helper()
	o, err := Area{}.Open(t.Context(), spec, env)
	if err != nil {
		t.Fatal(err)
	}
	tg, ok := o.(*target)
	if !ok {
		t.Fatalf("a target of type %T", o)
	}
	j := &memory{}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := o.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		if left := j.left(); len(left) > 0 {
			t.Errorf("%d changes are left: %v", len(left), left)
		}
	})
	return tg, j
}

// armOf is the arm of a treatment that has been prepared.
func armOf(t testing.TB, tg *target, tr design.Treatment) *arm {
	t.Helper()
	p, err := tg.arms.Of(tr)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// treatment has the levels of pairs.
func treatment(pairs ...string) design.Treatment {
	levels := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		levels[pairs[i]] = pairs[i+1]
	}
	return design.Treatment{ID: design.ID(levels), Levels: levels}
}
