package capacity

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"tare/internal/load"
	"tare/internal/signature"
	"tare/internal/stat"
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
	usual := time.Duration(0)
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
		from := step.Segment.Start
		nothing := func() bool { return r.s.Progress().Open() == 0 }
		if err := r.pause(r.o.Timeout+time.Second, nothing, "until every call has ended"); err != nil {
			return err
		}
		if err := r.around(p, p.After); err != nil {
			return err
		}
		if took := responses(r.due(from, math.MaxInt64), 0); len(took) > 0 {
			q := time.Duration(stat.Quantile(took, 0.5))
			usual = min(cmp.Or(usual, q), q)
		}
		r.s.Reset()
		back, err := r.comeback(usual)
		if err != nil {
			return err
		}
		if !back && i < len(points)-1 {
			r.stop(StopNoRetry, fmt.Sprintf("after %s the target did not answer fresh calls again for %s",
				p.title(), 2*r.o.Timeout))
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

// comeback waits until three fresh calls in a row are answered, for at most two timeouts. Each is given three times as
// long as calls usually took, and at least two seconds; where that is not known, the timeout.
func (r *session) comeback(usual time.Duration) (bool, error) {
	own := min(max(2*time.Second, 3*cmp.Or(usual, r.o.Timeout)), r.o.Timeout)
	row := 0
	_, err := r.run(Step{Role: RoleRecovery}, func(step *Step) error {
		for i := uint64(0); row < 3 && r.s.Now()-step.Segment.Start < 2*r.o.Timeout; i++ {
			c := r.s.Fresh(r.ctx, 0, i, own)
			if err := r.ctx.Err(); err != nil {
				return err
			}
			if row++; endedBadly(&c) {
				row = 0
				if err := r.s.Wait(r.ctx, time.Second/4, poll, nil); err != nil {
					return err
				}
			}
			r.watch(StepProgress, *step)
		}
		step.Passed = new(row == 3)
		return nil
	})
	return row == 3, err
}

// Point is one row of a ladder. Durations are in seconds.
type Point struct {
	Name string // of a point that is more than a rate
	// ListenQueue is how many connections waited to be accepted at the window's end; nil: not to be seen.
	ListenQueue   *int
	Rate          float64 // to be offered, 1/s
	Seconds       float64 // length of the window
	Offered, Sent int     // calls that were due in the window; of these, sent at all
	// Success is the share of the offered calls that ended well, whenever that was.
	Success float64
	// OKInWindow is how many ended well within the window, Goodput that number per second of it.
	OKInWindow int
	Goodput    float64
	// GoodputSLO counts only calls that ended well within the latency objective, per second; nil without an objective.
	GoodputSLO *float64
	// Drain is how long after the window the last call ended.
	Drain float64
	// Response times of all calls that ended, timeouts included; 0: none did.
	P50, P90, P99, Max float64
	// P99Own is how much of P99 the generator's own delays are at most.
	P99Own float64
	// Failures by phase: never sent; sent, and never a byte back; an answer, but not the expected one.
	NoConnection, NoByte, BadStatus int
	// Stuck counts calls whose connection was established and never carried an answer; a full listen queue holds backlog +
	// 1 of them.
	Stuck int
	// LastFailedSent is when, after the window began, the last call was sent that failed; nil when none failed.
	LastFailedSent *float64
	// VegetaThroughput is success ÷ (attack + wait), which one timeout ruins; for comparison with other reports only.
	VegetaThroughput float64
	// RecoverySeconds is how long after the point fresh calls took to be answered again; nil if they were not.
	RecoverySeconds *float64
	Audit           Audit
}

// Points computes the rows of a ladder from its trace and calls alone.
func Points(t Trace) []Point {
	var points []Point
	for i, s := range t.Steps {
		if s.Role == RolePoint {
			points = append(points, point(t, s, t.Steps[i+1:]))
		}
	}
	return points
}

func point(t Trace, s Step, rest []Step) Point {
	from, to := s.Segment.Start, s.Segment.End
	calls := t.due(from, to)
	p := Point{
		Name: s.Name, ListenQueue: s.ListenQueue, Rate: s.Rate, Seconds: (to - from).Seconds(),
		Audit: audit(calls, s, t.Read), P99Own: signature.Own(calls, 0.99), Stuck: stuckEver(calls),
	}
	var response []float64
	good, fast, last := 0, 0, to
	for c := range calls {
		p.Offered++
		if c.Sent != 0 {
			p.Sent++
		}
		if last = max(last, c.Done); c.Done == 0 {
			last = max(last, t.Read)
		} else {
			response = append(response, c.Response().Seconds())
		}
		if endedBadly(c) {
			p.fail(c, from)
			continue
		}
		if good++; c.Done <= to {
			p.OKInWindow++
			if t.SLO > 0 && c.Response() <= t.SLO {
				fast++
			}
		}
	}
	if p.Offered > 0 {
		p.Success = float64(good) / float64(p.Offered)
	}
	if p.Success == 1 && p.Audit.AchievedRatio >= signature.LeastAchieved {
		p.Audit.Valid, p.Audit.Reason = true, "" // late as it was sent, all of it was answered well
	}
	if slices.Sort(response); len(response) > 0 {
		p.P50, p.P90 = stat.SortedQuantile(response, 0.5), stat.SortedQuantile(response, 0.9)
		p.P99, p.Max = stat.SortedQuantile(response, 0.99), response[len(response)-1]
	}
	if p.Seconds > 0 {
		if p.Goodput = float64(p.OKInWindow) / p.Seconds; t.SLO > 0 {
			p.GoodputSLO = new(float64(fast) / p.Seconds)
		}
	}
	p.Drain = (last - to).Seconds()
	if all := (last - from).Seconds(); all > 0 {
		p.VegetaThroughput = float64(good) / all
	}
	p.recovery(rest)
	return p
}

// fail counts a failed call by the phase that it came to.
func (p *Point) fail(c *load.Call, from time.Duration) {
	switch {
	case c.Sent == 0:
		p.NoConnection++
		return
	case c.FirstByte == 0:
		p.NoByte++
	default:
		p.BadStatus++
	}
	if at := max(0, (c.Sent - from).Seconds()); p.LastFailedSent == nil || at > *p.LastFailedSent {
		p.LastFailedSent = &at
	}
}

// stuckEver counts calls on connections that never carried an answer and that were overtaken. It is signature.Stuck at
// the end of time.
func stuckEver(calls iter.Seq[*load.Call]) int {
	return signature.Stuck(func(yield func(*load.Call) bool) {
		for c := range calls {
			copied := *c
			if c.FirstByte == 0 {
				copied.Done = 0 // ended by the client alone
			}
			if !yield(&copied) {
				return
			}
		}
	}, math.MaxInt64)
}

// recovery finds how long fresh calls took to be answered after the point.
func (p *Point) recovery(rest []Step) {
	for _, s := range rest {
		if s.Role == RoleRecovery && s.Passed != nil && *s.Passed {
			p.RecoverySeconds = new(s.Length().Seconds())
		}
		if s.Role == RoleRecovery || s.Role == RolePoint {
			return
		}
	}
}
