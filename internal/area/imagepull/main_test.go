package imagepull

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tare/internal/area"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/plane"
)

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

// left are the changes that are not undone, the latest first.
func (m *memory) left() []area.Change {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []area.Change
	for _, c := range slices.Backward(m.changes) {
		if _, ok := m.open[c.ID]; ok {
			out = append(out, c)
		}
	}
	return out
}

func testEnv(t testing.TB, treatments ...design.Treatment) area.Env {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return area.Env{
		Dir: t.TempDir(), Self: self, Log: slog.New(slog.DiscardHandler), Clock: clock.System{}, Getenv: os.LookupEnv,
		Treatments: treatments,
	}
}

// haveBinary skips, loudly, where there is no tare-plane yet: tests do not build for minutes.
func haveBinary(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: pull managers are started, which -short leaves out")
	}
	if _, ok := plane.Cached(t.Context(), plane.V136, plane.Host{
		Log:    slog.New(slog.DiscardHandler),
		Getenv: os.LookupEnv,
	}); !ok {
		t.Skipf("SKIPPED: there is no tare-plane of Kubernetes %s yet: tare plane up builds one", plane.V136)
	}
}

// opened opens spec, with records in a folder of the test's, and prepares treatments. All is taken down at the end of
// the test, and must then be undone, with no file left.
func opened(t testing.TB, spec *Spec, treatments ...design.Treatment) (area.Target, *memory) {
	t.Helper()
	haveBinary(t)
	if spec.Dir == "" {
		spec.Dir = t.TempDir()
	}
	tg, err := Area{}.Open(t.Context(), spec, testEnv(t, treatments...))
	if err != nil {
		t.Fatal(err)
	}
	j := &memory{}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := tg.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		if left := j.left(); len(left) > 0 {
			t.Errorf("%d changes are left: %v", len(left), left)
		}
		nothingLeft(t, spec.Dir)
	})
	for _, tr := range treatments {
		if err := tg.Prepare(t.Context(), tr, j); err != nil {
			t.Fatal(err)
		}
	}
	return tg, j
}

func nothingLeft(t testing.TB, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || len(entries) > 0 {
		t.Errorf("%v is left in %s: %v", entries, dir, err)
	}
}

// entered brings a treatment in force, and has it proved.
func entered(t testing.TB, tg area.Target, tr design.Treatment) {
	t.Helper()
	if err := tg.Enter(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	if err := tg.Verify(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
}

func operationOf(t testing.TB, tg area.Target, tr design.Treatment, name string) load.Operation {
	t.Helper()
	ops, err := tg.Operations(tr)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(ops, func(o load.Operation) bool { return o.Name == name })
	if i < 0 {
		t.Fatalf("%s has no operation %s", tr.ID, name)
	}
	return ops[i]
}

// batch makes n calls, and returns what one cost by metric.
func batch(t testing.TB, tg area.Target, tr design.Treatment, name string, n int) map[string]float64 {
	t.Helper()
	samples, err := operationOf(t, tg, tr, name).Batch(t.Context(), n)
	if err != nil {
		t.Fatalf("%s under %s: %v", name, tr.ID, err)
	}
	out := map[string]float64{}
	for _, s := range samples {
		out[s.Metric] = s.Value
	}
	return out
}

// records are the files below dir that hold one image each, in order.
func records(t testing.TB, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && filepath.Base(filepath.Dir(path)) == "pulled" &&
			!strings.HasPrefix(e.Name(), ".") {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
