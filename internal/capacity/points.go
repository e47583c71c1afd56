package capacity

import (
	"iter"
	"math"
	"slices"
	"time"

	"tare/internal/load"
	"tare/internal/signature"
	"tare/internal/stat"
)

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
		Audit: audit(calls, s, t.Read),
	}
	good, last := 0, to
	for c := range calls {
		p.Offered++
		if c.Sent != 0 {
			p.Sent++
		}
		if c.Done == 0 {
			last = max(last, t.Read)
		}
		last = max(last, c.Done)
		if c.Done != 0 && c.Outcome.Good() {
			good++
			continue
		}
		p.fail(c, from)
	}
	if p.Offered > 0 {
		p.Success = float64(good) / float64(p.Offered)
	}
	if p.Success == 1 && p.Audit.AchievedRatio >= signature.LeastAchieved {
		p.Audit.Valid, p.Audit.Reason = true, "" // late as it was sent, all of it was answered well
	}
	p.P99Own = signature.Own(calls, 0.99)
	p.responses(calls)
	p.goodput(t, calls, to)
	p.Drain = (last - to).Seconds()
	if all := (last - from).Seconds(); all > 0 {
		p.VegetaThroughput = float64(good) / all
	}
	p.Stuck = stuckEver(calls)
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

func (p *Point) responses(calls iter.Seq[*load.Call]) {
	var x []float64
	for c := range calls {
		if c.Done != 0 {
			x = append(x, c.Response().Seconds())
		}
	}
	if len(x) == 0 {
		return
	}
	slices.Sort(x)
	p.P50, p.P90, p.P99 = stat.SortedQuantile(x, 0.5), stat.SortedQuantile(x, 0.9), stat.SortedQuantile(x, 0.99)
	p.Max = x[len(x)-1]
}

func (p *Point) goodput(t Trace, calls iter.Seq[*load.Call], to time.Duration) {
	fast := 0
	for c := range calls {
		if c.Done == 0 || c.Done > to || !c.Outcome.Good() {
			continue
		}
		p.OKInWindow++
		if t.SLO > 0 && c.Response() <= t.SLO {
			fast++
		}
	}
	if p.Seconds <= 0 {
		return
	}
	p.Goodput = float64(p.OKInWindow) / p.Seconds
	if t.SLO > 0 {
		g := float64(fast) / p.Seconds
		p.GoodputSLO = &g
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
