package report

import (
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestOpenMetricsEscapes(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", `a"b`: `a\"b`, `a\b`: `a\\b`, "a\nb": `a\nb`, "a\tb": "a b", "a\x00b": "a�b", "\xff": "�", "\u202e": "�", "漢": "漢",
	} {
		if got := escapeLabel(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// TestOpenMetricsSaysWhatTheReportSays compares values: right families, base units, right labels.
func TestOpenMetricsSaysWhatTheReportSays(t *testing.T) {
	m, err := readOpenMetrics(string(encode(t, OpenMetrics, stored("accept-queue"))))
	if err != nil {
		t.Fatal(err)
	}
	const run = `experiment="gke-2020",`
	for id, want := range map[string]float64{
		`tare_capacity_per_second{area="turnpike",` + run + `question="capacity",treatment="default"}`:                                                  150,
		`tare_goodput_per_second{area="turnpike",` + run + `operation="token",question="capacity",treatment="default"}`:                                 151.8,
		`tare_response_seconds{area="turnpike",` + run + `operation="token",quantile="0.99",question="capacity",treatment="default"}`:                   30.001,
		`tare_calls_total{area="turnpike",` + run + `operation="token",outcome="timeout",question="capacity",treatment="default"}`:                      2050,
		`tare_budget_verdict{area="turnpike",budget="capacity >= 100/s",` + run + `question="capacity",tare_budget_verdict="pass",treatment="default"}`: 1,
		`tare_budget_verdict{area="turnpike",budget="capacity >= 100/s",` + run + `question="capacity",tare_budget_verdict="fail",treatment="default"}`: 0,
		`tare_budget_limit{area="turnpike",budget="response.p99 <= 500ms at 50/s",` + run + `question="capacity",treatment="default",unit="seconds"}`:   0.5,
		`tare_target_cpu_seconds_total{area="turnpike",` + run + `question="capacity",target="endpoint",treatment="default"}`:                           1.24,
		`tare_target_resident_peak_bytes{area="turnpike",` + run + `question="capacity",target="endpoint",treatment="default"}`:                         44e6,
		`tare_generator_lateness_seconds{area="turnpike",` + run + `quantile="0.99",question="capacity"}`:                                               40e-6,
		`tare_run_verdict{area="turnpike",` + run + `question="capacity",tare_run_verdict="inconclusive"}`:                                              1,
		`tare_run_start_timestamp_seconds{area="turnpike",` + run + `question="capacity"}`:                                                              1772366400,
		`tare_capacity_limit_info{area="turnpike",certainty="shown",` + run +
			`limit="cpu-quota",question="capacity",treatment="default"}`: 1,
		`tare_capacity_failure_info{area="turnpike",certainty="shown",` + run +
			`failure="accept-queue",question="capacity",treatment="default"}`: 1,
		`tare_run_info{area="turnpike",commit="947ae69",` + run + `file="gke-2020.yaml",host="host",kernel="Linux 6.1.0",question="capacity",seed="4211",` +
			`sha256="0f3a",version="0.1.0"}`: 1,
	} {
		got, ok := m.points[id]
		if !ok {
			t.Errorf("there is no %s", id)
		} else if !equal(got, want) {
			t.Errorf("%s is %v, want %v", id, got, want)
		}
	}
}

func TestOpenMetricsLeavesOutWhatIsUnknown(t *testing.T) {
	out := string(encode(t, OpenMetrics, stored("at-least")))
	if !strings.Contains(out, "tare_capacity_at_least_per_second{") {
		t.Errorf("no lower bound:\n%s", out)
	}
	for _, absent := range []string{
		"tare_capacity_per_second", "tare_capacity_limit", "tare_capacity_failure", "tare_response", "tare_target",
		"tare_effect", "tare_budget_upper",
	} {
		if strings.Contains(out, absent) {
			t.Errorf("%s is there although it is not known:\n%s", absent, out)
		}
	}
}

func TestOpenMetricsKeepsWhatIsSaidTwice(t *testing.T) {
	r := stored("accept-queue")
	r.Operations = append(r.Operations, r.Operations[0])
	r.Budgets = append(r.Budgets, r.Budgets[0])
	r.Target[0].CPUSeconds, r.Target[0].CPUPerOp = new(-1.0), new(math.Inf(1))
	out := string(encode(t, OpenMetrics, r))
	if _, err := readOpenMetrics(out); err != nil {
		t.Error(err)
	}
	if n := strings.Count(out, `outcome="ok"`); n != 2 {
		t.Errorf("%d samples of calls that were ok, want both", n)
	}
	if strings.Contains(out, "tare_target_cpu_seconds") {
		t.Error("CPU time that went backwards was written as a counter")
	}
}

func TestOpenMetricsReaderSeesErrors(t *testing.T) {
	const head = "# TYPE a_seconds gauge\n# UNIT a_seconds seconds\n# HELP a_seconds Help.\n"
	const count = "# TYPE c counter\n# HELP c Help.\n"
	const set = "# TYPE s stateset\n# HELP s Help.\n"
	if _, err := readOpenMetrics(head + "a_seconds{x=\"1\"} 1\na_seconds{x=\"2\"} NaN\n" + count + "c_total 1e+06\n" +
		set + "s{s=\"x\"} 1\ns{s=\"y\"} 0\n# EOF\n"); err != nil {
		t.Fatalf("what is right is refused: %v", err)
	}
	for name, text := range map[string]string{
		"no end":                      head + "a_seconds 1\n",
		"something after the end":     "# EOF\n" + head + "a_seconds 1\n",
		"end in the middle of a line": head + "a_seconds 1 # EOF\n",
		"unit that is no suffix":      "# TYPE a gauge\n# UNIT a seconds\n# HELP a H.\na 1\n# EOF\n",
		"unit in the name only":       "# TYPE a_seconds gauge\n# HELP a_seconds H.\na_seconds 1\n# EOF\n",
		"counter without total":       count + "c 1\n# EOF\n",
		"negative counter":            count + "c_total -1\n# EOF\n",
		"counter that is no number":   count + "c_total NaN\n# EOF\n",
		"same sample twice":           head + "a_seconds{x=\"1\",y=\"2\"} 1\na_seconds{y=\"2\",x=\"1\"} 2\n# EOF\n",
		"same label twice":            head + "a_seconds{x=\"1\",x=\"2\"} 1\n# EOF\n",
		"type twice":                  "# TYPE a gauge\n# TYPE a gauge\n# HELP a H.\na 1\n# EOF\n",
		"interleaved families":        head + "a_seconds 1\n" + count + "c_total 1\n# HELP a_seconds More.\n# EOF\n",
		"sample of another family":    head + "b_seconds 1\n# EOF\n",
		"family without samples":      head + "# EOF\n",
		"bad escape":                  head + "a_seconds{x=\"\\t\"} 1\n# EOF\n",
		"open quote":                  head + "a_seconds{x=\"1} 1\n# EOF\n",
		"bad label name":              head + "a_seconds{x-y=\"1\"} 1\n# EOF\n",
		"bad number":                  head + "a_seconds 0x1p3\n# EOF\n",
		"timestamp":                   head + "a_seconds 1 1700000000\n# EOF\n",
		"control character":           head + "a_seconds{x=\"\x1b\"} 1\n# EOF\n",
		"not UTF-8":                   head + "a_seconds{x=\"\xff\"} 1\n# EOF\n",
		"empty line":                  head + "a_seconds 1\n\n# EOF\n",
		"info that is not one":        "# TYPE i info\n# HELP i H.\ni_info 2\n# EOF\n",
		"stateset without its label":  set + "s{x=\"y\"} 1\n# EOF\n",
		"stateset of two":             set + "s{s=\"x\"} 2\n# EOF\n",
		"scattered stateset":          set + "s{a=\"1\",s=\"x\"} 1\ns{a=\"2\",s=\"x\"} 1\ns{a=\"1\",s=\"y\"} 0\n# EOF\n",
		"names that meet": count +
			"c_total 1\n# TYPE c_created gauge\n# HELP c_created H.\nc_created 1\n# EOF\n",
		"unknown type":               "# TYPE a number\n# HELP a H.\na 1\n# EOF\n",
		"carriage return":            head + "a_seconds 1\r\n# EOF\n",
		"a sample before any family": "a_seconds 1\n# EOF\n",
		"unit of a stateset": "# TYPE s_ratio stateset\n# UNIT s_ratio ratio\n# HELP s_ratio H.\n" +
			"s_ratio{s_ratio=\"x\"} 1\n# EOF\n",
		"a comment of one's own":       "# hello\n# EOF\n",
		"no comma between labels":      head + "a_seconds{x=\"1\"y=\"2\"} 1\n# EOF\n",
		"descriptor after the samples": "# TYPE a gauge\n# HELP a H.\na 1\n# HELP a H.\n# EOF\n",
	} {
		if _, err := readOpenMetrics(text); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func FuzzOpenMetrics(f *testing.F) {
	addFuzzSeeds(f)
	f.Fuzz(func(t *testing.T, which uint8, s, run, budget, status string, v float64, n uint64) {
		if _, err := readOpenMetrics(string(encode(t, OpenMetrics, fuzzed(which, s, run, budget, status, v,
			n)))); err != nil {
			t.Fatal(err)
		}
	})
}

// TestOpenMetricsPageIsComplete compares the families that the samples have with those that the reference page lists.
func TestOpenMetricsPageIsComplete(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/outputs.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, name := range regexp.MustCompile("`(tare_[a-z_]+)`").FindAllStringSubmatch(string(page), -1) {
		listed[name[1]] = true
	}
	written := map[string]bool{}
	all := samples()
	full := stored("accept-queue")
	full.Operations[0].Causes = []Cause{{Outcome: "timeout", Cause: "no answer", Calls: 1}}
	full.Target[0].StartSeconds = new(1.0)
	all["full"] = full
	for _, r := range all { // each keeps the specification
		m, err := readOpenMetrics(string(encode(t, OpenMetrics, r)))
		if err != nil {
			t.Fatal(err)
		}
		for name := range m.families {
			written[name] = true
		}
	}
	if d := cmp.Diff(written, listed); d != "" {
		t.Errorf("families (-written +on the page):\n%s", d)
	}
}

// openMetrics is a strict reader of OpenMetrics text, written from the grammar and the rules of the specification,
// version 1.0 (github.com/prometheus/OpenMetrics). It knows the types that the encoder writes; others it refuses.
type openMetrics struct {
	families map[string]*omFamily
	now      *omFamily
	points   map[string]float64 // by name and labels in order of their names
}

type omFamily struct {
	name, kind, unit, help string
	typed, united, helped  bool
	samples                int
	groups                 []string // label sets in the order of their first sample
}

var (
	omName      = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	omLabelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	omNumber    = regexp.MustCompile(`^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$`)
	omSpecial   = regexp.MustCompile(`^(?i)([+-]?inf(inity)?|nan)$`)
)

// omSuffixes are what a type adds to a family's name; two families must not meet in one name.
var omSuffixes = map[string][]string{
	"counter": {"_total", "_created"}, "info": {"_info"}, "gauge": {""}, "stateset": {""}, "unknown": {""},
}

// readOpenMetrics reads a whole exposition.
func readOpenMetrics(text string) (*openMetrics, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("not UTF-8")
	}
	body, ok := strings.CutSuffix(text, "# EOF\n")
	if !ok {
		return nil, errors.New("does not end in # EOF")
	}
	if body != "" && !strings.HasSuffix(body, "\n") {
		return nil, errors.New("# EOF is not on a line of its own")
	}
	m := &openMetrics{families: map[string]*omFamily{}, points: map[string]float64{}}
	for i, line := range strings.Split(strings.TrimSuffix(body, "\n"), "\n") {
		if body == "" {
			break
		}
		if err := m.line(line); err != nil {
			return nil, fmt.Errorf("line %d: %w: %.200q", i+1, err, line)
		}
	}
	return m, m.finish()
}

func (m *openMetrics) line(line string) error {
	if strings.ContainsRune(line, '\r') {
		return errors.New("carriage return")
	}
	if strings.HasPrefix(line, "#") {
		return m.descriptor(line)
	}
	return m.sample(line)
}

func (m *openMetrics) descriptor(line string) error {
	part := strings.SplitN(line, " ", 4)
	if len(part) != 4 || part[0] != "#" {
		return errors.New("not a descriptor")
	}
	word, name, value := part[1], part[2], part[3]
	if !omName.MatchString(name) {
		return errors.New("not a name")
	}
	f := m.families[name]
	if f == nil {
		f = &omFamily{name: name}
		m.families[name], m.now = f, f
	}
	if f != m.now || f.samples > 0 {
		return errors.New("a family must not be interleaved with others, and its descriptors come first")
	}
	once := func(done *bool) error {
		if *done {
			return errors.New("said twice")
		}
		*done = true
		return nil
	}
	switch word {
	case "TYPE":
		if f.kind = value; omSuffixes[value] == nil {
			return errors.New("unknown type")
		}
		return once(&f.typed)
	case "UNIT":
		if f.unit = value; value == "" || !strings.HasSuffix(name, "_"+value) {
			return errors.New("the unit is not the end of the name")
		}
		return once(&f.united)
	case "HELP":
		f.help = value
		if _, rest, err := omString(value + `"`); err != nil || rest != "" {
			return fmt.Errorf("badly escaped help: %w", err)
		}
		return once(&f.helped)
	}
	return errors.New("unknown descriptor")
}

// omString reads an escaped string up to its closing quote: only \n, \" and \\ are escapes that the encoder may use.
func omString(s string) (value, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:], nil
		case c == '\\':
			if i++; i == len(s) {
				return "", "", errors.New("a backslash at the end")
			}
			switch s[i] {
			case 'n':
				b.WriteByte('\n')
			case '"', '\\':
				b.WriteByte(s[i])
			default:
				return "", "", errors.New("unknown escape")
			}
		case c < ' ' || c == 0x7f:
			return "", "", errors.New("control character")
		default:
			b.WriteByte(c)
		}
	}
	return "", "", errors.New("no closing quote")
}

func omLabels(s string) (set map[string]string, rest string, err error) {
	set = map[string]string{}
	for first := true; ; first = false {
		if r, ok := strings.CutPrefix(s, "}"); ok {
			return set, r, nil
		}
		if !first {
			var ok bool
			if s, ok = strings.CutPrefix(s, ","); !ok {
				return nil, "", errors.New("no comma between labels")
			}
		}
		name, after, ok := strings.Cut(s, `="`)
		if !ok || !omLabelName.MatchString(name) || strings.HasPrefix(name, "__") {
			return nil, "", errors.New("not a label")
		}
		if _, dup := set[name]; dup {
			return nil, "", errors.New("a label twice")
		}
		if set[name], s, err = omString(after); err != nil {
			return nil, "", err
		}
	}
}

func (m *openMetrics) sample(line string) error {
	end := strings.IndexAny(line, "{ ")
	if end < 1 || !omName.MatchString(line[:end]) {
		return errors.New("not a sample")
	}
	name, rest, set := line[:end], line[end:], map[string]string{}
	if r, ok := strings.CutPrefix(rest, "{"); ok {
		var err error
		if set, rest, err = omLabels(r); err != nil {
			return err
		}
	}
	number, ok := strings.CutPrefix(rest, " ")
	if !ok || !omNumber.MatchString(number) && !omSpecial.MatchString(number) {
		return errors.New("not a number, or a timestamp where none should be")
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return err
	}
	if m.now == nil {
		return errors.New("a sample before any family")
	}
	return m.now.add(m, name, set, v)
}

func key(set map[string]string, without string) string {
	var parts []string
	for k, v := range set {
		if k != without {
			parts = append(parts, k+"="+strconv.Quote(v))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// add takes a sample into the family that is being read.
func (f *omFamily) add(m *openMetrics, name string, set map[string]string, v float64) error {
	f.samples++
	suffix := map[string]string{"counter": "_total", "info": "_info"}[f.kind]
	if name != f.name+suffix {
		return fmt.Errorf("a sample of %s must be called %s", f.name, f.name+suffix)
	}
	id := name + "{" + key(set, "") + "}"
	if _, dup := m.points[id]; dup {
		return errors.New("the same sample twice")
	}
	m.points[id] = v
	switch f.kind {
	case "counter":
		if !(v >= 0) {
			return errors.New("a counter is negative or no number")
		}
	case "info":
		if v != 1 {
			return errors.New("an info must be 1")
		}
	case "stateset":
		return f.state(set, v)
	}
	return nil
}

// state checks a sample of a stateset: its state is a label with the family's name, its value 0 or 1, and samples of
// one set stand together.
func (f *omFamily) state(set map[string]string, v float64) error {
	if _, ok := set[f.name]; !ok {
		return errors.New("a stateset without the label of its state")
	}
	if v != 0 && v != 1 {
		return errors.New("a state is 0 or 1")
	}
	group := key(set, f.name)
	if len(f.groups) == 0 || f.groups[len(f.groups)-1] != group {
		if slices.Contains(f.groups, group) {
			return errors.New("samples of a stateset are scattered")
		}
		f.groups = append(f.groups, group)
	}
	return nil
}

// finish checks what concerns the whole.
func (m *openMetrics) finish() error {
	names := map[string]string{}
	for _, f := range m.families {
		if !f.typed || !f.helped || f.help == "" {
			return fmt.Errorf("%s lacks TYPE or HELP", f.name)
		}
		if f.samples == 0 {
			return fmt.Errorf("%s has no sample", f.name)
		}
		if f.united && (f.kind == "info" || f.kind == "stateset") {
			return fmt.Errorf("%s: this type has no unit", f.name)
		}
		for _, bad := range []string{"_total", "_created", "_count", "_sum", "_bucket", "_gcount", "_gsum", "_info"} {
			if strings.HasSuffix(f.name, bad) {
				return fmt.Errorf("%s ends in a reserved suffix", f.name)
			}
		}
		for _, base := range []string{"_seconds", "_bytes", "_ratio", "_per_second"} {
			if strings.HasSuffix(f.name, base) && !f.united {
				return fmt.Errorf("%s names a unit and has none", f.name)
			}
		}
		for _, s := range append([]string{""}, omSuffixes[f.kind]...) {
			if other, taken := names[f.name+s]; taken && other != f.name {
				return fmt.Errorf("%s and %s share the name %s", f.name, other, f.name+s)
			}
			names[f.name+s] = f.name
		}
	}
	return nil
}

// equal compares numbers, with NaN equal to itself.
func equal(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
