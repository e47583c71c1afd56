package gobench

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tare/internal/driver"
	"tare/rigs/hosttest"
)

// TestParseTakesWhatIsWritten: totals are exact, other units are named, and GOMAXPROCS is no part of a name.
func TestParseTakesWhatIsWritten(t *testing.T) {
	const out = "goos: linux\nBenchmarkA/size=10-2  \t 7\t 12.34 ns/op\t 3.00 MB/s\t 48 B/op\t 2 allocs/op\nPASS\n"
	got, err := parse(out, 2, nil)
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	r := got[0]
	if r.name != "A/size=10" || r.calls != 7 || r.each["wall"] != 12.34/1e9 || r.each["allocated"] != 48 ||
		r.each["allocations"] != 2 || !slices.Equal(r.others, []string{"MB/s"}) {
		t.Errorf("parsed %+v", r)
	}
	if got, err := parse("BenchmarkA-2 1 5 ns/op\n", 1, nil); err != nil || got[0].name != "A-2" {
		t.Errorf("with one processor Go appends nothing: got %v, %v", got, err)
	}
}

func TestParseRefusesWhatIsNoResult(t *testing.T) {
	ended := errors.New("exit status 2")
	for _, c := range []struct {
		out   string
		ended error
		want  string
	}{
		{"BenchmarkA-2 \thello\n 1 5 ns/op\n", nil, "must not print to standard output"},
		{"BenchmarkA-2 1 5.0 widgets/op\n", nil, "no ns/op of BenchmarkA"},
		{"goos: linux\npanic: index out of range\n\ngoroutine 1:\n", ended, "exit status 2: panic: index out of range"},
		{"--- FAIL: BenchmarkA\n    a_test.go:7: broken\nFAIL\n", ended, "a_test.go:7: broken"},
	} {
		if got, err := parse(c.out, 2, c.ended); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, %v; want an error with %q", c.out, got, err, c.want)
		}
	}
}

// TestPatternMatchesOneBenchmark, and none whose name contains its own.
func TestPatternMatchesOneBenchmark(t *testing.T) {
	levels := strings.Split(pattern("A/size=1.5"), "/")
	if len(levels) != 2 {
		t.Fatal(levels)
	}
	for i, c := range []struct{ yes, no string }{{"BenchmarkA", "BenchmarkAB"}, {"size=1.5", "size=125"}} {
		if re := regexp.MustCompile(levels[i]); !re.MatchString(c.yes) || re.MatchString(c.no) {
			t.Errorf("%s: want %s, and not %s", levels[i], c.yes, c.no)
		}
	}
}

func TestOperationsHaveNamesOfTheirOwn(t *testing.T) {
	taken := map[string]bool{}
	for _, name := range []string{"A/b=1", "A_b_1", strings.Repeat("x", 90), strings.Repeat("x", 91), "Ünï/ß"} {
		n := len(taken)
		if got := plainName(name, taken); !driver.Plain(got) || len(taken) != n+1 {
			t.Errorf("%q became %q: want a plain name that no other has", name, got)
		}
	}
}

// TestOneSidedBenchmarksAreNamed: they are neither dropped nor compared.
func TestOneSidedBenchmarksAreNamed(t *testing.T) {
	a, b := Benchmark{Package: ".", Name: "A", Calls: 10}, Benchmark{Package: ".", Name: "B/x", Calls: 7}
	sides := [2]Side{{Label: "v1"}, {Label: "v2"}}
	for _, c := range []struct {
		found [2]listing
		want  string
	}{
		{[2]listing{{names: []Benchmark{a}}, {names: []Benchmark{a, b}}}, `only v2 has BenchmarkB/x; leave out what v1 lacks`},
		{[2]listing{{names: []Benchmark{a, b}}, {names: []Benchmark{a}}}, `only v1 has BenchmarkB/x`},
		{[2]listing{{}, {names: []Benchmark{a}}}, "no benchmark of v1 matches"},
	} {
		if got, err := (Options{}).common(GoTest, c.found, sides); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, %v; want an error with %q", got, err, c.want)
		}
	}
	slower := b
	slower.Calls = 1
	got, err := Options{}.common(GoTest, [2]listing{{names: []Benchmark{a, b}}, {names: []Benchmark{slower, a}}}, sides)
	if err != nil || len(got) != 2 || got[0].Operation != "A" || got[0].Calls != 10 || got[1].Operation != "B_x" ||
		got[1].Calls != 4 {
		t.Errorf("got %v, %v", got, err)
	}
}

// fake is a test binary: it prints what the documentation of package testing shows, for the calls that it is asked for.
const fake = `#!/bin/sh
for a in "$@"; do case $a in -test.benchtime=*) n=${a#*=}; n=${n%x} ;; -test.bench=*) b=${a#*=} ;; esac; done
case $b in
*Good*) printf 'goos: linux\nBenchmarkGood-2   \t%8d\t   250.5 ns/op\t   64 B/op\t   2 allocs/op\nPASS\n' "$n" ;;
*Lies*) printf 'BenchmarkLies-2 1000000 250.5 ns/op 0 B/op 0 allocs/op\nPASS\n' ;;
*Panics*) printf 'panic: oops\n\ngoroutine 7 [running]:\n'; exit 2 ;;
esac
`

// converse makes a plan of the fake binary, and asks the driver.
func converse(t *testing.T, cpuTime bool, requests ...driver.Request) []driver.Answer {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "0.test")
	script(t, binary, fake)
	sum, err := content(binary)
	if err != nil {
		t.Fatal(err)
	}
	p := Plan{CPU: 2, CPUTime: cpuTime}
	for i, label := range []string{"v1", "v2"} {
		p.Sides[i] = Side{Label: label, Tests: map[string]Test{".": {File: "0.test", Dir: dir, SHA256: sum}}}
	}
	for _, name := range []string{"Good", "Lies", "Panics"} {
		p.Benchmarks = append(p.Benchmarks, Benchmark{Operation: name, Package: ".", Name: name, Calls: 3000})
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, planFile)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return asked(t, file, requests...)
}

func prepare(label string) driver.Request {
	return driver.Request{Do: driver.DoPrepare, Preparation: &driver.Preparation{Levels: map[string]string{Factor: label}}}
}

func operate(name string, n int) driver.Request {
	return driver.Request{Do: driver.DoOperate, Operation: name, Calls: &n}
}

// TestDriverCountsExactly what the binary reports, for as many calls as were asked for.
func TestDriverCountsExactly(t *testing.T) {
	got := converse(t, false, driver.Request{Do: driver.DoDescribe}, prepare("v2"), driver.Request{Do: driver.DoVerify},
		operate("Good", 1), operate("Good", 0), driver.Request{Do: driver.DoStop})
	wantAnswers(t, got, `"factors":{"revision":["v1","v2"]}`, `{}`, `"the test binary of . is that of v2: SHA-256 `,
		`"calls":1,"total":{"allocated":64,"allocations":2,"wall":2.505e-7}`, `"calls":0`, `{}`)
	// A benchmark has no control that could refuse.
	wantAnswers(t, got[2:], `"unproved":"the files are those that were built; nothing that must be refused was asked"`)
}

// TestDriverSaysWhatIsWrong instead of a figure.
func TestDriverSaysWhatIsWrong(t *testing.T) {
	got := converse(t, false, operate("Good", 1), prepare("v3"), prepare("v1"), operate("Lies", 1), operate("Panics", 1))
	for i, want := range []string{
		"not prepared", "there is no such side", "", "3000 calls were asked for", "panic: oops",
	} {
		if want == "" && got[i].Error != "" || !strings.Contains(got[i].Error, want) {
			t.Errorf("answer %d is %s %q, want %q", i, got[i].OK, got[i].Error, want)
		}
	}
}

// TestCPUTimeIsThatOfTheCalls: a process that makes no calls of its own costs nothing beside its start.
func TestCPUTimeIsThatOfTheCalls(t *testing.T) {
	got := converse(t, true, prepare("v1"), operate("Good", 1))
	var c driver.Cost
	if err := json.Unmarshal(got[1].OK, &c); err != nil {
		t.Fatal(err, got[1].Error)
	}
	if cpu, ok := c.Total["cpu"]; !ok || cpu > 0.02 {
		t.Errorf("the fake computes nothing, and its start is not counted: got %v s of CPU", cpu)
	}
}

func TestMain(m *testing.M) { hosttest.Main(m) }
