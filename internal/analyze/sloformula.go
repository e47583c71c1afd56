package analyze

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/internal/budget"
	"tare/internal/metric"
	"tare/internal/report"
	"tare/internal/stat"
	"tare/internal/unit"
)

// official judges by the text of the objective: p99 of mutating calls of single objects by (resource, verb), of reads
// by (resource, scope), over 5 minutes, on the time that the indicator counts: without webhooks and without waiting in
// queues. Source: https://github.com/kubernetes/community/blob/master/sig-scalability/slos/slos.md. A run is shorter
// than the objective's day: all of its trials are one window.
func (w *witness) official(x *requests) (report.SLO, bool) {
	out := report.SLO{Formula: report.Official, Limit: limitOf(x.scope), N: x.indicated}
	if x.mutating() {
		if x.scope != "" && x.scope != scopeResource {
			return out, false // the objective is of single objects
		}
		out.Basis = "by resource and verb, without webhooks and queues; all of the run is one window"
		return decide(out, x.slis.quantile(p99), x.slis.total), true
	}
	var sum buckets
	for _, k := range w.order {
		if k.resource == x.resource && k.scope == x.scope && (k.verb == "GET" || k.verb == "LIST") {
			y := w.kinds[k]
			sum.merge(y.slis)
		}
	}
	out.N = sum.total
	out.Basis = "by resource and scope, without webhooks and queues; all of the run is one window"
	return decide(out, sum.quantile(p99), sum.total), true
}

// clusterLoader judges as ClusterLoader2's measurement APIResponsivenessPrometheus does: on the same indicator, by
// (resource, verb, scope), and p50, p90 and p99 must all hold, each being the 99th percentile over time of the quantile
// of single windows (quantile_over_time(0.99, apiserver:apiserver_request_sli_latency_1m:histogram_quantile)); the
// limit goes by the scope alone. Source: https://github.com/kubernetes/perf-tests,
// clusterloader2/pkg/measurement/common/slos/api_responsiveness_prometheus.go. Its windows are of one minute: here they
// are the trials.
func (w *witness) clusterLoader(x *requests) (report.SLO, bool) {
	out := report.SLO{Formula: report.ClusterLoader2, Limit: limitOf(x.scope), N: x.indicated}
	each := func(of func(*window99) between) between {
		var v, lo, hi []float64
		for i := range x.windows {
			b := of(&x.windows[i])
			if math.IsNaN(b.lo) {
				continue
			}
			v, lo, hi = append(v, orBound(b)), append(lo, b.lo), append(hi, b.hi)
		}
		return between{overTime(v), overTime(lo), overTime(hi)}
	}
	// p50 and p90 of a window are never above its p99, so that the three hold when p99 does.
	b := each(func(w *window99) between { return w.p99 })
	out.Basis = fmt.Sprintf(
		"by resource, verb and scope, without webhooks and queues; over %s as windows; p50 and p90 hold wherever p99 does",
		unit.Count(len(x.windows), "trial"),
	)
	return decide(out, b, x.slis.total), true
}

// orBound is the value, or beyond the last bucket that bucket's bound: what Prometheus' histogram_quantile answers.
func orBound(b between) float64 {
	if math.IsNaN(b.value) {
		return b.lo
	}
	return b.value
}

// overTime is Prometheus' quantile_over_time(0.99): interpolated between neighbours in order. It sorts v.
func overTime(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	slices.Sort(v)
	rank := p99 * float64(len(v)-1)
	lo := int(math.Floor(rank))
	hi := min(lo+1, len(v)-1)
	if lo == hi || v[lo] == v[hi] {
		return v[lo]
	}
	return v[lo] + (rank-float64(lo))*(v[hi]-v[lo])
}

// kubeBurner judges by the alerts that kube-burner's profile raises: the average over windows of p99 of all the time
// that requests took, webhooks included (avg_over_time(histogram_quantile(0.99,
// sum(irate(apiserver_request_duration_seconds_bucket{…}[2m])) …)[10m:])), mutating calls by (resource, verb) against 1
// s, reads by scope as well against 1, 5 and 30 s. Source: kube-burner, cmd/kube-burner/ocp-config/alerts.yml. Its
// windows are of two minutes: here they are the trials.
func (w *witness) kubeBurner(x *requests) (report.SLO, bool) {
	out := report.SLO{Formula: report.KubeBurner, Limit: singleLimit, N: x.n}
	switch x.verb {
	case "POST", "PUT", "PATCH", "DELETE":
	case "GET", "LIST":
		if x.scope == scopeNamespace {
			out.Limit = 5
		} else {
			out.Limit = limitOf(x.scope)
		}
	default:
		return out, false // its expressions name these six
	}
	var v, lo, hi []float64
	for i := range x.windows {
		if b := x.windows[i].all; !math.IsNaN(b.lo) {
			v, lo, hi = append(v, orBound(b)), append(lo, b.lo), append(hi, b.hi)
		}
	}
	if len(v) == 0 {
		return decide(out, between{math.NaN(), math.NaN(), math.NaN()}, 0), true
	}
	out.Basis = "with webhooks and queues; the mean of p99 over " + unit.Count(len(v), "trial") + " as windows"
	return decide(out, between{stat.Mean(v), stat.Mean(lo), stat.Mean(hi)}, x.all.total), true
}

// limitOf is the limit of a scope.
func limitOf(scope string) float64 {
	if scope == "" || scope == scopeResource {
		return singleLimit
	}
	return manyLimit
}

// keeps judges a value with its interval as a budget of at most limit does.
func keeps(limit, value, lo, hi float64) report.Verdict {
	b := budget.Budget{Op: budget.AtMost, Limit: budget.Limit{Value: limit}}
	return report.Verdict(budget.Decide(b, budget.Interval{Value: value, Lo: lo, Hi: hi}))
}

// decide compares a quantile out of buckets with the limit.
func decide(out report.SLO, b between, n uint64) report.SLO {
	q := p99
	out.Quantile, out.Value, out.Lo, out.Hi = &q, finite(b.value), finite(b.lo), finite(b.hi)
	var notes []string
	switch {
	case math.IsNaN(b.lo):
		out.Verdict, out.Note = report.NotMeasured, "the server has no such histogram, or counts no dry runs in it"
		return out
	case math.IsNaN(b.value):
		out.Verdict = report.Inconclusive
		if b.lo >= out.Limit {
			out.Verdict = report.Fail
		}
		notes = append(notes, "beyond the last bucket, of "+unit.Seconds(b.lo))
	default:
		out.Verdict = keeps(out.Limit, b.value, b.value, b.value)
	}
	if !math.IsNaN(b.value) && b.lo < out.Limit && out.Limit < b.hi {
		notes = append(notes, fmt.Sprintf(
			"buckets are coarse: it lies between %s and %s, on either side of the limit", unit.Seconds(b.lo), orMore(b.hi),
		))
	}
	out.Note = strings.Join(append(notes, few(n)...), "; ")
	return out
}

func orMore(v float64) string {
	if math.IsInf(v, 0) {
		return "more than the last bucket"
	}
	return unit.Seconds(v)
}

// few says that a p99 is of too few to be one.
func few(n uint64) []string {
	if n > 0 && !enough(int(n), p99) {
		return []string{fmt.Sprintf("of %d, p99 is the maximum", n)}
	}
	return nil
}

// clientLevel is the objective by tare's own clock: p99 of the response time of an operation that consists of such
// requests, with its interval where one can be had.
func (a *analysis) clientLevel(treatment, operation string, of action, x *requests) (report.SLO, bool) {
	out := report.SLO{
		Treatment: treatment, Name: x.objective(), Subject: x.String(), Operation: operation, Formula: report.ClientClock,
		Limit: limitOf(x.scope),
		Basis: "from when the call was due until its answer was read",
	}
	if of.startup {
		out.Basis = "from when the request was sent until it was answered"
		return a.phaseLevel(out, phasePost)
	}
	o := a.operation(treatment, operation)
	if o == nil || o.Response == nil {
		return out, false
	}
	out.N = o.Response.N
	e, why := stat.Estimate{Value: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}, "no blocks, no interval"
	if a.cmp != nil {
		if m := a.cmp.find(treatment, operation, "response"); m != nil {
			e, why = a.cmp.estimatorFor(m, "p99").alone(m, level)
		}
	}
	if !isFinite(e.Value) {
		e.Value = o.Response.Max
		if o.Response.P99 != nil {
			e.Value = *o.Response.P99
		}
	}
	return a.alsoKept(byClock(out, &e, why)), true
}

// alsoKept takes back that an objective is kept where it would not be if the calls that failed were never answered.
func (a *analysis) alsoKept(out report.SLO) report.SLO {
	if a.cmp == nil || a.cmp.answered == nil || out.Verdict != report.Pass {
		return out
	}
	m := a.cmp.answered.find(out.Treatment, out.Operation, "response")
	e, why := a.cmp.estimatorFor(m, "p99").alone(m, level)
	if why == "" && e.Hi <= out.Limit {
		return out
	}
	out.Verdict = report.Inconclusive
	failed := a.cmp.failedUnder(metric.Response.Name, out.Operation, out.Treatment)
	out.Note = strings.Join(append(nonEmpty(out.Note), failed), "; ")
	return out
}

// operation is what the report has of an operation under a treatment; nil if it has nothing.
func (a *analysis) operation(treatment, name string) *report.Operation {
	i := slices.IndexFunc(
		a.rep.Operations, func(o report.Operation) bool { return o.Treatment == treatment && o.Operation == name },
	)
	if i < 0 {
		return nil
	}
	return &a.rep.Operations[i]
}

// byClock judges by an interval, of which an end that is not known decides nothing.
func byClock(out report.SLO, e *stat.Estimate, why string) report.SLO {
	q := p99
	out.Quantile, out.Value, out.Lo, out.Hi = &q, finite(e.Value), finite(e.Lo), finite(e.Hi)
	known := out.Lo != nil && out.Hi != nil
	lo, hi := math.Inf(-1), math.Inf(1)
	if out.Lo != nil {
		lo = e.Lo
	}
	if out.Hi != nil {
		hi = e.Hi
	}
	if out.Verdict = report.NotMeasured; out.Value != nil {
		out.Verdict = keeps(out.Limit, e.Value, lo, hi)
	}
	var notes []string
	if known {
		l := e.Level
		out.Level = &l
	} else {
		notes = append(notes, "without an interval"+because(why))
	}
	out.Note = strings.Join(append(notes, few(out.N)...), "; ")
	return out
}

// startupLevels judges the start of pods: official from the creation timestamp until a watch has seen the pod running
// (https://github.com/kubernetes/community/blob/master/sig-scalability/slos/pod_startup_latency.md); ClusterLoader2
// from its first watch event, p50, p90 and p99 against one threshold
// (clusterloader2/pkg/measurement/common/slos/pod_startup_latency.go); kube-burner from the creation timestamp until
// the condition Ready, a quantile over all pods, against a threshold that is the user's choice
// (pkg/measurements/pod_latency.go): here the official one.
func (a *analysis) startupLevels(treatment string) []report.SLO {
	var out []report.SLO
	for _, x := range []struct {
		formula report.Formula
		phase   string
		basis   string
	}{
		{report.Official, phaseCreatedToWatch, "from creationTimestamp, in whole seconds, until seen running"},
		{
			report.ClusterLoader2, phaseWatchToWatch,
			"from its first watch event until seen running; p50 and p90 hold wherever p99 does",
		},
		{
			report.KubeBurner, phaseConditions,
			"from creationTimestamp until condition Ready, both in whole seconds; it sets no limit of its own",
		},
		{report.ClientClock, phaseStartup, "from when the request was sent until the pod was seen running"},
	} {
		row, ok := a.phaseLevel(report.SLO{
			Treatment: treatment, Name: sloStartup, Operation: podStartup, Formula: x.formula, Limit: startupLimit,
			Basis: x.basis,
		}, x.phase)
		if !ok {
			continue
		}
		row.Note = strings.Join(append(nonEmpty(row.Note), a.unstartedNotes(treatment)...), "; ")
		out = append(out, row)
	}
	return out
}

// phaseLevel judges by p99 of a phase over all pods; by tare's own clock with its interval, where one can be had.
func (a *analysis) phaseLevel(out report.SLO, name string) (report.SLO, bool) {
	p := a.phase(out.Treatment, podStartup, name)
	if p == nil || p.whole.Count() == 0 {
		return out, false
	}
	out.N = p.whole.Count()
	e := stat.Estimate{Value: p.whole.Quantile(p99) / 1e9, Lo: math.NaN(), Hi: math.NaN()}
	if out.Formula == report.ClientClock {
		got, err := stat.PooledQuantile(p.samples(), p99, level)
		if err == nil {
			return byClock(out, &got, ""), true
		}
		return byClock(out, &e, err.Error()), true
	}
	q := p99
	out.Quantile, out.Value, out.Note = &q, &e.Value, strings.Join(few(out.N), "; ")
	out.Verdict = keeps(out.Limit, e.Value, e.Value, e.Value)
	return out, true
}

// unstartedNotes says how many pods no clock has, since they were never seen running.
func (a *analysis) unstartedNotes(treatment string) []string {
	o := a.operation(treatment, podStartup)
	if o == nil {
		return nil
	}
	if n := o.Outcomes.Ended() + o.Outcomes.Outstanding - o.Outcomes.Good(); n > 0 {
		return []string{wasWere(n) + " never seen running, and in no clock"}
	}
	return nil
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func wasWere(n uint64) string {
	if n == 1 {
		return "1 pod was"
	}
	return fmt.Sprintf("%d pods were", n)
}
