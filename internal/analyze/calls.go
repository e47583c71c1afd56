package analyze

import (
	"fmt"
	"math"
	"slices"

	"tare/internal/hist"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/signature"
	"tare/internal/stat"
)

// audited is how the generator did in one trial.
type audited = signature.Audit

// A counted is what happened to the calls of one operation. Times are in histograms: raw ones would not fit for all blocks at once.
type counted struct {
	name string
	tally
	responses, services, waits hist.Histogram
	answers                    map[string]uint64
}

// A gathering is the calls of one operation, or of all, in one trial's window.
type gathering struct {
	response, service, wait []float64
	due, bad, good          float64
}

// calls are what a trial under load measured in its window. Warm-up is left out, except that a call of it may end within the window and
// then counts as goodput there.
func (a *analysis) calls(t *record.Trial) (*extract, error) {
	x := &extract{trial: t, audit: audited{Valid: true}}
	if !t.HasCalls() {
		a.warn(t.Treatment, "raw calls are missing from the record: nothing can be said about their times")
		return x, nil
	}
	calls, err := t.Calls()
	if err != nil {
		return nil, err
	}
	w := windowOf(t, calls)
	if w.End <= w.Start {
		a.warn(t.Treatment, "a trial has an empty window: it measured nothing")
		return x, nil
	}
	x.audit = auditWindow(t, calls, w)
	x.opinion = a.trialOpinion(t, calls, w, &x.audit)
	if x.audit.Valid && x.opinion.Verdict == signature.Limiting {
		x.audit.Valid, x.audit.Reason = false, x.opinion.Doubts[0]
	}
	x.seconds = (w.End - w.Start).Seconds()
	per, names := gather(t, calls, w, x)
	for i, name := range names {
		a.callMeasures(x, name, &per[i])
	}
	whole := together(per)
	name := ""
	if len(per) == 1 {
		name = names[0]
	} else {
		a.callMeasures(x, "", whole)
	}
	targetMeasures(x, name, whole.good)
	return x, nil
}

// windowOf is the stretch that counts: as the run wrote it, else everything.
func windowOf(t *record.Trial, calls []load.Call) load.Segment {
	if t.Window != nil {
		return load.Segment{Start: t.Window.Start, End: t.Window.End}
	}
	if len(calls) == 0 {
		return load.Segment{}
	}
	w := load.Segment{Start: calls[0].Intended, End: calls[0].Intended}
	for i := range calls {
		w.Start, w.End = min(w.Start, calls[i].Intended), max(w.End, calls[i].Intended+1)
	}
	return w
}

// auditWindow judges the generator by the calls of a window, and by what only the runner knew.
func auditWindow(t *record.Trial, calls []load.Call, w load.Segment) audited {
	g := signature.AuditCalls(calls, w.Start, w.End, math.MaxInt64, 0)
	for _, x := range t.Generator {
		if x.Reason != "" {
			g.Valid, g.Reason = false, x.Reason
		}
	}
	return g
}

// mostOperations is how many operations calls can tell apart.
const mostOperations = math.MaxUint8 + 1

// slots returns the names of the operations, and the index of each among them. Those that the record names come first; calls of a damaged
// record can have others.
func slots(t *record.Trial, calls []load.Call) (place [mostOperations]int, names []string) {
	names = slices.Clone(t.Operations[:min(len(t.Operations), mostOperations)])
	var known [mostOperations]bool
	for i := range names {
		place[i], known[i] = i, true
	}
	for i := range calls {
		if k := calls[i].Operation; !known[k] {
			place[k], known[k] = len(names), true
			names = append(names, fmt.Sprintf("operation %d", k))
		}
	}
	return place, names
}

// gather sorts the calls of a window by operation.
func gather(t *record.Trial, calls []load.Call, w load.Segment, x *extract) (per []gathering, names []string) {
	place, names := slots(t, calls)
	per = make([]gathering, len(names))
	x.counted = make([]counted, len(names))
	for i, name := range names {
		x.counted[i] = counted{name: name, responses: hist.Compact(), services: hist.Compact(), waits: hist.Compact()}
	}
	for i := range calls {
		c := &calls[i]
		k := place[c.Operation]
		if c.Done > 0 && c.Outcome.Good() && c.Done >= w.Start && c.Done < w.End {
			x.counted[k].good++
		}
		if c.Intended < w.Start || c.Intended >= w.End {
			continue
		}
		per[k].add(c)
		x.counted[k].take(c, ownCauses(t, int(c.Operation)))
		x.counted[k].tell(c, t)
	}
	return per, names
}

func (g *gathering) add(c *load.Call) {
	g.due++
	if c.Outstanding(math.MaxInt64) || !c.Outcome.Good() {
		g.bad++
	} else {
		g.good++
	}
	if c.Ready > 0 {
		g.wait = append(g.wait, c.PoolWait().Seconds())
	}
	if c.Done == 0 {
		return
	}
	g.response = append(g.response, c.Response().Seconds())
	if c.Sent > 0 {
		g.service = append(g.service, c.Service().Seconds())
	}
}

// take counts a call that was due in the window.
func (x *counted) take(c *load.Call, own []string) {
	x.due++
	if c.Sent > 0 {
		x.sent++
	}
	if c.Ready > 0 {
		x.waits.Record(int64(c.PoolWait()))
	}
	if c.Done == 0 {
		x.outcomes.Outstanding++
		return
	}
	x.count(c, own)
	x.responses.Record(int64(c.Response()))
	if c.Sent > 0 {
		x.services.Record(int64(c.Service()))
	}
}

// tell counts what the answer to a call said.
func (x *counted) tell(c *load.Call, t *record.Trial) {
	if c.Done == 0 {
		return
	}
	word := causeAnswerOf(t, int(c.Operation), c.Cause)
	if c.Outcome.Good() {
		word = answerOf(t, int(c.Operation))
	}
	x.answered(word, 1)
}

func (x *counted) answered(word string, n uint64) {
	if word == "" {
		return
	}
	if x.answers == nil {
		x.answers = map[string]uint64{}
	}
	x.answers[word] += n
}

func together(per []gathering) *gathering {
	if len(per) == 1 {
		return &per[0]
	}
	var all gathering
	for i := range per {
		g := &per[i]
		all.response, all.service, all.wait = append(all.response, g.response...), append(all.service, g.service...), append(all.wait, g.wait...)
		all.due, all.bad, all.good = all.due+g.due, all.bad+g.bad, all.good+g.good
	}
	return &all
}

// callMeasures adds the measures of one operation's calls. Only response times are kept one by one, and what a budget asks for.
func (a *analysis) callMeasures(x *extract, operation string, g *gathering) {
	if g.due == 0 {
		return
	}
	add := func(m metric.Metric, main string, v float64, samples []float64) {
		one := &measure{key: key{x.trial.Treatment, operation, m.Name}, metric: m, main: main, value: []float64{v}}
		if samples != nil {
			one.of, one.samples = "calls", [][]float64{samples}
		}
		x.measures = append(x.measures, one)
	}
	for _, times := range []struct {
		m metric.Metric
		s []float64
	}{{metric.Response, g.response}, {metric.Service, g.service}, {metric.PoolWait, g.wait}} {
		slices.Sort(times.s)
		asked := a.asked[times.m.Name]
		switch {
		case len(times.s) == 0 || (times.m.Name == metric.PoolWait.Name && !asked):
		case times.m.Name == metric.Response.Name || asked:
			add(times.m, "p50", stat.SortedQuantile(times.s, .5), times.s)
		default:
			add(times.m, "p50", stat.SortedQuantile(times.s, .5), nil)
		}
	}
	add(metric.Error, "", g.bad/g.due, nil)
	x.measures[len(x.measures)-1].weight = []float64{g.due}
	add(metric.Goodput, "", g.good/x.seconds, nil)
}

// targetMeasures adds what the parts of the target used: CPU time and their own counts for each call that was answered well, and memory.
// They cannot be told apart by operation.
func targetMeasures(x *extract, operation string, good float64) {
	before, after := reading(x.trial, record.Before, 0), reading(x.trial, record.After, 0)
	sums, seen := map[string]float64{}, map[string]bool{}
	for _, s := range probe.Delta(before, after) {
		if partOfTarget(s.Subject) {
			sums[s.Metric] += s.Value
			seen[s.Metric] = true
		}
	}
	for _, q := range []probe.Quantity{probe.CPU, probe.RSS, probe.Upstream, probe.CacheHits, probe.CacheMisses, probe.CacheRenewed, probe.Distinct} {
		v, m := sums[q.Name], q.Metric
		if q.Name == metric.CPU.Name {
			m = metric.CPU
		}
		if q.Kind != probe.Gauge {
			v /= good
		}
		if seen[q.Name] && isFinite(v) {
			x.measures = append(x.measures, &measure{key: key{x.trial.Treatment, operation, q.Name}, metric: m, value: []float64{v}})
		}
	}
}

// count adds a trial's calls to the report's operations, and its audit to the generator's.
func (a *analysis) count(x *extract) {
	if x.seconds == 0 {
		return
	}
	g := report.Generator{
		Valid: true, Lateness: &report.Lateness{P50: x.audit.LatenessP50, P99: x.audit.LatenessP99, Max: x.audit.LatenessMax},
		AchievedRatio: &x.audit.AchievedRatio,
	}
	o := &x.opinion
	if !x.audit.Valid {
		o = &signature.GeneratorOpinion{Verdict: signature.RuledOut} // what it spoiled was taken out
	}
	with(&g, o, a.rec.Plan.Load.Workers)
	a.noted(o)
	a.audits = append(a.audits, g)
	for i := range x.counted {
		c := &x.counted[i]
		k := key{treatment: x.trial.Treatment, operation: c.name}
		sum := a.counted[k]
		if sum == nil {
			sum = &counts{key: k, counted: counted{responses: hist.Compact(), services: hist.Compact(), waits: hist.Compact()}}
			a.counted[k] = sum
			a.countedOrder = append(a.countedOrder, sum)
		}
		sum.add(c, x.seconds)
	}
}

// counts are the calls of one operation under one treatment, over all blocks.
type counts struct {
	key key
	counted
	seconds float64
}

func (s *counts) add(c *counted, seconds float64) {
	s.seconds += seconds
	s.due, s.sent, s.good = s.due+c.due, s.sent+c.sent, s.good+c.good
	o, x := &s.outcomes, &c.outcomes
	o.OK, o.Denied, o.Wrong, o.Refused = o.OK+x.OK, o.Denied+x.Denied, o.Wrong+x.Wrong, o.Refused+x.Refused
	o.Timeout, o.Unsent, o.ConnFailed, o.Failed = o.Timeout+x.Timeout, o.Unsent+x.Unsent, o.ConnFailed+x.ConnFailed, o.Failed+x.Failed
	o.Outstanding += x.Outstanding
	if s.causes == nil {
		s.causes = causes{}
	}
	for cause, n := range c.causes {
		s.causes[cause] += n
	}
	for word, n := range c.answers {
		s.answered(word, n)
	}
	s.responses.Merge(&c.responses)
	s.services.Merge(&c.services)
	s.waits.Merge(&c.waits)
}

// windowOperations writes what happened to the calls into the report.
func (a *analysis) windowOperations() {
	for _, s := range a.countedOrder {
		op := s.operation(s.seconds)
		op.Treatment, op.Operation, op.Answers = s.key.treatment, s.key.operation, s.answers
		op.Response, op.Service, op.PoolWait = summed(&s.responses), summed(&s.services), summed(&s.waits)
		a.rep.Operations = append(a.rep.Operations, op)
	}
}
