package capacity

import (
	"time"

	"tare/internal/load"
	"tare/internal/signature"
)

// pauseWhereCallsHang stops the load for a moment where calls hang though later ones are answered: a queue that serves
// the newest call first answers those that hang as soon as no new ones come, and a limiter that lets calls hang does
// not. What that saves up meanwhile is used up again.
func (r *session) pauseWhereCallsHang() error {
	if r.class() != signature.QuotaHang {
		return nil
	}
	p99 := baseOf(r.t).p99
	d := max(200*time.Millisecond, 4*p99, time.Duration(40/r.estimate.Value*1e9))
	begun := r.s.Now()
	if err := r.pause(d, nil, "are calls that hang answered without load?"); err != nil {
		return err
	}
	if from := begun + 2*p99; len(ends(load.Calls(r.s.Calls(max(0, begun-r.o.Timeout))).All(), from, r.s.Now())) >= 5 {
		longer := min(time.Duration(1.2*float64(r.seen.last().open)/r.estimate.Value*1e9), 2*time.Second)
		if err := r.pause(longer, nil, "they are: all that wait are answered"); err != nil {
			return err
		}
		d += longer
	}
	if r.judge(); r.class() != signature.QuotaHang {
		return nil
	}
	_, err := r.offer(RolePrime, min(1.5*r.estimate.Value, r.o.MaxRate), 3*d, nil)
	return err
}
