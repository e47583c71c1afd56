package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

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

func TestSARIFIsEmptyExactlyForRunsThatPass(t *testing.T) {
	for name, r := range samples() {
		results, err := checkSARIF(encode(t, SARIF, r))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if clean := len(results) == r.alarms(); clean != (r.passes() && !slices.ContainsFunc(r.Budgets, func(b Budget) bool {
			return b.Verdict != Pass
		})) {
			t.Errorf("%s: %d results, %d of answers, and the verdict is %s (%s)", name, len(results), r.alarms(), r.Verdict,
				r.Status)
		}
	}
}

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

func TestSARIFSurvivesHostileNames(t *testing.T) {
	for _, s := range hostileTexts {
		for name, r := range samples() {
			spoil(r, s)
			r.Experiment.File = s
			b := encode(t, SARIF, r)
			if _, err := checkSARIF(b); err != nil {
				t.Errorf("%s with %q: %v", name, s, err)
			}
			if bytes.ContainsAny(b, "\x00\x07\x1b\x7f") || bytes.ContainsRune(b, '\u202e') {
				t.Errorf("%s with %q holds control characters", name, s)
			}
		}
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
