package capacity

import (
	"time"

	"tare/internal/signature"
)

// fill offers four and eight times the capacity to a candidate for a full listen queue, each until the number of stuck
// calls stays flat, and judges again. It ends before the first of these calls times out: the queue is then one of
// connections that the client has closed.
func (r *session) fill() error {
	if r.estimate.verdict.Score(func(t signature.Traits) bool { return t.Unaccepted }) < 0.5 || r.attempts[RoleFill] > 0 {
		return nil
	}
	for _, times := range []float64{4, 8} {
		rate := min(times*r.estimate.Value, r.o.MaxRate)
		if _, err := r.offer(RoleFill, rate, min(15*time.Second, 3*r.o.Timeout/4), r.level()); err != nil {
			return err
		}
		r.observe()
	}
	r.judge()
	return nil
}

// level returns a condition: no connection has been established for half a second though calls wait for one.
func (r *session) level() func(time.Duration) bool {
	established, since := -1, r.s.Now()
	return func(elapsed time.Duration) bool {
		p := r.s.Progress()
		if p.Established != established {
			established, since = p.Established, p.Now
		}
		return elapsed > time.Second && p.Waiting > 0 && p.Now-since >= time.Second/2
	}
}
