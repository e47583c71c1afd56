package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"tare/internal/metric"
	terminal "tare/internal/term"
	"tare/rigs/hosttest"
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
		{"cut short", stored("interrupted"), 0, 1, 1, 0},
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

// TestHostileNamesBreakNoForm: forms that programs read keep their rules whatever a report holds.
func TestHostileNamesBreakNoForm(t *testing.T) {
	hosttest.SkipIfShort(t)
	for _, s := range hostileTexts {
		for name, r := range samples() {
			spoil(r, s)
			r.Experiment.File = s
			if hasGolden(name, "openmetrics") {
				if _, err := readOpenMetrics(string(encode(t, OpenMetrics, r))); err != nil {
					t.Errorf("%s with %q: %v", name, s, err)
				}
			}
			junit, sarif := encode(t, JUnit, r), encode(t, SARIF, r)
			if _, _, _, _, err := checkJUnit(junit); err != nil {
				t.Errorf("%s with %q: %v", name, s, err)
			}
			if _, err := checkSARIF(sarif); err != nil {
				t.Errorf("%s with %q: %v", name, s, err)
			}
			if out := slices.Concat(junit, sarif); bytes.ContainsAny(out, "\x00\x07\x1b\x7f\u202e") {
				t.Errorf("%s with %q holds control characters", name, s)
			}
		}
	}
}

func TestJUnitCheckSeesErrors(t *testing.T) {
	good := string(encode(t, JUnit, stored("accept-queue")))
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

var (
	sarifPrint       = regexp.MustCompile(`^[0-9a-f]{32}(:\d+)?$`)
	sarifPlaceholder = regexp.MustCompile(`(^|[^{])(\{\{)*\{[^{]`)
)

// checkSARIF reads a log strictly and compares it with what the standard asks of each part. It returns the results.
func checkSARIF(b []byte) ([]sarifResult, error) {
	var log sarifLog
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&log); err != nil {
		return nil, err
	}
	if log.Version != "2.1.0" || len(log.Runs) != 1 {
		return nil, fmt.Errorf("version %s with %d runs", log.Version, len(log.Runs))
	}
	run := &log.Runs[0]
	if run.Results == nil || len(run.Invocations) != 1 || run.Tool.Driver.Name != "tare" {
		return nil, errors.New("results, invocation or tool are missing")
	}
	if i := &run.Invocations[0]; !utcTime(i.Start) || !utcTime(i.End) || i.End < i.Start {
		return nil, fmt.Errorf("from %q to %q", i.Start, i.End)
	}
	prints := map[string]bool{}
	for i := range run.Results {
		x := &run.Results[i]
		id := x.Fingerprints["tare/v1"]
		if prints[id] || !sarifPrint.MatchString(id) || x.Partial["primaryLocationLineHash"] != id {
			return nil, fmt.Errorf("fingerprint %q of %q", id, x.Message.Text)
		}
		prints[id] = true
		if err := x.check(run); err != nil {
			return nil, fmt.Errorf("%s %q: %w", x.Rule, x.Message.Text, err)
		}
	}
	return run.Results, run.checkRules()
}

func utcTime(s string) bool {
	_, err := time.Parse(time.RFC3339, s)
	return err == nil && strings.HasSuffix(s, "Z")
}

// checkRules requires each rule to be listed once, described whole, and used.
func (run *sarifRun) checkRules() error {
	for i, rule := range run.Tool.Driver.Rules {
		used := slices.ContainsFunc(run.Results, func(x sarifResult) bool { return x.Rule == rule.ID })
		again := slices.ContainsFunc(run.Tool.Driver.Rules[:i], func(x sarifRule) bool { return x.ID == rule.ID })
		if !used || again || rule.Short.Text == "" || rule.Full.Text == "" || rule.Help.Text == "" {
			return fmt.Errorf("rule %+v: used %v, listed before %v", rule, used, again)
		}
	}
	return nil
}

func (x *sarifResult) check(run *sarifRun) error {
	rule := slices.IndexFunc(run.Tool.Driver.Rules, func(r sarifRule) bool { return r.ID == x.Rule })
	if rule < 0 || run.Tool.Driver.Rules[rule].Default.Level != x.Level || !slices.Contains([]string{"error", "warning"},
		x.Level) {
		return fmt.Errorf("level %q, rule %d", x.Level, rule)
	}
	text := x.Message.Text
	if strings.TrimSpace(text) == "" || strings.Contains(text, "](") || sarifPlaceholder.MatchString(text) {
		return errors.New("an empty message, a link or a placeholder")
	}
	if len(x.Locations) != 1 {
		return fmt.Errorf("%d locations", len(x.Locations))
	}
	at := &x.Locations[0].Physical
	uri, err := url.Parse(at.Artifact.URI)
	if err != nil || at.Artifact.URI == "" || strings.ContainsAny(at.Artifact.URI, " \"\\") {
		return fmt.Errorf("uri %q: %w", at.Artifact.URI, err)
	}
	_, based := run.Bases[at.Artifact.Base]
	if based != (at.Artifact.Base != "") || based && uri.IsAbs() || at.Region != nil && at.Region.Line < 1 {
		return fmt.Errorf("location %+v", at)
	}
	return nil
}

// alarms says whether answers alone are reported: a run that passes has no other results.
func (r *Report) alarms() int { return len(r.mismatches()) + len(r.disagreements()) }

// everyFinding has one finding of every kind but those of a run that has no verdict.
func everyFinding() *Report {
	r := base("x")
	r.Verdict, r.Experiment.File = Fail, "./cost/x y.yaml"
	r.Treatments[0].NotInForce = "write succeeded: {0} [see](https://example.org)"
	r.Budgets = []Budget{
		{Text: "capacity >= 200/s", Line: 7, Verdict: Fail, Unit: "1/s", Estimate: new(150.0), Limit: new(200.0)},
		{Text: "error <= 1%", Line: 8, Treatment: "a", Verdict: Inconclusive},
		{Text: "error <= 2%", Verdict: NotMeasured, Reason: "there is no such operation"},
		{Text: "error <= 3%", Line: 9, Verdict: Pass},
	}
	r.Answers = []AnswerCheck{{Answer: "permit", Client: 5, Target: 7}}
	r.Operations = []Operation{{
		Operation: "decide", Answers: map[string]uint64{"permit": 3}, Outcomes: Outcomes{OK: 2, Wrong: 1},
	}}
	return r
}

func TestSARIFResults(t *testing.T) {
	text := encode(t, SARIF, everyFinding())
	golden(t, "every-finding.sarif", text)
	results, err := checkSARIF(text)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`control-not-in-force error 0: default was not in force: write succeeded: {{0}} [see] (https://example.org)`,
		`answer-wrong error 0: decide: 1 of 3 answers were not what was expected`,
		`counts-disagree error 0: permit: the target counted 7, its callers 5 (+2)`,
		`budget-broken error 7: The budget capacity >= 200/s is broken: measured 150.0/s, limit 200.0/s`,
		`budget-undecided warning 8: The budget a: error <= 1% is undecided: nothing was measured`,
		`budget-not-measured warning 0: The budget error <= 2% could not be judged: nothing was measured, there is no such ` +
			`operation`,
	}
	var got []string
	for _, x := range results {
		at, line := x.Locations[0].Physical, 0
		if at.Region != nil {
			line = at.Region.Line
		}
		if at.Artifact.URI != "cost/x%20y.yaml" {
			t.Errorf("%s is in %q", x.Rule, at.Artifact.URI)
		}
		got = append(got, fmt.Sprintf("%s %s %d: %s", x.Rule, x.Level, line, x.Message.Text))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSARIFOfTheWholeRun(t *testing.T) {
	for want, change := range map[string]func(*Report){
		"run-invalid":    func(r *Report) { r.Verdict, r.Budgets = Invalid, []Budget{{Text: "a", Verdict: Fail}} },
		"run-unfinished": func(r *Report) { r.Status = Killed },
		"run-undecided":  func(r *Report) { r.Verdict = Inconclusive },
	} {
		r := base("x")
		change(r)
		results, err := checkSARIF(encode(t, SARIF, r))
		if err != nil || len(results) != 1 || results[0].Rule != want {
			t.Errorf("%s: %+v, %v", want, results, err)
		}
	}
}

func TestSARIFPlacesRunsWithoutAFile(t *testing.T) {
	for file, want := range map[string][2]string{
		"":            {"RUN experiment.yaml", "RUN record.jsonl"},
		"/tmp/a.yaml": {" file:///tmp/a.yaml", " file:///tmp/a.yaml"},
		"a:b.yaml":    {" ./a:b.yaml", " ./a:b.yaml"},
	} {
		r := everyFinding()
		r.Experiment.File = file
		results, err := checkSARIF(encode(t, SARIF, r))
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range results {
			at := x.Locations[0].Physical
			i := 0
			if at.Region == nil {
				i = 1
			}
			if got := at.Artifact.Base + " " + at.Artifact.URI; got != want[i] {
				t.Errorf("%q: %s is in %q, want %q", file, x.Rule, got, want[i])
			}
		}
	}
}

// TestSARIFFingerprints holds that a finding keeps its fingerprint whatever was measured, and no other one has it.
func TestSARIFFingerprints(t *testing.T) {
	prints := func(change func(*Report)) []string {
		r := everyFinding()
		change(r)
		results, err := checkSARIF(encode(t, SARIF, r))
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, x := range results {
			out = append(out, x.Fingerprints["tare/v1"])
		}
		return out
	}
	first := prints(func(*Report) {})
	if again := prints(func(r *Report) {
		r.Budgets[0].Line, r.Budgets[0].Estimate, r.Answers[0].Target, r.Treatments[0].NotInForce = 70, new(140.0), 9, "other"
	}); !slices.Equal(first, again) {
		t.Errorf("%v became %v", first, again)
	}
	other := prints(func(r *Report) { r.Experiment.Name = "y" })
	for i := range first {
		if slices.Contains(first, other[i]) {
			t.Errorf("two experiments share the fingerprint %s", other[i])
		}
	}
	twice := prints(func(r *Report) { r.Budgets[2] = r.Budgets[0] })
	if twice[5] != twice[3]+":2" {
		t.Errorf("the same budget twice: %v", twice)
	}
}

func TestSARIFCheckSeesErrors(t *testing.T) {
	good := string(encode(t, SARIF, everyFinding()))
	for name, change := range map[string][2]string{
		"an unknown field":     {`"columnKind"`, `"columns"`},
		"a level of its own":   {`"level": "error",`, `"level": "note",`},
		"a rule that is none":  {`"ruleId": "answer-wrong"`, `"ruleId": "odd"`},
		"a fingerprint twice":  {`"ruleId": "answer-wrong"`, `"ruleId": "control-not-in-force"`},
		"a placeholder":        {"{{0}}", "{0}"},
		"a link":               {"] (", "]("},
		"a line before line 1": {`"startLine": 7`, `"startLine": -7`},
		"a space in a uri":     {"x%20y", "x y"},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if _, err := checkSARIF([]byte(bad)); bad == good || err == nil {
			t.Errorf("%s is not seen", name)
		}
	}
}

// A workflowCommand is what GitHub's runner makes of a line.
type workflowCommand struct {
	name, data string
	properties map[string]string
}

// readCommand reads a line as the runner does (actions/runner, ActionCommand.TryParseV2): "::name k=v,k=v::data", then
// unescapes.
func readCommand(line string) (workflowCommand, error) {
	text := strings.TrimLeft(line, " ")
	rest, ok := strings.CutPrefix(text, "::")
	head, data, closed := strings.Cut(rest, "::")
	if !ok || !closed {
		return workflowCommand{}, fmt.Errorf("%q is no command", line)
	}
	c := workflowCommand{properties: map[string]string{}}
	c.name, head, _ = strings.Cut(head, " ")
	c.data = strings.NewReplacer("%0D", "\r", "%0A", "\n", "%25", "%").Replace(data)
	for p := range strings.SplitSeq(head, ",") {
		k, v, ok := strings.Cut(strings.TrimSpace(p), "=")
		if !ok {
			return workflowCommand{}, fmt.Errorf("property %q of %q has no value", p, line)
		}
		if _, twice := c.properties[k]; twice {
			return workflowCommand{}, fmt.Errorf("property %q of %q stands twice", k, line)
		}
		c.properties[k] = strings.NewReplacer("%0D", "\r", "%0A", "\n", "%3A", ":", "%2C", ",", "%25", "%").Replace(v)
	}
	return c, nil
}

// readAnnotations checks what is common to all.
func readAnnotations(t *testing.T, b []byte) []workflowCommand {
	t.Helper()
	var out []workflowCommand
	rank := map[string]int{"error": 1, "warning": 2, "notice": 3}
	last := 0
	for line := range strings.Lines(string(b)) {
		c, err := readCommand(strings.TrimSuffix(line, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		if len(c.properties) != 1 || c.properties["title"] == "" || c.data == "" {
			t.Errorf("%+v needs a title, a message, and nothing else", c)
		}
		if rank[c.name] < last || rank[c.name] == 0 {
			t.Errorf("%s stands in the wrong place", c.name)
		}
		last = rank[c.name]
		if !utf8.ValidString(line) || strings.ContainsFunc(strings.TrimSuffix(line, "\n"), unicode.IsControl) {
			t.Errorf("%q holds control characters", line)
		}
		out = append(out, c)
	}
	if len(out) > MaxAnnotations {
		t.Errorf("%d annotations, more than %d", len(out), MaxAnnotations)
	}
	return out
}

func TestAnnotationsSayWhatBroke(t *testing.T) {
	if got := encode(t, Annotations, stored("at-least")); len(got) != 0 {
		t.Errorf("a run that passes says %q", got)
	}
	got := readAnnotations(t, encode(t, Annotations, enforcers()))
	if c := got[0]; c.properties["title"] != "enforcers: enforcer=landlock rules=50: exec.cpu <= +2 %" ||
		!strings.Contains(c.data, "measured +5.0 %") || !strings.Contains(c.data, "limit +2 %") {
		t.Errorf("%+v", c)
	}
	// What a budget is about is said by the budget, and once.
	r := enforcers()
	r.Budgets = r.Budgets[:0]
	if got := readAnnotations(t, encode(t, Annotations, r)); len(got) != MaxAnnotations || got[1].name != "notice" ||
		!strings.Contains(got[MaxAnnotations-1].data, "and 3 more") {
		t.Errorf("%+v: want the warning, and of 11 regressions eight, and the rest counted", got)
	}
}

func TestAnnotationsEscape(t *testing.T) {
	a := annotation{asError, "100 %, a:b\nc", "50 % of\r\nx: %0A, ::"}
	c, err := readCommand(a.command())
	if err != nil {
		t.Fatal(err)
	}
	if c.properties["title"] != "100 %, a:b c" || c.data != "50 % of�\nx: %0A, ::" {
		t.Errorf("%q reads back as %+v", a.command(), c)
	}
}

func FuzzAnnotation(f *testing.F) {
	for _, s := range hostileTexts {
		f.Add(s, s)
	}
	f.Add("%25", "%0A")
	f.Fuzz(func(t *testing.T, title, message string) {
		line := annotation{asWarning, title, message}.command()
		if strings.ContainsFunc(line, unicode.IsControl) {
			t.Fatalf("%q is more than one line, or holds control characters", line)
		}
		c, err := readCommand(line)
		if err != nil {
			t.Fatal(err)
		}
		if c.name != asWarning || len(c.properties) != 1 {
			t.Errorf("%q reads as %+v", line, c)
		}
		// What a runner would obey is made inert, besides being escaped.
		if want := strings.TrimSpace(terminal.Inert(sanitize(textOr(title, titleLength, "tare")))); strings.TrimSpace(
			c.properties["title"]) != want {
			t.Errorf("title %q reads back as %q", want, c.properties["title"])
		}
		if want := terminal.Inert(cleanLines(textOr(message, messageLength, "see the report"))); c.data != want {
			t.Errorf("message %q reads back as %q", want, c.data)
		}
	})
}

func TestStepSummaryKeepsTheLimit(t *testing.T) {
	r := enforcers()
	if got, want := encode(t, StepSummary, r), encode(t, Markdown, r); !bytes.Equal(got, want) {
		t.Error("a short summary is not the Markdown form")
	}
	for range 2000 {
		r.Notes = append(r.Notes, strings.Repeat("note ", 200))
	}
	got := encode(t, StepSummary, r)
	if len(got) > SummaryLimit || len(got) < SummaryLimit/2 ||
		!bytes.HasSuffix(got, []byte("The report has all of it.\n")) {
		t.Errorf("%d bytes, ending in %q", len(got), got[len(got)-40:])
	}
	whole := encode(t, Markdown, r)
	if at := bytes.LastIndex(got, []byte("\n\nThe rest")); !bytes.HasPrefix(whole, got[:at+1]) {
		t.Error("what is kept is not the beginning, up to the end of a line")
	}
}

// TestTextIsNoCommand: what is printed into a CI system's log must not be obeyed by it.
func TestTextIsNoCommand(t *testing.T) {
	r := compareHostile()
	r.Effects[0].Treatment = "##[error]x"
	r.Treatments[1].ID = "::stop-commands::x"
	for line := range strings.Lines(string(encode(t, Text, r))) {
		if strings.HasPrefix(strings.TrimSpace(line), "::") || strings.Contains(line, "##[") {
			t.Errorf("%q is a command", line)
		}
	}
}

// TestDriftsAreNotices: a trend beyond the margin is a notice unless a budget judges it.
func TestDriftsAreNotices(t *testing.T) {
	r := xacmlSoak()
	if out := string(encode(t, Annotations, r)); strings.Contains(out, "drifts") {
		t.Errorf("a drift with a budget has a notice of its own:\n%s", out)
	}
	r.Budgets = r.Budgets[:1]
	if out := string(encode(t, Annotations, r)); !strings.Contains(out,
		"::notice title=xacml-soak%3A rss drifts::rss grows by 60 MiB/h [57.9, 62.2]: a leak?") {
		t.Errorf("no notice of the leak:\n%s", out)
	}
	r.Verdict = Invalid
	if out := string(encode(t, Annotations, r)); strings.Contains(out, "::notice") {
		t.Errorf("an invalid run has a notice:\n%s", out)
	}
}
