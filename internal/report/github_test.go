package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	terminal "tare/internal/term"
)

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

func TestAnnotations(t *testing.T) {
	for name, r := range samples() {
		got := readAnnotations(t, encode(t, Annotations, r))
		broken := 0
		for i := range r.Budgets {
			if r.Budgets[i].Verdict == Fail && r.Verdict != Invalid {
				broken++
			}
		}
		errs := 0
		for _, c := range got {
			if c.name == "error" {
				errs++
			}
		}
		if want := broken + int(boolean(r.Verdict == Invalid)) + int(boolean(r.Status != Complete)); errs != want {
			t.Errorf("%s: %d errors, want %d", name, errs, want)
		}
	}
	if got := encode(t, Annotations, atLeast()); len(got) != 0 {
		t.Errorf("a run that passes says %q", got)
	}
}

func TestAnnotationsSayWhatBroke(t *testing.T) {
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
