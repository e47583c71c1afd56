package capacity

import (
	"context"
	"fmt"
	"time"

	"tare/internal/load"
)

// A Planned is one point of a ladder: load of some shape, offered once the target has been brought into a state.
type Planned struct {
	Name string  // in the report; empty: its rate says enough
	Rate float64 // what the process offers on average while it offers anything, 1/s
	// Process is what is offered; nil: Options.Arrivals at Rate for Options.PointTime.
	Process load.Process
	// Before and After run around the point, on no clock but their own: to bring the target into a state, and to read
	// probes. May be nil.
	Before, After func(ctx context.Context) error
}

// Ladder measures one point at each rate, in the given order.
func Ladder(ctx context.Context, s Stream, o Options, on func(Event), rates ...float64) (Trace, error) {
	points := make([]Planned, len(rates))
	for i, rate := range rates {
		points[i] = Planned{Rate: rate}
	}
	return Play(ctx, s, o, on, points)
}

// Play measures points in the given order. After each it waits until every call has ended and the target answers fresh
// calls again: one point's leftovers must not be the next one's result.
func Play(ctx context.Context, s Stream, o Options, on func(Event), points []Planned) (Trace, error) {
	o = o.Defaults()
	// Every wait of a ladder has its own bound; together they must not run into the one of a search.
	o.MaxSeconds = (4*o.Timeout + 10*time.Second).Seconds()
	for i := range points {
		p := &points[i]
		if !(p.Rate > 0) || (p.Process == nil && p.Rate > o.MaxRate) {
			return Trace{}, fmt.Errorf("ladder: rate %v/s is not between 0 and the maximum of %v/s", p.Rate, o.MaxRate)
		}
		if p.Process == nil {
			p.Process = o.Arrivals(p.Rate, o.PointTime)
		}
		o.MaxSeconds += (p.Process.Length() + 4*o.Timeout + 10*time.Second + staging).Seconds()
	}
	r, err := begin(ctx, s, o, on)
	if err != nil {
		return Trace{}, err
	}
	r.stop(StopLadder, "")
	err = r.end(r.climbLadder(points))
	r.read()
	return r.t, err
}

// staging bounds what Before and After of one point may take.
const staging = 5 * time.Minute

func (r *session) climbLadder(points []Planned) error {
	for i, p := range points {
		if err := r.around(p, p.Before); err != nil {
			return err
		}
		step, err := r.offerProcess(Step{Role: RolePoint, Rate: p.Rate, Name: p.Name}, p.Process, nil)
		if err != nil {
			return err
		}
		r.t.Local.ListenQueue = nil
		r.observe()
		step.ListenQueue = r.t.Local.ListenQueue
		nothing := func() bool { return r.s.Progress().Open() == 0 }
		if err := r.pause(r.o.Timeout+time.Second, nothing, "until every call has ended"); err != nil {
			return err
		}
		if err := r.around(p, p.After); err != nil {
			return err
		}
		r.s.Reset()
		back, err := r.comeback()
		if err != nil {
			return err
		}
		if !back && i < len(points)-1 {
			r.stop(
				StopNoRetry, fmt.Sprintf("after %s the target did not answer fresh calls again for %s", p.title(), 2*r.o.Timeout),
			)
			return errStop
		}
	}
	return nil
}

func (p Planned) title() string {
	if p.Name != "" {
		return p.Name
	}
	return number(p.Rate) + "/s"
}

func (r *session) around(p Planned, work func(context.Context) error) error {
	if work == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.ctx, staging)
	defer cancel()
	if err := work(ctx); err != nil {
		return fmt.Errorf("%s: %w", p.title(), err)
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
