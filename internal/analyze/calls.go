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

// A counted is what happened to the calls of one operation, over any number of trials, with its times in histograms.
type counted struct {
	name string
	tally
	times [len(timesOf)]hist.Histogram
}

func newCounted(name string) counted {
	c := counted{name: name}
	for i := range c.times {
		c.times[i] = hist.Compact()
	}
	return c
}

// calls are what a trial under load measured in its window. Warm-up is left out, except that a call of it may end
// within the window and then counts as goodput there.
func (a *analysis) calls(t *record.Trial) (*extract, error) {
	x := &extract{trial: t, audit: audited{Valid: true}}
	if !t.HasCalls() {
		a.warn(t.Treatment, "raw calls are missing from the record: nothing can be said about their times")
		return x, nil
	}
	w, err := windowOf(t)
	if err != nil {
		return nil, err
	}
	if w.End <= w.Start {
		a.warn(t.Treatment, "a trial has an empty window: it measured nothing")
		return x, nil
	}
	g := newGathering(t, w)
	if err := t.EachCalls(g.take); err != nil {
		return nil, err
	}
	x.seconds = g.turns.length().Seconds()
	a.keepsUp(x, g)
	all := a.measureCalls(x, g)
	x.audit = g.audit()
	x.opinion = a.trialOpinion(t, g, all, &x.audit)
	if x.audit.Valid && x.opinion.Verdict == signature.Limiting {
		x.audit.Valid, x.audit.Reason = false, x.opinion.Doubts[0]
	}
	return x, nil
}

// measureCalls adds the measures of every operation, and of all together. It returns the response times of all calls.
func (a *analysis) measureCalls(x *extract, g *gathering) durations {
	var whole gathered
	var all [len(timesOf)]ending
	name := ""
	for i := range g.per {
		one := &g.per[i]
		var own [len(timesOf)]ending
		for k := range own {
			own[k].well, own[k].failed = durations{one.callTimes[k].Sorted()}, durations{one.failed[k].Sorted()}
			all[k].well, all[k].failed = append(all[k].well, own[k].well...), append(all[k].failed, own[k].failed...)
		}
		x.counted = append(x.counted, one.counted)
		whole.due, whole.outcomes.OK = whole.due+one.due, whole.outcomes.OK+one.outcomes.Good()
		whole.rounds.join(&one.rounds)
		whole.answeredRounds.join(&one.answeredRounds)
		whole.unanswered += one.unanswered
		if name = one.name; len(g.per) > 1 {
			a.callMeasures(x, name, one, &own)
			name = ""
		}
	}
	a.callMeasures(x, name, &whole, &all)
	targetMeasures(x, name, float64(whole.outcomes.Good()))
	return all[0].all()
}

// windowOf is the stretch that counts: as the run wrote it, else everything.
func windowOf(t *record.Trial) (load.Segment, error) {
	if t.Window != nil {
		return load.Segment{Start: t.Window.Start, End: t.Window.End}, nil
	}
	var w load.Segment
	first := true
	err := t.EachCalls(func(calls []load.Call) {
		for i := range calls {
			at := calls[i].Intended
			if first {
				w, first = load.Segment{Start: at, End: at}, false
			}
			w.Start, w.End = min(w.Start, at), max(w.End, at+1)
		}
	})
	return w, err
}

// mostOperations is how many operations calls can tell apart.
const mostOperations = math.MaxUint8 + 1

// slots are the names of a trial's operations. Those that the record names come first; calls of a damaged record can
// have others.
type slots struct {
	names []string
	place [mostOperations]int // from 1; 0: it has not come yet
}

func newSlots(t *record.Trial) *slots {
	s := &slots{names: slices.Clone(t.Operations[:min(len(t.Operations), mostOperations)])}
	for i := range s.names {
		s.place[i] = i + 1
	}
	return s
}

// of is the place of an operation among the names, to which it is added if it is not there.
func (s *slots) of(operation uint8) int {
	if s.place[operation] == 0 {
		s.names = append(s.names, fmt.Sprintf("operation %d", operation))
		s.place[operation] = len(s.names)
	}
	return s.place[operation] - 1
}

// A gathering takes in the calls of one trial, part by part.
type gathering struct {
	trial   *record.Trial
	window  load.Segment
	turns   turns
	slots   *slots
	per     []gathered // by slot
	auditor signature.Auditor
	// answered and seconds are the number and the response times of all calls, also of those that were due before a turn
	// had settled; refused: a connection could not be made.
	answered int
	seconds  float64
	refused  bool
	pace     pace
}

// A gathered is what a gathering holds of one operation: the times of calls that were answered well, and of those that
// failed.
type gathered struct {
	counted
	callTimes
	failed callTimes
	// rounds are the response times by round as calls ended, answeredRounds if those that failed were never answered.
	rounds, answeredRounds rounds
	unanswered             int // calls that failed, or had not ended
}

func newGathering(t *record.Trial, w load.Segment) *gathering {
	g := &gathering{
		trial: t, window: w, turns: turnsOf(t, w), slots: newSlots(t), auditor: signature.Auditor{Now: math.MaxInt64},
	}
	for _, name := range g.slots.names {
		g.per = append(g.per, gathered{counted: newCounted(name)})
	}
	return g
}

// take takes in some calls, in the order of the record.
func (g *gathering) take(calls []load.Call) {
	for i := range calls {
		c := &calls[i]
		k := g.slots.of(c.Operation)
		if k == len(g.per) {
			g.per = append(g.per, gathered{counted: newCounted(g.slots.names[k])})
		}
		x := &g.per[k]
		round, settled, due := g.turns.of(c.Intended)
		if g.ended(c, due) {
			x.good++
		}
		if !due {
			continue
		}
		x.countDue(c)
		if g.turns.taken {
			g.pace.take(c, g.turns.list[round], round, settled)
		}
		x.take(c, c.Done == 0, ownCauses(g.trial, int(c.Operation)))
		if c.Done > 0 {
			x.countAnswer(c, g.trial)
			g.answered++
			g.seconds += c.Response().Seconds()
			g.refused = g.refused || c.Outcome == load.ConnFailed
		}
		if !settled {
			continue
		}
		g.auditor.Add(c)
		times, answered := &x.callTimes, c.Response().Seconds()
		if c.Done == 0 || !c.Outcome.Good() {
			times, answered = &x.failed, stat.Never
			x.unanswered++
		}
		for i, of := range timesOf {
			if d, ok := of(c, c.Done == 0); ok {
				times[i].Add(int64(d))
				x.times[i].Record(int64(d))
			}
		}
		if !g.turns.taken {
			continue
		}
		if x.answeredRounds.add(round, answered); c.Done > 0 {
			x.rounds.add(round, c.Response().Seconds())
		}
	}
}

// ended reports whether a good call ended in the window. Of turns it counts if it was due in one.
func (g *gathering) ended(c *load.Call, due bool) bool {
	if c.Done == 0 || !c.Outcome.Good() {
		return false
	}
	if g.turns.taken {
		return due
	}
	return c.Done >= g.window.Start && c.Done < g.window.End
}

// audit judges the generator by the calls, and by what only the runner knew. Where treatments take turns, a delay of
// the host meets few of them, which the medians over rounds ignore: then lateness alone spoils nothing.
func (g *gathering) audit() audited {
	out := g.auditor.Audit(0).OnTime()
	if g.turns.taken && !out.Valid && out.AchievedRatio >= sentShare {
		out.Valid, out.Reason = true, ""
	}
	for _, x := range g.trial.Generator {
		if x.Reason != "" {
			out.Valid, out.Reason = false, x.Reason
		}
	}
	return out
}

// countAnswer counts what the answer to a call said.
func (x *counted) countAnswer(c *load.Call, t *record.Trial) {
	word := causeAnswerOf(t, int(c.Operation), c.Cause)
	if c.Outcome.Good() {
		word = answerOf(t, int(c.Operation))
	}
	x.answered(word, 1)
}

// callMeasures adds the measures of one operation's calls. Of their times only the response times are kept one by one,
// and those that a budget asks for.
func (a *analysis) callMeasures(x *extract, operation string, t *gathered, all *[len(timesOf)]ending) {
	if t.due == 0 {
		return
	}
	add := func(m metric.Metric, main string, v float64) *measure {
		one := &measure{key: key{x.trial.Treatment, operation, m.Name}, metric: m, main: main, value: []float64{v}}
		x.measures = append(x.measures, one)
		return one
	}
	for i, m := range []metric.Metric{metric.Response, metric.Service, metric.PoolWait} {
		s, asked := all[i].all(), a.asked[m.Name]
		if s.Len() == 0 || (m.Name == metric.PoolWait.Name && !asked) {
			continue
		}
		one := add(m, "p50", stat.SampleQuantile(.5, s))
		one.of, one.samples = "calls", []blockSample{all[i].sample(&m, t, m.Name == metric.Response.Name || asked)}
		if m.Name == metric.Response.Name && len(t.rounds) > 0 {
			one.rounds = []rounds{t.rounds}
		}
	}
	good := float64(t.outcomes.Good())
	add(metric.Error, "", (t.due-good)/t.due).weight = []float64{t.due}
	add(metric.Goodput, "", good/x.busy)
}

// targetMeasures adds what the parts of the target used: CPU time and their own counts for each call that was answered
// well, and memory. They cannot be told apart by operation.
func targetMeasures(x *extract, operation string, good float64) {
	before, after := reading(x.trial, record.Before, 0), reading(x.trial, record.After, 0)
	sums, seen := map[string]float64{}, map[string]bool{}
	for _, s := range probe.Delta(before, after) {
		if !partOfTarget(s.Subject) {
			continue
		}
		sums[s.Metric] += s.Value
		seen[s.Metric] = true
		if s.Metric == probe.RSS.Name && isFinite(s.Value) {
			x.measures = append(x.measures, &measure{
				key:    key{x.trial.Treatment, operation, s.Metric + " of " + s.Subject},
				metric: probe.RSS.Metric, part: s.Subject, value: []float64{s.Value},
			})
		}
	}
	for _, q := range []probe.Quantity{
		probe.CPU, probe.RSS, probe.Upstream, probe.CacheHits, probe.CacheMisses, probe.CacheRenewed, probe.Distinct,
	} {
		v, m := sums[q.Name], q.Metric
		if q.Name == metric.CPU.Name {
			m = metric.CPU
		}
		if q.Kind != probe.Gauge {
			v /= good
		}
		if seen[q.Name] && isFinite(v) {
			x.measures = append(x.measures, &measure{
				key: key{x.trial.Treatment, operation, q.Name}, metric: m, value: []float64{v},
			})
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
			sum = &counts{key: k, counted: newCounted("")}
			a.counted[k] = sum
			a.countedOrder = append(a.countedOrder, sum)
		}
		sum.add(c, x)
	}
}

// counts are the calls of one operation under one treatment, over all blocks.
type counts struct {
	key key
	counted
	seconds, busy float64
}

func (s *counts) add(c *counted, x *extract) {
	s.seconds, s.busy = s.seconds+x.seconds, s.busy+x.busy
	s.merge(&c.tally)
	for i := range s.times {
		s.times[i].Merge(&c.times[i])
	}
}

// windowOperations writes what happened to the calls into the report.
func (a *analysis) windowOperations() {
	for _, s := range a.countedOrder {
		op := s.operation(s.seconds)
		*op.Goodput = s.good / s.busy
		op.Treatment, op.Operation = s.key.treatment, s.key.operation
		op.Response, op.Service, op.PoolWait = summed(&s.times[0]), summed(&s.times[1]), summed(&s.times[2])
		a.rep.Operations = append(a.rep.Operations, op)
	}
}
