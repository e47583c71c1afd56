package analyze

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"tare/internal/capacity"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/unit"
)

// searches answers where each treatment broke, and how.
func (a *analysis) searches() error {
	for _, t := range a.trials() {
		a.targets(t)
		if err := a.capacity(t); err != nil {
			return fmt.Errorf("analyze trial of %s in block %d: %w", t.Treatment, t.Block, err)
		}
	}
	a.busySearch()
	return nil
}

// capacity answers where one treatment broke, and how.
func (a *analysis) capacity(t *record.Trial) error {
	trace, err := traceOf(t)
	if err != nil {
		return err
	}
	if trace == nil {
		a.withoutTrace(t)
		return a.histograms(t)
	}
	if !t.HasCalls() {
		a.warn(t.Treatment, "its raw calls are not in the record: its capacity cannot be computed")
		return a.histograms(t)
	}
	calls := t.Log()
	trace.Calls = calls
	res := capacity.Assess(*trace)
	out := capacityOf(t.Treatment, &res, trace)
	if res.Broke && res.Valid {
		out.Limit, out.Failure = namesOf(t, &res, trace)
	}
	steps := pointSteps(trace)
	for i, p := range capacity.Points(*trace) {
		point := pointOf(&p)
		o := a.pointOpinion(t, &p, steps[i].Segment.Effort)
		with(point.Generator, &o, 0)
		point.Used = used(t, i+1, float64(p.Offered)*p.Success)
		out.Points = append(out.Points, point)
	}
	if line := timeline(t.Treatment, trace); line != nil {
		a.rep.Timeline = append(a.rep.Timeline, *line)
	}
	a.rep.Capacity = append(a.rep.Capacity, out)
	a.audit(t, &res, trace)
	for _, w := range res.Warnings {
		a.warn(t.Treatment, "%s", w)
	}
	switch {
	case t.Complete():
	case trace.Stop == capacity.StopCanceled:
		a.warn(t.Treatment, "the search was cut short: its result is what was known by then")
	default:
		a.warn(t.Treatment, "the search had ended, but not what follows it: what sets the rate is judged by %s",
			unit.Count(len(experimentsOf(t)), "experiment"))
	}
	a.doubt(&out, trace)
	a.searched[t.Treatment] = res
	a.traces[t.Treatment], a.operationNames[t.Treatment] = trace, t.Operations
	a.operations(t, trace)
	a.logs = append(a.logs, calls)
	if err := a.searchedTrespasses(t, trace); err != nil {
		return err
	}
	return calls.Err()
}

// traceOf finds the trace that ends the steps of a trial; nil if the trial did not come to it.
func traceOf(t *record.Trial) (*capacity.Trace, error) {
	for _, s := range slices.Backward(t.Steps) {
		if s.Name != "trace" {
			continue
		}
		var trace capacity.Trace
		if err := json.Unmarshal(s.Payload, &trace); err != nil {
			return nil, fmt.Errorf("read the trace: %w", err)
		}
		if err := trace.Check(); err != nil {
			return nil, fmt.Errorf("the trace is damaged: %w", err)
		}
		return &trace, nil
	}
	return nil, nil
}

// withoutTrace says what a search that was killed had come to. Without its calls there is no number to give.
func (a *analysis) withoutTrace(t *record.Trial) {
	last := "before its first step"
	for _, entry := range slices.Backward(t.Steps) {
		var s capacity.Step
		if json.Unmarshal(entry.Payload, &s) == nil && s.Role != "" {
			last = fmt.Sprintf("after %d steps, the last of them %s at %s", len(t.Steps), s.Role, unit.PerSecond(s.Rate))
			break
		}
	}
	a.warn(t.Treatment, "the search ended %s, and its calls were not written: there is no result", last)
}

// doubt notes what makes the run invalid or leaves it open.
func (a *analysis) doubt(c *report.Capacity, trace *capacity.Trace) {
	name := c.Treatment
	switch {
	case !c.Valid:
		a.flaws.invalid = append(a.flaws.invalid, fmt.Sprintf(
			"%s: the generator is the limit, not the target%s", name, because(c.Reason),
		))
	case trace.Stop == capacity.StopLadder, trace.Stop == capacity.StopMaxRate, c.Rate != nil, c.AtLeast != nil,
		c.AtMost != nil, c.BrokeAbove != nil:
	default:
		a.flaws.open = append(a.flaws.open, fmt.Sprintf("%s: no capacity was found%s", name, because(c.Reason)))
	}
	if o := c.Objective; o != nil && o.Reason != "" {
		a.flaws.open = append(a.flaws.open, fmt.Sprintf("%s: no rate is known at which %s%s", name, o, because(o.Reason)))
	}
}

func capacityOf(treatment string, r *capacity.Result, trace *capacity.Trace) report.Capacity {
	c := report.Capacity{
		Treatment: treatment, Broke: r.Broke, Rate: known(r.Rate), Lo: known(r.Lo), Hi: known(r.Hi),
		AtLeast: known(r.AtLeast),
		AtMost:  known(r.AtMost), BrokeAbove: known(r.BrokeAbove),
		VerifiedLow: known(r.VerifiedLow), VerifiedHigh: known(r.VerifiedHigh), SLORate: known(r.SLORate),
		SLOFails: known(r.SLOFails), Burst: r.Burst,
		Wedged: r.Wedged, RecoverySeconds: r.RecoverySeconds, Recovery: r.RecoveryNote, Phases: r.Phases, Seconds: r.Seconds,
		Valid: r.Valid, Stop: string(r.Stop), Reason: r.Reason,
	}
	if c.Rate == nil {
		c.Lo, c.Hi = nil, nil
	}
	if trace.SLO > 0 && trace.Stop != capacity.StopLadder {
		c.Objective = &report.Latency{Limit: trace.SLO.Seconds(), Share: trace.SLOShare, Reason: r.SLOUnknown}
	}
	for _, f := range r.Findings {
		c.Findings = append(c.Findings, report.Finding{Kind: string(f.Kind), Sentence: f.Sentence})
	}
	return c
}

// known turns the search's "0 is unknown" into the report's "unknown is absent".
func known(v float64) *float64 {
	if v == 0 {
		return nil
	}
	return &v
}

func pointOf(p *capacity.Point) report.Point {
	out := report.Point{
		Name: p.Name, Rate: p.Rate, Seconds: p.Seconds, Offered: nonNegative(p.Offered), Sent: nonNegative(p.Sent),
		GoodputSLO: p.GoodputSLO,
		P50:        known(p.P50), P90: known(p.P90), P99: known(p.P99), Max: known(p.Max),
		P99Own:       known(p.P99Own),
		NoConnection: nonNegative(p.NoConnection), NoByte: nonNegative(p.NoByte), BadStatus: nonNegative(p.BadStatus),
		Stuck:        nonNegative(p.Stuck),
		DrainSeconds: p.Drain, LastFailedSent: p.LastFailedSent, RecoverySeconds: p.RecoverySeconds,
		Generator: auditOf(&p.Audit), ListenQueue: p.ListenQueue,
	}
	if p.Offered > 0 {
		out.Success, out.Goodput, out.VegetaThroughput = &p.Success, &p.Goodput, &p.VegetaThroughput
	}
	return out
}

func nonNegative(n int) uint64 { return uint64(max(0, n)) }

func auditOf(a *capacity.Audit) *report.Generator {
	return &report.Generator{
		Valid:         a.Valid,
		Lateness:      &report.Lateness{P50: a.LatenessP50, P99: a.LatenessP99, Max: a.LatenessMax},
		AchievedRatio: &a.AchievedRatio,
		CPUSeconds:    &a.CPUSeconds,
		Reason:        a.Reason,
	}
}

// loaded are the stretches of a trace in which load was offered.
func loaded(trace *capacity.Trace) []load.Segment {
	var out []load.Segment
	for _, s := range trace.Steps {
		if s.Rate > 0 && s.Segment.End > s.Segment.Start {
			out = append(out, s.Segment)
		}
	}
	return out
}

// operations counts what happened to the calls of each operation over the whole trace, at whatever rate.
func (a *analysis) operations(t *record.Trial, trace *capacity.Trace) {
	w := window{segments: loaded(trace), read: trace.Read}
	slots := newSlots(t)
	per := make([]operationCalls, len(slots.names))
	for c := range trace.Calls.Due(0, math.MaxInt64) {
		k := slots.of(c.Operation)
		if k == len(per) {
			per = append(per, operationCalls{})
		}
		if w.holds(c.Intended) {
			per[k].countDue(c)
		}
		open := c.Outstanding(w.read)
		if !open && c.Outcome.Good() && w.holds(c.Done) {
			per[k].good++
		}
		per[k].take(c, open, ownCauses(t, int(c.Operation)))
		per[k].add(c, open)
	}
	for i, name := range slots.names {
		x := &per[i]
		op := x.operation(w.seconds())
		op.Treatment, op.Operation = t.Treatment, name
		for i, d := range []**report.Distribution{&op.Response, &op.Service, &op.PoolWait} {
			*d = distributionOf(durations{x.callTimes[i].Sorted()})
		}
		a.rep.Operations = append(a.rep.Operations, op)
	}
	a.bytes(t)
}

// operationCalls are the calls of one operation.
type operationCalls struct {
	tally
	callTimes
}

// ownCauses are what an operation calls its failures.
func ownCauses(t *record.Trial, operation int) []string {
	if operation < len(t.Causes) {
		return t.Causes[operation]
	}
	return nil
}

// bytes are counted for the stream as a whole: with one operation they are its own.
func (a *analysis) bytes(t *record.Trial) {
	if len(t.Operations) != 1 || len(t.Generator) == 0 {
		return
	}
	op := &a.rep.Operations[len(a.rep.Operations)-1]
	var in, out uint64
	for _, g := range t.Generator {
		in += g.BytesIn
		out += g.BytesOut
	}
	op.BytesIn, op.BytesOut = &in, &out
}

// window is the time over which calls are counted.
type window struct {
	segments []load.Segment
	read     time.Duration // when the calls were read: what had not ended is outstanding
}

func (w *window) seconds() float64 {
	var d time.Duration
	for _, s := range w.segments {
		d += s.End - s.Start
	}
	return d.Seconds()
}

func (w *window) holds(at time.Duration) bool {
	for _, s := range w.segments {
		if at >= s.Start && at < s.End {
			return true
		}
	}
	return false
}
