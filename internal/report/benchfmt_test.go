package report

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"golang.org/x/perf/benchfmt"

	"tare/internal/metric"
	"tare/rigs/hosttest"
)

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
