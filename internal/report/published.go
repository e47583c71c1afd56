package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tare/internal/unit"
)

// The format in which the results of Kubernetes' scalability tests are published: PASS or FAIL, Perc50, Perc90, Perc99
// and Perc100 of pod startup in milliseconds, and Perc50, Perc90 and Perc99 of requests by verb and resource.

// startup is the phase of a pod's start that tare's own clock covers completely.
const startup = "startup"

// published returns a row for each treatment. The verdict is that of clusterloader2, which grew out of those tests.
func (r *Report) published() table {
	if !slices.ContainsFunc(r.Phases, func(p Phase) bool { return p.Phase == startup }) {
		return nil // without pods that start, the verdicts on service levels are complete
	}
	labels := r.labels()
	t := table{
		{head: "as published, ms", left: true},
		{head: "verdict", left: true},
		{head: "Perc50"},
		{head: "Perc90"},
		{head: "Perc99"},
		{head: "Perc100"},
		{head: "pods", drop: 1},
	}
	for i := range r.Treatments {
		id := r.Treatments[i].ID
		if r.isAA(id) {
			continue
		}
		word := r.passed(id)
		k := slices.IndexFunc(r.Phases, func(p Phase) bool { return p.Treatment == id && p.Phase == startup })
		switch {
		case k >= 0:
			p := &r.Phases[k]
			t.add(named(labels, id), word, milliseconds(p.P50), milliseconds(p.P90), milliseconds(p.P99), milliseconds(p.Max),
				count(p.N))
		case word != "":
			t.add(named(labels, id), word, "", "", "", "", "")
		}
	}
	return t.used()
}

// passed returns the verdict on a treatment in the words of those tests; "" if no objective was judged, or not the
// objective of what the run measures.
func (r *Report) passed(treatment string) string {
	high, slow, judged, unknown := 0, false, false, false
	for i := range r.SLO {
		s := &r.SLO[i]
		if s.Treatment != treatment || s.Formula != ClusterLoader2 || s.Rate != nil {
			continue
		}
		judged = true
		switch {
		case s.Verdict == NotMeasured: // the server's indicator does not cover what the run measures: dry runs
			unknown = true
		case s.Verdict != Fail:
		case s.Name == "pod-startup":
			slow = true
		default:
			high++
		}
	}
	var why []string
	if high > 0 {
		why = append(why, unit.Count(high, "high-latency request"))
	}
	if slow {
		why = append(why, "pod startup")
	}
	switch {
	case len(why) > 0:
		return "FAIL: " + strings.Join(why, ", ")
	case !judged || unknown:
		return ""
	}
	return "PASS"
}

// requests returns a table for each kind of requests that the run measures, with a row for each treatment, and a table
// of the slowest other kinds, each under its slowest treatment.
func (r *Report) requests() []table {
	labels := r.labels()
	all := slices.DeleteFunc(pointers(r.Served), func(s *Served) bool { return r.isAA(s.Treatment) })
	measured := slices.DeleteFunc(slices.Clone(all), func(s *Served) bool { return !s.Measured })
	var out []table
	for _, kind := range distinct(measured, (*Served).kind) {
		t := append(table{{head: shortenName(kind) + ", server's clock", left: true}}, percentileColumns()...)
		for _, s := range measured {
			if s.kind() == kind {
				t.add(append([]string{named(labels, s.Treatment)}, s.percentiles()...)...)
			}
		}
		out = append(out, t.used())
	}
	rest := slices.DeleteFunc(all, func(s *Served) bool { return s.Measured })
	slices.SortStableFunc(rest, func(x, y *Served) int { return cmp.Compare(y.tail(), x.tail()) })
	seen := map[string]bool{}
	rest = slices.DeleteFunc(rest, func(s *Served) bool {
		again := seen[s.kind()]
		seen[s.kind()] = true
		return again
	})
	t := append(table{{head: "slowest of the others", left: true}, {head: "under", left: true}}, percentileColumns()...)
	for _, s := range rest[:min(mostSlow, len(rest))] {
		t.add(append([]string{shortenName(s.kind()), r.withTreatment(named(labels, s.Treatment))}, s.percentiles()...)...)
	}
	if t.rows() > 0 {
		out = append(out, t.used())
	}
	return out
}

// mostSlow limits the slowest kinds of requests in text and Markdown; the other formats have all.
const mostSlow = 5

// requestTable returns the table of all kinds of requests.
func (r *Report) requestTable() table {
	labels := r.labels()
	t := append(table{{head: "request", left: true}, {head: "treatment", left: true}}, percentileColumns()...)
	t = append(t, &column{head: "mean"})
	for i := range r.Served {
		s := &r.Served[i]
		t.add(append(append([]string{shortenName(s.kind()), r.withTreatment(named(labels, s.Treatment))}, s.percentiles()...),
			span(s.Mean))...)
	}
	return t.used()
}

func percentileColumns() table {
	return table{{head: "Perc50", drop: 2}, {head: "Perc90", drop: 1}, {head: "Perc99"}, {head: "n", drop: 3}}
}

// percentiles returns the cells of those columns; a value in the first bucket or beyond the last is printed as its
// bound.
func (s *Served) percentiles() []string {
	show := func(v *float64) string {
		switch {
		case v != nil && s.First != nil && *v <= *s.First:
			return "<" + span(*s.First)
		case v != nil:
			return span(*v)
		case s.Last != nil:
			return ">" + span(*s.Last)
		}
		return ""
	}
	return []string{show(s.P50), show(s.P90), show(s.P99), count(s.N)}
}

// kind names requests as published tables do; requests that are not for a single object have their scope in the name.
func (s *Served) kind() string {
	if s.Scope == "" || s.Scope == "resource" {
		return s.Verb + " " + s.Resource
	}
	return s.Verb + " " + s.Resource + " (" + s.Scope + ")"
}

// tail returns p99, or infinity if it lies beyond the last bucket.
func (s *Served) tail() float64 {
	switch {
	case s.P99 != nil:
		return *s.P99
	case s.Last != nil:
		return math.Inf(1)
	}
	return 0
}

// span returns a time as those tables print it: "8.637055s", "798µs".
func span(seconds float64) string {
	d := time.Duration(seconds * 1e9)
	if d < time.Millisecond {
		return d.Round(time.Microsecond / 10).String()
	}
	return d.Round(time.Microsecond).String()
}

// milliseconds returns a time as those tables print the start of pods: "1639.148099".
func milliseconds(seconds float64) string {
	return strconv.FormatFloat(math.Round(seconds*1e9)/1e6, 'f', -1, 64)
}

// levelLegend explains the signs of verdicts.
var levelLegend = []string{"p99 by the formula: ✓ pass", "✗ FAIL", "? inconclusive", "– not-measured"}
