package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"go.yaml.in/yaml/v4"

	terminal "tare/internal/term"
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
		golden(t, "accept-queue.color.txt", encode(t, Style{Color: true}.Text, acceptQueue()))
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
		t.Run(name+".gha", func(t *testing.T) { golden(t, name+".gha", encode(t, Annotations, r)) })
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

// hasGolden says whether a sample has a golden in a form. Nobody reads the difference of 33 reports in the forms that
// write them out field by field: there it is one for each question, and for OpenMetrics what its families tell apart.
func hasGolden(name, form string) bool {
	questions := []string{"gatehouse-capacity", "growth-ties", "guard", "hostile", "other-questions", "tribunal-compare"}
	switch form {
	case "json", "yaml":
		return slices.Contains(append(questions, "soak-interrupted"), name)
	case "openmetrics":
		return slices.Contains(append(questions, "at-least", "growth-steps", "ladder", "psp", "pull-manager", "soak"), name)
	}
	return true
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

func TestJSONReadsBack(t *testing.T) {
	for name, r := range samples() {
		var back Report
		if err := json.Unmarshal(encode(t, JSON, r), &back); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := cmp.Diff(r, &back); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestYAMLSaysWhatJSONSays(t *testing.T) {
	for name, r := range samples() {
		var fromJSON, fromYAML any
		if err := json.Unmarshal(encode(t, JSON, r), &fromJSON); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(encode(t, YAML, r), &fromYAML); err != nil {
			t.Fatal(err)
		}
		// Through JSON once more, so that whole numbers are of one type.
		b, err := json.Marshal(fromYAML)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &fromYAML); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(fromJSON, fromYAML); d != "" {
			t.Errorf("%s (-json +yaml):\n%s", name, d)
		}
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

func TestTextKeepsToItsWidth(t *testing.T) {
	for name, r := range samples() {
		for _, width := range []int{60, 80, 100, 132} {
			for line := range strings.SplitSeq(string(encode(t, Style{Width: width}.Text, r)), "\n") {
				// The first columns of a table stay however narrow the terminal is, and so do words that are longer than it.
				if n := utf8.RuneCountInString(line); n > width && !strings.Contains(line, longWord) && width >= 80 {
					t.Errorf("%s at %d columns: %d in %q", name, width, n, line)
				}
			}
		}
	}
}

func TestColorIsOnlyColor(t *testing.T) {
	for name, r := range samples() {
		colored := string(encode(t, Style{Color: true}.Text, r))
		for _, c := range []string{string(terminal.Red), string(terminal.Green), string(terminal.Yellow), "\x1b[0m"} {
			colored = strings.ReplaceAll(colored, c, "")
		}
		if d := cmp.Diff(string(encode(t, Text, r)), colored); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
	}
}

func TestHostileTextStaysText(t *testing.T) {
	for _, form := range []string{"text", "markdown"} {
		got := string(encode(t, Encoders()[form], hostile()))
		for _, r := range got {
			if r != '\n' && (r < ' ' || r == 0x7f || r == '\u202e') {
				t.Errorf("%s holds %U", form, r)
			}
		}
		if form == "markdown" && strings.Contains(got, "<script") {
			t.Errorf("markdown holds HTML:\n%s", got)
		}
	}
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteErrorsAreReported(t *testing.T) {
	for form, e := range Encoders() {
		if err := e(brokenWriter{}, enforcers()); !errors.Is(err, errBroken) {
			t.Errorf("%s: %v", form, err)
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
