package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"html"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	terminal "tare/internal/term"
	"tare/internal/unit"
	"tare/rigs/hosttest"
)

var update = flag.Bool("update", false, "write the goldens")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

func encode(t *testing.T, e Encoder, r *Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := e(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGoldens(t *testing.T) {
	extension := map[string]string{
		"text": ".txt", "json": ".json", "markdown": ".md", "yaml": ".yaml", "junit": ".xml", "sarif": ".sarif",
		"openmetrics": ".prom",
		"benchfmt":    ".bench", "hyperfine": ".hyperfine", "github-action-benchmark": ".action",
	}
	for name, r := range samples() {
		for form, e := range Encoders() {
			t.Run(name+extension[form], func(t *testing.T) {
				if of(r, form) {
					if got := encode(t, e, r); hasGolden(name, form) {
						golden(t, name+extension[form], got)
					}
				} else if err := e(io.Discard, r); err == nil || len(r.Blocks) == 0 && !errors.Is(err, ErrNoBlocks) {
					t.Errorf("%v, want an error that says what is missing", err)
				}
			})
		}
	}
	t.Run("color", func(t *testing.T) {
		golden(t, "accept-queue.color.txt", encode(t, Style{Color: true}.Text, stored("accept-queue")))
		golden(t, "enforcers.color.txt", encode(t, Style{Color: true}.Text, enforcers()))
	})
	t.Run("narrow", func(t *testing.T) {
		golden(t, "enforcers.60.txt", encode(t, Style{Width: 60}.Text, enforcers()))
	})
	for name, r := range samples() {
		text := encode(t, Text, r)
		if bytes.Count(text, []byte("\n")) <= screenLines {
			continue // it is its own first screen
		}
		t.Run(name+".screen", func(t *testing.T) {
			screen := encode(t, Style{Rest: "tare report RUN --all"}.Text, r)
			if n := bytes.Count(screen, []byte("\n")); n > screenLines {
				t.Errorf("%d lines, want at most %d", n, screenLines)
			}
			golden(t, name+".screen.txt", screen)
		})
	}
	for name, r := range samples() {
		if hasGolden(name, "annotations") {
			t.Run(name+".gha", func(t *testing.T) { golden(t, name+".gha", encode(t, Annotations, r)) })
		}
	}
	for form, e := range extension {
		files, _ := filepath.Glob(filepath.Join("testdata", "*"+e))
		for _, file := range files {
			name, _, _ := strings.Cut(filepath.Base(file), ".")
			if (samples()[name] == nil || !hasGolden(name, form)) && name != "every-finding" {
				t.Errorf("%s is the golden of no sample", file)
			}
		}
	}
}

// hasGolden says whether a sample has a golden in a form. Nobody reads the difference of 33 reports in ten forms: all
// have one in text, and in the others there is one for each question, and for what only that form tells apart.
func hasGolden(name, form string) bool {
	questions := []string{"gatehouse-capacity", "growth-ties", "guard", "hostile", "other-questions", "tribunal-compare"}
	alone := map[string][]string{
		"json": {"soak-interrupted"}, "yaml": {"soak-interrupted"}, "markdown": {"accept-queue", "enforcers", "psp", "soak"},
		"openmetrics": {"at-least", "growth-steps", "ladder", "psp", "pull-manager", "soak"},
		"junit":       {"accept-queue", "invalid", "soak"}, "sarif": {"invalid", "soak"},
		"annotations": {"enforcers", "invalid", "soak"}, "benchfmt": {"pull-manager"},
		"hyperfine": {"pull-manager", "turnpike-cache"}, "github-action-benchmark": {"soak", "turnpike-cache"},
	}
	return form == "text" || slices.Contains(questions, name) || slices.Contains(alone[form], name)
}

// of says whether a report has anything for a form.
func of(r *Report, form string) bool {
	timed := slices.ContainsFunc(r.Blocks, func(b BlockValues) bool {
		return b.Metric == "wall" ||
			b.Metric == "response"
	})
	switch form {
	case "github-action-benchmark":
		return len(r.Blocks) > 0 || r.soaked()
	case "benchfmt":
		return len(r.Blocks) > 0
	case "hyperfine":
		return timed
	}
	return true
}

// TestSamplesInEveryForm: what a form says is what the report holds, whatever the report.
func TestSamplesInEveryForm(t *testing.T) {
	schema := compiled(t)
	for name, r := range samples() {
		t.Run(name, func(t *testing.T) {
			written := encode(t, JSON, r)
			var back Report
			var fromJSON, fromYAML any
			if err := errors.Join(json.Unmarshal(written, &back), json.Unmarshal(written, &fromJSON),
				yaml.Unmarshal(encode(t, YAML, r), &fromYAML)); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(r, &back); d != "" {
				t.Errorf("read back (-want +got):\n%s", d)
			}
			// Through JSON once more, so that whole numbers are of one type.
			b, err := json.Marshal(fromYAML)
			if err := errors.Join(err, json.Unmarshal(b, &fromYAML)); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(fromJSON, fromYAML); d != "" {
				t.Errorf("(-json +yaml):\n%s", d)
			}
			if err := schema.Validate(fromJSON); err != nil {
				t.Error(err)
			}
			checkText(t, r)
			checkVerdict(t, r)
		})
	}
}

// checkText holds text to its width, and colour to be only colour.
func checkText(t *testing.T, r *Report) {
	t.Helper()
	for _, width := range []int{80, 100, 132} { // narrower, the first columns of a table stay
		for line := range strings.SplitSeq(string(encode(t, Style{Width: width}.Text, r)), "\n") {
			if n := utf8.RuneCountInString(line); n > width && !strings.Contains(line, longWord) {
				t.Errorf("at %d columns: %d in %q", width, n, line)
			}
		}
	}
	colored := string(encode(t, Style{Color: true}.Text, r))
	for _, c := range []string{string(terminal.Red), string(terminal.Green), string(terminal.Yellow), "\x1b[0m"} {
		colored = strings.ReplaceAll(colored, c, "")
	}
	if d := cmp.Diff(string(encode(t, Text, r)), colored); d != "" {
		t.Error(d)
	}
}

// checkVerdict holds what CI systems read to the verdict: JUnit is green, and SARIF holds no more than answers, exactly
// for runs that pass, and annotations are errors for what is broken.
func checkVerdict(t *testing.T, r *Report) {
	t.Helper()
	failures, errs, _, _, err := checkJUnit(encode(t, JUnit, r))
	if green := failures+errs == 0; err != nil || green != r.passes() {
		t.Errorf("%d failures, %d errors, and the verdict is %s (%s): %v", failures, errs, r.Verdict, r.Status, err)
	}
	results, err := checkSARIF(encode(t, SARIF, r))
	kept := !slices.ContainsFunc(r.Budgets, func(b Budget) bool { return b.Verdict != Pass })
	if clean := len(results) == r.alarms(); err != nil || clean != (r.passes() && kept) {
		t.Errorf("%d results, %d of answers, and the verdict is %s (%s): %v", len(results), r.alarms(), r.Verdict, r.Status,
			err)
	}
	broken := int(boolean(r.Verdict == Invalid)) + int(boolean(r.Status != Complete))
	for i := range r.Budgets {
		broken += int(boolean(r.Budgets[i].Verdict == Fail && r.Verdict != Invalid))
	}
	said := 0
	for _, c := range readAnnotations(t, encode(t, Annotations, r)) {
		said += int(boolean(c.name == "error"))
	}
	if said != broken {
		t.Errorf("%d errors, want %d", said, broken)
	}
}

func TestUnknownIsAbsent(t *testing.T) {
	got := string(encode(t, JSON, &Report{
		Schema: Schema, Treatments: []Treatment{},
		Capacity: []Capacity{{Treatment: "x"}},
	}))
	for _, field := range []string{
		"null", `"rate"`, `"lo"`, `"burst"`, `"limit"`, `"failure"`, `"recovery_seconds"`, `"generator"`, `"at_least"`,
	} {
		if strings.Contains(got, field) {
			t.Errorf("%s is there although it is not known:\n%s", field, got)
		}
	}
}

// failing is a writer into which nothing can be written.
type failing struct{}

var errBroken = errors.New("broken")

func (failing) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteErrorsAreReported(t *testing.T) {
	for form, e := range Encoders() {
		if err := e(failing{}, enforcers()); !errors.Is(err, errBroken) {
			t.Errorf("%s: %v", form, err)
		}
	}
	for _, moments := range []int{1, 5000} { // these do not fit into the buffer of the writer
		if err := WriteWindows(failing{}, make([]Moment, moments)); !errors.Is(err, errBroken) {
			t.Errorf("%d windows: %v", moments, err)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, r := range samples() {
		b, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, 80)
	}
	f.Fuzz(func(t *testing.T, b []byte, width int) {
		var r Report
		if json.Unmarshal(b, &r) != nil {
			return
		}
		if _, err := json.Marshal(&r); err != nil {
			return // a year that RFC 3339 cannot say
		}
		// Whatever a report holds, every form can be written.
		encode(t, Style{Width: width % 300, Color: true}.Text, &r)
		encode(t, Markdown, &r)
		encode(t, JSON, &r)
		encode(t, YAML, &r)
	})
}

// saidBy are the texts that a form has to show of a block, in their order.
func saidBy(b *block, m media) []string {
	var out []string
	add := func(texts ...string) { out = append(out, nonEmpty(texts...)...) }
	add(b.Heading, b.Text)
	add(b.Legend...)
	for _, x := range b.Said {
		add(x.Word, x.Text)
	}
	if b.Lead != nil && m != inText {
		add(strings.TrimSuffix(b.Lead.Word, "none"))
	}
	if b.Notice != nil {
		add(b.Notice.Text)
	}
	if b.Head != nil {
		add(b.Head.Text)
		add(b.Head.Parts...)
	}
	if b.List != nil {
		add(b.List.Items...)
	}
	if b.Figure != nil && b.Figure.Line != nil {
		add(b.Figure.Line.Text)
	}
	if t, _ := b.Table.shown(m); t != nil {
		for _, c := range t {
			add(c.head)
		}
		add(t[0].cells...)
		add(t.notes()...)
	}
	return out
}

// plainly is a form's output as the document has its texts: without markup, and with single spaces.
func plainly(m media, s string) string {
	if m == inMarkdown {
		s = html.UnescapeString(strings.NewReplacer("\\", "", "**", "").Replace(s))
	}
	if m == onPage {
		s = svgs.ReplaceAllString(scripts.ReplaceAllString(s, ""), "")
		s = html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(s, " "))
	}
	return strings.ToLower(strings.Join(strings.Fields(s), " "))
}

// TestFormsOnlyRenderTheDocument: every form shows all blocks that are for it, in the order of the document, and no
// sentence that is for other forms only. The text form ends with the closing blocks and the verdict.
func TestFormsOnlyRenderTheDocument(t *testing.T) {
	hosttest.SkipIfShort(t)
	all := samples()
	maps.Copy(all, pageSamples())
	checked := 0
	for name, r := range all {
		if strings.Contains(name, "hostile") {
			continue // whose texts no form may show as they are
		}
		for form, m := range map[string]media{"text": inText, "markdown": inMarkdown, "html": onPage} {
			encoder := map[media]Encoder{inText: Style{Width: 100000}.Text, inMarkdown: Markdown, onPage: HTML}[m]
			out := plainly(m, string(encode(t, encoder, r)))
			at := 0
			for _, s := range compose(r, nil) {
				for _, b := range s.Blocks {
					if !b.in(m) {
						if said := plainly(inText, b.Text); said != "" && strings.Contains(out, said) {
							t.Errorf("%s: the %s form says what is for others: %q", name, form, b.Text)
						}
						continue
					}
					for _, text := range saidBy(&b, m) {
						from := at
						if m == inText || m == onPage && b.Notice != nil { // closing blocks and notices stand elsewhere
							from = 0
						}
						i := strings.Index(out[from:], plainly(inText, sanitize(text)))
						if i < 0 {
							t.Fatalf("%s: the %s form does not say %q, or not behind %q", name, form, text, out[max(0, at-60):at])
						}
						at = max(at, from+i)
						checked++
					}
				}
			}
			if said := plainly(inText, "verdict "+r.Verdict.mark()+because(r.Reason)); m == inText &&
				!strings.HasSuffix(out, said) {
				t.Errorf("%s: the text form does not end with the verdict", name)
			}
		}
	}
	if checked < 3000 {
		t.Errorf("only %d texts were looked for", checked)
	}
}

// TestInvalidityIsExplainedOnce: the reason of an invalid run stands where its verdict is, and nowhere else.
func TestInvalidityIsExplainedOnce(t *testing.T) {
	late := caches()
	const why = "the generator sent late in 12 of 20 blocks: p99 2.7 ms, where 1 ms is allowed"
	late.Verdict, late.Reason = Invalid, why
	late.Generator = &Generator{Reason: why, Doubts: []string{why}, AchievedRatio: new(1.0)}
	checked := 0
	for name, r := range map[string]*Report{"search": stored("invalid"), "late": late, "differs": unreliable()} {
		_, reason, _ := strings.Cut(r.Reason, ": ")
		for form, m := range map[string]media{"text": inText, "markdown": inMarkdown, "html": onPage} {
			encoder := map[media]Encoder{inText: Style{Width: 100000}.Text, inMarkdown: Markdown, onPage: HTML}[m]
			out := plainly(m, string(encode(t, encoder, r)))
			if n := strings.Count(out, plainly(inText, reason)); n != 1 {
				t.Errorf("%s: the %s form gives the reason %d times", name, form, n)
			}
			checked++
		}
	}
	if checked != 9 {
		t.Errorf("%d forms were read", checked)
	}
}

// TestOneWording: what the forms once said differently.
func TestOneWording(t *testing.T) {
	r := enforcers()
	page := render(t, r)
	for _, c := range []struct{ what, said, unsaid string }{
		{"an equivalent effect", "≈ equivalent", "✓ equivalent"},
		{"an effect", "+3.0 % [2.1, 3.9]", "+3.0 % [+2.1, +3.9]"},
		{"a treatment", "both RuntimeDefault rules=8", "both seccomp=RuntimeDefault rules=8"},
	} {
		shown, _, _ := strings.Cut(html.UnescapeString(strings.ReplaceAll(page, space, " ")),
			"What was measured under each treatment")
		if !strings.Contains(shown, c.said) {
			t.Errorf("the page does not write %s as %q", c.what, c.said)
		}
		if c.what != "a treatment" && strings.Contains(shown, c.unsaid) {
			t.Errorf("the page writes %s as %q", c.what, c.unsaid)
		}
	}
}

// TestLongTablesAreCutInWords: text and Markdown show the first rows and say how many they leave out; the page has all.
func TestLongTablesAreCutInWords(t *testing.T) {
	r := base("causes")
	o := Operation{Treatment: "default", Operation: "token"}
	for i := range maxCauses + 6 {
		o.Causes = append(o.Causes, Cause{Outcome: "failed", Cause: "cause-" + whole(uint64(i)) + "-", Calls: 1})
	}
	r.Operations = []Operation{o}
	for form, c := range map[string]struct {
		encode Encoder
		rows   int
	}{"text": {Text, maxCauses}, "markdown": {Markdown, maxCauses}, "html": {HTML, maxCauses + 6}} {
		out := string(encode(t, c.encode, r))
		if form == "html" {
			out = bare(out)
		}
		if n := strings.Count(out, "cause-"); n != c.rows {
			t.Errorf("%s: %d causes, want %d", form, n, c.rows)
		}
		if said := strings.Contains(out, "and 6 more rows, which the other forms have"); said != (form != "html") {
			t.Errorf("%s: that rows are left out is said: %v", form, said)
		}
	}
}

var (
	exponents = regexp.MustCompile(`(?:^|[\s(\[±×+-])\d+(?:\.\d+)?e[+-]?\d+\b`)
	decimals  = regexp.MustCompile(`\b\d+\.\d+\b`)
)

// hardToRead are the numbers of a text that people do not write: with an exponent, or with more than six significant
// digits.
func hardToRead(text string) []string {
	out := exponents.FindAllString(text, -1)
	for _, s := range decimals.FindAllString(text, -1) {
		if digits := strings.TrimLeft(strings.Replace(s, ".", "", 1), "0"); utf8.RuneCountInString(digits) > 6 {
			out = append(out, s)
		}
	}
	return out
}

// forPeople are the ends of golden files that people read; the others are for programs.
var forPeople = []string{".txt", ".md", ".golden"}

// TestNumbersAreReadable looks at every golden file that shows what people read.
func TestNumbersAreReadable(t *testing.T) {
	seen := 0
	for _, dir := range []string{".", "../config", "../cli", "../analyze", "../chart", "../term"} {
		err := filepath.WalkDir(filepath.Join(dir, "testdata"), func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !slices.Contains(forPeople, filepath.Ext(file)) {
				return err
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			seen++
			if bad := hardToRead(string(text)); len(bad) > 0 {
				t.Errorf("%s: %q", file, bad)
			}
			return nil
		})
		if err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
	}
	if seen < 50 {
		t.Errorf("only %d golden files were seen", seen)
	}
}

// TestFormsAreReadable holds every form of a number to it, from a billionth to a billion.
func TestFormsAreReadable(t *testing.T) {
	for _, bad := range []string{"2e+04/s", " 16.666666666666668/s", "(1.5e-05"} {
		if len(hardToRead(bad)) == 0 {
			t.Errorf("%q is taken for readable", bad)
		}
	}
	forms := map[string]func(float64) string{
		"seconds": unit.Seconds, "rate": unit.PerSecond, "bytes": unit.Bytes, "share": unit.Share, "number": unit.Number,
		"exactly":         Exactly,
		"decimal":         func(v float64) string { return unit.Decimal(v, 4) },
		"recovers":        RecoversAfter,
		"a minute's rate": func(v float64) string { return (unit.Rate(float64(int(v))) / 60).String() },
	}
	for name, form := range forms {
		for v := 1e-9; v < 1e9; v *= 1.37 {
			for _, x := range []float64{v, -v} {
				if name == "a minute's rate" && (x < 1 || x > 1e6) {
					continue
				}
				if bad := hardToRead(form(x)); len(bad) > 0 {
					t.Errorf("%s of %v: %q", name, x, form(x))
				}
			}
		}
	}
	if got := RecoversAfter(11.5e-6); got != "immediately" {
		t.Errorf("recovers %s", got)
	}
}

func TestMain(m *testing.M) { hosttest.Main(m) }
