package imagepull

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tare/area"
	"tare/areas/plane"
	"tare/internal/design"
	"tare/internal/load"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// treatment shortens the tests' many calls.
var treatment = areatest.Treatment

func testEnv(t testing.TB, treatments ...design.Treatment) area.Env {
	t.Helper()
	env := areatest.Env(t)
	env.Getenv, env.Treatments = os.LookupEnv, treatments
	return env
}

// requireBinary skips the test if tare-plane is not built: tests do not build for minutes.
func requireBinary(t testing.TB) {
	t.Helper()
	hosttest.SkipIfShort(t)
	if _, ok := plane.Cached(t.Context(), plane.V136, plane.Host{
		Log:    slog.New(slog.DiscardHandler),
		Getenv: os.LookupEnv,
	}); !ok {
		hosttest.Missing(t, "no control plane of Kubernetes 1.36 is built", hosttest.Plane)
	}
	hosttest.Place(t)
}

// opened opens spec, with records in a folder of the test's, and prepares treatments. At the end of the test it closes
// the target, which must undo all changes and leave no file.
func opened(t testing.TB, spec *Spec, treatments ...design.Treatment) (area.Target, *areatest.Journal) {
	t.Helper()
	requireBinary(t)
	if spec.Dir == "" {
		spec.Dir = t.TempDir()
	}
	t.Cleanup(func() { nothingLeft(t, spec.Dir) }) // cleanups run in reverse order: this one after the target's
	tg, j := areatest.Open[area.Target](t, Area{}, spec, testEnv(t, treatments...))
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

// enterAndVerify enters a treatment and verifies it.
func enterAndVerify(t testing.TB, tg area.Target, tr design.Treatment) {
	t.Helper()
	if err := tg.Can().Enter(t.Context(), tr); err != nil {
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

// runBatch makes n calls and returns the cost of one by metric.
func runBatch(t testing.TB, tg area.Target, tr design.Treatment, name string, n int) map[string]float64 {
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

// recordFiles returns the files below dir that hold one image each, sorted.
func recordFiles(t testing.TB, dir string) (out []string) {
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
