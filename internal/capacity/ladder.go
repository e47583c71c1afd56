package capacity

import (
	"context"
	"fmt"
	"time"

	"tare/internal/load"
)

// Ladder measures each rate for Options.PointTime. After each point it waits until every call has ended, closes all connections and waits until
// fresh calls are answered again. The trace is worth reading also beside an error.
func Ladder(ctx context.Context, s Stream, o Options, on func(Event), rates ...float64) (Trace, error) {
	o = o.Defaults()
	for _, rate := range rates {
		if !(rate > 0) || rate > o.MaxRate {
			return Trace{}, fmt.Errorf("ladder: rate %v/s is not between 0 and the maximum of %v/s", rate, o.MaxRate)
		}
	}
	// Every wait of a ladder has its own bound; together they must not run into the one of a search.
	o.MaxSeconds = float64(len(rates)+1) * (o.PointTime + 4*o.Timeout + 10*time.Second).Seconds()
	r, err := begin(ctx, s, o, on)
	if err != nil {
		return Trace{}, err
	}
	r.stop(StopLadder, "")
	err = r.end(r.climbLadder(rates))
	r.read()
	return r.t, err
}

func (r *session) climbLadder(rates []float64) error {
	for i, rate := range rates {
		if _, err := r.offer(RolePoint, rate, r.o.PointTime, nil); err != nil {
			return err
		}
		r.observe()
		nothing := func() bool { return r.s.Progress().Open() == 0 }
		if err := r.pause(r.o.Timeout+time.Second, nothing, "until every call has ended"); err != nil {
			return err
		}
		r.s.Reset()
		back, err := r.comeback()
		if err != nil {
			return err
		}
		if !back && i < len(rates)-1 {
			r.stop(StopNoRetry, fmt.Sprintf("after %s/s the target did not answer fresh calls again for %s", number(rate), 2*r.o.Timeout))
			return errStop
		}
	}
	return nil
}

// comeback waits until three fresh calls in a row are answered, for at most two timeouts.
func (r *session) comeback() (bool, error) {
	r.attempts[RoleRecovery]++
	step := Step{Role: RoleRecovery, Attempt: r.attempts[RoleRecovery], Segment: load.Segment{Start: r.s.Now()}}
	r.watch(StepBegins, step)
	row := 0
	for i := r.o.Identity; row < 3 && r.s.Now()-step.Segment.Start < 2*r.o.Timeout; i++ {
		c := r.s.Fresh(r.ctx, r.o.Operation, i, min(2*time.Second, r.o.Timeout))
		if err := r.ctx.Err(); err != nil {
			return false, err
		}
		if row++; c.Done == 0 || !c.Outcome.Good() {
			row = 0
			if err := r.s.Wait(r.ctx, time.Second/4, poll, nil); err != nil {
				return false, err
			}
		}
		r.watch(StepProgress, step)
	}
	step.Passed = new(row == 3)
	step.Segment.End = r.s.Now()
	r.t.Steps = append(r.t.Steps, step)
	r.watch(StepEnds, step)
	return row == 3, nil
}
