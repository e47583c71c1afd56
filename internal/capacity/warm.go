package capacity

import (
	"time"

	"tare/internal/stat"
)

// warmAfter is how many calls a target has to have answered well before what breaks says something about the target
// itself: caches and compilers are cold at first.
const warmAfter = 1000

// warmUp holds the lower side of a bracket until the target has answered enough calls to count as warm, and tries the
// upper side again: it may hold now. Where the time does not suffice, the upper side is not stated.
func (r *session) warmUp(a *aim) error {
	missing := warmAfter - float64(r.seen.last().good-r.seen.at(r.start).good)
	// what a limiter lets pass does not depend on how fast it answers
	if missing <= 0 || a.lo <= 0 || r.class().Traits().Saves {
		return nil
	}
	d := lasting(a.lo, 5*time.Second, 1.1*missing)
	if d > r.remaining()-20*time.Second {
		return nil
	}
	held, got, err := r.lasts(a.lo, d)
	if err != nil {
		return err
	}
	if !held {
		r.breaks(a, got)
		return nil
	}
	if held, _, err = r.verify(RoleConfirmHigh, a.hi); err != nil {
		return err
	}
	a.learn(trial{a.hi, held, r.t.Steps[len(r.t.Steps)-1].Length()})
	return nil
}

// faster is how much shorter the median response of a confirmation has to be than those well below the capacity were,
// to show a target that was cold then.
const faster = 0.67

// warmer reports whether the target answered the calls of the last step clearly faster than it had answered the ramp's,
// at lower rates: it was not warm then, and what broke it before says nothing. That matters where the capacity depends
// on how fast it answers.
func (r *session) warmer() bool {
	if r.class().Traits().Saves {
		return false
	}
	r.read()
	b, s := baseOf(r.t), r.t.Steps[len(r.t.Steps)-1]
	if b.p50 == 0 {
		return false
	}
	var response []float64
	for c := range r.t.due(s.Segment.Start, s.Segment.End) {
		if c.Done != 0 && c.Outcome.Good() {
			response = append(response, float64(c.Response()))
		}
	}
	if len(response) < 50 {
		return false
	}
	usual := b.p50
	if r.warm > 0 {
		usual = min(usual, r.warm) // it was seen to be warm before
	}
	median := time.Duration(stat.Quantile(response, 0.5))
	if float64(median) >= faster*float64(usual) {
		return false
	}
	r.warm = median
	return true
}

// answered is how many calls were answered well until the last confirmation ended.
func (t Trace) answered() int {
	var end time.Duration
	for _, s := range t.Steps {
		if confirms(s.Role) {
			end = s.Segment.End
		}
	}
	n := 0
	for c := range t.due(0, end+1) {
		if c.Done != 0 && c.Done <= end && c.Outcome.Good() {
			n++
		}
	}
	return n
}
