package gobench

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"

	"tare/internal/build"
	"tare/internal/driver"
	"tare/internal/metric"
	"tare/internal/proc"
)

// A listing is what a side has to measure.
type listing struct {
	names []Benchmark
	units map[string]bool // that tare has no metric for
	on    string          // what runs them, where it is not the file itself
}

// listWithin bounds one call of each benchmark of a package.
const listWithin = 10 * time.Minute

// list runs each benchmark of a side as go test does: only so are the names of sub-benchmarks known, and how many calls
// make a batch.
func (o Options) list(ctx context.Context, dir string, s Side) (l listing, err error) {
	l.units = map[string]bool{}
	for _, pkg := range sorted(s.Tests) {
		t := s.Tests[pkg]
		out, err := build.Step{
			Path: filepath.Join(dir, t.File), Args: arguments(o.TestFlags, "", o.Span.String(), o.CPU), Dir: t.Dir,
			Env: proc.Environment(slices.Concat(driver.Usual(), o.Env)...),
		}.Run(ctx)
		if ctx.Err() != nil {
			return l, ctx.Err()
		}
		results, err := parse(out, o.CPU, err)
		if err != nil {
			return l, fmt.Errorf("%s: the benchmarks of %s: %w", s.Label, pkg, err)
		}
		for _, r := range results {
			l.names = append(l.names, Benchmark{Package: pkg, Name: r.name, Calls: r.calls})
			for _, unit := range r.others {
				l.units[unit] = true
			}
		}
	}
	return l, nil
}

// without returns the benchmarks that the other lacks.
func (l listing) without(other listing) (out []string) {
	for _, b := range l.names {
		if other.index(b) < 0 {
			out = append(out, b.title())
		}
	}
	return out
}

// index returns the place of a benchmark of that name, or -1.
func (l listing) index(b Benchmark) int {
	return slices.IndexFunc(l.names, func(x Benchmark) bool { return x.Package == b.Package && x.Name == b.Name })
}

// notes says what a side is, and what of it is not compared.
func (l listing) notes(s source) []string {
	out := []string{s.Label + " is " + s.Says}
	if l.on != "" {
		out = append(out, s.Label+" ran on "+l.on)
	}
	if len(l.units) > 0 {
		out = append(out, "benchmarks of "+s.Label+" also report "+strings.Join(sorted(l.units), ", ")+
			", for which tare has no metric: not compared")
	}
	return out
}

// arguments returns the arguments of a test binary: one benchmark, or those that the flags choose, each
// for a time or a number of calls.
func arguments(flags []string, name, length string, cpu int) []string {
	out := slices.Concat(flags, []string{
		"-test.run=^$", "-test.benchmem", "-test.count=1", "-test.cpu=" + strconv.Itoa(cpu),
		"-test.benchtime=" + length, "-test.timeout=" + listWithin.String(),
	})
	if name != "" {
		out = append(out, "-test.bench="+pattern(name))
	}
	return out
}

// A result is a line of a benchmark's output.
type result struct {
	name   string
	calls  int
	each   map[string]float64 // by metric, of one call
	others []string           // units that have no metric
}

// parse reads the output of a test binary that has ended with err.
func parse(out string, cpu int, ended error) (results []result, err error) {
	if ended != nil {
		return nil, fmt.Errorf("the test binary ended with %w: %s", ended, reason(out))
	}
	r := benchfmt.NewReader(strings.NewReader(out), "output")
	for r.Scan() {
		switch rec := r.Result().(type) {
		case *benchfmt.Result:
			x := result{name: string(rec.Name), calls: rec.Iters, each: map[string]float64{}}
			if cpu > 1 {
				x.name = strings.TrimSuffix(x.name, "-"+strconv.Itoa(cpu))
			}
			for _, v := range rec.Values {
				x.add(v)
			}
			if _, ok := x.each[metric.Wall.Name]; !ok {
				return nil, fmt.Errorf("no ns/op of Benchmark%s: there is no time to compare; leave it out with -skip", x.name)
			}
			results = append(results, x)
		case *benchfmt.SyntaxError:
			return nil, fmt.Errorf("line %d is no result (%s): %s; a benchmark must not print to standard output", rec.Line,
				rec.Msg, reason(out))
		}
	}
	return results, r.Err()
}

// add adds a value as it is written.
func (x *result) add(v benchfmt.Value) {
	switch {
	case v.Unit == "sec/op" && v.OrigUnit == "ns/op":
		x.each[metric.Wall.Name] = v.OrigValue / 1e9
	case v.Unit == "sec/op":
		x.each[metric.Wall.Name] = v.Value
	case v.Unit == "B/op":
		x.each[metric.Allocated.Name] = v.Value
	case v.Unit == "allocs/op":
		x.each[metric.Allocations.Name] = v.Value
	case v.OrigUnit != "":
		x.others = append(x.others, v.OrigUnit)
	default:
		x.others = append(x.others, v.Unit)
	}
}

// mostReason is the most bytes of an output in an error.
const mostReason = 4000

// reason returns the lines of an output that say why it failed, else its end.
func reason(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	said := lines[max(0, len(lines)-6):]
	for i, line := range lines {
		// The name of a benchmark may stand before it in the same line.
		if strings.Contains(line, "panic: ") || strings.Contains(line, "fatal error: ") ||
			strings.Contains(line, "--- FAIL") || strings.HasSuffix(line, "<failure>") {
			said = lines[i:min(len(lines), i+6)]
			break
		}
	}
	text := strings.Join(said, "\n  ")
	return strings.ToValidUTF8(text[:min(len(text), mostReason)], "�")
}
