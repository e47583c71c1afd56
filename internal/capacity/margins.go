package capacity

import (
	"fmt"

	"tare/internal/signature"
)

// This file says by how much an interval is wider than the confirmations that it rests on, and which numbers are
// withheld in spite of confirmations. The sizes are such that over composed worlds (lab/cmd/tare-simulate -worlds) no
// more than 1 % of the intervals exclude the truth by more than 5 %.

const (
	// excess is by how much, as a share, the rate that a target holds for good may be above one that broke: a slow spell
	// makes it break. What a limiter lets pass does not depend on that.
	excess = 0.05
	// doubtful is by how much, as a share, an interval is wider on both sides where confirmations are in doubt.
	doubtful = 0.1
	// manyTrials is the number of confirmations from where on they are in doubt: each was needed because others had not
	// sufficed.
	manyTrials = 6
	// keptUpBefore is how many times the upper end of an interval the target has kept up with before, from where on the
	// interval is not believed.
	keptUpBefore = 2
	// worthOfCalls is for how many seconds the calls that were offered would have lasted at the capacity, from where on
	// a search for the rate of a limiter has not understood it; that of a window takes long.
	worthOfCalls = 180
)

// shortfall is by how much, as a share, the rate that a target holds for good may be below one that it held for as long
// as a search lasts: one that collapses does so when chance has it, slow spells of what is shared with others come
// seldom, and what is refused little by little is refused a little below the rate that seems to hold, too.
func shortfall(v signature.Verdict) float64 {
	switch t := v.Method().Traits(); {
	case t.Falls:
		return 0.2
	case t.Places, v.Class == signature.Shedding, v.Class == signature.Unknown:
		return 0.13
	case t.Served:
		return 0.06
	}
	return 0
}

// doubts reports whether confirmations since the last overload contradict each other, as one held at a rate at which,
// or below which, another broke; or whether more than 1 % of the calls at the rate that held ended badly.
func (r *Result) doubts(t Trace, over []Step) bool {
	var highest, lowest float64 // that held, and that broke
	bad, n, trials := 0, 0, 0
	for _, s := range t.Steps {
		if s.Passed == nil || !confirms(s.Role) || s.ClientLimited {
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
	return lowest > 0 && highest >= lowest || float64(bad) > 0.01*float64(n) || trials >= manyTrials
}

// distrust says why the upper side of what was confirmed is not believed; it is empty where it is.
func (r *Result) distrust(t Trace, b base, v signature.Verdict) string {
	traits := v.Method().Traits()
	if n := t.answered(); n < warmAfter && !traits.Saves {
		return fmt.Sprintf("the target had answered only %d calls by then: it may be able to take more once it is warm. "+
			"A longer max_time tells", n)
	}
	if traits.Saves && !traits.Windowed && float64(len(t.Calls)) > worthOfCalls*r.VerifiedHigh {
		return fmt.Sprintf("the search offered %d calls, and found no limit that explains all of their answers", len(t.Calls))
	}
	served := traits.Served && !traits.Limiter && !traits.Periodic && v.Class != signature.Unknown
	unrecovered := served || r.heldSlowly(t, b)
	if before := t.fastestHeld(); unrecovered && t.Allowance == 0 && before > keptUpBefore*r.VerifiedHigh {
		return fmt.Sprintf("the target kept up with %s/s for a short time before: it may be able to take more when it has "+
			"recovered from overload", number(before))
	}
	return ""
}

// heldSlowly reports whether responses at the rate that held took several times as long as well below it: calls waited
// from before, or the target had not recovered.
func (r *Result) heldSlowly(t Trace, b base) bool {
	for _, s := range t.Steps {
		if !confirms(s.Role) || s.Passed == nil || !*s.Passed || s.Rate != r.VerifiedLow {
			continue
		}
		if m, ok := t.median(s.Segment.Start, s.Segment.End); ok && b.p50 > 0 && m > 3*b.p50.Seconds() {
			return true
		}
	}
	return false
}

// fastestHeld is the fastest step of the ramp that the target kept up with.
func (t Trace) fastestHeld() float64 {
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
