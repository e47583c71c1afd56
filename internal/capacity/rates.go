package capacity

import (
	"slices"
	"time"
)

const (
	// ratedFor and ratedCalls are how long, and for how many calls, a rate is offered that a budget names; longestRated
	// bounds both.
	ratedFor, ratedCalls, longestRated = 5 * time.Second, 4000, 30 * time.Second
)

// rates offers the rates that budgets name, from the lowest on, as long as they held in the search and time is left:
// what a target does beyond is known from the search.
func (r *session) rates() error {
	for _, rate := range slices.Compact(slices.Sorted(slices.Values(r.o.Rates))) {
		d := min(lasting(rate, ratedFor, ratedCalls), longestRated)
		if rate > max(r.fastest, r.lasted) || d+r.o.Timeout > r.remaining() {
			return nil
		}
		if err := r.drain("before a rate that a budget names"); err != nil {
			return err
		}
		if _, err := r.offer(RoleRate, rate, d, nil); err != nil {
			return err
		}
	}
	return nil
}
