package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"

	"tare/internal/design"
	"tare/internal/metric"
)

// realBenchstat builds benchstat itself, of the version that go.mod pins, from the module cache: without a network.
func realBenchstat(t *testing.T) string {
	t.Helper()
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("SKIPPED: no go tool to build benchstat with: %v", err)
	}
	path := filepath.Join(t.TempDir(), "benchstat")
	build := exec.Command(goTool, "build", "-o", path, "golang.org/x/perf/cmd/benchstat")
	build.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=readonly", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: benchstat cannot be built from the module cache: %v\n%s", err, out)
	}
	return path
}

// A statRow is what a table says of one row, cell by cell: the median's digits, its interval, and the change with its p.
type statRow struct {
	label string
	cells [][4]string
}

// theirs are benchstat's own tables by unit.
func theirs(t *testing.T, benchstat, lines, columns string) map[string][]statRow {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.bench")
	if err := os.WriteFile(file, []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(benchstat, "-format", "csv", "-col", columns, "-filter", "-/control:aa", file)
	var out, warnings bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &warnings
	if err := cmd.Run(); err != nil {
		t.Fatalf("benchstat: %v\n%s", err, warnings.String())
	}
	in := csv.NewReader(&out)
	in.FieldsPerRecord = -1
	records, err := in.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string][]statRow{}
	unit := ""
	for _, rec := range records {
		switch {
		case len(rec) > 2 && rec[0] == "" && rec[2] == "CI":
			unit = rec[1]
		case len(rec) < 3 || rec[0] == "":
		default:
			tables[unit] = append(tables[unit], rowOf(rec))
		}
	}
	return tables
}

func rowOf(rec []string) statRow {
	row := statRow{label: rec[0]}
	field := func(i int) string {
		if i < len(rec) {
			return rec[i]
		}
		return ""
	}
	row.cells = append(row.cells, [4]string{field(1), field(2)})
	for i := 3; i < len(rec); i += 4 {
		row.cells = append(row.cells, [4]string{field(i), field(i + 1), field(i + 2), field(i + 3)})
	}
	return row
}

// ours are the tables of the encoder, before they are set.
func ours(t *testing.T, r *Report) map[string][]statRow {
	t.Helper()
	all, err := r.series()
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string][]statRow{}
	for _, b := range r.benchTables(all) {
		for _, row := range b.rows {
			out := statRow{label: row.label}
			for _, c := range row.cells {
				var cell [4]string
				if c != nil {
					cell[0], cell[1] = fmt.Sprint(c.summary.Center), c.summary.PctRangeString()
					if c.change != nil {
						cell[2], cell[3] = c.change.FormatDelta(row.cells[0].summary.Center, c.summary.Center), c.change.String()
					}
				}
				out.cells = append(out.cells, cell)
			}
			tables[b.unit] = append(tables[b.unit], out)
		}
		last := statRow{label: "geomean"}
		var notes footnotes
		line := b.lastLine(&notes)
		for i := range b.columns {
			s := b.summary(i)
			cell := [4]string{2: line.cells[i][partDelta]}
			if line.cells[i][partCenter] != "" {
				cell[0] = fmt.Sprint(s.center)
			}
			last.cells = append(last.cells, cell)
		}
		tables[b.unit] = append(tables[b.unit], last)
	}
	return tables
}

// TestBenchstatSaysTheSame runs benchstat on the lines of Benchfmt and holds each of its numbers against each of ours.
func TestBenchstatSaysTheSame(t *testing.T) {
	benchstat := realBenchstat(t)
	for name, columns := range map[string]string{
		"pull-manager": "/accessor", "identity-cache": "/cache", "enforcers": "/enforcer,/mode,/rules", "landlock-growth": "/enforcer,/rules", "unreliable": "/enforcer",
		"compare-interrupted": "/enforcer", "decision-compare": "/engine", "psp": "/mechanism,/policies,/bound",
	} {
		r := samples()[name]
		if r == nil {
			t.Fatalf("there is no sample %q", name)
		}
		want, got := theirs(t, benchstat, string(encode(t, Benchfmt, r)), columns), ours(t, r)
		if len(want) == 0 || len(want) != len(got) {
			t.Errorf("%s: benchstat has %d tables, we have %d", name, len(want), len(got))
		}
		compared := 0
		for unit, rows := range want {
			if len(rows) != len(got[unit]) {
				t.Errorf("%s, %s: benchstat has %d rows, we have %d", name, unit, len(rows), len(got[unit]))
				continue
			}
			for _, row := range rows {
				i := slices.IndexFunc(got[unit], func(x statRow) bool { return x.label == row.label })
				if i < 0 {
					t.Errorf("%s, %s: benchstat has a row %s, we have none", name, unit, row.label)
					continue
				}
				compared += sameCells(t, name+", "+unit+", "+row.label, row.cells, got[unit][i].cells)
			}
		}
		t.Logf("%s: %d cells are the same", name, compared)
	}
}

// sameCells compares a row. Geometric means may differ in their last digit, by the order in which logarithms are added.
func sameCells(t *testing.T, where string, want, got [][4]string) int {
	t.Helper()
	for len(got) > len(want) && got[len(got)-1] == [4]string{} {
		got = got[:len(got)-1]
	}
	for len(want) > len(got) && want[len(want)-1] == [4]string{} {
		want = want[:len(want)-1]
	}
	if len(want) != len(got) {
		t.Errorf("%s: benchstat has %d columns, we have %d: %q, %q", where, len(want), len(got), want, got)
		return 0
	}
	for i := range want {
		w, g := want[i], got[i]
		a, errA := strconv.ParseFloat(w[0], 64)
		b, errB := strconv.ParseFloat(g[0], 64)
		if (errA == nil) != (errB == nil) || errA == nil && (a-b > 1e-12*a || b-a > 1e-12*a) {
			t.Errorf("%s, column %d: benchstat's median is %s, ours %s", where, i+1, w[0], g[0])
		}
		if w[1] != g[1] || w[2] != g[2] || w[3] != g[3] {
			t.Errorf("%s, column %d: benchstat says %q, we say %q", where, i+1, w, g)
		}
	}
	return len(want)
}

// TestBenchstatsTextIsOurs compares the printed texts, without what is ours alone and without white space, which is set otherwise.
func TestBenchstatsTextIsOurs(t *testing.T) {
	benchstat := realBenchstat(t)
	r := pullManager()
	file := filepath.Join(t.TempDir(), "run.bench")
	if err := os.WriteFile(file, encode(t, Benchfmt, r), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(benchstat, "-col", "/accessor", "-filter", "-/control:aa", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Effects { // what is left is benchstat's
		r.Effects[i].Treatment = "another"
	}
	text := string(encode(t, Benchstat, r))
	plain := func(s string) string { return strings.Join(strings.Fields(strings.ReplaceAll(s, ownHead, "")), " ") }
	_, tables, _ := strings.Cut(text, "\n\n")
	tables, _, _ = strings.Cut(tables, "\n± and p")
	_, want, _ := strings.Cut(string(out), "area: imagepull\n")
	if plain(want) != plain(tables) {
		t.Errorf("benchstat prints\n%s\nwe print\n%s", want, tables)
	}
}

// TestBenchstatLaysOutWhatIsPublished: the form of the tables that Kubernetes' pull request 131882 published, from values of which the statistics
// are known.
func TestBenchstatLaysOutWhatIsPublished(t *testing.T) {
	text := string(encode(t, Benchstat, pullManager()))
	for _, want := range []string{
		`Check/records=100/hits=100 +\d+\.\d+n ± +\d% +\d+\.\d+n ± +\d% +-39\.\d\d% \(p=0\.000 n=10\) +-39\.\d % \[-39\.\d, -\d+\.\d\] ✓ improved`,
		`geomean +\d+\.\d+µ +\d+\.\d+µ +-\d\d\.\d\d%`,
		`(?m)^ +│ +directfs +│ +cached +│ +disabled +│$`,
		`(?m)^ +│ +allocs/op +│ +allocs/op +vs base +tare +│`,
		`(?m)^ +│ +B/op +│`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("nothing is like %s in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "control") || strings.Contains(text, "A/A") {
		t.Errorf("the A/A arm must be left out:\n%s", text)
	}
}

// TestBenchstatOfTwoRuns: treatments of two runs have the same levels; each stands beside its own base.
func TestBenchstatOfTwoRuns(t *testing.T) {
	r := base("a → b")
	r.Question, r.Generator, r.Treatments = design.Compare, nil, nil
	for _, level := range []string{"off", "on"} {
		for i, id := range []string{"a:cache=" + level, "cache=" + level} {
			r.Treatments = append(r.Treatments, Treatment{ID: id, Baseline: i == 0, Levels: map[string]string{"cache": level}})
			v := []float64{1e-6, 1.1e-6, .9e-6, 1.05e-6, .95e-6, 1e-6}
			for k := range v {
				v[k] *= float64(1 + i)
			}
			r.Blocks = append(r.Blocks, BlockValues{Treatment: id, Operation: "open", Metric: "cpu", Unit: "CPU-s", Values: known(v)})
		}
		r.Effects = append(r.Effects, Effect{
			Treatment: "cache=" + level, Baseline: "a:cache=" + level, Operation: "open", Metric: "cpu", Kind: "ratio", Estimate: 1, Lo: .9, Hi: 1.1, Level: .98, Verdict: Regressed, Gating: true, Blocks: 6,
		})
	}
	text := string(encode(t, Benchstat, r))
	for _, want := range []string{"│     base     │", "treated", `Open/cache=off`, `Open/cache=on`} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in:\n%s", want, text)
		}
	}
	if n := strings.Count(text, "+100.00% (p=0.002 n=6)  +100 % [90, 110] ✗ regressed"); n != 2 {
		t.Errorf("%d rows have their effect, want 2:\n%s", n, text)
	}
}

func TestBenchstatWithoutBlocks(t *testing.T) {
	if err := Benchstat(&bytes.Buffer{}, acceptQueue()); !errors.Is(err, ErrNoBlocks) || !strings.HasPrefix(err.Error(), "benchstat: ") {
		t.Errorf("%v, want an error that says that nothing was measured in blocks", err)
	}
	if err := Benchstat(&bytes.Buffer{}, samples()["soak"]); err == nil {
		t.Error("the windows of a soak are no independent repetitions, and were taken for such")
	}
}

// TestBenchfmtNamesWhatGoNames: units that package testing has keep its names, so that benchstat's tables are those that people know.
func TestBenchfmtNamesWhatGoNames(t *testing.T) {
	values, _ := readBenchfmt(t, encode(t, Benchfmt, pullManager()))
	got := values["Check/accessor=cached/records=100/hits=100"]
	for unit, want := range map[string]float64{"sec/op": 417e-6, "cpu-sec/op": 409e-6, "allocs/op": 58, "B/op": 59392, "hits-ratio": 1, "cache-hits-ratio": 1} {
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

// TestGeomean against benchmath's own users: a value that is not above 0 has none.
func TestGeomean(t *testing.T) {
	if g := geomean([]float64{1, 4}); g < 2-1e-12 || g > 2+1e-12 {
		t.Errorf("%v, want 2", g)
	}
	for _, v := range [][]float64{nil, {1, 0}, {1, -1}} {
		if g := geomean(v); g == g {
			t.Errorf("%v has the mean %v", v, g)
		}
	}
}

// TestCellsDoNotSortTheReport: benchmath sorts what it is given.
func TestCellsDoNotSortTheReport(t *testing.T) {
	r := pullManager()
	before := *r.Blocks[0].Values[0]
	s := series{treatment: &r.Treatments[0], operation: "check", values: []*BlockValues{&r.Blocks[0]}}
	c := s.cell("sec/op")
	if c == nil || !slices.IsSorted(c.sample.Values) || *r.Blocks[0].Values[0] != before {
		t.Errorf("the report's values were touched: %v, then %v", before, *r.Blocks[0].Values[0])
	}
	if _, ok := any(benchmath.AssumeNothing).(benchmath.Assumption); !ok || c.summary.Center == 0 {
		t.Error("no median")
	}
}

// FuzzBenchstat: whatever a report holds, every series of it stands in the tables, and nothing in it moves the terminal.
func FuzzBenchstat(f *testing.F) {
	for _, r := range samples() {
		if b, err := json.Marshal(r); err == nil && len(r.Blocks) > 0 && len(b) < 20_000 {
			f.Add(b, "")
		}
	}
	small := compareHostile()
	b, err := json.Marshal(small)
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range hostileTexts {
		f.Add(b, s)
	}
	f.Fuzz(func(t *testing.T, b []byte, text string) {
		var r Report
		if json.Unmarshal(b, &r) != nil || len(r.Blocks) == 0 {
			return
		}
		if text != "" {
			spoil(&r, text)
		}
		var out bytes.Buffer
		if err := Benchstat(&out, &r); err != nil {
			t.Fatal(err)
		}
		for _, c := range out.String() {
			if c != '\n' && (unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c)) {
				t.Fatalf("%U in:\n%s", c, out.String())
			}
		}
		all, err := r.series()
		if err != nil {
			t.Fatal(err)
		}
		placed := map[*series]bool{}
		for _, p := range r.gridOf(all).rows {
			for _, s := range p.series {
				placed[s] = true
			}
		}
		for i := range all {
			if s := &all[i]; !placed[s] && s.treatment.Control != design.AA && s.treatment.ID != design.AAArm {
				t.Errorf("%s of %s stands nowhere", s.operation, s.treatment.ID)
			}
		}
	})
}
