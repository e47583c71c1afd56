package importer

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"

	"tare/internal/design"
	"tare/internal/metric"
)

// benchResult is one line of Go's benchmark format, until it is known which configuration varies. There may be hundreds
// of thousands.
type benchResult struct {
	config    *benchConfig
	pkg, name string
	n         int
	values    [4]float64 // of benchMetrics; NaN: none
}

// A benchConfig is the configuration of many lines.
type benchConfig struct {
	levels    map[string]string
	treatment design.Treatment // by the levels that vary
}

// benchLines parses Go's benchmark format line by line.
type benchLines struct {
	p       *parser
	results []benchResult
	texts   map[string]string       // names and configuration, and what plain leaves of them
	configs map[string]*benchConfig // by what design.ID says of them
	config  *benchConfig            // of the last line
	kept    int                     // bytes of texts and configs
}

// benchUnits are the units for which a record has metrics: Go's own, and tare's unit of CPU time.
var benchUnits = map[string]string{
	"sec/op": metric.Wall.Name, "cpu-sec/op": metric.CPU.Name, "B/op": metric.Allocated.Name,
	"allocs/op": metric.Allocations.Name,
}

// benchMetrics are those metrics, in the record's order.
func benchMetrics() [4]string {
	return [4]string{metric.Wall.Name, metric.CPU.Name, metric.Allocated.Name, metric.Allocations.Name}
}

// The limits of what is kept of a file besides values.
const (
	maxConfig = 100      // configuration lines that apply at a time, such as "goos: linux"
	maxText   = 2 << 10  // bytes of a name or a configuration line: more than plain leaves of it
	maxTexts  = 16 << 20 // bytes of all, and of all units
)

// goBench parses Go's benchmark format. Each line is one repetition. Configuration and GOMAXPROCS that vary become
// levels of treatments; the package is part of the operation's name if there are several.
func (p *parser) goBench(src io.Reader) error {
	p.data.Unit = "line"
	lines := newLineFilter(src)
	r := benchfmt.NewReader(lines, p.file)
	x := benchLines{p: p, texts: map[string]string{}, configs: map[string]*benchConfig{}}
	for r.Scan() {
		switch rec := r.Result().(type) {
		case *benchfmt.Result:
			lines.config = 0
			if len(rec.Config) > maxConfig {
				return fmt.Errorf("read %s: more than %d lines of configuration hold at once; import a part of the file",
					p.file, maxConfig)
			}
			x.add(rec)
		case *benchfmt.SyntaxError:
			p.malformed(rec.Line, "mend the line or take it out", "%s", rec.Msg)
		}
		if len(x.configs) > maxTreatments {
			return fmt.Errorf("read %s: more than %d treatments; import a part of the file", p.file, maxTreatments)
		}
		if len(x.results) > maxCalls/10 || x.kept > maxTexts {
			return fmt.Errorf("read %s: %w", p.file, errTooLarge)
		}
	}
	if lines.failed != "" {
		p.warn("%s says %q: what failed has no values here, or some from before it did", p.file, lines.failed)
	}
	if err := r.Err(); err != nil {
		return errors.Join(p.finding(0, "take out what 'go test' did not write", "it cannot be read to its end"), err)
	}
	return p.benchSeries(&x)
}

// A lineFilter withholds what benchfmt would accumulate: unit metadata, which is not used here, configuration without a
// result after it, what is long in configuration, and more units than maxTexts allows.
type lineFilter struct {
	in     *bufio.Reader
	line   []byte // the rest of it
	rest   bool   // the line continues in the next piece
	left   int    // bytes that may pass of the line
	config int    // lines since the last result
	units  map[string]bool
	kept   int    // bytes of units
	failed string // the first line that says that something did
}

func newLineFilter(src io.Reader) *lineFilter {
	return &lineFilter{in: bufio.NewReaderSize(src, 1<<16), units: map[string]bool{}}
}

func (f *lineFilter) Read(b []byte) (int, error) {
	for len(f.line) == 0 {
		piece, err := f.in.ReadSlice('\n')
		if len(piece) == 0 && err != nil {
			return 0, err
		}
		if !f.rest {
			f.left = f.wanted(piece)
		}
		if f.kept > maxTexts {
			return 0, errors.New("it has more different units than can be imported")
		}
		n := min(len(piece), f.left)
		f.left -= n
		if f.rest = piece[len(piece)-1] != '\n'; !f.rest && n < len(piece) {
			piece[n] = '\n'
			n++
		}
		f.line = piece[:n]
	}
	n := copy(b, f.line)
	f.line = f.line[n:]
	return n, nil
}

// perText is about what a map takes for a text besides its bytes.
const perText = 64

// wanted decides by a line's beginning how many bytes of it pass.
func (f *lineFilter) wanted(line []byte) int {
	said := bytes.TrimSpace(line) // of a part of a benchmark it is indented
	if bytes.HasPrefix(said, []byte("--- FAIL")) || bytes.HasPrefix(line, []byte("FAIL")) {
		f.failed = cmp.Or(f.failed, plain(string(said[:min(len(said), longest)])))
	}
	switch first, _, _ := bytes.Cut(line, []byte(" ")); {
	case bytes.HasPrefix(line, []byte("Unit")):
		return 0
	case bytes.HasPrefix(line, []byte("Benchmark")):
		f.countUnits(line)
	case bytes.ContainsRune(first, ':'):
		if f.config++; f.config > 10*maxConfig {
			return 0
		}
		return maxText
	}
	return math.MaxInt
}

// countUnits notes the units of a benchmark line, also of a malformed one: benchunit keeps some of them for ever.
func (f *lineFilter) countUnits(line []byte) {
	i := 0
	for field := range bytes.FieldsSeq(line) {
		if i >= 3 && i%2 == 1 && !f.units[string(field)] { // after the name, the number of calls, and a value each
			f.units[string(field)] = true
			f.kept += len(field) + perText
		}
		i++
	}
}

// add adds a line's result, unless a record has a metric for none of its values.
func (x *benchLines) add(rec *benchfmt.Result) {
	_, line := rec.Pos()
	b := benchResult{n: rec.Iters}
	for i := range b.values {
		b.values[i] = math.NaN()
	}
	if !x.values(&b, rec, line) {
		return
	}
	base, parts := rec.Name.Parts()
	name, procs := string(base), ""
	if name == "" {
		name = "Benchmark" // the whole name of a benchmark may be the prefix
	}
	for _, part := range parts {
		if s := string(part); strings.HasPrefix(s, "-") {
			procs = s[1:]
		} else {
			name += s
		}
	}
	levels := map[string]string{}
	for _, c := range rec.Config {
		if c.Key == "pkg" {
			b.pkg = x.plain(c.Value)
		} else if c.File {
			levels[x.plain([]byte(c.Key))] = x.plain(c.Value)
		}
	}
	if procs != "" {
		levels["gomaxprocs"] = x.plain([]byte(procs))
	}
	if x.config == nil || !maps.Equal(levels, x.config.levels) {
		x.config = x.configOf(levels)
	}
	b.name, b.config = x.plain([]byte(name)), x.config
	x.results = append(x.results, b)
}

// configOf returns the one configuration with these levels.
func (x *benchLines) configOf(levels map[string]string) *benchConfig {
	id := design.ID(levels)
	if x.configs[id] == nil {
		x.configs[id] = &benchConfig{levels: levels}
		x.kept += len(id) + perText*len(levels)
	}
	return x.configs[id]
}

// plain returns what plain leaves of a text, and keeps it.
func (x *benchLines) plain(text []byte) string {
	text = text[:min(len(text), maxText)]
	if kept, ok := x.texts[string(text)]; ok {
		return kept
	}
	s := plain(string(text))
	x.texts[string(text)] = s
	x.kept += len(text) + len(s) + perText
	return s
}

// values extracts the values of a line; false if a record has a metric for none of them.
func (x *benchLines) values(b *benchResult, rec *benchfmt.Result, line int) bool {
	p, metrics, some := x.p, benchMetrics(), false
	for _, v := range rec.Values {
		switch {
		case v.Unit == "ns/op": // infinite: it was not converted
			p.malformed(line, "take the line out", "%v ns per call is no time", v.Value)
			return false
		case benchUnits[v.Unit] == "":
			p.ignore("unit " + unitAsWritten(v) + ": no metric of a record has it")
		case !good(v.Value):
			p.malformed(line, "take the line out", "%v %s is no cost of a call", valueAsWritten(v), unitAsWritten(v))
			return false
		default:
			b.values[slices.Index(metrics[:], benchUnits[v.Unit])] = inBaseUnit(v)
			some = true
		}
	}
	if !some {
		p.ignore("benchmark lines without ns/op, B/op and allocs/op")
	}
	return some
}

// inBaseUnit returns a value in base units. The reader multiplies by 1e-9, which has no exact form; dividing instead
// preserves the number as written.
func inBaseUnit(v benchfmt.Value) float64 {
	if v.OrigUnit == "ns/op" {
		return v.OrigValue / 1e9
	}
	return v.Value
}

func valueAsWritten(v benchfmt.Value) float64 {
	if v.OrigUnit != "" {
		return v.OrigValue
	}
	return v.Value
}

func unitAsWritten(v benchfmt.Value) string {
	if v.OrigUnit != "" {
		return v.OrigUnit
	}
	return v.Unit
}

func (p *parser) benchSeries(x *benchLines) error {
	x.setTreatments()
	packages := map[string]bool{}
	for i := range x.results {
		packages[x.results[i].pkg] = true
	}
	for i := range x.results {
		b := &x.results[i]
		name := b.name
		if len(packages) > 1 && b.pkg != "" {
			name = b.pkg + "." + name
		}
		for k, m := range benchMetrics() {
			if v := b.values[k]; !math.IsNaN(v) {
				if err := p.add(b.config.treatment, name, m, Repetition{N: max(1, b.n), Values: []float64{v}}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// setTreatments makes treatments of the levels that differ between configurations.
func (x *benchLines) setTreatments() {
	count := map[[2]string]int{} // of a key and its value
	for _, c := range x.configs {
		for key, v := range c.levels {
			count[[2]string{key, v}]++
		}
	}
	for _, c := range x.configs {
		varies := map[string]string{}
		for key, v := range c.levels {
			if count[[2]string{key, v}] < len(x.configs) {
				varies[key] = v
			}
		}
		c.treatment = treatment(varies)
	}
	x.keepCommon(count)
}

// aboutSource are the keys of configuration that tell which source was measured: two files are to differ in it.
var aboutSource = []string{"commit", "commit-time", "branch", "date"}

// keepCommon keeps what all configurations have, given how many have each key with its value.
func (x *benchLines) keepCommon(count map[[2]string]int) {
	said := false // whether any line says what GOMAXPROCS was
	for level, n := range count {
		said = said || level[0] == "gomaxprocs"
		if n == len(x.configs) && !slices.Contains(aboutSource, level[0]) {
			x.p.made(level[0], level[1])
		}
	}
	if !said && x.p.data.Made["goos"] != "" { // go test leaves out a 1
		x.p.made("gomaxprocs", "1")
	}
}
