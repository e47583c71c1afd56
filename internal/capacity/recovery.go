package capacity

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tare/internal/load"
	"tare/internal/stat"
	"tare/internal/unit"
)

// This file waits until what was offered is over, and until the target is as it was before.

const (
	singles    = 3                // in a row have to be answered as before the load
	idleFactor = 3                // times the idle response may a single call take
	patient    = 30 * time.Second // has the target at least to come back: a crashed one is started again after a while
)

// drain waits until calls in flight have ended, but not for those that seem to be stuck.
func (r *session) drain(note string) error {
	return r.pause(r.o.Timeout+time.Second, r.quiet(time.Second), note)
}

// quiet returns a condition: no call is open, or for a while none has ended.
func (r *session) quiet(d time.Duration) func() bool {
	d = max(d, 5*r.typical)
	begun := r.s.Now()
	return func() bool {
		now, change := r.seen.over(d)
		return now.open == 0 || now.at-begun >= d && change.good+change.bad == 0
	}
}

// settle waits until the calls in flight have ended, and then until single calls are answered as they were before the
// load. A target that does not come back within the length of a timeout is given the recovery probe; if that fails as
// well, the search ends.
func (r *session) settle(why string) error {
	if err := r.drain(why); err != nil {
		return err
	}
	r.read() // an overload has left its own calls only
	if err := r.waitForConnections(); err != nil {
		return err
	}
	limit := min(r.o.Timeout, 20*time.Second)
	for begun := r.s.Now(); r.s.Now()-begun < limit; {
		idle, err := r.single()
		if err != nil || idle {
			return err
		}
		if err := r.pause(time.Second/2, nil, "the target does not answer single calls as before"); err != nil {
			return err
		}
	}
	if err := r.recovery(); err != nil || r.t.Recovery.Recovered {
		return err
	}
	return errDown
}

// waitForConnections waits until no call waits for a connection: those are not the next step's.
func (r *session) waitForConnections() error {
	if p := r.s.Progress(); float64(p.Waiting) <= 0.02*r.estimate.Value {
		return nil
	}
	return r.pause(r.o.Timeout, func() bool { return r.s.Progress().Waiting == 0 }, "until no call waits for a connection")
}

// single offers a few calls far apart, and reports whether all were answered well and about as fast as before the load.
func (r *session) single() (bool, error) {
	rate := min(r.o.MaxRate, 20, max(r.o.Start, r.fastest/10))
	if typical := r.typical.Seconds(); typical > 0 {
		rate = min(rate, max(0.5/typical, 1))
	}
	limit := max(idleFactor*r.typical, r.typical+50*time.Millisecond, min(baseOf(r.t).p99, 10*r.typical))
	if r.typical == 0 {
		limit = r.o.Timeout
	}
	step, err := r.offer(RoleSingle, rate, time.Duration(singles/rate*1e9), nil)
	if err != nil {
		return false, err
	}
	if err := r.s.Wait(r.ctx, limit, poll, func() bool { return r.s.Progress().Open() == 0 }); err != nil {
		return false, fmt.Errorf("wait for single calls: %w", err)
	}
	r.watchNow()
	response := responses(r.due(step.Segment.Start, step.Segment.End), 0)
	n, good := step.Segment.Offered, len(response)
	allowed := int(2 * r.floor() * float64(n))
	if r.floor() > 0 {
		allowed = max(allowed, 1)
	}
	idle := n > 0 && good >= n-allowed && good > 0 && stat.Quantile(response, 0.5) <= float64(limit)
	step.Passed = &idle
	return idle, nil
}

// slowest is what 99 % of the calls took at most: of those well below the capacity or, where no rate held, of all that
// ended well. Where none did, it is the timeout.
func (r *session) slowest() time.Duration {
	r.read()
	if p99 := baseOf(r.t).p99; p99 > 0 {
		return p99
	}
	if all := responses(r.t.due(0, math.MaxInt64), 0); len(all) > 0 {
		return time.Duration(stat.Quantile(all, 0.99))
	}
	return r.o.Timeout
}

// recovery asks with fresh calls whether the target comes back. Calls in flight and idle connections are left as they
// are, as real clients would leave them, for the length of a timeout; then the idle connections are closed.
func (r *session) recovery() error {
	slowest := r.slowest()
	own := min(max(time.Second, 3*slowest), r.o.Timeout)
	v := &Recovery{Limit: min(max(10*slowest, time.Second/2), own), Deadline: max(2*r.o.Timeout, patient)}
	r.t.Recovery = v
	_, err := r.run(Step{Role: RoleRecovery}, func(step *Step) error {
		v.Start = step.Segment.Start
		return r.probe(v, own, *step)
	})
	return err
}

// refused reports whether the last probes were refused: a limiter does so, too, as long as it remembers the load.
func (v *Recovery) refused() bool {
	last := v.Probes[max(0, len(v.Probes)-5):]
	return len(last) > 0 && !slices.ContainsFunc(last, func(p Probe) bool { return p.Outcome != load.Refused })
}

const (
	answeredRow = 5  // fresh calls in a row that are answered well show that a target is back
	answeredFew = 20 // so many show it of a target of which a share of the calls fails at any rate
	lastProbes  = 10 // say whether a target that is not back stays down
)

// back returns since when fresh calls have been answered as before the load, and whether enough of them were: five in a
// row well, or of twenty no more badly than chance has it of the share that fails at any rate.
func (v *Recovery) back(floor float64) (since time.Duration, ok bool) {
	since = v.Start
	for i, bad := len(v.Probes)-1, 0; i >= 0; i-- {
		n := float64(len(v.Probes) - i)
		switch p := v.Probes[i]; {
		case !p.Good:
			bad++
		case bad == 0:
			since, ok = p.At, n >= answeredRow
		case n >= answeredFew && float64(bad) <= n*floor+2*math.Sqrt(n*floor*(1-floor)):
			since, ok = p.At, true
		}
	}
	return since, ok
}

// answered counts the last fresh calls, at most so many, and those of them that were answered well.
func (v *Recovery) answered(most int) (good, n int) {
	last := v.Probes[max(0, len(v.Probes)-most):]
	for _, p := range last {
		if p.Good {
			good++
		}
	}
	return good, len(last)
}

// staysDown reports whether the last five fresh calls all failed, or more than half of the last ten.
func (v *Recovery) staysDown() bool {
	row, _ := v.answered(answeredRow)
	good, n := v.answered(lastProbes)
	return row == 0 || 2*good < n
}

// partly says how many fresh calls a target answered that neither stays down nor answers as before.
func (v *Recovery) partly() string {
	good, n := v.answered(len(v.Probes))
	return fmt.Sprintf("answered %d of %d fresh calls well within %s, and not as before the load, in %.0f s after it had "+
		"stopped", good, n, unit.Seconds(v.Limit.Seconds()), v.Deadline.Seconds())
}

// unanswered says of a target that it did not come back.
func (v *Recovery) unanswered() string {
	if !v.staysDown() {
		return "the target " + v.partly()
	}
	if v.refused() {
		return fmt.Sprintf("single calls were still refused %.0f s after the load had stopped", v.Deadline.Seconds())
	}
	return fmt.Sprintf("single calls were not answered well within %s any more after the load had stopped",
		unit.Seconds(v.Limit.Seconds()))
}

// probe makes two fresh calls a second until they are answered as before the load, or the deadline passes.
func (r *session) probe(v *Recovery, timeout time.Duration, step Step) error {
	floor := baseOf(r.t).floor
	for i := uint64(0); ; i++ {
		at := r.s.Now()
		c := r.s.Fresh(r.ctx, 0, i, timeout)
		if err := r.ctx.Err(); err != nil {
			return err
		}
		p := Probe{At: at, Response: c.Response(), Outcome: c.Outcome}
		p.Good = c.Done != 0 && c.Outcome.Good() && p.Response <= v.Limit
		v.Probes = append(v.Probes, p)
		r.watch(StepProgress, step)
		_, back := v.back(floor)
		now := r.s.Now()
		switch {
		case back, now-v.Start >= v.Deadline:
			v.Recovered, v.Complete = back, true
			return nil
		case v.DroppedIdle == nil && now-v.Start >= r.o.Timeout:
			r.s.DropIdle()
			v.DroppedIdle = &now
		}
		if wait := time.Second/2 - (now - at); wait > 0 {
			if err := r.s.Wait(r.ctx, wait, poll, nil); err != nil {
				return err
			}
		}
	}
}
