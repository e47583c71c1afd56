package limit

import (
	"slices"

	"tare/internal/signature"
)

// crowdedFrom is the share of their time from which on processors are busy enough to make each call wait for one.
const crowdedFrom = 0.9

// Failure is how the target failed. Where others kept the processors busy meanwhile, calls wait and fewer are served
// whatever the target does: a failure that only this shows is withheld, and this excludes none.
func (e *Evidence) Failure() signature.Failure {
	out := e.Signature.Failure()
	why := e.othersMeanwhile()
	if why == "" {
		return out
	}
	all := len(out.Excluded)
	out.Excluded = slices.DeleteFunc(slices.Clone(out.Excluded), func(x signature.Exclusion) bool { return x.ByTimes })
	byWaits := []signature.Class{signature.Shedding, signature.Collapse, signature.Pauses}
	switch {
	case out.Certainty == signature.Likely && slices.Contains(byWaits, out.Class):
		out.Class, out.Certainty = signature.Unknown, signature.NotKnown
		out.Evidence = out.Evidence[min(1, len(out.Evidence)):] // the first says that it is of that class
	case out.Class != signature.Unknown || len(out.Excluded) == all:
		return out
	}
	out.Evidence = append([]string{why + ", which makes calls wait whatever the target does"}, out.Evidence...)
	return out
}

// othersMeanwhile says that other work kept the processors busy in the overload, a clause; "" where that was not seen.
func (e *Evidence) othersMeanwhile() string {
	others, known := e.othersInOverload()
	switch waited := e.Overload.WaitedShare(); {
	case known && others >= partly:
		return "other work took " + percent(others) + " of the processors' time meanwhile"
	case !known && waited >= signature.MostQueued:
		return "the generator itself had no processor for " + percent(waited) + " of the time, and what the target had is " +
			"not known"
	case !known && e.Crowded:
		return "the processors were " + percent(e.Overload.BusyShare()) + " busy meanwhile, as far as is known mostly with " +
			"other work"
	}
	return ""
}

// othersInOverload is the share of the processors' time that neither generator nor target used in the overload, where
// hardly any was left; 0 where some was. known: the target's is. It used as much for a call as in the experiment with
// the most in flight.
func (e *Evidence) othersInOverload() (others float64, known bool) {
	c := curveOf(e.Experiments)
	x := c.full()
	if x == nil || x.Account == nil || x.Account.CPU == nil {
		return 0, false
	}
	if e.Overload.BusyShare() < crowdedFrom {
		return 0, true
	}
	calls, account := total(x.Counts)+x.Bad, x.Account
	if calls == 0 || x.Seconds <= 0 || account.Seconds <= 0 {
		return 0, false
	}
	each := *account.CPU / account.Seconds * x.Seconds / float64(calls)
	return e.Overload.OthersShare(each * float64(e.Overload.Calls)), true
}
