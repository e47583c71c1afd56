package capacity

import (
	"time"

	"tare/internal/load"
)

// patient is how long at least the target has to come back: a crashed one is started again after a while.
const patient = 30 * time.Second

// recovery asks with fresh calls whether the target comes back. Calls in flight and idle connections are left as they
// are, as real clients would leave them, for the length of a timeout; then the idle connections are closed.
func (r *session) recovery() error {
	b := baseOf(r.t)
	own := min(max(time.Second, 3*b.p99), r.o.Timeout)
	v := &Recovery{Start: r.s.Now(), Limit: min(max(10*b.p99, time.Second/2), own), Deadline: max(2*r.o.Timeout, patient)}
	r.t.Recovery = v
	r.attempts[RoleRecovery]++
	step := Step{Role: RoleRecovery, Attempt: r.attempts[RoleRecovery], Segment: load.Segment{Start: v.Start}}
	r.watch(StepBegins, step)
	err := r.probe(v, own, step)
	step.Segment.End = r.s.Now()
	r.t.Steps = append(r.t.Steps, step)
	r.watch(StepEnds, step)
	return err
}

// probe makes two fresh calls a second until five in a row are answered, or the deadline passes.
func (r *session) probe(v *Recovery, timeout time.Duration, step Step) error {
	for row, i := 0, r.o.Identity; ; i++ {
		at := r.s.Now()
		c := r.s.Fresh(r.ctx, r.o.Operation, i, timeout)
		if err := r.ctx.Err(); err != nil {
			return err
		}
		p := Probe{At: at, Response: c.Response(), Outcome: c.Outcome}
		p.Good = c.Done != 0 && c.Outcome.Good() && p.Response <= v.Limit
		v.Probes = append(v.Probes, p)
		r.watch(StepProgress, step)
		if row++; !p.Good {
			row = 0
		}
		now := r.s.Now()
		switch {
		case row == 5:
			v.Recovered, v.Complete = true, true
			return nil
		case now-v.Start >= v.Deadline:
			v.Complete = true
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
