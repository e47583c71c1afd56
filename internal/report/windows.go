package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	terminal "tare/internal/term"
)

// windowColumns is the header of the file of windows. New columns may be added at the end; these keep their names,
// units and order.
var windowColumns = []string{
	"start_seconds", "end_seconds", "warm_up", "restarted", "operation", "calls", "bad_calls", "good_per_second",
	"bad_per_second",
	"response_mean_seconds", "response_p50_seconds", "response_p99_seconds", "response_max_seconds",
	"cpu_seconds_per_call", "rss_bytes", "heap_bytes", "gc_ratio", "other",
}

// WriteWindows writes the windows of a soak as comma-separated values (RFC 4180, with a header). Each window has a row
// with an empty operation, for all calls and the target, and a row for each operation with calls that ended. Times are
// in seconds since the load began; unknown values are empty cells. The last column holds further values of the target
// as "name=value", separated by semicolons.
func WriteWindows(w io.Writer, moments []Moment) error {
	c := csv.NewWriter(w)
	if err := c.Write(windowColumns); err != nil {
		return fmt.Errorf("write windows: %w", err)
	}
	for i := range moments {
		for _, row := range moments[i].rows() {
			if err := c.Write(row); err != nil {
				return fmt.Errorf("write windows: %w", err)
			}
		}
	}
	c.Flush()
	if err := c.Error(); err != nil {
		return fmt.Errorf("write windows: %w", err)
	}
	return nil
}

// rows returns a window's rows in the file of windows.
func (m *Moment) rows() [][]string {
	head := []string{decimal(m.Start), decimal(m.End), strconv.FormatBool(m.WarmUp), strconv.FormatBool(m.Restarted)}
	all := m.sum()
	first := slices.Concat(head, []string{"", whole(all.Calls), whole(all.Bad), decimal(m.Good), decimal(m.Bad)},
		all.times(),
		[]string{optional(m.CPU), optional(m.RSS), optional(m.Heap), optional(m.GC), m.others()})
	out := [][]string{first}
	for i := range m.Operations {
		o := &m.Operations[i]
		if o.Operation == "" {
			continue
		}
		out = append(out, slices.Concat(head, []string{
			cellText(o.Operation), whole(o.Calls), whole(o.Bad),
			o.rate(m, o.Calls-min(o.Bad, o.Calls)), o.rate(m, o.Bad),
		}, o.times(),
			make([]string, 5)))
	}
	return out
}

// sum returns all operations of a window. Quantiles cannot be added up: they are present only if there is one
// operation, or if the window has an entry for all.
func (m *Moment) sum() MomentOperation {
	var s MomentOperation
	weighted := 0.0
	for i := range m.Operations {
		o := &m.Operations[i]
		if o.Operation == "" || len(m.Operations) == 1 {
			return *o
		}
		s.Calls += o.Calls
		s.Bad += o.Bad
		s.Max = max(s.Max, o.Max)
		weighted += o.Mean * float64(o.Calls)
	}
	if s.Calls > 0 {
		s.Mean = weighted / float64(s.Calls)
	}
	return s
}

// rate returns a number of calls in 1/s of the window; empty if the window has no length.
func (o *MomentOperation) rate(m *Moment, calls uint64) string {
	if !(m.End > m.Start) {
		return ""
	}
	return decimal(float64(calls) / (m.End - m.Start))
}

// times returns the columns of response times, empty if no call ended.
func (o *MomentOperation) times() []string {
	if o.Calls == 0 {
		return make([]string, 4)
	}
	return []string{decimal(o.Mean), optional(o.P50), optional(o.P99), decimal(o.Max)}
}

// others returns the further values of a window.
func (m *Moment) others() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m.Other)) {
		if v := decimal(m.Other[k]); v != "" {
			parts = append(parts, strings.NewReplacer(";", "_", "=", "_").Replace(cellText(k))+"="+v)
		}
	}
	return strings.Join(parts, ";")
}

// cellText returns a name as a cell that neither a spreadsheet takes for a formula nor a CI system for a command.
func cellText(s string) string {
	s = terminal.Inert(sanitize(s))
	if s != "" && strings.ContainsAny(s[:1], "=+-@") {
		return "'" + s
	}
	return s
}

func whole(n uint64) string { return strconv.FormatUint(n, 10) }

// decimal prints a number so that it reads back as the same; not-a-number is empty.
func decimal(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func optional(v *float64) string {
	if v == nil {
		return ""
	}
	return decimal(*v)
}
