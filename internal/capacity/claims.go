package capacity

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tare/internal/budget"
	"tare/internal/signature"
	"tare/internal/stat"
	"tare/internal/unit"
)

// This file is the only place that decides what a report may say of a capacity. Every statement is a field of Result,
// or a finding; a field that is not set here is not known, and no output can say otherwise. What licenses each:
//
//	statement                 evidence
//	holds VerifiedLow         confirmations at that rate held, for at least leastHeld at a stretch; at most 2 % of their
//	                          calls ended badly (beyond the share that fails at any rate), also after the step. Nothing
//	                          broke that was tried later at that rate or below, nor earlier after a longer time
//	fails VerifiedHigh        confirmations at that rate broke; nothing that was tried later at that rate or above held
//	                          for as long, and nothing else in the search contradicts it (doubtInUpperSide)
//	number with interval      both of these, at most 1.6 times apart. The interval is wider by the margins of margins.go
//	at least                  without a number: VerifiedLow less its margins; or, where nothing broke, a step of the
//	                          ramp that the target kept up with, with single calls answered afterwards; where the
//	                          generator ended the search, a step of at least 1000 calls and two seconds
//	at most                   without a number: VerifiedHigh; or a step of lastStretch in which the slowest calls waited
//	                          longer and longer, and others did not (someWait)
//	broke above               the target stayed down: the fastest step that it kept up with before. Not a bound: it may
//	                          have served saved-up allowance
//	SLO rate                  a step at which the objective held, that the target kept up with, not beyond the capacity
//	burst                     a class that saves up, with a number
//	class                     signature.Classify over the calls
//	recovers, stays down      the recovery probe, when it was complete
//	whose limit it is         one caller alone at a rate that all together were granted at the same time: refused, or
//	                          granted as well
//	budget verdicts           Interval: an unknown side is infinite, so that a limit within the unknown is inconclusive

const (
	// resolution is how far from the capacity a rate has to be at least for a confirmation to tell.
	resolution = 0.01
	// mostBad is the share of calls, beyond the floor, that may end badly at a rate that is said to hold.
	mostBad = 0.02
	// farApart is the ratio of the rates that held and broke from which on there is no number between them.
	farApart = 1.6
	// fallsBehind is how much faster than a target's capacity a rate must be, as a share of it, for a step to show that it
	// is too fast.
	fallsBehind = 0.1
	// fewest is how many calls a step has to have for its rate to count where the generator ended the search: more than
	// limiters usually save up.
	fewest = 1000
	// wavers is how much the median response may change within a step for no reason, as a share of it.
	wavers = 0.5
)

// claim fills in all statements on the capacity.
func (r *Result) claim(t Trace, b base) {
	over, doubted := lastOverload(t), false
	ended := t.Stop == StopNoAnswer || t.Stop == StopFailing || t.Stop == StopMaxRate || t.Stop == StopClient
	if !ended && len(over) > 0 {
		doubted = r.broke(t, b, over)
	}
	switch {
	case t.Stop.Down():
		r.Broke = true
		r.BrokeAbove, _ = t.fastestKeptUp(anyLength)
	case !r.Broke:
		r.atLeast(t)
		r.Broke = r.Broke || r.AtLeast == 0 && !ended && slices.ContainsFunc(t.Steps, func(s Step) bool {
			return t.refusesMost(&s)
		})
	}
	r.findings(t, b, doubted)
}

// broke makes the statements on a target that broke. It reports whether a rate that broke is not believed to.
func (r *Result) broke(t Trace, b base, over []Step) (doubted bool) {
	f := judge(t, b, over)
	r.Broke, r.Signature, r.ErrorFloor = true, f.verdict, f.counted.interval()
	r.VerifiedLow, r.VerifiedHigh = t.bracket(over[0].Segment.Start, f.failing, t.leastHeld(f.verdict))
	if f.verdict.Class == signature.Unknown && f.verdict.Failure().Class == signature.Unknown {
		r.Signature.Met = t.failureBefore(b, over[0].Attempt, r.VerifiedHigh, f.verdict.Failure())
	}
	if why := r.doubtInUpperSide(t, b, f); r.VerifiedHigh > 0 && why != "" {
		r.warning("%s/s broke, but %s", number(r.VerifiedHigh), why)
		r.VerifiedHigh, doubted = 0, true
	}
	if note := t.warmth(r.VerifiedHigh).note(); note != "" && r.VerifiedHigh > 0 && !f.verdict.Method().Traits().Saves {
		r.warning("%s", note)
	}
	doubt, spare := r.doubtInConfirmations(t, over), 0.0
	if doubt != "" {
		spare = doubtful
	}
	least := r.VerifiedLow * (1 - shortfall(f.verdict)) * (1 - spare)
	if r.number(t, f, spare) {
		r.Burst = burst(t, f)
		if doubt != "" {
			r.warning("%s: the interval is %.0f %% wider on both sides", doubt, 100*doubtful)
		}
		return doubted
	}
	if !t.Stop.Down() {
		r.AtLeast = least
	}
	r.AtMost = r.VerifiedHigh
	return doubted
}

// failureBefore is how the target failed in the last overload before an attempt that says so: a later one may have been
// hardly more than the target takes. Only limits that somebody has set fail alike at all rates beyond them: of others,
// the attempt was not far above the rate that broke. The given failure is what is known otherwise.
func (t Trace) failureBefore(b base, attempt int, broke float64, otherwise signature.Failure) signature.Failure {
	last := t.overload(attempt)
	for attempt--; attempt > 0; attempt-- {
		over := t.overload(attempt)
		if len(over) == 0 {
			continue
		}
		f := judge(t, b, over).verdict.Failure()
		c, nearby := f.Class.Traits(), over[0].Rate < 2*broke && !t.losesMoreThan(last[0], 0.5)
		if c.Waits && !c.Limiter && f.Class != signature.Unknown && nearby || c.Limiter && !c.Waits {
			f.Certainty = signature.Likely // the attempt was given up for a reason
			return f
		}
	}
	return otherwise
}

// number states the capacity with its interval where the evidence licenses one.
func (r *Result) number(t Trace, f judgement, spare float64) bool {
	lo, hi := r.VerifiedLow, r.VerifiedHigh
	traits := f.verdict.Method().Traits()
	switch {
	case t.Stop.Down() || lo == 0 || hi == 0 || hi > lo*farApart:
		return false
	case f.Value <= 0:
		f.Estimate = stat.Estimate{Value: math.Sqrt(lo * hi), Lo: lo, Hi: hi, Level: level}
	}
	r.Rate, r.Lo, r.Hi, r.Level = f.Value, f.Lo, f.Hi, f.Level
	switch {
	// chance takes the last places below the rate that they allow on average
	case traits.Gradual && r.Rate > hi && r.Rate < hi*farApart:
		r.Lo = min(r.Lo, lo)
	case r.Rate < lo || r.Rate > hi:
		r.Rate, r.Lo, r.Hi = (lo+hi)/2, lo*(1-resolution), hi*(1+resolution)
	case traits.Falls: // what it did under overload says nothing
		r.Lo, r.Hi = lo*(1-resolution), hi*(1+resolution)
	case !traits.Saves:
		r.Lo = min(r.Lo, lo*(1-resolution))
	}
	r.Lo, r.Hi = min(r.Lo, r.Rate*(1-resolution/2), lo*(1-shortfall(f.verdict))), max(r.Hi, r.Rate*(1+resolution/2))
	if !traits.Saves {
		r.Hi = max(r.Hi, hi*(1+excess))
	}
	r.Lo, r.Hi = r.Lo*(1-spare), r.Hi*(1+spare)
	return true
}

// bracket is the highest rate that is known to hold and the lowest that is known to break, by the confirmations since
// the given instant. A rate counts as held only where it was held for long enough at a stretch.
func (t Trace) bracket(since time.Duration, floor float64, enough time.Duration) (lo, hi float64) {
	var b bracket
	if t.farBelow().share() >= mostRare {
		for _, s := range t.Steps {
			if s.Note == farNote {
				since = max(since, s.Segment.End) // what failed before was judged without knowing how many fail anyway
			}
		}
	}
	for _, s := range t.Steps {
		if s.Segment.Start < since || !s.confirmation() {
			continue
		}
		if bad, n := t.badCalls(s); *s.Passed && (t.losesMoreThan(s, floor+mostBad) || t.someWait(s) > 0) ||
			!*s.Passed && s.Note == failNote && float64(bad) <= excused(n)+floor*float64(n) {
			continue // how the calls ended says otherwise: those that were open at the step's end, or waited long, too
		}
		if !*s.Passed || s.Length() >= enough {
			b.add(trial{s.Rate, *s.Passed, s.Length()})
		}
	}
	return b.lo, b.hi
}

// leastHeld is how long a rate has to be held at a stretch to be called one that holds: a service may only seem to keep
// up for a while, and a target that collapses does so when chance has it. Where rates are confirmed with a queue that
// stands, that is so from the beginning.
func (t Trace) leastHeld(v signature.Verdict) time.Duration {
	switch traits := v.Method().Traits(); {
	case traits.Falls:
		return 20 * time.Second
	case v.Class == signature.Unknown, traits.Served && t.Allowance == 0:
		return 10 * time.Second
	}
	return 0
}

// sloRate is the highest rate at which the objective held, and that the target kept up with: a queue takes a while to
// reach the objective. No rate beyond the capacity is one. Beside it is the lowest one above it at which the objective
// did not hold.
func (r *Result) sloRate(t Trace) {
	var missed, crowded []float64
	varied := baseOf(t).varied()
	for i := range t.Steps {
		switch s := &t.Steps[i]; {
		case s.Role != RoleSLO || s.Passed == nil:
		case !*s.Passed && varied && t.inCrowd(*s):
			crowded = append(crowded, s.Rate)
		case !*s.Passed:
			missed = append(missed, s.Rate)
		case t.keptUp(s) && (!r.Broke || r.Rate > 0 && s.Rate <= r.Hi):
			r.SLORate = max(r.SLORate, s.Rate)
		}
	}
	for _, rate := range missed {
		if rate > r.SLORate && (r.SLOFails == 0 || rate < r.SLOFails) {
			r.SLOFails = rate
		}
	}
	if t.SLO > 0 && t.Stop != StopLadder && r.SLORate == 0 && r.SLOFails == 0 {
		r.SLOUnknown = t.sloUnknown()
		if len(crowded) > 0 {
			r.SLOUnknown = "other work kept the processors busy when it was missed at " + unit.PerSecond(slices.Min(crowded))
		}
	}
}

// sloUnknown says why no rate is known to hold the latency objective or to miss it.
func (t Trace) sloUnknown() string {
	var tried []string
	for i := range t.Steps {
		if s := &t.Steps[i]; s.Role == RoleSLO {
			tried = append(tried, unit.PerSecond(s.Rate))
		}
	}
	switch {
	case len(tried) > 0:
		return "noise left it open at " + strings.Join(tried, ", ")
	case t.Reason != "":
		return "no rate was tried for it: " + t.Reason
	}
	return "no rate was tried for it, since none was seen to hold"
}

// A FindingKind names something that was seen beside the class of a failure. Its word is the same in all outputs.
type FindingKind string

// The kinds of findings.
const (
	ColdStart    FindingKind = "cold-start"    // the first calls were slower than later ones at the same rate
	Autoscaling  FindingKind = "autoscaling"   // the capacity rose while the load went on
	SpentCredits FindingKind = "spent-credits" // the capacity fell while the load went on
	StaysDown    FindingKind = "stays-down"    // single calls are not answered after the load has stopped
	// LimitPerCaller and LimitShared say whose limit it is, of a target with several callers.
	LimitPerCaller FindingKind = "limit-per-caller"
	LimitShared    FindingKind = "limit-shared"
)

// A Finding is one of them, in a sentence.
type Finding struct {
	Kind     FindingKind
	Sentence string
}

func (r *Result) findings(t Trace, b base, doubted bool) {
	// calls that come at fixed distances meet a clock in few of its phases: at another rate, in others
	phase := 0.0
	if over := lastOverload(t); len(over) > 0 {
		from, to := span(over)
		phase, _ = signature.Beat(t.ends(from, to))
	}
	switch first, single := t.slowFirst(b), t.singly(); {
	case first == 0, first.Seconds() <= b.p50.Seconds()+phase:
	case single > 0 && single.Seconds() > faster*first.Seconds():
		r.warning("calls that came one at a time took %s before the load and %s after it, and at higher rates %s: see what "+
			"is answered there", short(first), short(single), short(b.p50))
	default:
		r.Findings = append(r.Findings, Finding{ColdStart, fmt.Sprintf("the first calls took %s, and later ones at higher "+
			"rates %s", short(first), short(b.p50))})
	}
	if !r.Signature.Method().Traits().Saves { // else what was saved up explains it
		r.Findings = append(r.Findings, t.changes(r.Signature.Class, b.floor, doubted)...)
	}
	if f := t.callers(r, b.floor); f != nil {
		r.Findings = append(r.Findings, *f)
	}
	if r.Wedged {
		r.Findings = append(r.Findings, Finding{StaysDown, t.Recovery.unanswered()})
	}
}

// slowFirst is how long the first calls took, where that is much longer than calls that came at higher rates took, and
// no chance; else 0.
func (t Trace) slowFirst(b base) time.Duration {
	if len(t.Steps) == 0 || b.p50 == 0 {
		return 0
	}
	first := t.Steps[0]
	from, to := first.Segment.Start, first.Segment.Start+first.Length()/2
	median, ok := t.median(from, to)
	if base := b.p50.Seconds(); !ok || math.IsInf(median, 1) || median <= 2*base || median <= base+0.01 ||
		!slowerAtFirst(responses(t.due(from, to), 0), b.later) {
		return 0
	}
	return time.Duration(median * 1e9)
}

// slowerAtFirst reports whether calls took longer at first than later: by the ranks of all of them, and so that later
// ones, of which as many are taken at a time, were hardly ever as slow again once they were fast. Some calls take long
// at any time, and a busy host makes some slow that follow one another.
func slowerAtFirst(first, later []float64) bool {
	const sure = 0.99
	test, err := stat.HodgesLehmannShift(later, first, sure)
	if err != nil || test.P > 1-sure {
		return false
	}
	slow, fast, again := faster*stat.Quantile(first, 0.5), 0, 0
	for some := range slices.Chunk(later, len(first)) {
		switch is := stat.Quantile(some, 0.5) >= slow; {
		case !is:
			fast++
		case fast > 0 && len(some) == len(first):
			again++
		}
	}
	return 10*again <= fast
}

// singly is the median response of the last five single calls after the load, of a target that came back; else 0.
func (t Trace) singly() time.Duration {
	if t.Recovery == nil || !t.Recovery.Recovered || len(t.Recovery.Probes) < 5 {
		return 0
	}
	var took []float64
	for _, p := range t.Recovery.Probes[len(t.Recovery.Probes)-5:] {
		took = append(took, float64(p.Response))
	}
	return time.Duration(stat.Quantile(took, 0.5))
}

func short(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// apart is how many times as much a target does at least for a change to be said: more than confirmations err.
const apart = 1.1

// changes finds rates that held after they or lower ones had broken, and the other way round, for as long; what a
// service that was kept busy did before and after; and overloads that it did more in than in an earlier one. What the
// generator's host explains shows no change of the target; nor does a rate that broke where no rate is known to break.
func (t Trace) changes(class signature.Class, floor float64, doubted bool) []Finding {
	if len(t.Steps) == 0 {
		return nil
	}
	var up, down *Finding
	if class != signature.Unknown && !class.Traits().Places { // of few places, the next call may find all taken by chance
		up = t.rose(floor)
	}
	var steps []Step
	for _, s := range t.Steps {
		if doubted || !s.confirmation() || !*s.Passed && t.hostExplains(s, floor) {
			continue
		}
		for _, was := range steps {
			since := (s.Segment.Start - t.Steps[0].Segment.Start).Seconds()
			switch {
			case *s.Passed && !*was.Passed && s.Rate >= apart*was.Rate && s.Length() >= was.Length():
				up = &Finding{Autoscaling, fmt.Sprintf("%s/s broke at first, and %s/s held %.0f s after the beginning: the "+
					"capacity rose meanwhile", number(was.Rate), number(s.Rate), since)}
			case !*s.Passed && *was.Passed && apart*s.Rate <= was.Rate && was.Length() >= s.Length():
				down = &Finding{SpentCredits, fmt.Sprintf("%s/s held at first, and %s/s broke %.0f s after the beginning: the "+
					"capacity fell meanwhile", number(was.Rate), number(s.Rate), since)}
			}
		}
		steps = append(steps, s)
	}
	at, before, after := t.shifted()
	if t.busyInCrowd(at, after > before) {
		after = before
	}
	kept := fmt.Sprintf("kept busy, it answered %s/s at first, and %s/s from %.0f s after the beginning on",
		number(before), number(after), (at - t.Steps[0].Segment.Start).Seconds())
	switch {
	case after > before:
		up = &Finding{Autoscaling, kept}
	case after < before:
		down = &Finding{SpentCredits, kept}
	}
	var out []Finding
	for _, f := range []*Finding{up, down} {
		if f != nil {
			out = append(out, *f)
		}
	}
	return out
}

// hostExplains reports whether a step that broke may have broken because calls came together that the generator or its
// host had held back, or because other work kept the target from its processors.
func (t Trace) hostExplains(s Step, floor float64) bool {
	bad, n := countBad(t.due(s.Segment.Start, s.Segment.End))
	beyond := float64(bad) - floor*float64(n)
	a := audit(t.due(s.Segment.Start, s.Segment.End), s, t.Read)
	return beyond > excused(n) && beyond <= float64(perDisplaced*a.Bunched) || t.inCrowd(s)
}

// busyInCrowd reports whether other work may have kept the target from its processors while it was kept busy and did
// less than before or after the given instant: before it, where it did more later.
func (t Trace) busyInCrowd(at time.Duration, later bool) bool {
	return slices.ContainsFunc(t.Steps, func(s Step) bool {
		return s.Role == RoleBusy && (s.Segment.Start < at) == later && t.inCrowd(s)
	})
}

// rose finds an overload in which the target did less, for a while, than in the last one, and than a rate that held
// since.
func (t Trace) rose(floor float64) *Finding {
	over := lastOverload(t)
	if len(over) == 0 {
		return nil
	}
	now, _ := t.busyFrom(over)
	for _, s := range t.Steps {
		if s.Role != RoleOverload || s.Attempt >= over[0].Attempt {
			continue
		}
		was, length := t.busyFrom(t.overload(s.Attempt))
		if most := apart * was.Hi; length < longEnoughBusy || most <= 0 || s.Rate < most || now.Lo < most ||
			t.hostExplains(s, floor) {
			continue
		}
		i := slices.IndexFunc(t.Steps, func(s Step) bool {
			return s.Segment.Start >= over[0].Segment.Start && s.confirmation() && *s.Passed && s.Rate >= apart*was.Hi
		})
		if i >= 0 {
			held := t.Steps[i]
			return &Finding{Autoscaling, fmt.Sprintf("%s/s broke at first: kept busy, it answered %s/s for %.0f s; and %s/s "+
				"held %.0f s after the beginning: the capacity rose meanwhile", number(s.Rate), number(was.Value),
				length.Seconds(), number(held.Rate), (held.Segment.Start - t.Steps[0].Segment.Start).Seconds())}
		}
	}
	return nil
}

// Interval is what the search licenses to say of the capacity, for budgets: an open side is infinite, a value that is
// not known is NaN. how says what it rests on where that is not a number with an interval.
func (r Result) Interval() (x budget.Interval, how string) {
	unknown := budget.Interval{Value: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}
	switch x = (budget.Interval{Value: r.AtLeast, Lo: r.AtLeast, Hi: math.Inf(1)}); {
	case !r.Valid && r.AtLeast == 0:
	case r.Rate > 0:
		return budget.Interval{Value: r.Rate, Lo: r.Lo, Hi: r.Hi}, ""
	case r.AtLeast > 0 && r.AtMost > 0:
		x.Hi = r.AtMost
		return x, "it lies between a rate that held and one that broke"
	case r.AtLeast > 0 && r.Broke:
		return x, "a rate that held: how much more it takes is not known"
	case r.AtLeast > 0:
		return x, "it did not break"
	case r.AtMost > 0:
		return budget.Interval{Value: r.AtMost, Lo: 0, Hi: r.AtMost}, "a rate that broke: which lower one holds is not known"
	case r.Broke:
		return unknown, "it broke, and no rate is known to hold"
	}
	return unknown, ""
}

// atLeast states the fastest step that the target kept up with, where nothing broke and single calls were answered
// afterwards. Where the generator ended the search, or some calls waited longer and longer at another rate, only steps
// count that are long enough for calls that were saved up, or a queue that fills, not to explain them.
func (r *Result) atLeast(t Trace) {
	enough := anyLength
	fails, mayHave := t.someWaitedFrom()
	if t.Stop == StopClient || mayHave {
		enough = longEnough
	}
	best, behind := t.fastestKeptUp(enough)
	if behind > best {
		r.because(fmt.Sprintf("at %s/s answers came later and later, or failed, so that it may be too fast for the target",
			number(behind)))
	}
	if r.Wedged {
		r.because(t.Recovery.unanswered())
		return
	}
	if best == 0 && t.Stop == StopClient {
		if short, _ := t.fastestKeptUp(anyLength); short > 0 {
			r.because(fmt.Sprintf("the target answered up to %s/s, which was offered too briefly to say that it holds: it may "+
				"have served a burst allowance", number(short)))
		}
	}
	r.AtLeast = best
	if fails > best {
		r.Broke, r.VerifiedLow, r.VerifiedHigh, r.AtMost = true, best, fails, fails
		r.Signature.Evidence = []string{someWaited(fails)}
	}
}

// anyLength accepts every step.
func anyLength(*Step) bool { return true }

// longEnough reports whether a step cannot be explained by calls that were saved up.
func longEnough(s *Step) bool { return s.Segment.Offered >= fewest && s.Length() >= longerStep-poll }

func (r *Result) because(reason string) {
	if r.Reason != "" {
		r.Reason += "; "
	}
	r.Reason += reason
}

// fastestKeptUp is the fastest step of the ramp, or overload that was none, that the target kept up with; behind is the
// slowest that passed, but that it did not keep up with. Steps are short: a target that can take half of a rate may
// well end one with all calls answered soon after, and that is not a rate that it holds. Only steps count that are
// enough.
func (t Trace) fastestKeptUp(enough func(*Step) bool) (best, behind float64) {
	floor := baseOf(t).floor
	var refused []*Step // most of whose calls failed
	for i := range t.Steps {
		s := &t.Steps[i]
		if t.refusesMost(s) {
			refused = append(refused, s)
			if best >= s.Rate {
				best = 0
			}
		}
		if s.Passed == nil || s.ClientLimited || s.Role != RoleRamp && s.Role != RoleOverload && !confirms(s.Role) {
			continue
		}
		switch {
		case *s.Passed && confirms(s.Role):
		case !*s.Passed:
			if best >= s.Rate {
				best = 0 // it held before, and does not any more
			}
		case !enough(s), slices.ContainsFunc(refused, func(before *Step) bool {
			return before.Rate <= s.Rate && before.Length() >= s.Length() // it may have been a window's turn
		}):
		case t.keptUp(s) && t.someWait(*s) == 0 && !t.losesMoreThan(*s, floor+mostBad):
			best = max(best, s.Rate)
		case behind == 0 || s.Rate < behind:
			behind = s.Rate
		}
	}
	return best, behind
}

// refusesMost reports whether most calls of a step failed for longer than a moment.
func (t Trace) refusesMost(s *Step) bool {
	return s.Rate > 0 && !s.ClientLimited && s.Length() >= longerStep/2 && t.losesMoreThan(*s, 0.5)
}

// keptUp reports whether the responses of the last quarter of a step were about those of its first. At a rate above the
// capacity they grow by rate ÷ capacity − 1 per second.
func (t Trace) keptUp(s *Step) bool {
	length := s.Length()
	first, early := t.median(s.Segment.Start, s.Segment.Start+length/4)
	last, late := t.median(s.Segment.End-length/4, s.Segment.End)
	if !early || !late || math.IsInf(first, 1) {
		return true // too few calls to say otherwise; or most fail at any rate
	}
	return last-first <= wavers*first+fallsBehind*0.75*length.Seconds()
}

// median returns the median response, in seconds, of the calls that were due between two instants. An unanswered call
// counts with the time waited for it, a failed one as infinitely long. ok is false without calls.
func (t Trace) median(from, to time.Duration) (seconds float64, ok bool) {
	var response []float64
	for c := range t.due(from, to) {
		switch {
		case c.Done == 0:
			response = append(response, (t.Read - c.Intended).Seconds())
		case c.Outcome.Good():
			response = append(response, c.Response().Seconds())
		default:
			response = append(response, math.Inf(1))
		}
	}
	if len(response) == 0 {
		return 0, false
	}
	slices.Sort(response)
	return stat.SortedQuantile(response, 0.5), true
}
