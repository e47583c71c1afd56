package reference

import (
	"errors"
	"time"

	"tare/areas/decision/model"
	"tare/internal/clock"
)

// The outcomes of operations that the history knows. Operations that a guard refused were never done: they do not
// count.
const (
	outcomeSuccess      = "Success"
	outcomeFailure      = "Failure"
	outcomeFailureGuard = "Failure_Guard"
)

// An operation is one row of the operations history.
type operation struct {
	actor, name, target string
	outcome             string
	end                 time.Time
}

// A history is what control loops have done. ONAP keeps it in a database table that the runtime writes when an
// operation ends. Asking for a decision adds nothing to it, so a limit that holds at the first request of a soak holds
// at its last.
type history struct {
	clock clock.Clock
	rows  []operation
}

// errUnknown is the result of a count whose operation is not fully named: the attribute has no value, so the rule is
// indeterminate.
var errUnknown = errors.New("actor, operation or target is missing")

// count returns how many operations ended within the window and were not refused by a guard.
func (h *history) count(b *bags, window time.Duration) (int, error) {
	if len(b[attrActor]) != 1 || len(b[attrOperation]) != 1 || len(b[attrTarget]) != 1 {
		return 0, errUnknown
	}
	now := h.clock.Now()
	from := now.Add(-window)
	n := 0
	for i := range h.rows {
		r := &h.rows[i]
		if r.outcome != outcomeFailureGuard && r.actor == b[attrActor][0] && r.name == b[attrOperation][0] &&
			r.target == b[attrTarget][0] && !r.end.Before(from) && !r.end.After(now) {
			n++
		}
	}
	return n, nil
}

const (
	// frequencyWindow is the time window of the frequency limiters: timeWindow 30, timeUnits day.
	frequencyWindow = 30 * 24 * time.Hour
	// recent is how long ago the youngest operations of the history ended. They stay within the window for 29 days: no
	// soak sees them leave.
	recent = time.Hour
	// longAgo is outside of the window already.
	longAgo = 2 * frequencyWindow
)

// newHistory returns a history in which FrequencyWithin was done less often than the limit within the window, and
// FrequencyOver more often. Both have rows that do not count: too old, refused by a guard, on another target. Counting
// them would deny the one, or hide the other.
func newHistory(c clock.Clock) *history {
	h := &history{clock: c}
	add := func(name, target, outcome string, ago time.Duration, times int) {
		for i := range times {
			end := c.Now().Add(-ago - time.Duration(i)*time.Minute)
			h.rows = append(h.rows, operation{model.FrequencyActor, name, target, outcome, end})
		}
	}
	for _, name := range []string{model.FrequencyWithin, model.FrequencyOver} {
		add(name, model.GuardTarget, outcomeSuccess, longAgo, 10)
		add(name, model.GuardTarget, outcomeFailureGuard, recent, 10)
		add(name, "vserver-another", outcomeSuccess, recent, 10)
	}
	add(model.FrequencyWithin, model.GuardTarget, outcomeSuccess, recent, model.FrequencyLimit-2)
	add(model.FrequencyWithin, model.GuardTarget, outcomeFailure, recent, 1)
	add(model.FrequencyOver, model.GuardTarget, outcomeSuccess, recent, model.FrequencyLimit)
	add(model.FrequencyOver, model.GuardTarget, outcomeFailure, recent, 1)
	return h
}
