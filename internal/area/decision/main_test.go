package decision

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
	"tare/internal/area/decision/engine"
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
	os.Exit(m.Run())
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

var standard = design.Treatment{ID: "default"}

func testEnv(t testing.TB, secrets ...string) area.Env {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return area.Env{
		Dir: t.TempDir(), Run: strings.ToLower(rand.Text()[:12]), Self: self,
		Log: slog.New(slog.DiscardHandler), Clock: clock.System{},
		Getenv: func(name string) (string, bool) {
			for i := 0; i+1 < len(secrets); i += 2 {
				if secrets[i] == name {
					return secrets[i+1], true
				}
			}
			return "", false
		},
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
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := o.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		if n := j.left(); n > 0 {
			t.Errorf("%d changes are left: %v", n, j.open)
		}
	})
	return tg, j
}

// prepared opens spec and prepares the standard treatment.
func prepared(t testing.TB, spec *Spec) (*target, *memory) {
	t.Helper()
	tg, j := opened(t, spec, testEnv(t))
	if err := tg.Prepare(t.Context(), standard, j); err != nil {
		t.Fatal(err)
	}
	return tg, j
}

func embedded(k engine.Kind, planted Planted) *Spec {
	s := &Spec{Embedded: &Embedded{Engine: k}}
	if planted != (Planted{}) {
		s.Embedded.Planted = &planted
	}
	return s
}

// arm is what Prepare made for a treatment.
func (t *target) arm(id string) *arm {
	a, _ := t.arms.Of(design.Treatment{ID: id})
	return a
}
