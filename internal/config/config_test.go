package config

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v4"

	"tare/area"
	"tare/internal/design"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestBadFiles compares the diagnostics of every file under testdata/bad with its golden file.
func TestBadFiles(t *testing.T) {
	files := glob(t, "testdata/bad/*.yaml")
	if len(files) < 40 {
		t.Fatalf("%d bad files, want at least 40", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data := read(t, file)
			e, ds := Parse(filepath.Base(file), data, testAreas())
			if e != nil || !HasErrors(ds) {
				t.Errorf("Parse accepts the file: %v", ds)
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".golden", written(t, ds, data))
		})
	}
}

// TestGoodFiles parses the files under testdata/good and compares their warnings with golden files.
func TestGoodFiles(t *testing.T) {
	for _, file := range glob(t, "testdata/good/*.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data := read(t, file)
			e, ds := Parse(filepath.Base(file), data, testAreas())
			if e == nil {
				t.Fatalf("Parse refuses the file:\n%s", written(t, ds, data))
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".golden", written(t, ds, data))
			roundTrip(t, e)
		})
	}
}

// roundTrip writes an experiment and reads it again.
func roundTrip(t *testing.T, e *Experiment) {
	t.Helper()
	out, err := yaml.Marshal(e)
	if err != nil {
		t.Fatalf("marshal: %v", err)
	}
	again, ds := Parse("again.yaml", out, testAreas())
	if again == nil {
		t.Fatalf("what was written cannot be read:\n%s\n%s", out, written(t, ds, out))
	}
	if diff := cmp.Diff(e, again, cmpopts.IgnoreUnexported(Experiment{})); diff != "" {
		t.Errorf("marshal and parse change the experiment (-before +after):\n%s\n%s", diff, out)
	}
}

func TestParseReadsEverything(t *testing.T) {
	data := read(t, "testdata/good/full.yaml")
	e, ds := Parse("full.yaml", data, testAreas())
	if e == nil {
		t.Fatalf("refused:\n%s", written(t, ds, data))
	}
	seed := uint64(18446744073709551615)
	cache := false
	want := &Experiment{
		Name: "full", Area: "turnpike", Question: design.Compare,
		Target: &fakeSpec{
			Adapter: "gce-metadata", Embedded: &fakeEmbedded{
				Preset: "healthy", Backlog: 128, Jitter: 0.25, TTL: dur("1h"),
				Memory: size("64KiB"), Cache: &cache,
			},
			Password: Secret{Env: "PDP_PASSWORD"}, Headers: map[string]Secret{"X-Api-Key": {File: "/run/secrets/key"}},
			Workloads: []string{"exec", "open"}, Common: Common{Insecure: true},
		},
		Baseline:     Levels{"enforcer": "none"},
		Alternatives: []Levels{{"enforcer": "seccomp", "mode": "RuntimeDefault"}, {"enforcer": "landlock", "rules": "8"}},
		Factors:      Factors{{Name: "zeta", Levels: []string{"1", "true", "x y"}}, {Name: "alpha", Levels: []string{"0.5"}}},
		Fixed:        Levels{"position": "last"},
		Margin:       percent("2%"),
		Budget:       []string{"seccomp: response.p99 <= +5%", "error <= 0.1%"},
		Load: Load{
			Arrivals: Poisson, Rate: rate("150/s"), Duration: dur("30s"), Timeout: dur("5s"), MaxRate: rate("2000/s"),
			MaxConnections: 4096,
			Engine:         Std, Operations: Operations{{"token", 3}, {"turnpike", 1}},
			Abort:   &Abort{Error: percent("50%"), For: dur("10s")},
			Precise: true, Spin: dur("60us"), Shards: 2,
		},
		Pin: Pin{Generator: "0", Target: "1-2,4"}, Seed: &seed, Blocks: 20,
	}
	if diff := cmp.Diff(want, e, cmpopts.IgnoreUnexported(Experiment{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWriteShape compares the output with the example of the design, byte for byte.
func TestWriteShape(t *testing.T) {
	source := []byte("a: 1\nb: 2\nc: 3\nd: 4\nload:\n  duraton: 10s\n")
	d := Diagnostic{
		File: "x.yaml", Line: 6, Column: 3, Severity: area.Error,
		Message: `unknown field "duraton"; did you mean "duration"?`,
	}
	want := "x.yaml:6:3  unknown field \"duraton\"; did you mean \"duration\"?\n" +
		"  6 |   duraton: 10s\n" +
		"        ^\n"
	if got := written(t, []Diagnostic{d}, source); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	d.Severity = area.Warning
	if got := d.String(); !strings.HasPrefix(got, "x.yaml:6:3  warning: unknown") {
		t.Errorf("a warning does not say so: %s", got)
	}
}

func written(t *testing.T, ds []Diagnostic, source []byte) string {
	t.Helper()
	var out bytes.Buffer
	for _, d := range ds {
		if err := d.Write(&out, source); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(read(t, file)), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func glob(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files match %s: %v", pattern, err)
	}
	return files
}

func TestBudgetLines(t *testing.T) {
	for text, want := range map[string]map[string]int{
		"name: x\nbudget:\n  - a <= 1\n  # why\n  - \"b <= 2\"\n  - a <= 1\n": {"a <= 1": 3, "b <= 2": 5},
		"budget: [a <= 1,\n  b <= 2]\n":                                       {"a <= 1": 1, "b <= 2": 2},
		"target: {budget: [a <= 1]}\n":                                        {},
		"budget: [\n":                                                         {},
		"- budget\n":                                                          {},
		"":                                                                    {},
	} {
		if got := BudgetLines([]byte(text)); !maps.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
