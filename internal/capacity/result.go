package capacity

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"tare/internal/load"
	"tare/internal/signature"
	"tare/internal/stat"
	"tare/internal/unit"
)

// Result is the answer of a search. A float that is 0 is unknown.
type Result struct {
	Broke bool // a rate was found at which the target breaks
	// Rate is the capacity in calls per second, with its interval at Level. It is the rate of calls that the target can
	// take: where a share of all calls fails at any rate, those count as taken.
	Rate, Lo, Hi, Level float64
	// AtLeast is a rate that holds, AtMost one that breaks, where there is no number between them.
	AtLeast, AtMost float64
	// BrokeAbove is the fastest step that a target kept up with that has stayed down since. It is not a bound: a step is
	// short.
	BrokeAbove float64
	// VerifiedLow is the highest rate that was tried and held, VerifiedHigh the lowest that was tried and broke.
	VerifiedLow, VerifiedHigh float64
	// SLORate is the highest rate at which the latency objective held, SLOFails the lowest above it at which it did not.
	SLORate, SLOFails float64
	// SLOUnknown says why neither is known although an objective was given.
	SLOUnknown string
	// Burst is how many calls above the capacity the target took before it broke; nil where that has no meaning.
	Burst     *float64
	Signature signature.Verdict // how it broke
	Findings  []Finding         // what else was seen beside the class, such as a cold start
	// Wedged is whether the target failed to come back after the load, RecoverySeconds how long it took to; nil if it did
	// not or was not asked. IdleDropped is whether it came back (if it did) only after the client had closed its idle
	// connections.
	Wedged          bool
	RecoverySeconds *float64
	IdleDropped     bool
	RecoveryNote    string // the recovery in a sentence
	// Phases counts the ramp, overloads, fills and confirmations; Seconds is how long they took, without the recovery.
	Phases  int
	Seconds float64
	// ErrorFloor is the share of calls that fails at any rate, with its interval.
	ErrorFloor stat.Estimate
	BaseP50    float64 // response time well below capacity, in seconds
	// Valid is false where the generator was the limit, so that nothing is said about the target. Reason says why the
	// search stopped.
	Valid    bool
	Stop     Stop
	Reason   string
	Audit    Audit
	Warnings []string // sentences that every report must carry
}

// Audit is what the generator did in a stretch of load.
type Audit = signature.Audit

// Assess computes every reported number from a trace and its calls alone, so that a record can be read again by a later
// version.
func Assess(t Trace) Result {
	b := baseOf(t)
	r := Result{
		Valid: t.Stop != StopClient, Stop: t.Stop, Reason: t.Reason, ErrorFloor: b.usual.interval(),
		BaseP50: b.p50.Seconds(), Signature: signature.Verdict{Class: signature.Unknown},
	}
	r.counts(t)
	r.Audit = worstAudit(t)
	r.recover(t)
	if t.Stop == StopClient {
		r.Signature = signature.Verdict{
			Class: signature.Client, Scores: map[signature.Class]float64{signature.Client: 1}, Evidence: []string{r.Reason},
		}
	}
	r.claim(t, b)
	r.Valid = r.Valid || r.AtLeast > 0
	r.sloRate(t)
	r.warn(t)
	return r
}

// badCalls counts the calls that were due in a step and not held back, and those of them that did not end well,
// whenever. Where hardly any is left, it counts all calls.
func (t Trace) badCalls(s Step) (bad, n int) {
	return countBad(undisturbed(t.due(s.Segment.Start, s.Segment.End)))
}

// countBad counts calls, and those of them that did not end well.
func countBad(calls iter.Seq[*load.Call]) (bad, n int) {
	for c := range calls {
		if n++; endedBadly(c) {
			bad++
		}
	}
	return bad, n
}

// losesMoreThan reports whether more than a share of the calls that were due in a step did not end well, whenever, by
// more than chance and a single call.
func (t Trace) losesMoreThan(s Step, share float64) bool {
	bad, n := t.badCalls(s)
	most := share * float64(n)
	return float64(bad) > most+2*math.Sqrt(most*(1-share))+1
}

// confirmation reports whether s confirmed that a rate holds or breaks, without being limited by the generator.
func (s *Step) confirmation() bool { return confirms(s.Role) && s.Passed != nil && !s.ClientLimited }

func confirms(r Role) bool { return r == RoleConfirmHigh || r == RoleConfirmLow }

func (r *Result) counts(t Trace) {
	var end time.Duration
	overloads := map[int]bool{}
	ramps := 0
	for _, s := range t.Steps {
		if s.Role == RoleRecovery {
			continue
		}
		end = max(end, s.Segment.End)
		switch s.Role {
		case RoleRamp:
			ramps = 1
		case RoleOverload:
			overloads[s.Attempt] = true
		case RoleFill, RoleSLO, RoleRate, RolePoint, RolePrime, RoleConfirmHigh, RoleConfirmLow:
			r.Phases++
		case RoleDrain, RoleRecovery, RoleSingle, RoleBurst, RoleBusy, RoleTogether, RoleAlone:
		}
	}
	r.Phases += ramps + len(overloads)
	if len(t.Steps) > 0 {
		r.Seconds = (end - t.Steps[0].Segment.Start).Seconds()
	}
}

// worstAudit judges the generator over all steps that offered load, and returns the audit of the worst of them.
func worstAudit(t Trace) Audit {
	worst := Audit{Valid: true, AchievedRatio: 1, Limit: 0.001}
	cpu, first := 0.0, true
	for _, s := range t.Steps {
		cpu += s.Segment.CPU
		if s.Rate <= 0 || s.Segment.End <= s.Segment.Start {
			continue
		}
		a := audit(t.due(s.Segment.Start, s.Segment.End), s, t.Read)
		if first || !a.Valid && worst.Valid ||
			a.Valid == worst.Valid && a.LatenessP99/a.Limit > worst.LatenessP99/worst.Limit {
			worst, first = a, false
		}
	}
	if t.Stop != StopClient {
		worst.Valid = true // a step that failed was repeated, and held then
	}
	worst.CPUSeconds = cpu
	return worst
}

// audit judges the generator by the calls that were due in a step, read at now.
func audit(calls iter.Seq[*load.Call], s Step, now time.Duration) Audit {
	a := signature.AuditCalls(calls, min(now, s.Segment.End), s.Segment.Offered)
	a.CPUSeconds = s.Segment.CPU
	return a
}

// base is what the target does well below its capacity.
type base struct {
	p50, p99, mean time.Duration
	usual          tally
	floor          float64   // share of calls that fail at any rate, of the usual ones
	later          []float64 // typical responses after the first step, in ns, in the order in which they were due
}

// varied reports whether some calls take much longer than others well below the capacity.
func (b base) varied() bool { return b.p99 > 2*b.p50 }

// baseOf looks at the ramp's steps that held, without the fastest, which may be close to the capacity. Of these, only
// the steps whose median is near the least are typical: the first calls of a target may have come before it was warm.
func baseOf(t Trace) base {
	var steps []Step
	for _, s := range t.Steps {
		if s.Role == RoleRamp && s.Passed != nil && *s.Passed {
			steps = append(steps, s)
		}
	}
	if n := len(steps); n > 1 {
		steps = steps[:n-1]
	}
	shares, medians, of := make([]tally, len(steps)), make([]float64, len(steps)), make([][]float64, len(steps))
	for i, s := range steps {
		for c := range t.due(s.Segment.Start, s.Segment.End) {
			if c.Done == 0 {
				continue
			}
			if shares[i].ended++; c.Outcome.Good() {
				of[i] = append(of[i], float64(c.Response()))
			} else {
				shares[i].bad++
			}
		}
		if medians[i] = math.Inf(1); len(of[i]) > 0 {
			medians[i] = stat.Quantile(of[i], 0.5)
		}
	}
	var b base
	var typical []float64
	for i, m := range medians {
		if m <= 1.5*slices.Min(medians) {
			typical = append(typical, of[i]...)
			if steps[i].Segment.Start > t.Steps[0].Segment.Start {
				b.later = append(b.later, of[i]...)
			}
		}
	}
	if slices.Sort(typical); len(typical) > 0 {
		b.p50 = time.Duration(stat.SortedQuantile(typical, 0.5))
		b.p99, b.mean = time.Duration(stat.SortedQuantile(typical, 0.99)), time.Duration(stat.Mean(typical))
	}
	if len(steps) > 1 {
		b.usual = floorOf(shares)
	}
	switch far := t.farBelow(); {
	case far.ended < b.usual.ended && far.fits(b.usual):
		b.usual = b.usual.and(far)
	case far.ended > 0:
		b.usual = far // of fewer calls, too: the target has changed since the ramp
	}
	b.floor = b.usual.share()
	return b
}

// tally counts calls that ended, and those of them that ended badly.
type tally struct{ ended, bad int }

// takes counts a call that ended and was taken: neither refused nor lost on the way.
func (y *tally) takes(c *load.Call) bool {
	fails := c.Outcome == load.Failed || c.Outcome == load.Wrong
	if c.Done == 0 || !fails && !c.Outcome.Good() {
		return false
	}
	y.ended++
	if fails {
		y.bad++
	}
	return true
}

func (y tally) share() float64 { return float64(y.bad) / float64(max(1, y.ended)) }

func (y tally) and(x tally) tally { return tally{y.ended + x.ended, y.bad + x.bad} }

// fits reports whether both may have the same share, but for chance.
func (y tally) fits(x tally) bool {
	p := y.and(x).share()
	apart := math.Abs(y.share() - x.share())
	return apart <= 2.5*math.Sqrt(p*(1-p)*(1/float64(max(1, y.ended))+1/float64(max(1, x.ended))))
}

// interval is the share with its interval.
func (y tally) interval() stat.Estimate {
	e, _ := stat.BinomialInterval(uint64(max(0, y.bad)), uint64(max(0, y.ended)), level)
	return e
}

// farNote is the note of a step far below the capacity that tells how many calls fail at any rate.
const farNote = "do calls fail at any rate?"

// farBelow counts the calls that were taken in the last steps far below the capacity, without the first quarter of
// each, in which the target may not have recovered; none where most fail.
func (t Trace) farBelow() tally {
	var of []tally
	for i, s := range t.Steps {
		if s.Note != farNote {
			continue
		}
		if i == 0 || t.Steps[i-1].Note != farNote {
			of = nil
		}
		var x tally
		for c := range t.due(s.Segment.Start+s.Length()/4, s.Segment.End) {
			x.takes(c)
		}
		of = append(of, x)
	}
	if x := floorOf(of); 2*x.bad < x.ended {
		return x
	}
	return tally{}
}

// floorOf counts the calls that tell the share that fails at any rate: those of the slow steps, as long as faster ones
// fit it. A step in which clearly more calls fail is where the target begins to break.
func floorOf(steps []tally) tally {
	var sum tally
	for _, s := range steps {
		expected := float64(s.ended) * (float64(sum.bad) + 0.5) / (float64(sum.ended) + 1)
		if sum.ended > 0 && float64(s.bad) > expected+3*math.Sqrt(expected)+1 {
			break
		}
		sum = sum.and(s)
	}
	return sum
}

// lastOverload are the steps of the last attempt to overload that the target did not simply take.
func lastOverload(t Trace) []Step {
	attempt := 0
	for _, s := range t.Steps {
		if s.Role == RoleOverload {
			if attempt = max(attempt, s.Attempt); s.Passed != nil && *s.Passed {
				attempt = 0 // all that came before was not the whole truth
			}
		}
	}
	return t.overload(attempt)
}

// overload is one attempt to overload.
func (t Trace) overload(attempt int) (steps []Step) {
	for _, s := range t.Steps {
		if s.Role == RoleOverload && s.Attempt == attempt && s.Segment.End > s.Segment.Start {
			steps = append(steps, s)
		}
	}
	return steps
}

// served reports whether most calls of the first step were answered well, of a target that then failed at any rate: one
// that never served did not stay down after the load.
func (t Trace) served() bool {
	if t.Stop != StopNoAnswer && t.Stop != StopFailing || len(t.Steps) == 0 {
		return true
	}
	good, n := 0, 0
	for c := range t.Calls.Due(t.Steps[0].Segment.Start, t.Steps[0].Segment.End) {
		if n++; !endedBadly(c) {
			good++
		}
	}
	return 2*good > n
}

func (r *Result) recover(t Trace) {
	v := t.Recovery
	if v == nil || !v.Complete || !v.Recovered && !t.served() {
		return
	}
	first, back := v.back(r.ErrorFloor.Value)
	back = back || v.Recovered
	dropped := v.DroppedIdle
	r.Wedged, r.IdleDropped = !back && v.staysDown(), dropped != nil && (!back || *dropped <= first)
	after := ""
	if r.IdleDropped {
		after = fmt.Sprintf(", after the client had closed its idle connections at %.1f s", (*dropped - v.Start).Seconds())
	}
	if r.Wedged && v.refused() {
		r.RecoveryNote = "refuses: " + v.unanswered() + after
		return
	}
	if !back && !r.Wedged {
		r.RecoveryNote = "partly: " + v.partly() + after
		return
	}
	if r.Wedged || len(v.Probes) == 0 {
		r.RecoveryNote = fmt.Sprintf("wedged: fresh calls were still not answered well within %s, %.0f s after the load had "+
			"stopped%s", unit.Seconds(v.Limit.Seconds()), v.Deadline.Seconds(), after)
		return
	}
	s := max(0, (first - v.Start).Seconds())
	r.RecoverySeconds, r.RecoveryNote = &s, fmt.Sprintf("recovers after %.1f s%s", s, after)
	if s < 1 {
		r.RecoveryNote = "recovers immediately" + after
	}
}

// heldBefore is a clause about the highest rate that held before the last overload, after which it does not count; it
// is empty if none did.
func (t Trace) heldBefore(floor float64) string {
	over := lastOverload(t)
	var best Step
	for _, s := range t.Steps {
		if len(over) > 0 && s.Segment.Start < over[0].Segment.Start && s.confirmation() && *s.Passed && s.Rate > best.Rate &&
			!t.losesMoreThan(s, floor+mostBad) {
			best = s
		}
	}
	if best.Rate == 0 {
		return ""
	}
	return fmt.Sprintf(" since the last overload; before it %s/s held for %.0f s", number(best.Rate),
		best.Length().Seconds())
}

func (r *Result) warning(format string, of ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, of...))
}

func (r *Result) warn(t Trace) {
	if t.Stop == StopTime {
		r.warning("the time ran out before everything was confirmed")
	}
	if r.VerifiedHigh > 0 && r.VerifiedHigh < r.Rate {
		r.warning("calls are refused from %s/s on, when chance has all places taken; on average the places would allow %s/s",
			number(r.VerifiedHigh), number(r.Rate))
	}
	switch unseen := "not confirmed from both sides: no rate was seen to %s for certain%s"; {
	case !r.Broke:
	case r.VerifiedLow == 0 && r.VerifiedHigh == 0:
		r.warning(unseen, "hold or to break", t.heldBefore(r.ErrorFloor.Value))
	case r.VerifiedLow == 0:
		r.warning(unseen, "hold", t.heldBefore(r.ErrorFloor.Value))
	case r.VerifiedHigh == 0:
		r.warning(unseen, "break", "")
	}
	if e := r.ErrorFloor; e.Value > 0.005 && e.Lo > 0 {
		r.warning("%.1f %% [%.1f, %.1f] of the calls fail at any rate", 100*e.Value, 100*e.Lo, 100*e.Hi)
	}
	if r.Rate > 0 && r.VerifiedHigh > 1.1*r.VerifiedLow {
		r.warning("it is not known whether rates between %s/s, which held, and %s/s, which broke, hold",
			number(r.VerifiedLow), number(r.VerifiedHigh))
	}
}
