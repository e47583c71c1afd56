package importer

import (
	"errors"
	"io"
	"strings"

	"golang.org/x/perf/benchfmt"

	"tare/internal/metric"
)

// benchResult is one line of Go's benchmark format, until it is known which configuration varies.
type benchResult struct {
	config    map[string]string
	pkg, name string
	procs     string
	n         int
	values    map[string]float64 // by metric
}

// benchUnits are the units of which a record has metrics: Go's own, and the one in which tare writes CPU time.
var benchUnits = map[string]string{
	"sec/op": metric.Wall.Name, "cpu-sec/op": metric.CPU.Name, "B/op": metric.Allocated.Name, "allocs/op": metric.Allocations.Name,
}

// benchMetrics are those metrics, in the order in which a record has them.
func benchMetrics() []string {
	return []string{metric.Wall.Name, metric.CPU.Name, metric.Allocated.Name, metric.Allocations.Name}
}

// goBench reads Go's benchmark format. One line is one repetition; what varies from line to line among the file's configuration and
// GOMAXPROCS becomes levels of treatments, and the package is part of the operation's name where there are several.
func (p *parser) goBench(src io.Reader) error {
	p.data.Unit = "line"
	r := benchfmt.NewReader(src, p.file)
	var results []benchResult
	for r.Scan() {
		switch rec := r.Result().(type) {
		case *benchfmt.Result:
			_, line := rec.Pos()
			if b, ok := p.benchLine(rec, line); ok {
				results = append(results, b)
			}
		case *benchfmt.SyntaxError:
			p.malformed(rec.Line, "mend the line or take it out", "%s", rec.Msg)
		}
		if len(results) > maxCalls/10 { // each keeps its configuration
			return errTooLarge
		}
	}
	if err := r.Err(); err != nil {
		return errors.Join(p.finding(0, "take out what 'go test' did not write", "it cannot be read to its end"), err)
	}
	return p.benchSeries(results)
}

// benchLine takes what a line says; false when it has nothing that a record has a metric for.
func (p *parser) benchLine(rec *benchfmt.Result, line int) (benchResult, bool) {
	b := benchResult{config: map[string]string{}, values: map[string]float64{}, n: rec.Iters}
	for _, v := range rec.Values {
		switch {
		case v.Unit == "ns/op": // infinite: it was not converted
			p.malformed(line, "take the line out", "%v ns per call is no time", v.Value)
			return b, false
		case benchUnits[v.Unit] == "":
			p.ignore("unit " + unitAsWritten(v) + ": no metric of a record has it")
		case !good(v.Value):
			p.malformed(line, "take the line out", "%v %s is no cost of a call", valueAsWritten(v), unitAsWritten(v))
			return b, false
		default:
			b.values[benchUnits[v.Unit]] = inBaseUnit(v)
		}
	}
	if len(b.values) == 0 {
		p.ignore("benchmark lines without ns/op, B/op and allocs/op")
		return b, false
	}
	base, parts := rec.Name.Parts()
	b.name = string(base)
	if b.name == "" {
		b.name = "Benchmark" // the whole name of a benchmark may be the prefix
	}
	for _, part := range parts {
		if s := string(part); strings.HasPrefix(s, "-") {
			b.procs = s[1:]
		} else {
			b.name += s
		}
	}
	for _, c := range rec.Config {
		if c.Key == "pkg" {
			b.pkg = string(c.Value)
		} else if c.File {
			b.config[c.Key] = string(c.Value)
		}
	}
	if b.procs != "" {
		b.config["gomaxprocs"] = b.procs
	}
	return b, true
}

// inBaseUnit is a value in base units: what the reader multiplies by 1e-9, which has no exact form, is divided instead, so that what was written is what
// is written again.
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
		for _, m := range benchMetrics() {
			if v, ok := b.values[m]; ok {
				if err := p.add(treatment(levels), name, m, Repetition{N: max(1, b.n), Values: []float64{v}}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// varying are the keys whose value is not the same in all results, in the order in which they came.
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
