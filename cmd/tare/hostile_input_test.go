package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"tare/internal/cli"
	"tare/internal/record"
	"tare/rigs/hosttest"
	"tare/rigs/injection"
)

var everyPlace = flag.Bool("everyplace", false, "the tests of hostile files attack every place, not every eighth")

// An injector runs commands on input with injected texts and checks what they print.
type injector struct {
	*testing.T
	tried, shown int
	reported     map[string]bool
}

func newInjector(t *testing.T) *injector { return &injector{T: t, reported: map[string]bool{}} }

// nextAttack returns the next text to inject. It contains the injection.Marker.
func (h *injector) nextAttack(where string) string {
	h.tried++
	return injection.Text(injection.Attacks[h.tried%len(injection.Attacks)], where)
}

// check checks what a command prints about an injected text.
func (h *injector) check(where string, args ...string) int {
	h.Helper()
	text, code := runTare(h.T, args...)
	h.read(where, args[0], text)
	return code
}

// read checks what a command has printed or written about an injected text.
func (h *injector) read(where, command, text string) {
	h.Helper()
	if injection.Marker.MatchString(text) {
		h.shown++
	}
	for _, f := range append(injection.ControlCharacters(text), injection.CICommands(text)...) {
		if what := command + f.What + where; !h.reported[what] {
			h.reported[what] = true
			h.Errorf("tare %s with an attack in %s: %s: %q", command, where, f.What, f.Where)
		}
	}
}

// wantAtLeast fails the test unless at least n injected texts were printed: otherwise nothing was tested.
func (h *injector) wantAtLeast(n int) {
	h.Logf("%d attacks, %d of them in what commands print", h.tried, h.shown)
	if h.shown < n {
		h.Errorf("only %d of %d attacks came to be printed, want %d", h.shown, h.tried, n)
	}
}

// TestInjectionByRecords injects texts into every value and key of records, one at a time, and runs the commands that
// read records.
func TestInjectionByRecords(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	h := newInjector(t)
	records, _ := filepath.Glob(filepath.Join("..", "..", "internal", "analyze", "testdata", "records", "*",
		record.JournalFile))
	for i, journal := range records {
		src, err := os.ReadFile(journal)
		if err != nil {
			t.Fatal(err)
		}
		var lines []any
		samples := 0
		for line := range bytes.Lines(src) {
			var v any
			if err := json.Unmarshal(line, &v); err != nil {
				t.Fatal(err)
			}
			if lineKind(v) == "slice" {
				if samples++; samples > 20 { // all are alike, and resampling 65 of them takes most of the time
					continue
				}
			}
			lines = append(lines, v)
		}
		places := map[string]bool{}
		for _, line := range lines {
			mapTexts(line, lineKind(line), func(path, s string) string { places[path] = true; return s })
		}
		for n, place := range slices.Sorted(maps.Keys(places)) {
			if !*everyPlace && n%8 != i%8 {
				continue
			}
			h.checkRecord(filepath.Dir(journal), lines, place)
		}
	}
	h.wantAtLeast(len(records) * 5)
}

// lineKind returns what a line of a journal is about.
func lineKind(line any) string {
	m, _ := line.(map[string]any)
	kind, _ := m["kind"].(string)
	return kind
}

// mapTexts returns a JSON value in which other has replaced every text, including the keys of objects.
func mapTexts(v any, path string, other func(path, s string) string) any {
	switch x := v.(type) {
	case string:
		return other(path, x)
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = mapTexts(x[i], path, other)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, e := range x {
			out[other(path+"."+k+" (name)", k)] = mapTexts(e, path+"."+k, other)
		}
		return out
	}
	return v
}

// checkRecord runs the commands that read records on a copy of one, with a text injected at place.
func (h *injector) checkRecord(from string, lines []any, place string) {
	results := h.TempDir()
	dir, whole := filepath.Join(results, "r"), filepath.Join(results, "whole.txt")
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		h.Fatal(err)
	}
	attack := h.nextAttack(place)
	var b bytes.Buffer
	for _, line := range lines {
		text, err := json.Marshal(mapTexts(line, lineKind(line), func(path, s string) string {
			if path == place {
				return attack
			}
			return s
		}))
		if err != nil {
			h.Fatal(err)
		}
		b.Write(append(text, '\n'))
	}
	if err := os.WriteFile(filepath.Join(dir, record.JournalFile), b.Bytes(), 0o600); err != nil {
		h.Fatal(err)
	}
	for _, args := range [][]string{
		{"list", "runs", "--results", results},
		{"check", dir},
		{"report", dir, "-o", "text", "-o", "text=" + whole},
		{"diff", dir, dir},
		{"undo", dir},
		{"run", "--resume", dir},
	} {
		h.check(filepath.Base(from)+" "+place, args...)
	}
	if text, err := os.ReadFile(whole); err == nil { // some are no reports any more
		h.read(filepath.Base(from)+" "+place, "report --all", string(text))
	}
}

// TestInjectionByExperiments injects texts into every name and value of the examples.
func TestInjectionByExperiments(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	h := newInjector(t)
	examples, _ := filepath.Glob(filepath.Join("..", "..", "areas", "*", "examples", "*.yaml"))
	file := filepath.Join(t.TempDir(), "x.yaml")
	for _, example := range examples {
		src, err := os.ReadFile(example)
		if err != nil {
			t.Fatal(err)
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(src, &doc); err != nil {
			t.Fatal(err)
		}
		for i, n := range scalars(&doc) {
			if !*everyPlace && i%8 != len(example)%8 {
				continue
			}
			whole := *n
			where := filepath.Base(example) + " " + n.Value
			n.Value, n.Tag, n.Style = h.nextAttack(fmt.Sprint(filepath.Base(example), i)), "!!str", yaml.DoubleQuotedStyle
			text, err := yaml.Marshal(&doc)
			if err != nil {
				t.Fatal(err)
			}
			*n = whole
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if code := h.check(where, "validate", file); code == cli.ExitPass && strings.HasPrefix(filepath.Base(example),
				"gke") {
				h.check(where, "plan", "--try", file)
			}
		}
	}
	h.wantAtLeast(len(examples))
}

// scalars returns the names and values of a YAML document.
func scalars(n *yaml.Node) (out []*yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		return []*yaml.Node{n}
	}
	for _, c := range n.Content {
		out = append(out, scalars(c)...)
	}
	return out
}

// TestInjectionByImports injects texts into every word of other tools' results.
func TestInjectionByImports(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	h := newInjector(t)
	files, _ := filepath.Glob(filepath.Join("..", "..", "internal", "importer", "testdata", "*.*"))
	word := regexp.MustCompile(`[A-Za-z_]{3,}`)
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		words := map[string]bool{}
		for _, w := range word.FindAllString(string(src[:min(len(src), 20_000)]), -1) {
			words[w] = true
		}
		for i, w := range slices.Sorted(maps.Keys(words)) {
			if !*everyPlace && i%8 != 0 {
				continue
			}
			dir := t.TempDir()
			spoiled := filepath.Join(dir, filepath.Base(file))
			where := filepath.Base(file) + " " + w
			if err := os.WriteFile(spoiled, bytes.ReplaceAll(src, []byte(w), quotedFor(file, h.nextAttack(where))),
				0o600); err != nil {
				t.Fatal(err)
			}
			if h.check(where, "import", spoiled, "--name", h.nextAttack(where+"name"), "--results", dir) == cli.ExitPass {
				runs, _ := filepath.Glob(filepath.Join(dir, "*", record.JournalFile))
				h.check(where, "report", filepath.Dir(runs[0]))
				h.check(where, "list", "runs", "--results", dir)
			}
		}
	}
	h.wantAtLeast(len(files) * 3)
}

// quotedFor returns s as it is quoted in the format of that file.
func quotedFor(file, s string) []byte {
	var b bytes.Buffer
	switch filepath.Ext(file) {
	case ".json":
		quoted, _ := json.Marshal(s)
		return bytes.Trim(quoted, `"`)
	case ".xml":
		_ = xml.EscapeText(&b, []byte(s))
		return b.Bytes()
	}
	return []byte(s)
}

// TestInjectionByArguments passes such texts as arguments, as a script may that takes them from elsewhere.
func TestInjectionByArguments(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	h := newInjector(t)
	results := t.TempDir()
	for _, attack := range injection.Attacks {
		for _, args := range [][]string{
			{"validate"},
			{"plan", "--try"},
			{"run"},
			{"report"},
			{"check"},
			{"diff", results},
			{"undo"},
			{"import"},
			{"list"},
			{"explain"},
			{"init"},
			{"doctor"},
			{"run", "--resume"},
			{"report", results, "-o"},
			{"check", results, "--budget"},
			{"import", results, "--format"},
			{"list", "runs", "--results"},
			{"cache", "-o"},
			{"plane"},
			{"plane", "status", "-o"},
			{},
		} {
			h.tried++
			if where := "its arguments"; strings.HasPrefix(attack, "-") {
				h.check(where, append(args, "--", injection.Text(attack, "argument"))...)
			} else if !strings.Contains(attack, "\x00") || len(args) == 0 {
				h.check(where, append(args, injection.Text(attack, "argument"))...)
			}
		}
	}
	h.wantAtLeast(len(injection.Attacks))
}
