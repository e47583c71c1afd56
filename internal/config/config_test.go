package config

import (
	"bytes"
	"encoding"
	"encoding/json"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"tare/area"
	"tare/internal/design"
	"tare/internal/unit"
	"tare/rigs/hosttest"
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

// readSpec is a target of which a run can read these metrics.
type readSpec struct {
	fakeSpec
	metrics []string
}

func (s *readSpec) Under(area.Treatment) (area.Spec, error) { return s, nil }

func (s *readSpec) Says() area.Says {
	return area.Says{Forecast: func(area.Asked, area.Treatment) area.Forecast {
		return area.Forecast{Operations: []string{"token"}, Metrics: s.metrics}
	}}
}

// TestDefaultDurationDecides: where no CPU time decides, trials are as long as the median response needs to decide, if
// that is a minute at most.
func TestDefaultDurationDecides(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		metrics     []string
		rate        float64
		given, want time.Duration
	}{
		"CPU time is read":       {[]string{"cpu", "response"}, 50, 0, 10 * time.Second},
		"no CPU time":            {[]string{"response"}, 50, 0, 21 * time.Second},
		"no CPU time, fast":      {[]string{"response"}, 500, 0, 10 * time.Second},
		"no CPU time, slow":      {[]string{"response"}, 10, 0, 10 * time.Second},
		"the file says how long": {[]string{"response"}, 50, 5 * time.Second, 5 * time.Second},
	} {
		e := &Experiment{
			Name: "x", Area: "turnpike", Question: design.Compare, Target: &readSpec{metrics: c.metrics},
			Baseline: Levels{"mode": "off"}, Alternatives: []Levels{{"mode": "on"}},
			Load: Load{Rate: unit.Rate(c.rate), Turns: TurnsOff, Duration: unit.Duration(c.given)},
		}
		if got := time.Duration(e.WithDefaults().Load.Duration); got != c.want {
			t.Errorf("%s: trials of %v, want %v", name, got, c.want)
		}
	}
}

func TestUnknownTemplate(t *testing.T) {
	ar := filedArea{files: fstest.MapFS{"templates/capacity.yaml": {Data: []byte("x")}}}
	for _, q := range []design.Question{"cookery", "../capacity", "", "capacity\x00"} {
		_, err := Template(ar, q)
		if err == nil || !strings.Contains(err.Error(), "those for capacity") {
			t.Errorf("%q: the error does not say which there are: %v", q, err)
		}
	}
	if text, err := Template(ar, design.Capacity); err != nil || string(text) != "x" {
		t.Errorf("%q, %v", text, err)
	}
}

type filedArea struct {
	fakeArea

	files fs.FS
}

func (f filedArea) Parts() area.Parts { return area.Parts{Files: f.files} }

// TestExperimentAsJSON: factors keep their order, and a secret stays a reference.
func TestExperimentAsJSON(t *testing.T) {
	e, ds := Parse("full.yaml", read(t, "testdata/good/full.yaml"), testAreas())
	if e == nil {
		t.Fatal(ds)
	}
	out, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"factors":{"zeta":["1","true","x y"],"alpha":["0.5"]}`, `"operations":[{"token":3},{"turnpike":1}]`,
		`"password":{"env":"PDP_PASSWORD"}`,
		`"rate":"150/s"`, `"margin":"2%"`, `"treatments":[{`,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("lacks %s:\n%s", want, out)
		}
	}
}

func TestSet(t *testing.T) {
	const file = "# what it is for\nname: x # and why\nload:\n  rate: 5/s\ntreatments:\n  - {mode: a}\n  - {mode: b}\n" +
		"full:\n"
	for _, c := range []struct{ path, value, want string }{
		{"name", "y", "name: y"},
		{"load.rate", "50/s", "rate: 50/s"},
		{"load.max_rate", "200/s", "max_rate: 200/s"},
		{"treatments[1].mode", "[a, c]", "{mode: [a, c]}"},
		{"target.url", "http://127.0.0.1:1/x", "target:\n  url: http://127.0.0.1:1/x"},
		{"full.blocks", "5", "full:\n  blocks: 5"},
		{"load.rate", "[", "the value"},
		{"load.rate.x", "1", "has no fields"},
		{"treatments[2].mode", "a", "no such item"},
		{"name[0]", "a", "no such item"},
		{"load..rate", "1", "not a path"},
		{"", "1", "no path"},
	} {
		got, err := Set([]byte(file), c.path, c.value)
		text := string(got)
		if err != nil {
			text = err.Error()
		} else if !strings.Contains(text, "# what it is for") {
			t.Errorf("%s=%s: the comment is lost: %s", c.path, c.value, text)
		}
		if !strings.Contains(text, c.want) {
			t.Errorf("%s=%s: got %s, want %s", c.path, c.value, text, c.want)
		}
	}
	if _, err := Set([]byte(file), "name", ""); err == nil {
		t.Error("an empty value was set")
	}
	if _, err := Set([]byte("a: [\n"), "name", "x"); err == nil || !strings.Contains(err.Error(), "line") {
		t.Errorf("a broken file: %v", err)
	}
}

// FuzzSet: whatever is set where, the result can be read again, and holds the value there.
func FuzzSet(f *testing.F) {
	f.Add("name: x\nload: {rate: 5/s}\n", "load.max_rate", "200/s")
	f.Add("treatments: [{mode: a}]\n", "treatments[0].mode", "[a, b]")
	f.Fuzz(func(t *testing.T, file, path, value string) {
		once, err := Set([]byte(file), path, value)
		if err != nil {
			return
		}
		twice, err := Set(once, path, value)
		if err != nil || string(twice) != string(once) {
			t.Errorf("set %q=%q in %q: %q, and again %q, %v", path, value, file, once, twice, err)
		}
	})
}

const shortened = `name: x
area: turnpike
question: scale
target: {}
factors: {n: [1, 2, 3]}
fixed: {position: last}
load: {rate: 10/s, duration: 2s, max_time: 1m}
blocks: 10
full:
  factors: {n: [1, 10, 100, 1000]}
  load: {duration: 20s}
  blocks: 40
`

// TestFullReplacesFields: with --full, the fields of section full replace the file's own, and nothing else changes.
func TestFullReplacesFields(t *testing.T) {
	e, ds := Parse("x.yaml", []byte(shortened), testAreas())
	if e == nil {
		t.Fatal(ds)
	}
	w, ok := e.Whole()
	if !ok {
		t.Fatal("no whole experiment")
	}
	if got := len(e.Treatments()); got != 3 || e.Blocks != 10 || time.Duration(e.Load.Duration) != 2*time.Second {
		t.Errorf("the shortened form has %d treatments, %d blocks, %v", got, e.Blocks, e.Load.Duration)
	}
	if got := len(w.Treatments()); got != 4 || w.Blocks != 40 || time.Duration(w.Load.Duration) != 20*time.Second {
		t.Errorf("the whole has %d treatments, %d blocks, %v", got, w.Blocks, w.Load.Duration)
	}
	if w.Load.Rate != e.Load.Rate || w.Load.MaxTime != e.Load.MaxTime || w.Fixed["position"] != "last" || w.Full != nil {
		t.Errorf("what full does not say has changed: %+v", w)
	}
	if _, ok := w.Whole(); ok {
		t.Error("the whole has a whole of its own")
	}
}

// TestFullIsCheckedAlways: an error that occurs only with --full is reported without it, at its line.
func TestFullIsCheckedAlways(t *testing.T) {
	bad := strings.Replace(shortened, "  load: {duration: 20s}", "  treatments: [{n: 5}]", 1)
	e, ds := Parse("x.yaml", []byte(bad), testAreas())
	if e != nil {
		t.Fatal("a file whose whole is wrong was taken")
	}
	if !slices.ContainsFunc(ds, func(d Diagnostic) bool {
		return d.Line == 11 &&
			strings.Contains(d.Message, "varied under factors")
	}) {
		t.Errorf("diagnostics: %v", ds)
	}
	for i := range ds {
		if slices.ContainsFunc(ds[:i], func(d Diagnostic) bool {
			return d.Line == ds[i].Line &&
				d.Message == ds[i].Message
		}) {
			t.Errorf("told twice: %v", ds[i])
		}
	}
}

func TestWindowKeepsTheCaretInPlace(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		line := []rune(rapid.StringMatching(`[a-zé日]{1,400}`).Draw(r, "line"))
		column := rapid.IntRange(1, len(line)).Draw(r, "column")
		shown, at := window(string(line), column)
		got := []rune(shown)
		if len(got) > maxShown+2 {
			r.Errorf("%d characters are shown", len(got))
		}
		if got[at-1] != line[column-1] {
			r.Errorf("the caret points at %q, want %q", got[at-1], line[column-1])
		}
	})
}

func TestLinesEndAsYAMLSays(t *testing.T) {
	source := []byte("\xef\xbb\xbfa\r\nb\rc\nd\u2028e\u0085f")
	for i, want := range []string{"a", "b", "c", "d", "e", "f"} {
		if got, ok := lineOf(source, i+1); !ok || got != want {
			t.Errorf("line %d is %q, want %q", i+1, got, want)
		}
	}
	if _, ok := lineOf(source, 7); ok {
		t.Error("there is a line 7")
	}
	if got, ok := lineOf([]byte("a\n"), 2); !ok || got != "" {
		t.Errorf("after the last line break: %q, %v", got, ok)
	}
}

func mustRead[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](s string) T {
	var x T
	if err := P(&x).UnmarshalText([]byte(s)); err != nil {
		panic(err)
	}
	return x
}

func dur(s string) unit.Duration    { return mustRead[unit.Duration](s) }
func rate(s string) unit.Rate       { return mustRead[unit.Rate](s) }
func size(s string) unit.Size       { return mustRead[unit.Size](s) }
func percent(s string) unit.Percent { return mustRead[unit.Percent](s) }

func typeOf(v any) reflect.Type { return reflect.TypeOf(v) }

func rates(texts ...string) []unit.Rate {
	var out []unit.Rate
	for _, s := range texts {
		out = append(out, rate(s))
	}
	return out
}

func TestMain(m *testing.M) { hosttest.Main(m) }
