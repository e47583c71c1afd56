package driver

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/metric"
	"tare/rigs/hosttest"
)

// roleEnv turns the test binary into a driver, or into the parent of one.
const roleEnv = "TARE_DRIVER_TEST"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleEnv); role {
	case "":
		hosttest.Main(m)
	case "parent":
		os.Exit(runParent())
	case "sleeper":
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(time.Minute)
	default:
		var a actor
		if err := json.Unmarshal([]byte(role), &a); err != nil {
			panic(err)
		}
		os.Exit(a.play())
	}
}

// A testJournal keeps changes in memory, and compares each with the state of the system at that time.
type testJournal struct {
	mu      sync.Mutex
	pending []area.Change
	lines   []string
	look    func(c area.Change, undone bool)
	fail    string // a kind that cannot be journaled
}

func (l *testJournal) Intend(c area.Change) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail == c.Kind {
		return errors.New("disk full")
	}
	l.lines = append(l.lines, "+"+c.Kind)
	if l.look != nil {
		l.look(c, false)
	}
	l.pending = append([]area.Change{c}, l.pending...)
	return nil
}

func (l *testJournal) Undone(c area.Change) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, "-"+c.Kind)
	if l.look != nil {
		l.look(c, true)
	}
	l.pending = slices.DeleteFunc(l.pending, func(x area.Change) bool { return x.Kind == c.Kind && x.ID == c.ID })
	return nil
}

// A stage is a target of one actor.
type stage struct {
	*Target
	actor  *actor
	ledger *testJournal
	parent string
	env    area.Env
}

// baseline is the treatment of most tests.
func baseline() design.Treatment {
	return design.Treatment{ID: "mode=fast", Baseline: true, Levels: map[string]string{"mode": "fast"}}
}

func newStage(t testing.TB, a actor, change func(*Config)) *stage {
	t.Helper()
	s := &stage{actor: &a, ledger: &testJournal{}, parent: t.TempDir()}
	p := a.program(t)
	s.env = area.Env{
		Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler), Clock: clock.System{},
		Getenv: p.getenv,
	}
	c := Config{
		Area: "tool", Env: s.env, Parent: s.parent, Patience: 20 * time.Second, PrepareWithin: 20 * time.Second,
		Arm: func(tr design.Treatment) (Arm, error) { return Arm{Program: p, Levels: tr.Levels}, nil },
	}
	if change != nil {
		change(&c)
	}
	s.Target = New(c)
	s.grace = 5 * time.Second
	return s
}

// getenv reads the environment of the program.
func (p Program) getenv(name string) (string, bool) {
	for _, v := range p.Env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// prepared prepares the baseline.
func (s *stage) prepared(t testing.TB) {
	t.Helper()
	if err := s.Prepare(t.Context(), baseline(), s.ledger); err != nil {
		t.Fatal(err)
	}
}

// entered enters the baseline.
func (s *stage) entered(t testing.TB) {
	t.Helper()
	if err := s.enter(t); err != nil {
		t.Fatal(err)
	}
}

// enter prepares, enters and verifies the baseline, so that batches can be made.
func (s *stage) enter(t testing.TB) error {
	t.Helper()
	if err := s.Prepare(t.Context(), baseline(), s.ledger); err != nil {
		return err
	}
	if err := s.Enter(t.Context(), baseline()); err != nil {
		return err
	}
	return s.Verify(t.Context(), baseline())
}

// sample makes a batch of an operation.
func (s *stage) sample(t testing.TB, name string, n int) (map[string]float64, error) {
	t.Helper()
	ops, err := s.Operations(baseline())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range ops {
		if o.Name != name {
			continue
		}
		list, err := o.Batch(t.Context(), n)
		out := map[string]float64{}
		for _, v := range list {
			if _, ok := metric.Find(v.Metric); !ok {
				t.Errorf("metric %q is not known", v.Metric)
			}
			out[v.Metric] = v.Value
		}
		return out, err
	}
	t.Fatalf("no operation %q", name)
	return nil, nil
}

// wantClean fails the test if anything is left: a process, a folder, something in the actor's world, or a pending
// change.
func (s *stage) wantClean(t testing.TB) {
	t.Helper()
	if left, err := os.ReadDir(s.parent); err != nil || len(left) > 0 {
		t.Errorf("left in the parent folder: %v, %v", left, err)
	}
	if made := s.leftInWorld(t); len(made) > 0 {
		t.Errorf("left in the world: %v", made)
	}
	if len(s.ledger.pending) > 0 {
		t.Errorf("left in the journal: %v", s.ledger.pending)
	}
	s.wantNoProcess(t)
}

// wantNoProcess fails the test if a process carries the mark of one of this stage's folders.
func (s *stage) wantNoProcess(t testing.TB) {
	t.Helper()
	all, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		env, err := os.ReadFile("/proc/" + p.Name() + "/environ")
		if err == nil && strings.Contains(string(env), Mark+"="+s.parent+"/") {
			t.Errorf("left alive: process %s", p.Name())
		}
	}
}

// leftInWorld returns what drivers have made outside of their folders.
func (s *stage) leftInWorld(t testing.TB) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(s.actor.World, "made-*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func (s *stage) requests(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.actor.World, "trace"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

func wantError(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error; want one with %q", parts)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q lacks %q", err, p)
		}
	}
}
