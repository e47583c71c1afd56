package config

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"tare/area"
	"tare/internal/design"
	"tare/rigs/memtest"
)

// FuzzParse holds Parse to its promises on any input: no panic, an experiment exactly when there is no error, and every
// diagnostic at a place that the file has. What was accepted can be written and read again.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml"} {
		for _, file := range glob(f, pattern) {
			f.Add(read(f, file))
		}
	}
	areas := testAreas()
	f.Fuzz(func(t *testing.T, data []byte) {
		defer memtest.Bound(t, len(data))()
		e, ds := Parse("fuzz.yaml", data, areas)
		if (e == nil) != HasErrors(ds) {
			t.Fatalf("experiment: %v, errors: %v", e != nil, ds)
		}
		for _, d := range ds {
			inFile(t, d, data)
		}
		if e == nil {
			return
		}
		e.WithDefaults()
		if len(e.Treatments()) == 0 {
			t.Error("an experiment has no treatment")
		}
		roundTrip(t, e)
	})
}

func inFile(t *testing.T, d Diagnostic, data []byte) {
	t.Helper()
	line, ok := lineOf(data, d.Line)
	if !ok || d.Line < 1 {
		t.Errorf("%s: there is no such line", d)
	}
	if d.Column < 1 || d.Column > utf8.RuneCountInString(line)+1 {
		t.Errorf("%s: the line has %d characters", d, utf8.RuneCountInString(line))
	}
	var out bytes.Buffer
	if err := d.Write(&out, data); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 3 || !utf8.Valid(out.Bytes()) {
		t.Errorf("the diagnostic has %d lines, want 3 of UTF-8:\n%q", n, out.String())
	}
	if i := strings.IndexFunc(strings.ReplaceAll(out.String(), "\n", ""), func(r rune) bool {
		return r != utf8.RuneError &&
			unprintable(r)
	}); i >= 0 {
		t.Errorf("the diagnostic has unprintable characters: %q", out.String())
	}
}

// TestWrittenExperimentsCanBeRead generates experiments that are hard to quote.
func TestWrittenExperimentsCanBeRead(t *testing.T) {
	levels := rapid.MapOfN(
		rapid.StringMatching(`[a-z_][a-zA-Z0-9_.-]{0,5}`),
		rapid.StringOfN(rapid.RuneFrom([]rune("aZ0.-:#'\"{}[]&*!|>%@`, ~?<=\\/éß日")), 1, 12, -1),
		1, 3)
	rapid.Check(t, func(r *rapid.T) {
		base := levels.Draw(r, "baseline")
		other := levels.Draw(r, "treatment")
		for k, v := range base {
			if _, ok := other[k]; !ok {
				other[k] = v + "x"
			}
		}
		if cmp.Equal(base, other) {
			r.Skip("a treatment that is the baseline")
		}
		seed := rapid.Uint64().Draw(r, "seed")
		e := &Experiment{
			Name: "x", Area: "turnpike", Question: design.Compare,
			Target:   &fakeSpec{URL: "http://[::1]:80", Workloads: []string{"null"}},
			Baseline: base, Alternatives: []Levels{other},
			Factors: Factors{{Name: "Z", Levels: []string{"~", "1e3", "0x1"}}, {Name: "A", Levels: []string{"yes"}}},
			Seed:    &seed, Load: Load{Rate: rate("3/s"), MaxRate: rate("7/s"), Operations: Operations{{"<<", 2}, {"b", 1}}},
		}
		out, err := yaml.Marshal(e)
		if err != nil {
			r.Fatal(err)
		}
		got, ds := Parse("x.yaml", out, testAreas())
		if got == nil {
			r.Fatalf("refused: %v\n%s", ds, out)
		}
		if diff := cmp.Diff(e, got, cmpopts.IgnoreUnexported(Experiment{})); diff != "" {
			r.Fatalf("(-want +got):\n%s\n%s", diff, out)
		}
	})
}

// TestParseIsBounded parses input that could take forever.
func TestParseIsBounded(t *testing.T) {
	head := "name: x\narea: turnpike\nquestion: scale\ntarget: {}\n"
	var bomb strings.Builder
	bomb.WriteString(head + "x: &a0 [1,2,3,4,5,6,7,8,9,10]\nfactors:\n")
	for i := range 7_000 {
		bomb.WriteString("  f" + strings.Repeat("x", i%40) + string(rune('a'+i%26)) + ": *a0\n")
	}
	for name, data := range map[string]string{
		"aliases":   bomb.String(),
		"list":      head + "budget: [" + strings.Repeat("a,", 100_000) + "]\n",
		"huge":      head + strings.Repeat("#", maxSource),
		"long word": head + strings.Repeat("y", 200_000) + ": 1\n",
		"factors":   head + "factors: {" + strings.Repeat("z: [1,2,3,4,5,6,7,8,9], ", 10_000) + "}\n",
		"deep":      head + "budget: " + strings.Repeat("[", 100_000),
		"deep maps": head + strings.Repeat("{a: ", 50_000),
	} {
		_, ds := Parse("x.yaml", []byte(data), testAreas())
		if !HasErrors(ds) || len(ds) > maxDiagnostics {
			t.Errorf("%s: %d diagnostics", name, len(ds))
		}
		for _, d := range ds {
			if d.Severity == area.Error && len(d.Message) > 2000 {
				t.Errorf("%s: a message of %d bytes", name, len(d.Message))
			}
		}
	}
}
