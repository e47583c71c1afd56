package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tare/internal/metric"
)

// element is XML as it was read, whatever its names.
type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Text     string     `xml:",chardata"`
	Children []element  `xml:",any"`
}

func (e *element) attr(name string) (string, bool) {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value, true
		}
	}
	return "", false
}

// junitAttrs are the attributes that the common schema (jenkins-junit.xsd, Apache Ant's and Surefire's) knows, those in
// capitals required.
var junitAttrs = map[string]string{
	"testsuites": "name TESTS FAILURES ERRORS TIME disabled",
	"testsuite":  "NAME TESTS FAILURES ERRORS SKIPPED TIME TIMESTAMP HOSTNAME id package",
	"properties": "", "property": "NAME VALUE",
	"testcase": "NAME CLASSNAME TIME",
	"failure":  "MESSAGE TYPE", "error": "MESSAGE TYPE", "skipped": "MESSAGE",
	"system-out": "", "system-err": "",
}

// junitChildren are the elements that may stand in another, in their order.
var junitChildren = map[string][]string{
	"testsuites": {"testsuite"},
	"testsuite":  {"properties", "testcase", "system-out", "system-err"},
	"properties": {"property"},
	"testcase":   {"skipped", "error", "failure"},
}

var (
	junitDecimal = regexp.MustCompile(`^\d+(\.\d+)?$`)
	junitInstant = regexp.MustCompile(`^\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d$`)
)

func (e *element) check() error {
	name := e.XMLName.Local
	known, ok := junitAttrs[name]
	if !ok {
		return fmt.Errorf("element %s is not in the schema", name)
	}
	seen := map[string]bool{}
	for _, a := range e.Attrs {
		seen[a.Name.Local] = true
		if !slices.Contains(strings.Fields(strings.ToLower(known)), a.Name.Local) {
			return fmt.Errorf("%s has an attribute %s", name, a.Name.Local)
		}
		switch a.Name.Local {
		case "tests", "failures", "errors", "skipped", "disabled":
			if _, err := strconv.ParseUint(a.Value, 10, 32); err != nil {
				return fmt.Errorf("%s: %s is %q", name, a.Name.Local, a.Value)
			}
		case "time":
			if !junitDecimal.MatchString(a.Value) {
				return fmt.Errorf("%s: time is %q", name, a.Value)
			}
		case "timestamp":
			if !junitInstant.MatchString(a.Value) {
				return fmt.Errorf("%s: timestamp is %q", name, a.Value)
			}
		}
	}
	for a := range strings.FieldsSeq(known) {
		if strings.ToUpper(a) == a && !seen[strings.ToLower(a)] {
			return fmt.Errorf("%s has no attribute %s", name, strings.ToLower(a))
		}
	}
	return e.checkChildren()
}

func (e *element) checkChildren() error {
	name, last, verdicts := e.XMLName.Local, 0, 0
	for i := range e.Children {
		c := &e.Children[i]
		at := slices.Index(junitChildren[name], c.XMLName.Local)
		if at < last {
			return fmt.Errorf("%s in %s stands in the wrong place", c.XMLName.Local, name)
		}
		last = at
		if verdicts++; name == "testcase" && verdicts > 1 {
			return errors.New("a test case has two results")
		}
		if err := c.check(); err != nil {
			return err
		}
	}
	return nil
}

// checkJUnit reads a document strictly and returns the numbers of cases by result, after comparing them with what the
// suite says.
func checkJUnit(b []byte) (failures, errs, skipped, passed int, err error) {
	var root element
	d := xml.NewDecoder(bytes.NewReader(bytes.TrimSpace(b)))
	if err := d.Decode(&root); err != nil {
		return 0, 0, 0, 0, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return 0, 0, 0, 0, fmt.Errorf("after the end of the document: %w", err)
	}
	if err := root.check(); err != nil {
		return 0, 0, 0, 0, err
	}
	if len(root.Children) != 1 || root.XMLName.Local != "testsuites" {
		return 0, 0, 0, 0, fmt.Errorf("%s with %d suites, want one", root.XMLName.Local, len(root.Children))
	}
	suite := &root.Children[0]
	names := map[string]bool{}
	for i := range suite.Children {
		c := &suite.Children[i]
		if c.XMLName.Local != "testcase" {
			continue
		}
		name, _ := c.attr("name")
		if names[name] {
			return 0, 0, 0, 0, fmt.Errorf("two cases are called %q", name)
		}
		names[name] = true
		switch {
		case len(c.Children) == 0:
			passed++
		case c.Children[0].XMLName.Local == "failure":
			failures++
		case c.Children[0].XMLName.Local == "error":
			errs++
		default:
			skipped++
		}
	}
	for attr, want := range map[string]int{
		"tests": failures + errs + skipped + passed, "failures": failures,
		"errors": errs, "skipped": skipped,
	} {
		if got, _ := suite.attr(attr); got != strconv.Itoa(want) {
			return 0, 0, 0, 0, fmt.Errorf("the suite says %s=%s, and there are %d", attr, got, want)
		}
		if got, ok := root.attr(attr); ok && got != strconv.Itoa(want) {
			return 0, 0, 0, 0, fmt.Errorf("the root says %s=%s, and there are %d", attr, got, want)
		}
	}
	return failures, errs, skipped, passed, nil
}

// passes says whether the run's exit code is 0.
func (r *Report) passes() bool {
	ended := r.Status != Interrupted && r.Status != Killed && r.Status != Errored
	return ended && (r.Verdict == Pass || r.Verdict == None)
}

func TestJUnitIsGreenExactlyForRunsThatPass(t *testing.T) {
	for name, r := range samples() {
		failures, errs, _, _, err := checkJUnit(encode(t, JUnit, r))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if green := failures+errs == 0; green != r.passes() {
			t.Errorf("%s: %d failures, %d errors, and the verdict is %s (%s)", name, failures, errs, r.Verdict, r.Status)
		}
	}
}

func TestJUnitCases(t *testing.T) {
	one := func(run Verdict, budgets ...Verdict) *Report {
		r := base("x")
		r.Verdict, r.Reason = run, "because"
		for i, v := range budgets {
			r.Budgets = append(r.Budgets, Budget{
				Text: fmt.Sprintf("capacity >= %d/s", i), Treatment: "a", Verdict: v, Unit: metric.PerSecond, Estimate: new(150.0),
				Lo: new(149.1), Hi: new(150.9), Limit: new(200.0),
			})
		}
		return r
	}
	for _, c := range []struct {
		name                            string
		r                               *Report
		failures, errs, skipped, passed int
	}{
		{"pass", one(Pass, Pass, Pass), 0, 0, 0, 3},
		{"fail", one(Fail, Pass, Fail), 1, 0, 0, 2},
		{"inconclusive", one(Inconclusive, Pass, Inconclusive), 0, 1, 0, 2},
		{"not measured: the run's own case is the error", one(Inconclusive, Pass, NotMeasured), 0, 1, 1, 1},
		{"not measured beside a failure", one(Fail, NotMeasured, Fail), 1, 0, 1, 1},
		{"invalid: budgets say nothing", one(Invalid, Pass, Fail), 0, 1, 2, 0},
		{"no budget", one(None), 0, 0, 0, 1},
		{"an unknown verdict is never green", one("odd", Pass), 0, 1, 0, 1},
		{"cut short", interrupted(), 0, 1, 1, 0},
	} {
		failures, errs, skipped, passed, err := checkJUnit(encode(t, JUnit, c.r))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if failures != c.failures || errs != c.errs || skipped != c.skipped || passed != c.passed {
			t.Errorf("%s: %d failures, %d errors, %d skipped, %d passed; want %d, %d, %d, %d", c.name, failures, errs, skipped,
				passed, c.failures, c.errs, c.skipped, c.passed)
		}
	}
	out := string(encode(t, JUnit, one(Fail, Fail)))
	for _, want := range []string{"measured 150.0/s [149.1/s, 150.9/s]", "limit 200.0/s", `name="a: capacity &gt;= 0/s"`, `classname="turnpike.x"`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

func TestJUnitTellsEqualBudgetsApart(t *testing.T) {
	r := base("x")
	b := Budget{Text: "error <= 1%", Verdict: Pass}
	r.Budgets = []Budget{b, b, b}
	if _, _, _, passed, err := checkJUnit(encode(t, JUnit, r)); err != nil || passed != 4 {
		t.Errorf("%d cases, %v; want 4 with names of their own", passed, err)
	}
}

var hostileTexts = []string{
	"", "\x00", "a\x1b[31m\x07b", "]]>", `"quoted" \ 'and' <tags> & more`, "two\nlines\r\n", "\xff\xfe not UTF-8", "\u202eoverride\ufffe\uffff", "}\n# EOF\nfake 1\n",
	`x",y="z`, "ünïcödé 漢字 🦆", strings.Repeat("long ", 200), "\\n", "\\", "-->", "{", "tare_run_info",
}

func TestJUnitSurvivesHostileNames(t *testing.T) {
	for _, s := range hostileTexts {
		for name, r := range samples() {
			spoil(r, s)
			b := encode(t, JUnit, r)
			if _, _, _, _, err := checkJUnit(b); err != nil {
				t.Errorf("%s with %q: %v", name, s, err)
			}
			if bytes.ContainsAny(b, "\x00\x07\x1b\x7f") || bytes.ContainsRune(b, '\u202e') {
				t.Errorf("%s with %q holds control characters", name, s)
			}
		}
	}
}

func TestJUnitCheckSeesErrors(t *testing.T) {
	good := string(encode(t, JUnit, acceptQueue()))
	for name, change := range map[string][2]string{
		"a wrong sum":          {`errors="1"`, `errors="0"`},
		"an unknown element":   {"<system-out>", "<stdout></stdout><system-out>"},
		"an unknown attribute": {"<testcase ", `<testcase colour="red" `},
		"no class":             {`classname="turnpike.gke-2020"`, ""},
		"an odd time":          {`time="0.000"`, `time="1e3"`},
		"an order of its own":  {"<properties>", "<system-out></system-out><properties>"},
		"an open element":      {"</testsuite>", ""},
		"a control character":  {"inconclusive: measured", "\x01"},
		"an equal name":        {"capacity &gt;= 100/s", "response.p99 &lt;= 500ms at 50/s"},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if bad == good {
			t.Fatalf("%s: nothing was changed", name)
		}
		if _, _, _, _, err := checkJUnit([]byte(bad)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// sampleNames are the samples in order, so that a number can choose one.
func sampleNames() []string { return slices.Sorted(maps.Keys(samples())) }

// fuzzed is a sample with everything in it that others choose, and its verdicts set by words.
func fuzzed(which uint8, s, run, budget, status string, v float64, n uint64) *Report {
	names := sampleNames()
	r := samples()[names[int(which)%len(names)]]
	spoil(r, s)
	spoilNumbers(r, v, n)
	r.Verdict, r.Status = Verdict(run), Status(status)
	for i := range r.Budgets {
		r.Budgets[i].Verdict, r.Budgets[i].Unit = Verdict(budget), metric.Unit(s)
	}
	return r
}

func first[T any](all []T) []T { return all[:min(len(all), 5)] }

func addFuzzSeeds(f *testing.F) {
	for i, s := range hostileTexts {
		f.Add(uint8(i), s, string(Verdicts()[i%6]), string(Verdicts()[i/2%6]), string(Complete), float64(i)-2, uint64(i))
	}
	f.Add(uint8(3), "x", "odd", "", "killed", math.Inf(1), uint64(math.MaxUint64))
	f.Add(uint8(7), "x", "pass", "fail", "error", math.NaN(), uint64(0))
}

func FuzzJUnit(f *testing.F) {
	addFuzzSeeds(f)
	f.Fuzz(func(t *testing.T, which uint8, s, run, budget, status string, v float64, n uint64) {
		r := fuzzed(which, s, run, budget, status, v, n)
		failures, errs, _, _, err := checkJUnit(encode(t, JUnit, r))
		if err != nil {
			t.Fatal(err)
		}
		// Every form that people read can be written of it, too.
		for _, e := range []Encoder{Text, Markdown, StepSummary, Style{Width: int(which), Color: true}.Text} {
			encode(t, e, r)
		}
		readAnnotations(t, encode(t, Annotations, r))
		if len(r.Blocks) > 0 {
			for _, e := range []Encoder{Benchfmt, Hyperfine, ActionBenchmark} {
				_ = e(io.Discard, r) // nothing that can be said is an error, and no more
			}
		}
		// Whatever a report holds, it is not shown as passing when it is not.
		if failures+errs == 0 && !r.passes() {
			t.Errorf("green, and the verdict is %q (%q)", r.Verdict, r.Status)
		}
	})
}
