package simulation

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"tare/internal/capacity"
	"tare/internal/stat"
)

// WriteTrace prints every step of a search, and what was concluded.
func (o WorldOutcome) WriteTrace(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n%s\n\n", o.Line(), o.Composition)
	t := o.Trace
	for _, s := range t.Steps {
		bad, open := map[string]int{}, 0
		var good, ill []float64 // responses
		for c := range t.Calls.Due(s.Segment.Start, s.Segment.End) {
			switch {
			case c.Done == 0 || c.Done > t.Read:
				open++
			case c.Outcome.Good():
				good = append(good, c.Response().Seconds())
			default:
				ill = append(ill, c.Response().Seconds())
				bad[fmt.Sprintf("%s %d", c.Outcome, c.Status)]++
			}
		}
		passed := "  -"
		if s.Passed != nil {
			passed = map[bool]string{true: "yes", false: " no"}[*s.Passed]
		}
		fmt.Fprintf(&text, "%8.2f s %-13s %2d  %9.4g/s for %6.2f s  held %s  %6d good",
			s.Segment.Start.Seconds(), s.Role, s.Attempt, s.Rate, s.Length().Seconds(), passed, len(good))
		if len(good) > 0 {
			fmt.Fprintf(&text, " in %.3g s, p99 %.3g s", stat.Quantile(good, 0.5), stat.Quantile(good, 0.99))
		}
		for _, k := range slices.Sorted(maps.Keys(bad)) {
			fmt.Fprintf(&text, ", %d %s", bad[k], k)
		}
		if len(ill) > 0 {
			fmt.Fprintf(&text, " in %.3g s", stat.Quantile(ill, 0.5))
		}
		if open > 0 {
			fmt.Fprintf(&text, ", %d open", open)
		}
		if s.Note != "" {
			fmt.Fprintf(&text, "  (%s)", s.Note)
		}
		text.WriteString("\n")
	}
	o.conclude(&text)
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	return nil
}

func (o WorldOutcome) conclude(text *strings.Builder) {
	r, v := o.Result, o.Result.Signature
	fmt.Fprintf(text, "\nscores:")
	for _, k := range slices.Sorted(maps.Keys(v.Scores)) {
		if v.Scores[k] > 0 {
			fmt.Fprintf(text, " %s %.2f", k, v.Scores[k])
		}
	}
	fmt.Fprintln(text)
	for _, lines := range [][]string{v.Evidence, r.Warnings} {
		for _, line := range lines {
			fmt.Fprintln(text, " ", line)
		}
	}
	for _, f := range r.Findings {
		fmt.Fprintf(text, "  %s: %s\n", f.Kind, f.Sentence)
	}
	if r.RecoveryNote != "" {
		fmt.Fprintln(text, " ", r.RecoveryNote)
	}
	if r.Stop != capacity.StopFound {
		fmt.Fprintf(text, "  stopped: %s %s\n", r.Stop, r.Reason)
	}
	for _, x := range judged {
		if o.Truth.Capacity > 0 {
			fmt.Fprintf(text, "  budget at %.2f × truth: %v\n", x, judge(r, x*o.Truth.Capacity))
		}
	}
}
