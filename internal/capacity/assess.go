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
)

// Assess computes every reported number from a trace and its calls alone, so that a record can be read again by a later
// version.
func Assess(t Trace) Result {
	b := baseOf(t)
	r := Result{
		Valid: t.Stop != StopClient, Stop: t.Stop, Reason: t.Reason, ErrorFloor: b.floor,
		BaseP50: b.p50.Seconds(), BaseP99: b.p99.Seconds(), Signature: signature.Verdict{Class: signature.Unknown},
	}
	r.counts(t)
	r.Audit = worstAudit(t)
	r.recover(t)
	if t.Stop == StopClient {
		r.Signature = clientVerdict(r.Reason)
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
	var held heldBack
	allBad, all := 0, 0
	for c := range t.due(s.Segment.Start, s.Segment.End) {
		disturbed, ended := held.disturbs(c), 0
		if endedBadly(c) {
			ended = 1
		}
		all, allBad = all+1, allBad+ended
		if !disturbed {
			n, bad = n+1, bad+ended
		}
	}
	if 4*n < all {
		return allBad, all
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
		case RoleFill, RoleSLO, RoleRate, RolePoint, RolePrime:
			r.Phases++
		case RoleConfirmHigh, RoleConfirmLow:
			r.Phases++
			r.Attempts++
			if s.Passed == nil {
				r.Undecided++
			}
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
	floor          float64 // share of calls that fail at any rate
}

// varied reports whether some calls take much longer than others well below the capacity.
func (b base) varied() bool { return b.p99 > 2*b.p50 }

// baseOf looks at the ramp's steps that held, without the fastest, which may be close to the capacity.
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
	var b base
	var shares []tally
	medians := make([]float64, len(steps))
	responses := make([][]float64, len(steps))
	for i, s := range steps {
		var n tally
		for c := range t.due(s.Segment.Start, s.Segment.End) {
			switch {
			case c.Done == 0:
			case c.Outcome.Good():
				n.ended++
				responses[i] = append(responses[i], float64(c.Response()))
			default:
				n.ended++
				n.bad++
			}
		}
		shares = append(shares, n)
		if medians[i] = math.Inf(1); len(responses[i]) > 0 {
			medians[i] = stat.Quantile(responses[i], 0.5)
		}
	}
	b.responses(responses, medians)
	if n := len(shares); n > 1 {
		b.floor = floorOf(shares)
	}
	return b
}

// responses takes the responses of the steps whose median is near the least: the first calls of a target that is not
// warm yet are not typical of it.
func (b *base) responses(of [][]float64, medians []float64) {
	if len(medians) == 0 {
		return
	}
	var all []float64
	for i, m := range medians {
		if m <= 1.5*slices.Min(medians) {
			all = append(all, of[i]...)
		}
	}
	if len(all) > 0 {
		slices.Sort(all)
		b.p50, b.p99, b.mean = time.Duration(stat.SortedQuantile(all, 0.5)), time.Duration(
			stat.SortedQuantile(all, 0.99),
		), time.Duration(stat.Mean(all))
	}
}

// tally counts the calls of a step that ended, and those of them that ended badly.
type tally struct{ ended, bad int }

// floorOf is the share of calls that fails at any rate: that of the slow steps, as long as faster ones fit it. A step
// in which clearly more calls fail is where the target begins to break.
func floorOf(steps []tally) float64 {
	var sum tally
	for _, s := range steps {
		if expected := float64(s.ended) * (float64(sum.bad) + 0.5) / (float64(sum.ended) + 1); sum.ended > 0 &&
			float64(s.bad) > expected+3*math.Sqrt(expected)+1 {
			break
		}
		sum.ended += s.ended
		sum.bad += s.bad
	}
	if sum.ended == 0 {
		return 0
	}
	return float64(sum.bad) / float64(sum.ended)
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

func (r *Result) recover(t Trace) {
	v := t.Recovery
	if v == nil || !v.Complete {
		return
	}
	r.Wedged, r.IdleDropped = !v.Recovered, v.DroppedIdle != nil
	if v.Recovered && len(v.Probes) > 0 {
		last := v.Probes[len(v.Probes)-1]
		first := last.At
		for i := len(v.Probes) - 1; i >= 0 && v.Probes[i].Good; i-- {
			first = v.Probes[i].At
		}
		s := max(0, (first - v.Start).Seconds())
		r.RecoverySeconds = &s
	}
	r.RecoveryNote = v.sentence(r.RecoverySeconds)
}

func (v Recovery) sentence(s *float64) string {
	after := ""
	if v.DroppedIdle != nil {
		after = fmt.Sprintf(
			", after the client had closed its idle connections at %.1f s", (*v.DroppedIdle - v.Start).Seconds(),
		)
	}
	switch {
	case s == nil:
		return fmt.Sprintf(
			"wedged: fresh calls were still not answered %.0f s after the load had stopped%s", v.Deadline.Seconds(), after,
		)
	case *s < 1:
		return "recovers immediately" + after
	}
	return fmt.Sprintf("recovers after %.1f s%s", *s, after)
}

func (r *Result) warn(t Trace) {
	if t.Stop == StopTime {
		r.Warnings = append(r.Warnings, "the time ran out before everything was confirmed")
	}
	if r.VerifiedHigh > 0 && r.VerifiedHigh < r.Rate {
		r.Warnings = append(r.Warnings, fmt.Sprintf("calls are refused from %s/s on, when chance has all places taken; on "+
			"average the places would allow %s/s",
			number(r.VerifiedHigh), number(r.Rate)))
	}
	if r.Broke && (r.VerifiedLow == 0 || r.VerifiedHigh == 0) {
		r.Warnings = append(r.Warnings, "not confirmed from both sides: "+unconfirmed(*r))
	}
	if r.ErrorFloor > 0.005 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%.1f %% of the calls fail at any rate", 100*r.ErrorFloor))
	}
	if r.Rate > 0 && r.VerifiedHigh > 1.1*r.VerifiedLow {
		r.Warnings = append(r.Warnings, fmt.Sprintf("it is not known whether rates between %s/s, which held, and %s/s, "+
			"which broke, hold",
			number(r.VerifiedLow), number(r.VerifiedHigh)))
	}
}

func unconfirmed(r Result) string {
	switch {
	case r.VerifiedLow == 0 && r.VerifiedHigh == 0:
		return "no rate was seen to hold or to break for certain"
	case r.VerifiedLow == 0:
		return "no rate was seen to hold for certain"
	}
	return "no rate was seen to break for certain"
}
