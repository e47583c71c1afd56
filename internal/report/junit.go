package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"tare/internal/budget"
	"tare/internal/metric"
	terminal "tare/internal/term"
)

// JUnit writes one test suite: a test case for the run as a whole and one for each budget and treatment, in the form
// that Jenkins, GitLab, GitHub actions and Maven Surefire read. A broken budget is a failure, an undecided one an
// error, one that was not measured is skipped. Budgets of a run that is not valid are skipped, and the run's own case
// is the error. That case is also the error where nothing else shows that the run does not pass, so that a suite
// without failures and errors means exit code 0 and the other way round. Gating effects are properties of the suite and
// no cases: without a budget a cost is neither right nor wrong.
func JUnit(w io.Writer, r *Report) error {
	s := r.suite()
	all := junitSuites{
		Name: "tare", Tests: s.Tests, Failures: s.Failures, Errors: s.Errors, Time: s.Time,
		Suites: []junitSuite{s},
	}
	out, err := xml.MarshalIndent(&all, "", "  ")
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	_, err = io.WriteString(w, xml.Header+terminal.XML(string(out))+"\n")
	return err
}

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string          `xml:"name,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Errors     int             `xml:"errors,attr"`
	Skipped    int             `xml:"skipped,attr"`
	Time       string          `xml:"time,attr"`
	Timestamp  string          `xml:"timestamp,attr"`
	Host       string          `xml:"hostname,attr"`
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
	Out        string          `xml:"system-out,omitempty"`
	Err        string          `xml:"system-err,omitempty"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Class   string       `xml:"classname,attr"`
	Name    string       `xml:"name,attr"`
	Time    string       `xml:"time,attr"`
	Skipped *junitResult `xml:"skipped"`
	Error   *junitResult `xml:"error"`
	Failure *junitResult `xml:"failure"`
}

// junitResult says why a case did not pass. Most readers show Message in their list, and Text when the case is opened.
type junitResult struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

func (r *Report) suite() junitSuite {
	class := strings.Trim(sanitize(r.Area)+"."+sanitize(r.Experiment.Name), ".")
	s := junitSuite{
		Name: sanitize(r.Experiment.Name), Time: junitTime(r.Seconds),
		Host: sanitize(orElse(r.Environment.Host, "localhost")),
		// The common schema has no time zone here; the property "started" has one.
		Timestamp:  r.Started.UTC().Format("2006-01-02T15:04:05"),
		Properties: r.properties(),
		Out:        lines(r.Notes), Err: lines(r.Warnings),
	}
	cases := r.rulingCases(class)
	taken := map[string]int{}
	for i := range r.Budgets {
		b := &r.Budgets[i]
		c := r.budgetCase(b)
		c.Class, c.Time = class, junitTime(0)
		if taken[c.Name]++; taken[c.Name] > 1 {
			c.Name += fmt.Sprintf(" (%d)", taken[c.Name]) // readers keep only one property of each name
		}
		cases = append(cases, c)
	}
	bad := false
	for _, c := range cases {
		bad = bad || c.Error != nil || c.Failure != nil
	}
	run := junitCase{Class: class, Name: "the run can be judged", Time: s.Time, Error: r.unjudged(bad)}
	s.Cases = append([]junitCase{run}, cases...)
	s.count()
	return s
}

// rulingCases are the treatments that permit what the baseline refuses.
func (r *Report) rulingCases(class string) (out []junitCase) {
	for i := range r.Treatments {
		if t := &r.Treatments[i]; len(t.Permits) > 0 {
			out = append(out, junitCase{
				Class: class, Name: sanitize(t.ID + " permits no more than the baseline"), Time: junitTime(0),
				Failure: &junitResult{Message: sanitize(t.PermitsMore()), Type: "permits-more"},
			})
		}
	}
	return out
}

func (s *junitSuite) count() {
	s.Tests = len(s.Cases)
	for i := range s.Cases {
		switch c := &s.Cases[i]; {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
}

// unjudged says why the run as a whole has no reliable verdict; nil if it has one. shown: a budget's case says already
// that the run does not pass.
func (r *Report) unjudged(shown bool) *junitResult {
	reason := sanitize(r.Reason)
	switch {
	case r.Verdict == Invalid:
		return &junitResult{Message: "the run is invalid" + because(reason), Type: string(Invalid), Text: reason}
	case r.Status == Interrupted || r.Status == Killed || r.Status == Errored:
		u := sanitize(r.Status.unfinished())
		return &junitResult{Message: u, Type: sanitize(string(r.Status)), Text: strings.TrimSpace(u + "\n" + reason)}
	case shown || r.Verdict == Pass || r.Verdict == None:
		return nil
	}
	return &junitResult{
		Message: "the run is " + sanitize(string(r.Verdict)) + because(reason),
		Type:    sanitize(orElse(string(r.Verdict), "unknown")), Text: reason,
	}
}

// budgetCase returns the case of one budget for one treatment.
func (r *Report) budgetCase(b *Budget) junitCase {
	c := junitCase{Name: sanitize(b.Text)}
	if b.Treatment != "" {
		c.Name = sanitize(b.Treatment) + ": " + c.Name
	}
	text := sanitize(b.account() + r.answersOf(b))
	said := &junitResult{Message: text, Type: sanitize(orElse(string(b.Verdict), "unknown")), Text: text}
	switch {
	case r.Verdict == Invalid:
		c.Skipped = &junitResult{Message: "the run is invalid, so its budgets are not judged"}
		return c
	case b.Verdict == Pass:
		return c
	case b.Verdict == Fail:
		c.Failure = said
	case b.Verdict == NotMeasured:
		said.Type = "" // the common schema has no type here
		c.Skipped = said
	default:
		c.Error = said
	}
	return c
}

// account describes the measured value, its interval and the limit: "fail: measured 150.0/s [149.1/s, 150.9/s], limit
// 200.0/s".
func (b *Budget) account() string { return string(b.Verdict) + ": " + b.evidence() }

// evidence is account without the verdict.
func (b *Budget) evidence() string {
	parts := []string{"nothing was measured"}
	if b.Estimate != nil || b.Lo != nil || b.Hi != nil {
		parts[0] = strings.TrimSpace("measured " + orElse(b.measured(), "between") + " " + b.interval())
	}
	if b.Limit != nil {
		parts = append(parts, "limit "+b.limit())
	}
	if b.Reason != "" {
		parts = append(parts, b.Reason)
	}
	return strings.Join(parts, ", ")
}

// measured prints the estimate, or "" without one.
func (b *Budget) measured() string { return opt(b.Estimate, b.show()) }

// interval prints the bounds, or "" without them.
func (b *Budget) interval() string {
	if b.Hi == nil && (b.Lo == nil || *b.Lo == 0) {
		return "" // its reason says why there is none
	}
	show := b.show()
	return "[" + orElse(opt(b.Lo, show), "-∞") + ", " + orElse(opt(b.Hi, show), "∞") + "]"
}

// limit prints the limit; that of a ratio against the baseline as a share: "+5 %".
func (b *Budget) limit() string {
	if b.Unit == metric.Ratio && b.relative() {
		if *b.Limit < 0 {
			return "-" + share(-*b.Limit)
		}
		return "+" + share(*b.Limit)
	}
	return b.show()(*b.Limit)
}

// show returns the function that prints the budget's numbers; changes against the baseline have a sign, like their
// limit.
func (b *Budget) show() func(float64) string {
	show := Quantity(b.Unit)
	if b.drift() {
		level := show
		show = func(v float64) string { return level(v) + "/h" }
	}
	if !b.relative() {
		return func(v float64) string { return bounded(v, show) }
	}
	if b.Unit == metric.Ratio && b.Estimate != nil && b.Lo != nil && b.Hi != nil {
		show = (&Effect{Kind: asRatio, Estimate: *b.Estimate, Lo: *b.Lo, Hi: *b.Hi}).scale()
	}
	return func(v float64) string {
		s := bounded(v, show)
		if v > 0 && !strings.HasPrefix(s, "×") {
			s = "+" + s
		}
		return s
	}
}

// drift reports whether the limit applies to a change per hour.
func (b *Budget) drift() bool {
	limit, err := budget.Parse(b.Text)
	return err == nil && limit.Drift
}

// relative reports whether the limit is relative to the baseline.
func (b *Budget) relative() bool {
	limit, err := budget.Parse(b.Text)
	return err == nil && limit.Limit.Against != budget.Absolute
}

// properties returns what a person needs to find the run and to repeat it.
func (r *Report) properties() []junitProperty {
	all := []junitProperty{
		{"area", r.Area},
		{"question", string(r.Question)},
		{"started", r.Started.UTC().Format(time.RFC3339)},
		{"status", string(r.Status)},
		{"verdict", string(r.Verdict)},
		{"reason", r.Reason},
		{"file", r.Experiment.File},
		{"sha256", r.Experiment.SHA256},
		{"seed", strconv.FormatUint(r.Experiment.Seed, 10)},
		{"tare", r.Tool.Version},
		{"kernel", r.Environment.Kernel},
	}
	var out []junitProperty
	for _, x := range r.gating() {
		if x.Gating {
			all = append(all, junitProperty{
				"effect of " + sanitize(x.Treatment) + " on " + sanitize(x.measured()),
				x.Change() + " " + x.Shown(),
			})
		}
	}
	if s, _ := r.trust(); s != "" {
		all = append(all, junitProperty{"A/A", s})
	}
	for i := range r.Capacity {
		c := &r.Capacity[i]
		of := ""
		if name := strings.TrimSpace(r.withTreatment(c.Treatment) + " " + c.Operation); name != "" {
			of = " of " + sanitize(name)
		}
		all = append(all, junitProperty{"limit" + of, statementOf(c.Limit)},
			junitProperty{"failure" + of, statementOf(c.Failure)})
	}
	all = append(all, r.soakProperties()...)
	all = append(all, r.levelProperties()...)
	for _, p := range all {
		if p.Value != "" {
			out = append(out, junitProperty{sanitize(p.Name), sanitize(p.Value)})
		}
	}
	return out
}

// junitTime returns seconds with milliseconds and without an exponent: the common schema's decimal accepts no other
// numbers.
func junitTime(s float64) string {
	if !(s >= 0) || math.IsInf(s, 0) {
		s = 0
	}
	return strconv.FormatFloat(s, 'f', 3, 64)
}

func lines(texts []string) string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = sanitize(t)
	}
	return strings.Join(out, "\n")
}
