package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"

	"tare/internal/design"
	"tare/internal/metric"
	"tare/rigs/hosttest"
)

// readBenchfmt reads benchmark results as benchstat does: values by name and unit, in the order of the lines.
func readBenchfmt(t *testing.T, b []byte) (values map[string]map[string][]float64, order []string) {
	t.Helper()
	values = map[string]map[string][]float64{}
	in := benchfmt.NewReader(bytes.NewReader(b), "report")
	for in.Scan() {
		switch rec := in.Result().(type) {
		case *benchfmt.SyntaxError:
			t.Fatalf("%v in:\n%s", rec, b)
		case *benchfmt.UnitMetadata:
		case *benchfmt.Result:
			name := rec.Name.String()
			if values[name] == nil {
				values[name] = map[string][]float64{}
				order = append(order, name)
			}
			for _, v := range rec.Values {
				values[name][v.Unit] = append(values[name][v.Unit], v.Value)
			}
		}
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return values, order
}

// TestBenchstatPrintsOurMedians reads our lines with benchstat's own reader and statistics (its default assumption,
// which takes the median).
func TestBenchstatPrintsOurMedians(t *testing.T) {
	const treatmentUnit, elapsedUnit = "cpu-sec/op", "sec/op"
	compared := 0
	for name, r := range samples() {
		if len(r.Blocks) == 0 {
			continue
		}
		values, _ := readBenchfmt(t, encode(t, Benchfmt, r))
		used := 0
		for i := range r.Treatments {
			tr := &r.Treatments[i]
			for _, m := range tr.Metrics {
				unit := treatmentUnit
				if m.Name != "cpu" {
					unit = elapsedUnit
				}
				if m.Quantile == "p99" || m.Unit != "s" && m.Unit != "CPU-s" ||
					name == "compare-hostile" && tr.Control == design.None && !tr.Baseline {
					continue // no values by block, or under a name that is not the metric's
				}
				// The name as a person would write it, not as the encoder makes it.
				want := strings.ToUpper(m.Operation[:1]) + m.Operation[1:]
				for _, f := range r.Design.Factors {
					if level, ok := tr.Levels[f]; ok {
						want += "/" + f + "=" + level
					}
				}
				if tr.Control == design.AA {
					want += "/control=aa"
				}
				sample := values[want][unit]
				if len(sample) == 0 {
					t.Errorf("%s: there is no %s of %s", name, unit, want)
					continue
				}
				got := benchmath.AssumeNothing.Summary(benchmath.NewSample(sample, &benchmath.DefaultThresholds), 0.95).Center
				if math.Abs(got-m.Value) > 1e-12*math.Abs(m.Value) {
					t.Errorf("%s: benchstat says that %s takes %v %s, the report %v", name, want, got, unit, m.Value)
				}
				used++
			}
		}
		compared += used
	}
	if compared < 100 {
		t.Errorf("only %d medians were compared", compared)
	}
}

// TestBenchfmtHasEveryBlock compares all values, in the order of the blocks.
func TestBenchfmtHasEveryBlock(t *testing.T) {
	r := enforcers()
	values, order := readBenchfmt(t, encode(t, Benchfmt, r))
	if len(order) != 50 || order[0] != "Open/enforcer=none" || order[len(order)-1] != "Compute/enforcer=none/control=aa" {
		t.Errorf("%d names, from %s to %s; want those of 10 arms in the order of the file",
			len(order), order[0], order[len(order)-1])
	}
	n := 0
	for _, b := range r.Blocks {
		unit := map[string]string{"cpu": "cpu-sec/op", "wall": "sec/op"}[b.Metric]
		var want []float64
		for _, v := range b.Values {
			if v != nil {
				want = append(want, *v)
			}
		}
		found := false
		for name := range values {
			found = found || strings.EqualFold(strings.SplitN(name, "/", 2)[0], b.Operation) &&
				slices.Equal(values[name][unit], want)
		}
		if !found {
			t.Errorf("the values of %s under %s are not there", b.measured(), b.Treatment)
		}
		n += len(want)
	}
	got := 0
	for _, units := range values {
		for _, v := range units {
			got += len(v)
		}
	}
	if got != n {
		t.Errorf("%d values, want %d: a block without a value must leave none", got, n)
	}
}

// TestBenchstatPutsRunsSideBySide: configuration lines that differ would part runs that are to be compared.
func TestBenchstatPutsRunsSideBySide(t *testing.T) {
	a, b := enforcers(), enforcers()
	b.Experiment.Seed, b.Tool.Version, b.Verdict, b.Reason, b.Started = 7, "9.9.9", Pass, "", b.Started.AddDate(1, 0, 0)
	config := func(r *Report) []string {
		var out []string
		in := benchfmt.NewReader(bytes.NewReader(encode(t, Benchfmt, r)), "report")
		for in.Scan() {
			if res, ok := in.Result().(*benchfmt.Result); ok {
				for _, c := range res.Config {
					out = append(out, c.Key+"="+string(c.Value))
				}
				break
			}
		}
		return out
	}
	if x, y := config(a), config(b); len(x) != 2 || !slices.Equal(x, y) {
		t.Errorf("configurations %v and %v, want the experiment and its area alike", x, y)
	}
	if out := string(encode(t, Benchfmt, b)); !strings.Contains(out, "# tare 9.9.9, ") ||
		!strings.Contains(out, "seed 7\n") {
		t.Errorf("the origin is not there:\n%.200s", out)
	}
}

func TestBenchfmtUnits(t *testing.T) {
	v := []*float64{new(2.0)}
	r := &Report{Treatments: []Treatment{{ID: "a"}}, Blocks: []BlockValues{
		{Treatment: "a", Metric: "response", Quantile: "p50", Unit: metric.Seconds, Values: v},
		{Treatment: "a", Metric: "response", Quantile: "p99", Unit: metric.Seconds, Values: v},
		{Treatment: "a", Metric: "cpu", Unit: metric.CPUSeconds, Values: v},
		{Treatment: "a", Metric: "instructions", Unit: metric.Count, Values: v},
		{Treatment: "a", Metric: "error", Unit: metric.Ratio, Values: v},
		{Treatment: "a", Metric: "goodput", Unit: metric.PerSecond, Values: v},
		{Treatment: "a", Metric: "rss", Unit: metric.Bytes, Values: v},
	}}
	out := string(encode(t, Benchfmt, r))
	const want = "BenchmarkAll/treatment=a 1 2 sec/op 2 p99-response-sec/op 2 cpu-sec/op 2 instructions/op 2 " +
		"error-ratio 2 goodput-op/sec 2 rss-B\n"
	if !strings.Contains(out, want) {
		t.Errorf("no %q in:\n%s", want, out)
	}
	for _, u := range []string{"Unit sec/op better=lower\n", "Unit goodput-op/sec better=higher\n"} {
		if !strings.Contains(out, u) {
			t.Errorf("no %q in:\n%s", u, out)
		}
	}
}

func FuzzBenchfmt(f *testing.F) {
	for _, s := range hostileTexts {
		f.Add(s, s+"x", s, "y-8")
	}
	f.Add("open", "open", "rules=8", "rules_8")
	f.Add("a/b", "a b", "é", "=")
	f.Fuzz(func(t *testing.T, op, other, id, level string) {
		r := &Report{
			Experiment: Experiment{Name: id}, Area: level,
			Treatments: []Treatment{{ID: id, Levels: map[string]string{other: level, id: op}}, {ID: other}},
		}
		// Each series has a value of its own, so that two that met under one name would show.
		want := map[float64]bool{}
		for _, treatment := range []string{id, other} {
			for _, o := range []string{op, other} {
				v := float64(len(want) + 1)
				if !slices.ContainsFunc(r.Blocks, func(b BlockValues) bool {
					return b.Treatment == treatment &&
						b.Operation == o
				}) {
					r.Blocks = append(r.Blocks, BlockValues{
						Treatment: treatment, Operation: o, Metric: "wall", Unit: metric.Seconds,
						Values: []*float64{&v, &v},
					})
					want[v] = true
				}
			}
		}
		values, order := readBenchfmt(t, encode(t, Benchfmt, r))
		if len(order) != len(r.Blocks) {
			t.Fatalf("%d names for %d series: %q", len(order), len(r.Blocks), order)
		}
		for name, units := range values {
			first := []rune(name)[0]
			v := units["sec/op"]
			if !unicode.IsUpper(first) || len(v) != 2 || v[0] != v[1] || !want[v[0]] {
				t.Errorf("%q holds %v", name, units)
			}
			delete(want, v[0])
			if base, parts := benchfmt.Name(name).Parts(); len(parts) == 0 || len(base) == 0 {
				t.Errorf("%q does not say the treatment", name)
			} else if last := parts[len(parts)-1]; last[0] == '-' {
				t.Errorf("%q ends in what reads as a number of processors", name)
			}
		}
		if len(want) != 0 {
			t.Errorf("the values %v are lost", want)
		}
	})
}

func TestHyperfine(t *testing.T) {
	r := enforcers()
	var got struct {
		Results []map[string]any `json:"results"`
	}
	if err := json.Unmarshal(encode(t, Hyperfine, r), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Results) != 4 {
		t.Fatalf("%d results, want one for each treatment with wall times", len(got.Results))
	}
	first := got.Results[0]
	// Computed by hand from the nine values of the sample, in µs.
	for key, want := range map[string]float64{
		"mean": 1.3203333e-6, "stddev": 0.0493254e-6, "median": 1.31e-6,
		"min": 1.258e-6, "max": 1.402e-6,
	} {
		if v, ok := first[key].(float64); !ok || math.Abs(v/want-1) > 1e-5 {
			t.Errorf("%s is %v, want %v", key, first[key], want)
		}
	}
	times, _ := first["times"].([]any)
	if len(times) != 9 || times[1] != 1.271e-6 {
		t.Errorf("times are %v, want the nine of the blocks in their order", times)
	}
	if first["command"] != "open enforcer=none" {
		t.Errorf("command %v", first["command"])
	}
	if p, _ := first["parameters"].(map[string]any); p["enforcer"] != "none" || p["operation"] != "open" {
		t.Errorf("parameters %v", first["parameters"])
	}
	for _, unknown := range []string{"user", "system", "exit_codes"} {
		if _, ok := first[unknown]; ok {
			t.Errorf("%s is there although it is not known", unknown)
		}
	}
}

func TestHyperfineOfOneBlock(t *testing.T) {
	r := &Report{Blocks: []BlockValues{{
		Treatment: "a", Operation: "x", Metric: "wall", Unit: metric.Seconds,
		Values: []*float64{new(0.5)},
	}}}
	out := string(encode(t, Hyperfine, r))
	if !strings.Contains(out, `"stddev": null`) {
		t.Errorf("a single time has no standard deviation:\n%s", out)
	}
}

func TestActionBenchmark(t *testing.T) {
	r := stored("turnpike-cache")
	r.Blocks = append(r.Blocks, BlockValues{
		Treatment: "cache=on", Operation: "token", Metric: "goodput",
		Unit: metric.PerSecond, Values: []*float64{new(100.0)},
	})
	var got []struct {
		Name, Unit, Range, Extra string
		Value                    *float64
	}
	if err := json.Unmarshal(encode(t, ActionBenchmark, r), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"token.cpu · cache=on": 61300, "token.cpu · cache=off": 412000, "token.response.p50 · cache=on": 820000,
		"token.response.p50 · cache=off": 4310000,
	}
	if len(got) != len(want) {
		t.Errorf("%d entries, want %d: neither the A/A arm nor what should be large", len(got), len(want))
	}
	for _, e := range got {
		if e.Value == nil || *e.Value != want[e.Name] {
			t.Errorf("%s is %v, want %v", e.Name, e.Value, want[e.Name])
		}
		unit := "ns/op"
		if strings.Contains(e.Name, "cpu") {
			unit = "cpu-ns/op"
		}
		if e.Unit != unit || !strings.HasPrefix(e.Range, "± ") || !strings.Contains(e.Extra, "20 blocks") {
			t.Errorf("%+v", e)
		}
		if strings.HasSuffix(e.Name, "off") && !strings.Contains(e.Extra, "against cache=on: costs") {
			t.Errorf("%+v does not say its effect", e)
		}
	}
}

// TestFormsOfBlocksSayThatThereAreNone: tools that take lines for independent repetitions are refused what is none,
// with a sentence that says where to look instead.
func TestFormsOfBlocksSayThatThereAreNone(t *testing.T) {
	for _, c := range []struct {
		form string
		of   *Report
		is   error // nil: any
		says string
	}{
		{"benchfmt", stored("accept-queue"), ErrNoBlocks, ""},
		{"hyperfine", stored("accept-queue"), ErrNoBlocks, ""},
		{"github-action-benchmark", stored("accept-queue"), ErrNoBlocks, ""},
		{"benchfmt", xacmlSoak(), ErrWindows, "github-action-benchmark"},
		{"hyperfine", xacmlSoak(), ErrWindows, "github-action-benchmark"},
		{"hyperfine", unreliable(), nil, "wall"},
	} {
		err := Encoders()[c.form](io.Discard, c.of)
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.HasPrefix(err.Error(), c.form+": ") ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s of %s: %v, want %v", c.form, c.of.Experiment.Name, err, c.is)
		}
	}
}

// realBenchstat builds benchstat itself, of the version that go.mod pins, from the module cache: without a network.
func realBenchstat(t *testing.T) string {
	t.Helper()
	goTool, err := exec.LookPath("go")
	if err != nil {
		hosttest.Missing(t, fmt.Sprintf("there is no Go toolchain: %v", err), "have go on PATH")
	}
	path := filepath.Join(t.TempDir(), "benchstat")
	build := exec.Command(goTool, "build", "-o", path, "golang.org/x/perf/cmd/benchstat")
	build.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=readonly", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		hosttest.Missing(t, fmt.Sprintf("benchstat cannot be built from the module cache: %s", out), "go mod download")
	}
	return path
}

// TestBenchstatReadsOurLines: benchstat sets the tables that docs/reference/outputs.md shows, with the arguments that
// it names.
func TestBenchstatReadsOurLines(t *testing.T) {
	benchstat := realBenchstat(t)
	file := filepath.Join(t.TempDir(), "run.bench")
	if err := os.WriteFile(file, encode(t, Benchfmt, pullManager()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(benchstat, "-col", "/accessor", "-filter", "-/control:aa", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`(?m)^ +│ +directfs +│ +cached +│ +disabled +│$`,
		`Check/records=100/hits=100 +\d+\.\d+n ± +\d% +\d+\.\d+n ± +\d% +-39\.\d\d% \(p=0\.000 n=10\)`,
		`geomean +\d+\.\d+µ +\d+\.\d+µ +-\d\d\.\d\d%`,
		`(?m)^ +│ +allocs/op +│ +allocs/op +vs base +│`,
		`(?m)^ +│ +B/op +│`,
	} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("nothing is like %s in:\n%s", want, out)
		}
	}
}

// TestBenchfmtNamesWhatGoNames: units that package testing has keep its names, so that benchstat's tables are those
// that people know.
func TestBenchfmtNamesWhatGoNames(t *testing.T) {
	values, _ := readBenchfmt(t, encode(t, Benchfmt, pullManager()))
	got := values["Check/accessor=cached/records=100/hits=100"]
	for unit, want := range map[string]float64{
		"sec/op": 417e-6, "cpu-sec/op": 409e-6, "allocs/op": 58, "B/op": 59392,
		"hits-ratio": 1, "cache-hits-ratio": 1,
	} {
		if len(got[unit]) != 10 || got[unit][0] < want*.97 || got[unit][0] > want*1.03 {
			t.Errorf("%s are %v, want 10 values near %v", unit, got[unit], want)
		}
	}
	in := benchfmt.NewReader(bytes.NewReader(encode(t, Benchfmt, pullManager())), "report")
	for in.Scan() {
	}
	for unit, want := range map[string]int{"allocs/op": -1, "hits-ratio": 1, "cache-hits-ratio": 1} {
		if better := in.Units().GetBetter(unit); better != want {
			t.Errorf("better(%s) is %d, want %d", unit, better, want)
		}
	}
}

// TestAmounts: what is counted says of what it is.
func TestAmounts(t *testing.T) {
	for _, c := range []struct {
		metric metric.Metric
		value  float64
		want   string
	}{
		{metric.Allocations, 8, "8 objects"},
		{metric.Allocations, 1, "1 object"},
		{metric.Allocations, 3.512, "3.51 objects"},
		{metric.Allocated, 1229, "1.2 KiB"},
		{metric.Hits, .853, "85.3%"},
		{metric.Instructions, 8, "8"},
	} {
		if got := Amount(c.metric.Name, c.metric.Unit)(c.value); got != c.want {
			t.Errorf("%v of %s is %q, want %q", c.value, c.metric.Name, got, c.want)
		}
	}
	x := Effect{Metric: "allocations", Kind: "difference", Estimate: -39.53, Lo: -39.54, Hi: -39.5, Blocks: 6}
	if got := x.Change(); got != "-39.5 objects [-39.5, -39.5]" {
		t.Errorf("a difference of objects is %q", got)
	}
	x = Effect{Metric: "allocations", Kind: "ratio", Estimate: -.463, Lo: -.463, Hi: -.463, Blocks: 6}
	if got := x.Change(); got != "-46.3 % [-46.3, -46.3]" {
		t.Errorf("a change that does not vary is %q", got)
	}
}
