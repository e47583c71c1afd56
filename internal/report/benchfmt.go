package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/perf/benchfmt"

	"tare/internal/metric"
	terminal "tare/internal/term"
)

// Benchfmt writes the values of blocks in the Go benchmark format (https://go.dev/design/14313-benchmark-format), which
// benchstat reads: one line for each treatment, operation and block, with a unit for each metric. benchstat prints the
// median of the lines of a name, and the median of blocks is a treatment's metric in the report, unless that is a mean.
// What differs between runs that are to be compared (seed, version, verdict) stands in comments: benchstat would put
// runs whose configuration differs into tables of their own. Comments also say what is left out since calls failed.
// ErrNoBlocks where nothing was measured in blocks.
func Benchfmt(w io.Writer, r *Report) error {
	if err := r.independent(); err != nil {
		return fmt.Errorf("benchfmt: %w", err)
	}
	all, err := r.series()
	if err != nil {
		return fmt.Errorf("benchfmt: %w", err)
	}
	var b bytes.Buffer
	for _, l := range slices.Concat(r.origin(), leftOut(all)) {
		b.WriteString("# " + sanitize(l) + "\n")
	}
	out := benchfmt.NewWriter(&b)
	for _, u := range unitsOf(r, all) {
		if err := out.Write(u); err != nil {
			return fmt.Errorf("benchfmt: %w", err)
		}
	}
	names := names{}
	config := r.config()
	for i := range all {
		name := names.of(r, &all[i])
		for block := range all[i].blocks() {
			res := all[i].result(block)
			if len(res.Values) == 0 {
				continue
			}
			res.Name, res.Config = benchfmt.Name(name), config
			if err := out.Write(res); err != nil {
				return fmt.Errorf("benchfmt: %w", err)
			}
		}
	}
	_, err = io.WriteString(w, terminal.Inert(b.String()))
	return err
}

// origin describes where the values come from.
func (r *Report) origin() []string {
	out := []string{
		"tare " + r.Tool.Version + ", started " + r.Started.UTC().Format(time.RFC3339) + ", seed " +
			strconv.FormatUint(r.Experiment.Seed, 10),
		"verdict " + string(r.Verdict) + because(r.Reason),
	}
	if u := r.Status.unfinished(); u != "" {
		out = append(out, u)
	}
	if u := r.unblocked(); u != "" {
		out = append(out, "unblocked: "+u)
	}
	return out
}

// leftOut describes the values that are left out.
func leftOut(all []series) []string {
	var out []string
	for i := range all {
		for _, b := range all[i].untold {
			out = append(out, b.measured()+" is left out: "+b.Untold)
		}
	}
	return out
}

// config writes the configuration that runs of one experiment share.
func (r *Report) config() []benchfmt.Config {
	var out []benchfmt.Config
	for _, c := range [][2]string{{"experiment", r.Experiment.Name}, {"area", r.Area}} {
		if v := strings.TrimSpace(sanitize(c[1])); v != "" {
			out = append(out, benchfmt.Config{Key: c[0], Value: []byte(v), File: true})
		}
	}
	return out
}

// blocks returns the number of blocks.
func (s *series) blocks() int {
	n := 0
	for _, b := range s.values {
		n = max(n, len(b.Values))
	}
	return n
}

// result returns the line of one block. The format requires a number of iterations, which the report does not know: 1.
func (s *series) result(block int) *benchfmt.Result {
	res := &benchfmt.Result{Iters: 1}
	taken := map[string]bool{}
	for _, b := range s.values {
		u := s.unit(b)
		if v, ok := b.at(block); ok && !taken[u] {
			taken[u] = true
			res.Values = append(res.Values, benchfmt.Value{Value: v, Unit: u})
		}
	}
	return res
}

// unit is a metric's name and unit as benchstat knows units: the time that a call took is "sec/op", CPU time
// "cpu-sec/op", others carry their names: "p99-response-sec/op", "instructions/op", "error-ratio", "goodput-op/sec".
func (s *series) unit(b *BlockValues) string {
	if b == s.elapsed() {
		return "sec/op"
	}
	switch b.Metric { // as package testing calls them
	case metric.Allocations.Name:
		return "allocs/op"
	case metric.Allocated.Name:
		return "B/op"
	}
	prefix := word(b.Metric)
	if b.Quantile != "" {
		prefix = word(b.Quantile) + "-" + prefix
	}
	switch b.Unit {
	case metric.Seconds:
		return prefix + "-sec/op"
	case metric.CPUSeconds:
		return prefix + "-sec/op"
	case metric.Bytes:
		return prefix + "-B"
	case metric.PerSecond:
		return prefix + "-op/sec"
	case metric.Ratio:
		return prefix + "-ratio"
	case metric.Count:
	}
	return prefix + "/op"
}

// unitsOf says for each unit which direction is an improvement.
func unitsOf(r *Report, all []series) []*benchfmt.UnitMetadata {
	var out []*benchfmt.UnitMetadata
	seen := map[string]bool{}
	for i := range all {
		for _, b := range all[i].values {
			u := all[i].unit(b)
			m, ok := metric.Find(b.Metric, r.Quantities...)
			if seen[u] || !ok {
				continue
			}
			seen[u] = true
			better := "lower"
			if m.Better == metric.Higher {
				better = "higher"
			}
			out = append(out, &benchfmt.UnitMetadata{
				UnitMetadataKey: benchfmt.UnitMetadataKey{Unit: u, Key: "better"},
				OrigUnit:        u, Value: better,
			})
		}
	}
	return out
}

// names are the benchmark names already in use: two series must not share one, or benchstat would merge their values.
type names map[string]bool

func (n names) of(r *Report, s *series) string {
	base := title(word(orElse(s.operation, "all")))
	for _, f := range r.factors(s.treatment) {
		base += "/" + word(f[0]) + "=" + word(f[1])
	}
	base = noProcs(base)
	name := base
	for i := 1; n[name]; i++ {
		name = fmt.Sprintf("%s#%02d", base, i) // as package testing does
	}
	n[name] = true
	return name
}

// word returns a text as a part of a benchmark's name: without spaces, separators and invisible characters.
func word(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case unicode.IsSpace(c), c == '/', c == '=', c == ':', !unicode.IsPrint(c), c == unicode.ReplacementChar:
			return '_'
		}
		return c
	}, s)
}

// title makes a name begin with a capital letter, as the format requires.
func title(s string) string {
	c, size := utf8.DecodeRuneInString(s)
	if up := unicode.ToUpper(c); unicode.IsUpper(up) {
		return string(up) + s[size:]
	}
	return "Op_" + s
}

// noProcs changes a name whose end looks like the number of processors that Go's benchmarks append: "x-8".
func noProcs(s string) string {
	digits := len(s) - len(strings.TrimRight(s, "0123456789"))
	head := s[:len(s)-digits]
	if digits > 0 && strings.HasSuffix(head, "-") {
		return head[:len(head)-1] + "_" + s[len(head):]
	}
	return s
}
