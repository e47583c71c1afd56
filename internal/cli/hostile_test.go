package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/report"
	"tare/internal/signature"
	"tare/rigs/hosttest"
	"tare/rigs/injection"
)

// A filler sets every string, map key and element of a model to a text to inject, including fields that are added
// later.
type filler struct {
	*rand.Rand
	t      *testing.T
	attack string                 // for every field; empty: a different one for each
	wants  func(part string) bool // whether an optional part of the report is there
	whole  bool                   // all optional parts below those are there
	names  map[string]string      // texts that several fields share
}

// valid are the words that some texts have in a report of tare's own: others are reached by code that knows them.
var valid = map[reflect.Type][]string{
	reflect.TypeFor[design.Question]():            {"compare", "scale", "capacity", "soak"},
	reflect.TypeFor[design.Control]():             {"", "aa", "negative"},
	reflect.TypeFor[report.Status]():              {"complete", "interrupted", "killed", "error"},
	reflect.TypeFor[report.Verdict]():             words(report.Verdicts()),
	reflect.TypeFor[report.EffectVerdict]():       words(report.EffectVerdicts()),
	reflect.TypeFor[report.Formula]():             words(report.Formulas()),
	reflect.TypeFor[metric.Unit]():                {"s", "CPU-s", "B", "1/s", "ratio", "1"},
	reflect.TypeFor[signature.Class]():            {"accept-queue", "token-bucket", "unknown"},
	reflect.TypeFor[signature.GeneratorVerdict](): {"ruled-out", "possible", "limit"},
}

// validNames are those of texts of no type of their own.
var validNames = map[string][]string{
	"Kind": {"ratio", "difference", "cold-start"}, "Stop": {"found", "down", "max-rate", "ladder"},
	"Quantile": {"", "p50", "p99"}, "Metric": {"wall", "response", "cpu", "rss", "error", "goodput"},
	"Law": {"linear", "log"}, "Best": {"linear", "constant"}, "Of": {"calls", "batches"},
	"Text":    {"capacity >= 100/s", "response.p99 <= +5%", "rss drift <= 1%/h"},
	"Outcome": {"timeout", "refused"}, "Formula": {"official"}, "Operation": {""},
}

// shared are the texts by which parts of a report find one another.
var shared = map[string]string{
	"Treatment": "treatment", "ID": "treatment", "Baseline": "treatment",
	"Operation": "operation", "Factor": "factor", "Factors": "factor", "Levels": "factor", "Windows": "windows",
}

func words[T ~string](all []T) []string {
	var out []string
	for _, w := range all {
		out = append(out, string(w))
	}
	return out
}

// text returns an injected text that names the field at path or, half the time where the field has valid words, one of
// these.
func (f *filler) text(path string, t reflect.Type) string {
	field := path[strings.LastIndexByte(path, '.')+1:]
	choice := valid[t]
	if t == reflect.TypeFor[string]() {
		choice = validNames[field]
	}
	if len(choice) > 0 && f.IntN(2) == 0 {
		return choice[f.IntN(len(choice))]
	}
	name := strings.ReplaceAll(path, ".", "")
	if pool, ok := shared[field]; ok {
		name = fmt.Sprint(pool, f.IntN(3))
		if s, ok := f.names[name]; ok {
			return s
		}
	}
	attack := f.attack
	if attack == "" {
		attack = injection.Attacks[f.IntN(len(injection.Attacks))]
	}
	s := injection.Text(attack, name)
	f.names[name] = s
	return s
}

// includes decides whether to set an optional part.
func (f *filler) includes(path string) bool {
	if strings.Count(path, ".") == 1 {
		return f.wants(path[1:])
	}
	return f.whole || f.IntN(3) > 0
}

func (f *filler) fill(v reflect.Value, path string) {
	switch v.Kind() { //nolint:exhaustive // of other kinds there are none in a report, or the test fails
	case reflect.String:
		v.SetString(f.text(path, v.Type()))
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(f.IntN(30)))
	case reflect.Uint64:
		v.SetUint(uint64(f.IntN(3000)))
	case reflect.Float64:
		v.SetFloat([]float64{0, 0.25, 1, 17.5, 4000, -3}[f.IntN(6)] * (1 + f.Float64()))
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i), path)
		}
	case reflect.Pointer:
		if f.includes(path) {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), path)
		}
	case reflect.Slice:
		if f.includes(path) {
			v.Set(reflect.MakeSlice(v.Type(), 3, 3))
			for i := range v.Len() {
				f.fill(v.Index(i), path)
			}
		}
	case reflect.Map:
		if f.includes(path) {
			f.fillMap(v, path)
		}
	case reflect.Struct:
		f.fillStruct(v, path)
	default:
		f.t.Fatalf("%s is a %s, which this test cannot fill", path, v.Kind())
	}
}

func (f *filler) fillMap(v reflect.Value, path string) {
	v.Set(reflect.MakeMap(v.Type()))
	for range 2 {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key, path)
		f.fill(value, path+".value")
		v.SetMapIndex(key, value)
	}
}

func (f *filler) fillStruct(v reflect.Value, path string) {
	if at, ok := reflect.TypeAssert[*time.Time](v.Addr()); ok {
		*at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		return
	}
	for i := range v.NumField() {
		f.fill(v.Field(i), path+"."+v.Type().Field(i).Name)
	}
}

// optionalParts returns the fields of a report that may be absent.
func optionalParts() (out []string) {
	for field := range reflect.TypeFor[report.Report]().Fields() {
		if k := field.Type.Kind(); k == reflect.Slice || k == reflect.Pointer || k == reflect.Map {
			out = append(out, field.Name)
		}
	}
	return out
}

// hostileReports calls each with reports in which every text is injected: each text in all fields, each part alone,
// each part left out, and random sets of parts.
func hostileReports(t *testing.T, each func(name string, r *report.Report)) {
	make1 := func(name string, seed uint64, f filler) {
		f.Rand, f.t, f.names = rand.New(rand.NewPCG(seed, 7)), t, map[string]string{}
		var r report.Report
		f.fill(reflect.ValueOf(&r).Elem(), "")
		r.Schema = report.Schema
		for i := range r.Timeline {
			r.Timeline[i].Bin = 1
		}
		each(name, &r)
	}
	all := func(string) bool { return true }
	for i, a := range injection.Attacks {
		make1(fmt.Sprintf("attack %q", a), uint64(i), filler{attack: a, wants: all, whole: true})
	}
	for i, part := range optionalParts() {
		make1("only "+part, uint64(i), filler{wants: func(p string) bool {
			return p == part ||
				p == "Treatments" && i%2 == 0
		}, whole: true})
		make1("all but "+part, uint64(i), filler{wants: func(p string) bool { return p != part }})
	}
	n := uint64(80)
	if testing.Short() {
		n = 40
	}
	for seed := range n {
		coin := rand.New(rand.NewPCG(seed, 8))
		make1(fmt.Sprint("random ", seed), seed, filler{wants: func(string) bool { return coin.IntN(3) > 0 }})
	}
}

// outputForms returns an encoder for every form in which the command line prints a report.
func outputForms() map[string]report.Encoder {
	all := encoders()
	all["annotations"], all["summary"] = report.Annotations, report.StepSummary
	all["text, 60 columns"], all["text in color"] = report.Style{Width: 60}.Text, report.Style{Color: true}.Text
	all["check"] = func(w io.Writer, r *report.Report) error {
		a := &app{Env: Env{Stdout: w}}
		a.budgetLines(r)
		return a.lost
	}
	all["windows"] = func(w io.Writer, r *report.Report) error {
		for i := range r.Soak {
			if err := report.WriteWindows(w, r.Soak[i].Moments); err != nil {
				return err
			}
		}
		return nil
	}
	return all
}

// TestInjectionByReports encodes reports full of injected texts in every form: no text may control a terminal, become a
// command of a CI system or become markup, and machine-readable forms must decode to the same values.
func TestInjectionByReports(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	written, reported := map[string]int{}, map[string]bool{}
	forms, turn := slices.Sorted(maps.Keys(outputForms())), 0
	hostileReports(t, func(name string, r *report.Report) {
		turn++
		for i, form := range forms {
			if !hosttest.IsLong() && (turn+i)%3 > 0 && !slices.Contains(ofBlocks, form) {
				continue // each report in a third of the forms
			}
			encode := outputForms()[form]
			var b bytes.Buffer
			err := encode(&b, r)
			if err != nil && slices.Contains(ofBlocks, form) {
				b.Reset()
				err = encode(&b, answered(r))
			}
			if err != nil {
				if !slices.Contains(ofBlocks, form) {
					t.Errorf("form %s of %s: %v", form, name, err)
				}
				continue
			}
			written[form]++
			for _, f := range findInjections(form, b.String(), r) {
				if what := form + " " + f.What + " " + f.Field(); !reported[what] {
					reported[what] = true
					t.Errorf("%s: %s: %s in %s: %q", form, name, f.What, f.Field(), f.Where)
				}
			}
		}
	})
	for _, form := range forms {
		if written[form] < 5 {
			t.Errorf("%s: only %d reports could be written", form, written[form])
		}
	}
}

// answered is a report of which failed calls leave no value untold.
func answered(r *report.Report) *report.Report {
	out := *r
	out.Blocks = slices.Clone(r.Blocks)
	for i := range out.Blocks {
		out.Blocks[i].Untold = ""
	}
	return &out
}

// ofBlocks are the forms of other tools, which not every report can take.
var ofBlocks = []string{"benchfmt", "hyperfine", "github-action-benchmark"}

var (
	ownColor      = regexp.MustCompile("\x1b\\[(0|31|32|33)m")
	ownAnnotation = regexp.MustCompile(`^::(error|warning|notice) title=[^:,]+::\S`)
)

// findInjections returns the injections in one form of a report.
func findInjections(form, out string, r *report.Report) []injection.Found {
	if form == "text in color" {
		out = ownColor.ReplaceAllString(out, "")
	}
	all := injection.ControlCharacters(out)
	if form != "annotations" {
		all = append(all, injection.CICommands(out)...)
	}
	examine, ok := map[string]func(string, *report.Report) []injection.Found{
		"annotations": findInAnnotations, "markdown": findInMarkdown, "summary": findInMarkdown, "html": findInPage,
		"junit": findInJUnit, "json": findInJSON, "yaml": findInYAML,
		"hyperfine": findInAnyJSON, "github-action-benchmark": findInAnyJSON, "sarif": findInAnyJSON,
		"openmetrics": findInOpenMetrics,
		"benchfmt":    findInBenchfmt, "windows": findFormulas,
	}[form]
	if ok {
		all = append(all, examine(out, r)...)
	}
	return all
}

func findInAnnotations(out string, _ *report.Report) []injection.Found {
	var all []injection.Found
	if n := strings.Count(out, "\n"); n > report.MaxAnnotations {
		all = append(all, injection.Found{What: fmt.Sprint(n, " annotations"), Where: out})
	}
	for line := range strings.Lines(out) {
		if !ownAnnotation.MatchString(line) || injection.CommandAnywhere.MatchString(line) {
			all = append(all, injection.Found{What: "another command", Where: line})
		}
	}
	return all
}

var (
	escapedMark = regexp.MustCompile(`\\[!-/:-@\[-` + "`" + `{-~]`)
	liveMark    = regexp.MustCompile("<|`|\\]\\(|~~|\\[|(^|[^*])\\*([^*]|$)|&[^la]|(?m)^(- )?(# hd|> qt|- li|\\+ pl|1\\. ol)")
)

// findInMarkdown finds markup that the encoder did not write, and rows whose length differs from that of their table's
// head.
func findInMarkdown(out string, _ *report.Report) []injection.Found {
	var all []injection.Found
	bare := escapedMark.ReplaceAllString(out, "")
	if at := liveMark.FindStringIndex(bare); at != nil {
		all = append(all, injection.Found{What: "a mark of Markdown", Where: injection.Around(bare, at[0], at[1])})
	}
	bars := 0
	for line := range strings.Lines(bare) {
		n := strings.Count(line, "|")
		if bars > 0 && n > 0 && n != bars || n > 0 && !strings.HasPrefix(line, "|") {
			all = append(all, injection.Found{What: "a cell too many", Where: line})
		}
		bars = n
	}
	return all
}

var (
	pageParts  = regexp.MustCompile(`(?s)<style>.*?</style>|<(meta[^>]*|!doctype html)>`)
	pageScript = regexp.MustCompile(`(?s)(<script[^>]*>)(.*?)</script>`)
	pageNames  = strings.Fields(`html head title body header main section nav footer p h1 h2 h3 ul li a div span strong figure figcaption details summary
		table caption thead tbody tr th td dl dt dd pre code script svg desc g path line rect circle text tspan polyline polygon defs clipPath use pattern`)
)

// findInPage parses an HTML page as strictly as XML: its elements and attributes must be those of tare's pages.
func findInPage(out string, _ *report.Report) []injection.Found {
	for _, m := range pageScript.FindAllStringSubmatch(out, -1) {
		if strings.Contains(m[1], "json") && !json.Valid([]byte(m[2])) {
			return []injection.Found{{What: "broken data", Where: injection.Around(m[2], 0, 200)}}
		}
	}
	return findInMarkup(pageScript.ReplaceAllString(pageParts.ReplaceAllString(out, ""), "$1</script>"), pageNames,
		strings.Fields("lang class id href aria-label aria-labelledby role tabindex scope open type data-timeline data-head"))
}

// findInMarkup finds unexpected elements, attributes and addresses. Drawings are recognized by their element.
func findInMarkup(out string, names, attributes []string) []injection.Found {
	d := xml.NewDecoder(strings.NewReader(out))
	near := func(what string, before int) []injection.Found {
		at := int(d.InputOffset())
		return []injection.Found{{What: what, Where: injection.Around(out, at-before, at)}}
	}
	drawing := 0
	for {
		token, err := d.Token()
		switch x := token.(type) {
		case xml.StartElement:
			if x.Name.Local == "svg" || drawing > 0 {
				drawing++
			}
			if !slices.Contains(names, x.Name.Local) {
				return near("the element "+x.Name.Local, 0)
			}
			for _, a := range x.Attr {
				n := strings.ToLower(a.Name.Local)
				if drawing == 0 && !slices.Contains(attributes, n) || strings.HasPrefix(n, "on") || n == "style" ||
					n == "href" && !strings.HasPrefix(a.Value, "#") {
					return near("the attribute "+n, 80)
				}
			}
		case xml.EndElement:
			drawing = max(0, drawing-1)
		case xml.Comment, xml.Directive:
			return near("a comment or a directive", 80)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return near("broken markup: "+err.Error(), 0)
		}
	}
}

func findInJUnit(out string, _ *report.Report) []injection.Found {
	return findInMarkup(out, strings.Fields(
		"testsuites testsuite properties property testcase skipped error failure system-out system-err"),
		strings.Fields("name tests failures errors time skipped timestamp hostname value classname message type"))
}

// findInJSON finds values that are not the report's.
func findInJSON(out string, r *report.Report) []injection.Found {
	return findInValues(out, r, json.Unmarshal)
}

func findInYAML(out string, r *report.Report) []injection.Found {
	return findInValues(out, r, func(b []byte, v any) error {
		var any2 any
		if err := yaml.Unmarshal(b, &any2); err != nil {
			return err
		}
		again, err := json.Marshal(any2)
		if err != nil {
			return err
		}
		return json.Unmarshal(again, v)
	})
}

func findInValues(out string, r *report.Report, decode func([]byte, any) error) []injection.Found {
	b, err := json.Marshal(r)
	if err != nil {
		return []injection.Found{{What: err.Error(), Where: ""}}
	}
	var want, got any
	if err := json.Unmarshal(b, &want); err != nil {
		return []injection.Found{{What: err.Error(), Where: ""}}
	}
	if err := decode([]byte(out), &got); err != nil {
		return []injection.Found{{What: "broken syntax: " + err.Error(), Where: injection.Around(out, 0, 0)}}
	}
	if d := cmp.Diff(want, got); d != "" {
		return []injection.Found{{What: "another value", Where: d}}
	}
	return nil
}

func findInAnyJSON(out string, _ *report.Report) []injection.Found {
	if !json.Valid([]byte(out)) {
		return []injection.Found{{What: "broken JSON", Where: out}}
	}
	return nil
}

var (
	metricLine    = regexp.MustCompile(`^(# (TYPE|UNIT|HELP) tare_.*|# EOF|tare_[a-z0-9_]+(\{([a-z0-9_]+="([^"\\]|\\[n"\\])*",?)*\})? \S+)\n$`)
	benchmarkLine = regexp.MustCompile(`^(# .*|Unit \S+ better=\w+|(experiment|area): \S.*|Benchmark\S+ 1( \S+ \S+)+|)\n$`)
)

func findInOpenMetrics(out string, _ *report.Report) []injection.Found {
	all := findInLines(out, metricLine)
	if strings.Count(out, "# EOF") != 1 && strings.Count(out, "\n# EOF\n") != 1 {
		all = append(all, injection.Found{What: "an end before the end", Where: out})
	}
	return all
}

func findInBenchfmt(out string, _ *report.Report) []injection.Found {
	return findInLines(out, benchmarkLine)
}

func findInLines(out string, line *regexp.Regexp) []injection.Found {
	for l := range strings.Lines(out) {
		if !line.MatchString(l) {
			return []injection.Found{{What: "a line of another form", Where: l}}
		}
	}
	return nil
}

// findFormulas finds cells that a spreadsheet would compute.
func findFormulas(out string, _ *report.Report) []injection.Found {
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil {
		return []injection.Found{{What: err.Error(), Where: out}}
	}
	for _, cell := range slices.Concat(rows...) {
		if injection.Marker.MatchString(cell) && strings.ContainsAny(cell[:1], "=+-@") {
			return []injection.Found{{What: "a formula", Where: cell}}
		}
	}
	return nil
}
