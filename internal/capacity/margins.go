package capacity

import (
	"cmp"
	"fmt"

	"tare/internal/signature"
	"tare/internal/unit"
)

// This file says by how much an interval is wider than the confirmations that it rests on, and which numbers are
// withheld in spite of confirmations. The sizes are such that over composed worlds (rigs/cmd/tare-simulate -worlds)
// about 1 % of the intervals exclude the truth by more than 5 %.

const (
	// excess is the share by which the rate that a target holds for good may be above one that broke: a slow spell makes
	// a rate break. What a limiter lets pass does not depend on that.
	excess = 0.05
	// doubtful is the share by which an interval is wider on both sides where confirmations are in doubt.
	doubtful = 0.1
	// manyTrials is the number of confirmations from which on they are in doubt: a search makes more only where the first
	// ones did not agree.
	manyTrials = 6
	// keptUpBefore: a rate that broke is not believed if the target kept up with this many times as much before.
	keptUpBefore = 2
	// fewestBroke is how many calls come due at least at a rate that is said to break.
	fewestBroke = 10
	// worthOfCalls is a time in seconds. A search that has offered more calls than the limiter would let pass in that time
	// has not understood the limiter, unless it is a window, which takes long.
	worthOfCalls = 180
)

// shortfall is the share by which the rate that a target holds for good may be below one that it held for as long as a
// search lasts. A target collapses at a random time, neighbours make it slow now and then, and a limit that refuses few
// calls at first refuses some below the rate that seemed to hold.
func shortfall(v signature.Verdict) float64 {
	switch t := v.Method().Traits(); {
	case t.Falls:
		return 0.2
	case t.Places, v.Class.Traits().Drops, v.Class == signature.Unknown:
		return 0.13
	case t.Served:
		return 0.06
	}
	return 0
}

// doubtInConfirmations says why the confirmations are in doubt; it is empty where they are not.
func (r *Result) doubtInConfirmations(t Trace, over []Step) string {
	var highest, lowest float64 // that held, and that broke, since the last overload
	bad, n, trials := 0, 0, 0
	for _, s := range t.Steps {
		if !s.confirmation() {
			continue
		}
		if trials++; s.Segment.Start < over[0].Segment.Start {
			continue
		}
		switch {
		case !*s.Passed && (lowest == 0 || s.Rate < lowest):
			lowest = s.Rate
		case *s.Passed:
			highest = max(highest, s.Rate)
		}
		if *s.Passed && s.Rate > 0.99*r.VerifiedLow && s.Rate < 1.01*r.VerifiedLow {
			b, due := t.badCalls(s)
			bad, n = bad+b, n+due
		}
	}
	switch {
	case lowest > 0 && highest >= lowest:
		return fmt.Sprintf("%s/s held, and %s/s broke, which is no higher", number(highest), number(lowest))
	case float64(bad) > 0.01*float64(n):
		return fmt.Sprintf("%d of %d calls at %s/s did not end well", bad, n, number(r.VerifiedLow))
	case trials >= manyTrials:
		return fmt.Sprintf("%d confirmations were needed", trials)
	}
	return ""
}

// doubtInUpperSide says why the upper side of what was confirmed is not believed; it is empty where it is.
func (r *Result) doubtInUpperSide(t Trace, b base, f judgement) string {
	v := f.verdict
	traits := v.Method().Traits()
	if !traits.Saves { // what a limiter lets pass does not depend on how fast it answers
		if why := t.warmth(r.VerifiedHigh).doubt(cmp.Or(r.VerifiedLow, r.VerifiedHigh)); why != "" {
			return why
		}
	}
	if n := t.offeredAt(r.VerifiedHigh); n < fewestBroke {
		return fmt.Sprintf("only %s came due at that rate", unit.Count(n, "call"))
	}
	if traits.Saves && !traits.Windowed && float64(t.log().Len()) > worthOfCalls*r.VerifiedHigh {
		return fmt.Sprintf("the search offered %d calls, and found no limit that explains all of their answers",
			t.log().Len())
	}
	if why := r.doubtInCrowd(t, b, f); why != "" {
		return why
	}
	served := traits.Served && !traits.Limiter && !traits.Periodic && v.Class != signature.Unknown
	unrecovered := served || r.heldSlowly(t, b)
	if before := t.fastestPassedRamp(); unrecovered && t.Allowance == 0 && before > keptUpBefore*r.VerifiedHigh {
		return fmt.Sprintf("the target kept up with %s/s for a short time before: it may be able to take more when it has "+
			"recovered from overload", number(before))
	}
	if well := f.Value * (1 - f.failing); !traits.Falls && well > keptUpBefore*r.VerifiedHigh {
		return fmt.Sprintf("%s/s were answered well under overload: calls may fail there that have nothing to do with the "+
			"rate", number(well))
	}
	if r.VerifiedLow == 0 && f.failing >= mostRare {
		return "no rate was seen to hold, and some calls fail at any rate: that may have been chance"
	}
	return ""
}

// doubtInCrowd says why a rate that broke while other work kept the processors busy is not believed to break without
// that work; it is empty where it is.
func (r *Result) doubtInCrowd(t Trace, b base, f judgement) string {
	traits := f.verdict.Method().Traits()
	// The rates of other limits, of places and of queues that drop calls among them, depend on how long calls take.
	byRate := f.verdict.Class != signature.Unknown && traits.Limiter && !traits.Places && (!traits.Served || f.isEven(r))
	if byRate || !t.brokeInCrowd(r.VerifiedHigh) {
		return ""
	}
	var did string
	switch most := t.mostAnswered(); {
	case b.varied() || r.heldSlowly(t, b):
		did = "some calls took long at lower rates, too"
	case most > apart*r.VerifiedHigh && !traits.Falls && !traits.Saves && !traits.Gradual:
		did = "in an overload the target answered at least " + number(most) + "/s"
	default:
		return ""
	}
	return "other work kept the processors busy then, and " + did + ": the target may be able to take more without that " +
		"work"
}

// isEven reports whether the target, kept busy, answered at a pace that agrees with the confirmations, and that is more
// even than one that depends on other work.
func (j judgement) isEven(r *Result) bool {
	return j.Half() < steady && j.Value >= r.VerifiedLow && j.Value <= r.VerifiedHigh
}

// mostAnswered is how many calls per second the target answered well at least, in the overload in which it answered the
// most.
func (t Trace) mostAnswered() (most float64) {
	over := lastOverload(t)
	for len(over) > 0 {
		most = max(most, overloaded(t, over).Lo)
		over = t.overload(over[0].Attempt - 1)
	}
	return most
}

// offeredAt is how many calls came due in the confirmations in which a rate broke.
func (t Trace) offeredAt(rate float64) (n int) {
	for _, s := range t.Steps {
		if s.confirmation() && !*s.Passed && s.Rate == rate {
			n += s.Segment.Offered
		}
	}
	return n
}

// brokeInCrowd reports whether other work may have kept the target from its processors each time that a rate broke.
func (t Trace) brokeInCrowd(rate float64) bool {
	for _, s := range t.Steps {
		if s.confirmation() && !*s.Passed && s.Rate == rate && !t.inCrowd(s) {
			return false
		}
	}
	return true
}

// heldSlowly reports whether responses at the rate that held took over three times as long as well below it: calls were
// still waiting from before, or the target had not recovered.
func (r *Result) heldSlowly(t Trace, b base) bool {
	for _, s := range t.Steps {
		if !s.confirmation() || !*s.Passed || s.Rate != r.VerifiedLow {
			continue
		}
		if m, ok := t.median(s.Segment.Start, s.Segment.End); ok && b.p50 > 0 && m > 3*b.p50.Seconds() {
			return true
		}
	}
	return false
}

// fastestPassedRamp is the fastest step of the ramp that the target kept up with.
func (t Trace) fastestPassedRamp() float64 {
	best := 0.0
	for _, s := range t.Steps {
		if s.Role != RoleRamp || s.Passed == nil || !*s.Passed || s.ClientLimited {
			continue
		}
		if bad, n := t.badCalls(s); n > 0 && float64(bad) <= mostBad*float64(n) {
			best = max(best, s.Rate)
		}
	}
	return best
}
