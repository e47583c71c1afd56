package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"

	"tare/internal/metric"
)

// benchResult is one line of Go's benchmark format, until it is known which configuration varies. There may be hundreds
// of thousands.
type benchResult struct {
	config    map[string]string // shared by many lines
	pkg, name string
	n         int
	values    [4]float64 // of benchMetrics; NaN: none
}

// benchLines parses Go's benchmark format line by line.
type benchLines struct {
	p       *parser
	results []benchResult
	names   map[string]string // each once
	config  map[string]string // of the last line
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

// maxConfig bounds the configuration lines that apply at a time, such as "goos: linux".
const maxConfig = 100

// goBench parses Go's benchmark format. Each line is one repetition. Configuration and GOMAXPROCS that vary become
// levels of treatments; the package is part of the operation's name if there are several.
func (p *parser) goBench(src io.Reader) error {
	p.data.Unit = "line"
	lines := newLineFilter(src)
	r := benchfmt.NewReader(lines, p.file)
	x := benchLines{p: p, names: map[string]string{}}
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
		if len(x.results) > maxCalls/10 {
			return fmt.Errorf("read %s: %w", p.file, errTooLarge)
		}
	}
	if err := r.Err(); err != nil {
		return errors.Join(p.finding(0, "take out what 'go test' did not write", "it cannot be read to its end"), err)
	}
	return p.benchSeries(x.results)
}

// A lineFilter blanks lines that benchfmt would accumulate: unit metadata, which is not used here, and configuration
// without a result after it.
type lineFilter struct {
	in     *bufio.Reader
	line   []byte // the rest of it
	rest   bool   // the line continues in the next piece
	blank  bool
	config int // lines since the last result
}

func newLineFilter(src io.Reader) *lineFilter {
	return &lineFilter{in: bufio.NewReaderSize(src, 1<<16)}
}

func (f *lineFilter) Read(b []byte) (int, error) {
	for len(f.line) == 0 {
		piece, err := f.in.ReadSlice('\n')
		if len(piece) == 0 && err != nil {
			return 0, err
		}
		if !f.rest {
			f.blank = f.unwanted(piece)
		}
		f.rest = piece[len(piece)-1] != '\n'
		switch f.line = piece; {
		case f.blank && f.rest:
			f.line = nil
		case f.blank:
			f.line = piece[len(piece)-1:]
		}
	}
	n := copy(b, f.line)
	f.line = f.line[n:]
	return n, nil
}

// unwanted decides by a line's beginning.
func (f *lineFilter) unwanted(line []byte) bool {
	switch first, _, _ := bytes.Cut(line, []byte(" ")); {
	case bytes.HasPrefix(line, []byte("Unit")):
		return true
	case bytes.ContainsRune(first, ':'):
		f.config++
		return f.config > 10*maxConfig
	}
	return false
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
	config := map[string]string{}
	for _, c := range rec.Config {
		if c.Key == "pkg" {
			b.pkg = x.once(string(c.Value))
		} else if c.File {
			config[c.Key] = string(c.Value)
		}
	}
	if procs != "" {
		config["gomaxprocs"] = procs
	}
	if !maps.Equal(config, x.config) {
		x.config = config
	}
	b.name, b.config = x.once(name), x.config
	x.results = append(x.results, b)
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

// once interns a text.
func (x *benchLines) once(s string) string {
	if kept, ok := x.names[s]; ok {
		return kept
	}
	x.names[s] = s
	return s
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

func (p *parser) benchSeries(results []benchResult) error {
	varies := varying(results)
	packages := map[string]bool{}
	for i := range results {
		packages[results[i].pkg] = true
	}
	for i := range results {
		b := &results[i]
		levels := map[string]string{}
		for _, key := range varies {
			if v := b.config[key]; v != "" {
				levels[key] = v
			}
		}
		name := b.name
		if len(packages) > 1 && b.pkg != "" {
			name = b.pkg + "." + name
		}
		for k, m := range benchMetrics() {
			if v := b.values[k]; !math.IsNaN(v) {
				if err := p.add(treatment(levels), name, m, Repetition{N: max(1, b.n), Values: []float64{v}}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// varying returns the keys whose values differ between results, in order of appearance.
func varying(results []benchResult) []string {
	var keys []string
	seen := map[string]bool{}
	for i := range results {
		for key := range results[i].config {
			if seen[key] {
				continue
			}
			seen[key] = true
			for j := range results {
				if results[j].config[key] != results[i].config[key] {
					keys = append(keys, key)
					break
				}
			}
		}
	}
	return keys
}
