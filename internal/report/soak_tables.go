package report

import (
	"fmt"
	"strconv"
	"strings"

	"tare/internal/unit"
)

// The tables of a soak, for text and Markdown.

// total is the name of the row of all operations, as in JMeter.
const total = "TOTAL"

// labelsNote explains the rates of the summary.
const labelsNote = "throughput: calls that ended, good or bad, per second of the measured time, for each label and, " +
	"as TOTAL, for all of them; KB = 1024 bytes, as in JMeter"

// eachLabel calls do for each operation of each soaked treatment and then for its total.
func (r *Report) eachLabel(do func(s *Soak, label string, o *Operation)) {
	for _, s := range r.treatmentSoaks() {
		for i := range r.Operations {
			if o := &r.Operations[i]; o.Treatment == s.Treatment {
				do(s, o.Operation, o)
			}
		}
		if s.Total != nil {
			do(s, total, &s.Total.Operation)
		}
	}
}

// summary is JMeter's Summary Report, column for column.
func (r *Report) summary() table {
	t := table{
		{head: "label", left: true},
		{head: "samples"},
		{head: "average"},
		{head: "min"},
		{head: "max"},
		{head: "std. dev."},
		{head: "error %"},
		{head: "throughput", note: labelsNote},
		{head: "received"},
		{head: "sent"},
		{head: "avg. bytes"},
	}
	r.eachLabel(func(s *Soak, label string, o *Operation) {
		n := o.Outcomes.Ended()
		cells := append([]string{r.subject(s.Treatment, label), whole(n)}, o.Response.summary()...)
		cells = append(cells, opt(errorShare(o.Outcomes), unit.Share),
			opt(s.throughput(o), func(v float64) string { return Rate(v) + "/s" }),
			s.kilobytes(o.BytesIn), s.kilobytes(o.BytesOut), o.averageBytes())
		t.add(cells...)
	})
	return t.used()
}

// subject names a row by its operation and, with several treatments, by its treatment.
func (r *Report) subject(treatment, name string) string {
	if len(r.Treatments) > 1 {
		name = strings.TrimSuffix(named(r.labels(), treatment), baselineNote) + " " + name
	}
	return strings.TrimSpace(name)
}

func (d *Distribution) summary() []string {
	if d == nil || d.N == 0 {
		return make([]string, 4)
	}
	return []string{unit.Seconds(d.Mean), unit.Seconds(d.Min), unit.Seconds(d.Max), opt(d.Stddev, unit.Seconds)}
}

// kilobytes returns a rate in KB/s of 1024 bytes.
func (s *Soak) kilobytes(n *uint64) string {
	if n == nil || !(s.Seconds > 0) {
		return ""
	}
	return unit.Number(float64(*n)/1024/s.Seconds) + " KB/s"
}

// averageBytes returns the bytes received per call that ended.
func (o *Operation) averageBytes() string {
	n := o.Outcomes.Ended()
	if o.BytesIn == nil || n == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(*o.BytesIn)/float64(n), 'f', 1, 64)
}

// quantiles returns the percentiles of each label.
func (r *Report) quantiles() table {
	t := table{
		{head: "label", left: true},
		{head: "p50"},
		{head: "p90"},
		{head: "p99"},
		{
			head: "generator's in p99", drop: 4,
			note: "generator's in p99: how much of it can be the generator's own delay at most",
		},
		{head: "p99.9"},
		{head: "max", drop: 2},
		{head: "pool wait p99", drop: 3},
		{head: "good", drop: 1},
	}
	good := func(v float64) string { return Rate(v) + "/s" }
	r.eachLabel(func(s *Soak, label string, o *Operation) {
		d := o.Response
		if d == nil || d.N == 0 {
			return
		}
		t.add(r.subject(s.Treatment, label), opt(d.P50, unit.Seconds), opt(d.P90, unit.Seconds), opt(d.P99, unit.Seconds),
			strings.Replace(d.ownTail(), "at most", "≤", 1), opt(d.P999, unit.Seconds),
			unit.Seconds(d.Max), o.PoolWait.show(func(d *Distribution) *float64 { return d.P99 }), opt(o.Goodput, good))
	})
	return t.used()
}

// soakTargets returns the resources that each part of the target used: before, after and at most.
func (r *Report) soakTargets() table {
	t := table{
		{head: "target", left: true},
		{head: "CPU", in: inWords}, // the page draws these six
		{head: "CPU/call", in: inWords},
		{head: "RSS before", in: inWords},
		{head: "RSS after", in: inWords},
		{head: "RSS peak", in: inWords},
		{head: "heap before"},
		{head: "heap after"},
		{head: "throttled", in: inWords},
		{head: "started in"},
		{head: "of it policies"},
		{head: "restarts"},
	}
	for i := range r.Target {
		x := &r.Target[i]
		if !x.known() {
			continue
		}
		rss, heap := orZero(x.RSS), orZero(x.Heap)
		t.add(r.subject(x.Treatment, x.Name), opt(x.CPUSeconds, unit.Seconds), opt(x.CPUPerOp, unit.Seconds),
			opt(rss.Before, unit.Bytes), opt(rss.After, unit.Bytes), opt(rss.Peak, unit.Bytes), opt(heap.Before, unit.Bytes),
			opt(heap.After, unit.Bytes),
			opt(orZero(x.Throttled).Seconds, unit.Seconds), opt(x.StartSeconds, unit.Seconds), opt(x.LoadSeconds, unit.Seconds),
			count(uint64(max(0, x.Restarts))))
	}
	if s := r.treatmentSoaks(); len(s) == 1 && len(t[0].cells) > 1 && s[0].Total != nil && s[0].Total.CPUPerOp != nil {
		t.add(total, "", unit.Seconds(*s[0].Total.CPUPerOp), "", "", "", "", "", "", "", "", "")
	}
	return t.used()
}

func orZero[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// known reports whether anything is known of the target, which may be on another host.
func (t *Target) known() bool {
	return t.CPUSeconds != nil || t.RSS != nil || t.Throttled != nil || len(t.GC) > 0 || t.Heap != nil ||
		t.StartSeconds != nil || t.Restarts > 0
}

// collections returns the garbage collections by collector: differences over the measured time.
func (r *Report) collections() table {
	t := table{
		{head: "target", left: true},
		{head: "collector", left: true},
		{head: "collections"},
		{head: "time"},
		{head: "mean"},
		{head: "of the time"},
	}
	for i := range r.Target {
		x := &r.Target[i]
		wall := r.wall(x.Treatment)
		for _, g := range x.GC {
			mean, of := "", ""
			if g.Count > 0 {
				mean = unit.Seconds(g.Seconds / g.Count)
			}
			if wall > 0 {
				of = unit.Share(g.Seconds / wall)
			}
			t.add(r.subject(x.Treatment, x.Name), g.Name, unit.Number(g.Count), unit.Seconds(g.Seconds), mean, of)
		}
	}
	return t.used()
}

// wall returns how long a treatment's soak was measured, in seconds; 0 for other questions.
func (r *Report) wall(treatment string) float64 {
	for _, s := range r.treatmentSoaks() {
		if s.Treatment == treatment {
			return s.Seconds
		}
	}
	return 0
}

// drifts returns the trends of all metrics.
func (r *Report) drifts() table {
	t := table{
		{head: "drift of", left: true},
		{head: "per hour"},
		{head: "in all", drop: 1},
		{head: "windows", drop: 3},
		{head: "verdict", left: true},
		{head: "why", left: true, drop: 2},
	}
	reasons := map[string]int{}
	for i := range r.Soak {
		for _, d := range r.Soak[i].Drift {
			reasons[d.Reason]++
		}
	}
	for i := range r.Soak {
		s := &r.Soak[i]
		for _, name := range driftNames(s.Drift) {
			d := s.Drift[name]
			n := ""
			if d.N > 0 {
				n = fmt.Sprint(d.N)
			}
			why := d.Reason
			if reasons[why] > 1 { // said once, below the table
				if note := d.says() + ": " + why; why != "" && !strings.Contains(t[4].note, note) {
					t[4].note = strings.TrimPrefix(t[4].note+"; "+note, "; ")
				}
				why = ""
			}
			t.add(r.subject(s.Treatment, Measured(s.Operation, name, "")), d.Slope(), d.change(), n, d.word(), why)
		}
	}
	return t.used()
}
