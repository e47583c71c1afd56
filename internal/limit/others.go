package limit

import (
	"fmt"
	"slices"

	"tare/internal/signature"
)

// crowdedFrom is the share of their time from which on processors are busy enough to make each call wait for one.
const crowdedFrom = 0.9

// Failure is how the target failed. Where others kept the processors busy meanwhile, calls wait and fewer are served
// whatever the target does: a failure that only this shows is withheld.
func (e *Evidence) Failure() signature.Failure {
	out := e.Signature.Failure()
	byWaits := []signature.Class{signature.Shedding, signature.Collapse, signature.Pauses}
	others := e.othersInOverload()
	if others < partly || out.Certainty != signature.Likely || !slices.Contains(byWaits, out.Class) {
		return out
	}
	out.Class, out.Certainty = signature.Unknown, signature.NotKnown
	out.Evidence = append([]string{fmt.Sprintf("other work took %s of the processors' time meanwhile, which makes calls "+
		"wait whatever the target does", percent(others))}, out.Evidence...)
	return out
}

// othersInOverload is the share of the processors' time that neither generator nor target used in the overload, where
// hardly any was left; 0 where some was, or where that is not known. The target used as much for a call as in the
// experiment with the most in flight.
func (e *Evidence) othersInOverload() float64 {
	c := curveOf(e.Experiments)
	x := c.full()
	if x == nil || x.Account == nil || x.Account.CPU == nil || e.Overload.BusyShare() < crowdedFrom {
		return 0
	}
	calls, account := total(x.Counts)+x.Bad, x.Account
	if calls == 0 || x.Seconds <= 0 || account.Seconds <= 0 {
		return 0
	}
	each := *account.CPU / account.Seconds * x.Seconds / float64(calls)
	return e.Overload.OthersShare(each * float64(e.Overload.Calls))
}
