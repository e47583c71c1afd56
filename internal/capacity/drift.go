package capacity

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tare/internal/load"
	"tare/internal/signature"
	"tare/internal/stat"
)

// failNote is the note of a step that was ended because calls failed.
const failNote = "calls fail"

// drifts tries a rate at a target whose calls wait: above the capacity responses grow by rate ÷ capacity − 1 per
// second. It is a sequential test of that slope against half of what a bracket of 2 % should show.
func (r *session) drifts(role Role, rate float64) (held bool, goodput float64, err error) {
	return r.driftsFor(role, rate, max(10*time.Second, 8*r.block(rate)))
}

// driftsFor is drifts for at most so long. A rate that should hold has a second, longer chance to be decided.
func (r *session) driftsFor(role Role, rate float64, most time.Duration) (held bool, goodput float64, err error) {
	block := r.block(rate)
	var open *bool
	failing := false
	next := max(5*block, 2500*time.Millisecond)
	step, err := r.offer(role, rate, most, func(elapsed time.Duration) bool {
		if elapsed < time.Second {
			return false
		}
		if _, c := r.seen.over(elapsed); c.bad >= 8 && r.fails(r.s.Now()-elapsed) {
			failing = true
			return true
		}
		if elapsed < next {
			return false
		}
		next += block
		open = r.slope(rate, r.s.Now()-elapsed, elapsed, block)
		return open != nil
	})
	if err != nil {
		return false, 0, err
	}
	goodput = r.seen.goodput(step.Length())
	if failing {
		step.Passed, step.Note = new(false), failNote
		return false, goodput, nil
	}
	if open == nil {
		open = r.slope(rate, step.Segment.Start, step.Length(), block)
	}
	if _, c := r.seen.over(step.Length() / 2); open == nil && float64(c.good) < 0.8*(1-r.floor())*float64(c.due) {
		open = new(false)
	}
	if _, c := r.seen.over(step.Length()); float64(c.bad) > r.allowed(c.due) {
		step.Passed, step.Note = new(false), failNote
		return false, goodput, nil
	}
	if r.class().Traits().Unaccepted {
		now := r.s.Now()
		calls := due(r.s.Calls(step.Segment.Start), step.Segment.Start, step.Segment.End)
		if stuck := signature.Stuck(load.Calls(calls).All(), now); float64(stuck) > max(1, 0.005*float64(len(calls))) {
			step.Passed, step.Note = new(false), fmt.Sprintf("%d calls are stuck", stuck)
			return false, goodput, nil
		}
	}
	if step.Passed = open; open != nil {
		return *open, goodput, nil
	}
	step.Note = "undecided: noise"
	if longer := 25 * time.Second; role == RoleConfirmLow && most < longer && r.remaining() > 2*longer {
		return r.driftsFor(role, rate, longer)
	}
	return role == RoleConfirmLow, goodput, nil
}

// fails reports whether clearly more calls that were due since from fail than fail at any rate.
func (r *session) fails(from time.Duration) bool {
	bad, n := 0, 0
	for _, c := range undisturbed(r.s.Calls(from)) {
		if c.Done == 0 {
			continue
		}
		if n++; !c.Outcome.Good() {
			bad++
		}
	}
	return bad >= 8 && float64(bad) > (r.floor()+0.015+1.5*r.tolerance(n))*float64(n)
}

// block is the length of the blocks whose responses are compared: at least half a second, ten calls, and whole periods
// of a scheduler.
func (r *session) block(rate float64) time.Duration {
	b := max(time.Second/2, time.Duration(5/rate*1e9))
	if p := time.Duration(r.estimate.verdict.Period * 1e9); p > 0 {
		b = whole(b, p)
	}
	return whole(b, poll)
}

// whole rounds d up to a multiple of unit.
func whole(d, unit time.Duration) time.Duration {
	if rest := d % unit; rest != 0 {
		return d + unit - rest
	}
	return d
}

// slope decides whether responses grow over a step that began at from: nil when noise leaves it open.
func (r *session) slope(rate float64, from, elapsed, block time.Duration) *bool {
	now := from + elapsed
	calls := due(r.s.Calls(from), from, now)
	if r.class().Traits().Unaccepted {
		calls = answered(calls, now)
	}
	x, y := blocks(calls, from, now, block, r.class().Traits().Periodic)
	if r.stands() {
		x, y = r.backlog(from, now, block)
	} else if len(x) > 4 {
		x, y = x[:len(x)-1], y[:len(y)-1] // calls of the last block are still young
	}
	l, ok := stat.Regress(x, y)
	if !ok || math.IsNaN(l.SE) {
		return nil
	}
	if r.idle(calls, now, elapsed) {
		return new(true)
	}
	const correlated = 2.5 // residuals of a queue are autocorrelated
	threshold := 0.01
	if r.canBeKeptBusy() {
		threshold = max(threshold, (rate/r.estimate.Value-1)/2) // half of what the estimate says
	}
	switch se := max(2*correlated*l.SE, 2*r.walk(elapsed)); {
	case l.Slope+se < threshold && (r.stands() || !r.answersNone(calls, now, block)):
		return new(true)
	case l.Slope-se > threshold:
		return new(false)
	}
	return nil
}

// idle reports whether the calls of the second half of a step were answered about as fast as far below the capacity,
// and hardly any is outstanding for longer: no queue stands.
func (r *session) idle(calls []load.Call, now, elapsed time.Duration) bool {
	if r.typical == 0 || elapsed < 8*time.Second || r.stands() {
		return false
	}
	quick, n := 0, 0
	for _, c := range calls {
		if c.Intended < now-elapsed/2 || c.Outstanding(now) && c.Intended > now-4*r.typical-20*time.Millisecond {
			continue
		}
		if n++; !c.Outstanding(now) && c.Outcome.Good() && c.Response() <= 2*r.typical+2*time.Millisecond {
			quick++
		}
	}
	return n >= 20 && 10*quick >= 9*n
}

// answersNone reports whether the target answers hardly any call of a step: most are outstanding, those of its last
// block aside, which are young. Of such a call nothing is known but its age, and ages fall from call to call: a target
// that answers nothing would seem to become faster. Behind a full listen queue most calls may be stuck, which drifts
// counts; there it is mute if none is answered.
func (r *session) answersNone(calls []load.Call, now, block time.Duration) bool {
	outstanding, good, n := 0, 0, 0
	for _, c := range calls {
		if c.Intended >= now-block {
			continue
		}
		switch n++; {
		case c.Outstanding(now):
			outstanding++
		case c.Outcome.Good():
			good++
		}
	}
	if r.class().Traits().Unaccepted {
		return good == 0
	}
	return 2*outstanding > n
}

// walk is the standard error of a slope over a stretch that a queue's own randomness gives: its backlog is a random
// walk, whose slope has 6/5 of the variance of its mean. The overload has shown how random.
func (r *session) walk(stretch time.Duration) float64 {
	over := lastOverload(r.t)
	if len(over) == 0 || r.estimate.N < 4 || r.class().Traits().Falls {
		return 0
	}
	from, to := span(over)
	se := r.estimate.Half() / stat.StudentQuantile((1+level)/2, float64(r.estimate.N-1))
	return se * math.Sqrt(1.2*(to-from).Seconds()/stretch.Seconds())
}

// answered leaves out calls that are stuck: outstanding, though calls that were sent later have been answered.
func answered(calls []load.Call, now time.Duration) []load.Call {
	var newest time.Duration
	for _, c := range calls {
		if !c.Outstanding(now) && c.Outcome.Good() {
			newest = max(newest, c.Sent)
		}
	}
	return slices.DeleteFunc(slices.Clone(calls), func(c load.Call) bool {
		return c.Outstanding(now) && c.Sent != 0 && c.Sent < newest
	})
}

// blocks are the median responses, or the longest, of calls due in each block; of an outstanding call its age so far.
func blocks(calls []load.Call, from, now, block time.Duration, longest bool) (x, y []float64) {
	n := int((now - from) / block)
	ages := make([][]float64, n)
	for _, c := range calls {
		k := int((c.Intended - from) / block)
		if k < 0 || k >= n {
			continue
		}
		age := (now - c.Intended).Seconds()
		if !c.Outstanding(now) {
			age = c.Response().Seconds()
		}
		ages[k] = append(ages[k], age)
	}
	for k, a := range ages {
		switch {
		case len(a) == 0:
			continue
		case longest:
			y = append(y, slices.Max(a))
		default:
			y = append(y, stat.Quantile(a, 0.5))
		}
		x = append(x, float64(k)*block.Seconds())
	}
	return x, y
}
