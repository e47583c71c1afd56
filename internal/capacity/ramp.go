package capacity

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"tare/internal/load"
	"tare/internal/stat"
)

// ramp doubles the rate until something breaks, and returns the goodput that was left. The highest rate allowed is
// offered for a while longer once it held.
func (r *session) ramp(rate float64) (goodput float64, err error) {
	summit := false
	for tries := 1; ; {
		began := r.s.Now()
		calls, least := 20.0, 500*time.Millisecond
		if r.floor() > 0.02 {
			calls = 100 // some always fail: tell how many
		}
		if tries > 1 {
			least = longerStep
		}
		length := max(lasting(rate, least, calls), min(10*time.Second, 3*r.typical))
		if summit {
			length = r.atTop(5 * time.Second)
		}
		step, broke, err := r.climb(rate, length)
		if err != nil {
			return 0, err
		}
		switch blamed, err := r.blame(step, broke, &tries); {
		case err != nil:
			return 0, err
		case blamed && tries <= mostTries:
			continue // the same rate once more
		case blamed:
			return r.retreat(step.Rate, step.Note)
		}
		tries = 1
		if !broke && r.someSlow(step) {
			if step, broke, err = r.narrow(step.Rate); err != nil {
				return 0, err
			}
		}
		if broke {
			step.Passed = new(false)
			if r.fastest == 0 {
				if rate, err = r.lower(step); err != nil {
					return 0, err
				}
				continue
			}
			least := r.fastest
			if summit {
				least /= overdrive
			}
			return max(r.seen.recent(r.s.Now()-began), least), nil
		}
		if summit {
			r.hold(step)
			r.top(rate)
			return 0, errStop
		}
		if r.learn(step); r.pending(*step) {
			continue // too few calls have ended to tell
		}
		r.hold(step)
		summit, rate = rate >= r.o.MaxRate, min(2*rate, r.o.MaxRate)
	}
}

// lasting is the time that n calls take at rate, but at least d.
func lasting(rate float64, d time.Duration, n float64) time.Duration {
	return max(d, time.Duration(n/rate*1e9))
}

// climb offers one ramp step, and says whether something broke.
func (r *session) climb(rate float64, d time.Duration) (step *Step, broke bool, err error) {
	r.watchNow()
	before := r.seen.last()
	floor := r.floor()
	step, err = r.offer(RoleRamp, rate, d, func(time.Duration) bool {
		now := r.seen.last()
		bad, ended := now.bad-before.bad, now.bad+now.good-before.bad-before.good
		most := max(20, 0.3*rate, 3*rate*r.typical.Seconds())
		broke = bad >= 8 && float64(bad) > (0.1+floor)*float64(ended) || float64(now.open) > most
		return broke
	})
	return step, broke, err
}

// floor is the share of calls that fails at any rate, as far as is known.
func (r *session) floor() float64 {
	if f := r.estimate.failing; f > 0 {
		return f
	}
	var shares []tally
	for _, s := range r.t.Steps {
		if s.Role == RoleRamp && s.Passed != nil && *s.Passed {
			a, b := r.seen.at(s.Segment.Start), r.seen.at(s.Segment.End)
			shares = append(shares, tally{ended: int(b.bad + b.good - a.bad - a.good), bad: int(b.bad - a.bad)})
		}
	}
	if len(shares) < 3 {
		return 0
	}
	return floorOf(shares[:len(shares)-1]).share()
}

// hold notes that a step held.
func (r *session) hold(step *Step) {
	step.Passed = new(true)
	r.fastest = max(r.fastest, step.Rate)
}

// pending reports whether fewer than half as many calls ended in a step as came due.
func (r *session) pending(s Step) bool {
	a, b := r.seen.at(s.Segment.Start), r.seen.at(s.Segment.End)
	return 2*(b.good+b.bad-a.good-a.bad) < b.due-a.due
}

// learn takes the typical response from the calls that ended in a step.
func (r *session) learn(step *Step) {
	const before = 10 * time.Second // calls that took longer are not typical of anything
	response := responses(r.due(max(r.start, step.Segment.Start-before), math.MaxInt64), step.Segment.Start)
	if len(response) < 10 {
		return
	}
	if q := time.Duration(stat.Quantile(response, 0.25)); r.typical == 0 || q < r.typical {
		r.typical = q
	}
}

// lower decides at which rate to go on while no rate has held yet: a slow start is tried again at the same rate, a slow
// target at a quarter. A target that answers nothing, or fails most calls whatever the rate, ends the search.
func (r *session) lower(step *Step) (float64, error) {
	now, before := r.seen.last(), r.seen.at(r.start)
	good, bad := now.good-before.good, now.bad-before.bad
	if r.attempts[RoleRamp] == 1 {
		err := r.pause(min(10*time.Second, r.o.Timeout), r.quiet(4*time.Second), "the first rate broke: is it a slow start?")
		r.learn(step)
		return step.Rate, err
	}
	if r.attempts[RoleRamp] == 2 && good == 0 && r.freshCallsUnanswered() {
		r.stop(StopNoAnswer, fmt.Sprintf("the target answers no call%s, %d are outstanding",
			failures(r.due(r.start, math.MaxInt64), bad), now.open))
		return 0, errStop
	}
	share, slower := r.badShare(*step), r.badShare(r.t.Steps[0])
	if always := share >= 0.7*slower && share > 0.1; always && step.Rate < r.o.Start && share < 0.5 {
		r.hold(step) // that share fails at any rate
		return min(2*step.Rate, r.o.MaxRate), nil
	} else if always && step.Rate < r.o.Start || step.Rate <= r.o.Start/20 {
		r.stop(StopFailing, fmt.Sprintf("%.0f %% of the calls fail or hang even at %s/s", 100*share, number(step.Rate)))
		return 0, errStop
	}
	return step.Rate / 4, r.drain("a lower rate")
}

// failures says how many calls failed, and with which statuses where they were answered: " well: 17 × 503".
func failures(calls iter.Seq[*load.Call], bad uint64) string {
	per := map[uint16]uint64{}
	for c := range calls {
		if c.Done != 0 && c.Status != 0 && !c.Outcome.Good() {
			per[c.Status]++
		}
	}
	if len(per) == 0 {
		return fmt.Sprintf(": %d failed", bad)
	}
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(per)) {
		parts = append(parts, fmt.Sprintf("%d × %d", per[status], status))
		bad -= min(bad, per[status])
	}
	if bad > 0 {
		parts = append(parts, fmt.Sprintf("%d failed without an answer", bad))
	}
	return " well: " + strings.Join(parts, ", ")
}

// badShare is the share of the calls that ended in a step that ended badly.
func (r *session) badShare(s Step) float64 {
	a, b := r.seen.at(s.Segment.Start), r.seen.at(s.Segment.End)
	if b.good+b.bad == a.good+a.bad {
		return 1
	}
	return float64(b.bad-a.bad) / float64(b.good+b.bad-a.good-a.bad)
}

// freshCallsUnanswered reports whether fresh calls are not answered either.
func (r *session) freshCallsUnanswered() bool {
	for i := range uint64(3) {
		c := r.s.Fresh(r.ctx, 0, i, min(r.o.Timeout, 10*time.Second))
		if !endedBadly(&c) {
			return false
		}
	}
	return true
}
