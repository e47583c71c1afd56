package imagepull

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/area"
	"tare/areas/plane"
	"tare/internal/design"
	"tare/internal/driver"
	"tare/internal/files"
	"tare/internal/load"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// TestMain lets this test binary stand in for tare-plane: it prints its version, and speaks the protocol as a pull
// manager that only records what it receives.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "version":
		fmt.Println(`{"kubernetes":"v1.36.99","etcd":"v3.6.8","go":"go1.26.8","protocol":"2"}`)
		os.Exit(0)
	case len(os.Args) == 2 && os.Args[1] == programArgument:
		if err := runStandIn(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	hosttest.Main(m)
}

// received is what the stand-in records.
type received struct {
	Preparation driver.Preparation
	Env         []string
}

// receivedFile is where the stand-in records it, beside its folder, which is removed.
func receivedFile(folder string) string { return folder + ".told" }

func runStandIn() error {
	lines, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var r driver.Request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return err
		}
		ok, err := answer(r)
		if err != nil {
			return err
		}
		text, err := json.Marshal(ok)
		if err != nil {
			return err
		}
		if err := out.Encode(driver.Answer{ID: r.ID, OK: text}); err != nil {
			return err
		}
		if r.Do == driver.DoStop {
			return nil
		}
	}
	return lines.Err()
}

func answer(r driver.Request) (any, error) {
	switch r.Do {
	case driver.DoDescribe:
		d := driver.Description{Protocol: driver.Protocol, Name: "stand-in"}
		for _, name := range names() {
			d.Operations = append(d.Operations, driver.Operation{Name: name, Harness: strings.HasPrefix(name, opEmpty)})
		}
		return d, nil
	case driver.DoPrepare:
		text, err := json.Marshal(received{Preparation: *r.Preparation, Env: os.Environ()})
		if err != nil {
			return nil, err
		}
		return driver.Prepared{}, os.WriteFile(receivedFile(r.Folder), text, 0o600)
	case driver.DoVerify:
		return driver.Verified{Checks: []string{"it stands in"}}, nil
	case driver.DoOperate:
		n := float64(*r.Calls)
		return driver.Cost{Calls: *r.Calls, Total: map[string]float64{"wall": n * 4e-9, "cpu": n * 2e-9}}, nil
	}
	return struct{}{}, nil
}

// withStandIn returns a spec whose program is the stand-in.
func withStandIn(t testing.TB, s Spec) *Spec {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.Binary, s.Dir = self, t.TempDir()
	return &s
}

// TestProgramReceivesItsLevels: the program receives the levels of each treatment, the operations of the file and the
// harness's own, a folder where the file says, and no environment of the user.
func TestProgramReceivesItsLevels(t *testing.T) {
	t.Setenv("GOGC", "off")
	t.Setenv("TARE_PLANE", "/bin/false") // what the file names goes first
	spec := withStandIn(t, Spec{Operations: []string{opPull, opCheck}, Records: new(7)})
	arms := []design.Treatment{treatment("accessor", "Disabled"), treatment("accessor", "CachedLRU(5)", "hits", "50%")}
	tg, j := areatest.Open[area.Target](t, Area{}, spec, testEnv(t, arms...))
	for i, a := range arms {
		if err := tg.Prepare(t.Context(), a, j); err != nil {
			t.Fatal(err)
		}
		enterAndVerify(t, tg, a)
		got := readReceived(t, spec.Dir, i+1)
		p, err := spec.plan(a)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(p.levels(), got.Preparation.Levels); d != "" {
			t.Errorf("%s: levels (-want +got):\n%s", a.ID, d)
		}
		if d := cmp.Diff([]string{opPull, opCheck, opEmpty, opEmptyTimed}, got.Preparation.Operations); d != "" {
			t.Errorf("%s: operations (-want +got):\n%s", a.ID, d)
		}
		if filepath.Dir(got.Preparation.Folder) != spec.Dir || got.Preparation.Treatment != a.ID {
			t.Errorf("got preparation %+v, want its treatment, in the section's folder", got.Preparation)
		}
		if d := cmp.Diff([]string{driver.Mark + "=" + got.Preparation.Folder, "TMPDIR=" + os.TempDir()},
			slices.Sorted(slices.Values(got.Env))); d != "" {
			t.Errorf("%s: its environment: %s", a.ID, d)
		}
		if m := runBatch(t, tg, a, opCheck, 10); m["wall"] != 4e-9 || m["cpu"] != 2e-9 {
			t.Errorf("ten calls of 4 ns come to %v each", m)
		}
	}
	notes := strings.Join(tg.Can().Notes(), "\n")
	for _, want := range []string{
		"Kubernetes v1.36.99 was compiled by go1.26.8", "below " + spec.Dir + ", on ", "on CPU ",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes lack %q:\n%s", want, notes)
		}
	}
}

// readReceived returns what the newest of n programs received.
func readReceived(t testing.TB, dir string, n int) received {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*.told"))
	if err != nil || len(all) != n {
		t.Fatalf("%d programs were told something, want %d: %v", len(all), n, err)
	}
	newest := slices.MaxFunc(all, func(a, b string) int {
		x, err1 := os.Stat(a)
		y, err2 := os.Stat(b)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		return x.ModTime().Compare(y.ModTime())
	})
	text, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	var out received
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestProcessors: calls one at a time use the last processor; several at a time use all of them.
func TestProcessors(t *testing.T) {
	env := testEnv(t, treatment("accessor", "cached"))
	env.CPUs = []int{2, 5, 7}
	for _, c := range []struct {
		spec       Spec
		treatments []design.Treatment
		want       []int
	}{
		{Spec{}, nil, []int{7}},
		{Spec{}, []design.Treatment{treatment("concurrency", "1")}, []int{7}},
		{Spec{}, []design.Treatment{treatment("concurrency", "1"), treatment("concurrency", "2")}, []int{2, 5, 7}},
		{Spec{Concurrency: new(4)}, nil, []int{2, 5, 7}},
		{Spec{Concurrency: new(4)}, []design.Treatment{treatment("concurrency", "1")}, []int{7}},
	} {
		env.Treatments = c.treatments
		got, err := processors(&c.spec, env)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v: %v", c.treatments, got, c.want, err)
		}
	}
}

// TestPlanBuildsNothing: a plan builds nothing, and reports what is missing.
func TestPlanBuildsNothing(t *testing.T) {
	env := testEnv(t)
	env.Look = true
	empty, bin := t.TempDir(), t.TempDir()
	known := map[string]string{"TARE_CACHE": empty, "PATH": bin}
	env.Getenv = func(name string) (string, bool) { v, ok := known[name]; return v, ok }
	lacking := (Area{}).Preflight(t.Context(), &Spec{Dir: t.TempDir()}, env)
	if len(lacking) != 1 || lacking[0].Severity != area.Error ||
		!strings.Contains(lacking[0].Message, "no Go toolchain") || lacking[0].Hint == "" {
		t.Errorf("without a toolchain: %+v", lacking)
	}
	says := "#!/bin/sh\n[ \"$1\" = env ] || { echo built > " + filepath.Join(empty, "plane", "built") +
		"; exit 1; }\necho '{\"GOVERSION\": \"go1.26.8\"}'\n"
	if err := files.WriteProgram(filepath.Join(bin, "go"), []byte(says)); err != nil {
		t.Fatal(err)
	}
	found := (Area{}).Preflight(t.Context(), &Spec{Dir: t.TempDir()}, env)
	if len(found) != 1 || found[0].Severity != area.Info || !strings.Contains(found[0].Message, "builds it, once") {
		t.Errorf("got %+v, want that a run builds the program", found)
	}
	nothingLeft(t, filepath.Join(empty, "plane"))
	if found := (Area{}).Preflight(t.Context(), withStandIn(t, Spec{}), env); len(found) != 1 ||
		!strings.Contains(found[0].Message, "v1.36.99") {
		t.Errorf("got %+v, want the stand-in's version", found)
	}
}

// TestPlanListsChanges: a plan lists what a run creates while it lasts.
func TestPlanListsChanges(t *testing.T) {
	lines := strings.Join((&Spec{Dir: "/d", Records: new(1000)}).Creates(
		[]design.Treatment{treatment("accessor", "directfs"), treatment("accessor", "disabled")}), "\n")
	for _, want := range []string{"2 processes", "1000 records", "3.91 MiB", "2 folders below /d"} {
		if !strings.Contains(lines, want) {
			t.Errorf("%q lacks %q", lines, want)
		}
	}
	for _, help := range []map[string]string{(Area{}).Adapters(), (Area{}).Presets()} {
		for name, text := range help {
			if text == "" {
				t.Errorf("%s has no explanation", name)
			}
		}
	}
	if len((Area{}).Adapters()) != len(accessors()) || len((Area{}).Presets()) != len(offered()) {
		t.Error("an accessor or an operation has no explanation")
	}
}

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
