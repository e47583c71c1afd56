package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tare/internal/metric"
	"tare/internal/unit"
)

// The tables of a report, for text and Markdown.

const vegetaNote = "vegeta*: successes ÷ (window + wait for the last answer), which one timeout ruins; for " +
	"comparison with published tables only"

// ladder returns the table of the results of each point of a ladder.
func ladder(points []Point) table {
	t := table{
		{head: "workload", left: true},
		{head: "offered"},
		{head: "calls", in: onPage},
		{head: "success"},
		{head: "p50"},
		{head: "p90", in: onPage},
		{head: "p99"},
		{head: "max", in: onPage},
		{head: "goodput"},
		{head: "in SLO", drop: 5},
		{head: "stuck", drop: 1},
		{head: "queued", drop: 8, counts: true},
		{head: "not sent", drop: 6, counts: true},
		{head: "no byte", drop: 9, counts: true},
		{head: "bad answer", drop: 7, counts: true},
		{head: "last failed sent", drop: 10},
		{head: "drain", drop: 3},
		{head: "recovers after", in: onPage},
		{head: "vegeta*", drop: 2, note: vegetaNote},
		{head: "generator", left: true},
	}
	for i := range points {
		p := &points[i]
		generator := p.ownPart()
		if p.Generator != nil && !p.Generator.Valid {
			generator = Invalid.mark()
		}
		t.add(p.Name, offered(p), whole(p.Offered), opt(p.Success, Percent), opt(p.P50, unit.Seconds),
			opt(p.P90, unit.Seconds), opt(p.P99, unit.Seconds),
			opt(p.Max, unit.Seconds), opt(p.Goodput, unit.PerSecond), opt(p.GoodputSLO, unit.PerSecond), whole(p.Stuck),
			queued(p), whole(p.NoConnection),
			whole(p.NoByte), whole(p.BadStatus), opt(p.LastFailedSent, unit.Seconds), unit.Seconds(p.DrainSeconds),
			opt(p.RecoverySeconds, unit.Seconds),
			vegeta(p), generator)
	}
	return t
}

// ownPart says how much of p99 the generator's own delays are at most, where that shows.
func (p *Point) ownPart() string {
	if p.P99Own == nil || p.P99 == nil || *p.P99Own < max(leastOwn, *p.P99/100) {
		return ""
	}
	return "≤ " + unit.Seconds(*p.P99Own) + " of p99"
}

// leastOwn is the shortest delay by the generator, in seconds, that is shown beside a time.
const leastOwn = 100e-6

// offered returns a point's rate, or for a number of calls, that number.
func offered(p *Point) string {
	if strings.Contains(p.Name, "×") {
		return fmt.Sprintf("%d calls", p.Offered)
	}
	return unit.PerSecond(p.Rate)
}

// vegeta's throughput is for published tables, which have rates only.
func vegeta(p *Point) string {
	if p.Name != "" {
		return ""
	}
	return opt(p.VegetaThroughput, unit.PerSecond)
}

func queued(p *Point) string {
	if p.ListenQueue == nil {
		return ""
	}
	return whole(uint64(max(0, *p.ListenQueue)))
}

// usedBy describes what the target used at each workload of a ladder, without zeros.
func usedBy(points []Point) []string {
	var out []string
	for i := range points {
		p := &points[i]
		if p.Name == "" {
			continue // a ladder of rates is long, and its columns have the essentials
		}
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(p.Used)) {
			if v := p.Used[name]; v != 0 && !isWholeProcess(name) {
				parts = append(parts, strings.ReplaceAll(name, "_", " ")+" "+unit.Number(v))
			}
		}
		if len(parts) > 0 {
			out = append(out, p.Title()+": "+strings.Join(parts, ", "))
		}
	}
	return out
}

// Title returns the point's name, or its rate.
func (p *Point) Title() string {
	if p.Name != "" {
		return p.Name
	}
	return unit.PerSecond(p.Rate)
}

// isWholeProcess reports whether a quantity is of a whole process, which says nothing about a point of a few seconds.
func isWholeProcess(name string) bool {
	for _, s := range []string{
		" rss", " rss_peak", " pss", " threads", " fds", " processes", " memory", " memory_peak",
		" listen_queue", " listen_queue_limit",
	} {
		if strings.HasSuffix(name, s) {
			return true
		}
	}
	return false
}

// lateRows names the rows that the generator limited rather than the target, and why.
func lateRows(points []Point) []string {
	var out []string
	for i := range points {
		if g := points[i].Generator; g != nil && !g.Valid {
			out = append(out, "INVALID at "+points[i].Title()+": the generator was the limit"+because(g.Reason))
		}
	}
	return out
}

func (r *Report) operations() table {
	t := table{
		{head: "treatment", left: true},
		{head: "operation", left: true},
		{head: "calls", drop: 1},
		{head: "ok"},
		{head: "denied", counts: true},
		{head: "wrong", counts: true},
		{head: "refused", counts: true},
		{head: "timeout", counts: true},
		{head: "unsent", drop: 3, counts: true},
		{head: "conn failed", counts: true},
		{head: "failed", counts: true},
		{head: "open", drop: 4, counts: true},
		{head: "p50"},
		{head: "p99"},
		{head: "pool wait p99", drop: 2},
	}
	for i := range r.Operations {
		o := &r.Operations[i]
		n := o.Outcomes
		t.add(r.withTreatment(o.Treatment), o.Operation, whole(n.Ended()+n.Outstanding), whole(n.OK), whole(n.Denied),
			whole(n.Wrong),
			whole(n.Refused), whole(n.Timeout), whole(n.Unsent), whole(n.ConnFailed), whole(n.Failed), whole(n.Outstanding),
			o.Response.show(func(d *Distribution) *float64 { return d.P50 }),
			o.Response.show(func(d *Distribution) *float64 { return d.P99 }),
			o.PoolWait.show(func(d *Distribution) *float64 { return d.P99 }))
	}
	return t
}

func (d *Distribution) show(quantile func(*Distribution) *float64) string {
	if d == nil {
		return ""
	}
	return opt(quantile(d), unit.Seconds)
}

// targets returns the resources that each part of the target used; soakTargets orders them as a soak does.
func (r *Report) targets() table {
	t := table{
		{head: "treatment", left: true},
		{head: "target", left: true},
		{head: "CPU", in: inWords}, // the page draws these four
		{head: "CPU/op", in: inWords},
		{head: "RSS", drop: 1, in: inWords},
		{head: "throttled", in: inWords},
		{head: "started in", drop: 3},
		{head: "of it policies", drop: 4},
		{head: "heap before", in: onPage},
		{head: "heap after", in: onPage},
		{head: "heap committed", in: onPage},
		{head: "restarts", drop: 2, counts: true},
	}
	for i := range r.Target {
		x := &r.Target[i]
		if !x.known() {
			continue // it is not on this host
		}
		heap := orZero(x.Heap)
		t.add(r.withTreatment(x.Treatment), x.Name, opt(x.CPUSeconds, unit.Seconds), opt(x.CPUPerOp, unit.Seconds),
			opt(orZero(x.RSS).After, unit.Bytes),
			opt(orZero(x.Throttled).Seconds, unit.Seconds), opt(x.StartSeconds, unit.Seconds), opt(x.LoadSeconds, unit.Seconds),
			opt(heap.Before, unit.Bytes), opt(heap.After, unit.Bytes), opt(heap.Committed, unit.Bytes),
			whole(uint64(max(0, x.Restarts))))
	}
	return t
}

func (r *Report) budgets() table {
	t := table{
		{head: "budget", left: true},
		{head: "treatment", left: true},
		{head: "verdict", left: true},
		{head: "measured"},
		{head: "interval", drop: 1},
		{head: "limit", in: onPage},
		{head: "why", left: true, drop: 2},
	}
	labels := r.labels()
	for i := range r.Budgets {
		b := &r.Budgets[i]
		treatment := strings.TrimSuffix(named(labels, b.Treatment), baselineNote)
		t.add(b.Text, r.withTreatment(treatment), b.Verdict.mark(), b.measured(), b.interval(),
			opt(b.Limit, func(float64) string { return b.limit() }), b.Reason)
	}
	return t.used()
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// Quantity returns the function that prints values of a unit.
func Quantity(u metric.Unit) func(float64) string {
	switch u {
	case metric.Seconds, metric.CPUSeconds:
		return unit.Seconds
	case metric.PerSecond:
		return func(v float64) string { return Rate(v) + "/s" }
	case metric.Bytes:
		return unit.Bytes
	case metric.Ratio:
		return unit.Share
	case metric.Count:
	}
	return unit.Number
}

// title describes the run in one line.
func (r *Report) title() []string {
	parts := []string{r.Experiment.Name, string(r.Question), r.Area}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return append(parts, fmt.Sprintf("seed %d", r.Experiment.Seed), unit.Seconds(r.Seconds))
}

// where describes the environment in one line.
func (e *Environment) where() string {
	var parts []string
	for _, p := range []string{e.Host, e.Kernel} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if e.CPUs > 0 {
		parts = append(parts, fmt.Sprintf("%d CPUs", e.CPUs))
	}
	if e.Tare != "" {
		parts = append(parts, "tare "+e.Tare)
	}
	for _, k := range sortedKeys(e.Target) {
		parts = append(parts, k+" "+e.Target[k])
	}
	return strings.Join(parts, " · ")
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
