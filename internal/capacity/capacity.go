// Package capacity searches for the rate at which a target breaks. It is pure: it sees the target only through a
// Stream, so that it runs against simulated servers as well as against real ones.
package capacity

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"tare/internal/load"
	"tare/internal/signature"
)

// Stream is what the search needs of a load.Stream; the simulators implement it in virtual time.
type Stream interface {
	Now() time.Duration
	Offer(ctx context.Context, p load.Process, poll time.Duration, stop func() bool) (load.Segment, error)
	Wait(ctx context.Context, d, poll time.Duration, done func() bool) error
	Fresh(ctx context.Context, op int, i uint64, timeout time.Duration) load.Call
	DropIdle()
	Reset()
	Progress() load.Progress
	Calls(since time.Duration) []load.Call
}

// Options say how to search. The zero value is usable; New values are filled in by Defaults.
type Options struct {
	// Start is the first rate of the ramp in 1/s. Default 10.
	Start float64
	// MaxRate is never exceeded by anything that is offered, in 1/s. Default 100,000.
	MaxRate float64
	// MaxConns and Timeout are those of the stream. Default 4096 and 30 s.
	MaxConns int
	Timeout  time.Duration
	// Callers is how many callers take turns with the calls: those of one are the calls whose numbers leave the same
	// remainder. Default 1.
	Callers int
	// MaxSeconds bounds the search, without the recovery probe. Default 300.
	MaxSeconds float64
	// SLO asks for the highest rate at which at most SLOShare (default 0.01) of the calls take longer; 0: not asked.
	SLO      time.Duration
	SLOShare float64
	// Rates are offered after the search, as far as the target holds them: rates that a budget names.
	Rates []float64
	// PointTime is the length of each point of a ladder. Default 5 s.
	PointTime time.Duration
	// Shared says that generator and target share processors.
	Shared bool
	// Arrivals makes the arrival process. Default load.Constant.
	Arrivals func(rate float64, d time.Duration) load.Process
	// Observe reads what can be seen on the target's host over the windows so far. May be nil.
	Observe func() signature.Local
}

// Defaults returns o with every unset field filled in.
func (o Options) Defaults() Options {
	o.MaxRate = cmp.Or(o.MaxRate, 100_000)
	o.Start = min(cmp.Or(o.Start, 10), o.MaxRate)
	o.MaxConns, o.Timeout = cmp.Or(o.MaxConns, 4096), cmp.Or(o.Timeout, 30*time.Second)
	o.MaxSeconds, o.SLOShare = cmp.Or(o.MaxSeconds, 300), cmp.Or(o.SLOShare, 0.01)
	o.PointTime = cmp.Or(o.PointTime, 5*time.Second)
	if o.Arrivals == nil {
		o.Arrivals = func(rate float64, d time.Duration) load.Process { return load.Constant{Rate: rate, Duration: d} }
	}
	return o
}

func (o Options) validate() error {
	switch {
	case !(o.Start > 0), !(o.MaxRate > 0):
		return fmt.Errorf("capacity: start %v/s and maximum %v/s must be positive", o.Start, o.MaxRate)
	case o.Timeout < 0, o.SLO < 0, o.MaxConns < 0, o.Callers < 0, o.PointTime < 0, !(o.MaxSeconds > 0):
		return fmt.Errorf("capacity: timeout %v, objective %v, connections %d, callers %d, point %v and time %v s must "+
			"not be negative", o.Timeout, o.SLO, o.MaxConns, o.Callers, o.PointTime, o.MaxSeconds)
	}
	return nil
}

// EventKind says what an Event tells.
type EventKind string

// The kinds of events.
const (
	StepBegins   EventKind = "begins"
	StepProgress EventKind = "progress" // at most every 50 ms of the stream's clock
	StepEnds     EventKind = "ends"
)

// Event is for a live view. It is called from the search's own goroutine and must return soon.
type Event struct {
	Kind     EventKind
	Step     Step // as far as it has come
	Now      time.Duration
	Progress load.Progress
	// Goodput is calls that ended well per second over the last half second.
	Goodput float64
	// Estimate is the capacity so far with its interval, 0 before there is one; Signature the class so far.
	Estimate, Lo, Hi float64
	Signature        signature.Class
}
