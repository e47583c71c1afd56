package capacity

import (
	"math"
	"time"

	"tare/internal/load"
	"tare/internal/stat"
)

// longest is how long a service is under load before its capacity is stated: it may scale up, or run out of credits,
// only after a while.
const longest = 60 * time.Second

// keepBusy keeps a service busy, by a rate that follows what it does and keeps a short queue, until it has been under
// load for a while: what a service can do may change with time, and is known the better the longer it was busy. A
// target that becomes warm meanwhile is to be overloaded again.
func (r *session) keepBusy() error {
	if !r.canBeKeptBusy() {
		return nil
	}
	goodput, begun := r.estimate.Value, r.s.Now()
	emptied := false
	for end := r.s.Now() + max(longest-r.loaded(), 10*time.Second); r.s.Now() < end; {
		chunk := min(lasting(goodput, 2*time.Second, 60), 10*time.Second)
		most := 0.8 * r.o.Timeout.Seconds()
		step, err := r.offer(RoleBusy, r.busyRate(goodput, chunk, emptied), chunk, func(elapsed time.Duration) bool {
			return elapsed > time.Second && float64(r.seen.last().open) > max(20, most*goodput)
		})
		if err != nil {
			return err
		}
		if r.overdue(step) { // more than it can take: what it does is seen again when the queue is gone
			goodput, emptied = goodput/2, true
			if err := r.pause(r.o.Timeout+time.Second, r.quiet(time.Second), "until the queue is empty"); err != nil {
				return err
			}
			continue
		}
		if r.warmer() {
			return nil
		}
		if now := r.seen.goodput(max(step.Length(), min(8*time.Second, r.s.Now()-begun))); now > 0 {
			goodput = now
		}
	}
	r.judge()
	r.spent = r.t.spent()
	return nil
}

// overdue reports whether most of the calls that ended in a step had timed out.
func (r *session) overdue(s *Step) bool {
	ended, timed := 0, 0
	for _, c := range r.s.Calls(max(0, s.Segment.Start-r.t.reach())) {
		if c.Done > s.Segment.Start && c.Done <= s.Segment.End {
			if ended++; c.Outcome == load.Timeout {
				timed++
			}
		}
	}
	return 2*timed > ended
}

// spent reports whether a service did less after it had been kept busy for a while.
func (t Trace) spent() bool {
	_, before, after := t.shifted()
	return after < before
}

// shifted is when a service that was kept busy after the last overload began to do more or less, and how many calls a
// second it did before and after; 0 where it did not.
func (t Trace) shifted() (at time.Duration, before, after float64) {
	over := lastOverload(t)
	if len(over) == 0 {
		return 0, 0, 0
	}
	_, end := span(over)
	from, to, ok := t.busy(end)
	if !ok {
		return 0, 0, 0
	}
	return t.shift(from, to)
}

// canBeKeptBusy reports whether the class is one of a service that can be kept busy.
func (r *session) canBeKeptBusy() bool {
	traits := r.class().Traits()
	return (traits.Served || r.waits()) && !traits.Falls && r.t.Allowance == 0 && r.estimate.Value > 0 &&
		r.estimate.Value < 0.9*r.o.MaxRate
}

// busyRate is the rate that brings the queue of a service, which does goodput, to a second's worth or a fifth of the
// timeout within a chunk. Where calls are refused, the service is busy. With hurry the rate rises faster while hardly a
// call waits: the queue was let run empty, and the goodput is a guess.
func (r *session) busyRate(goodput float64, chunk time.Duration, hurry bool) float64 {
	now, last := r.seen.over(chunk)
	want := goodput * (min(1, r.o.Timeout.Seconds()/5) + r.typical.Seconds())
	more := 0.15 * (want - float64(now.open)) / (goodput * chunk.Seconds())
	switch {
	case float64(last.bad) > (r.floor()+0.03)*float64(last.good+last.bad):
		more = min(more, 0.05)
	case hurry && float64(now.open) < 0.25*want:
		more = 0.3
	}
	return min(r.o.MaxRate, goodput/(1-min(0.5, r.floor()))*(1+math.Max(-0.6, math.Min(0.3, more))))
}

// busy is the stretch since the given instant in which the service was kept busy; ok is false where there is none.
func (t Trace) busy(since time.Duration) (from, to time.Duration, ok bool) {
	for _, s := range t.Steps {
		if s.Role == RoleBusy && s.Segment.Start >= since {
			if !ok {
				from = s.Segment.Start + 2*time.Second
			}
			to, ok = s.Segment.End, true
		}
	}
	return from, to, ok && to-from > 5*time.Second
}

// busyGoodput is what a service did at the end of the stretch in which it was kept busy.
func (t Trace) busyGoodput(over []Step) (stat.Estimate, bool) {
	_, end := span(over)
	from, to, ok := t.busy(end)
	if !ok {
		return stat.Estimate{}, false
	}
	if at, _, _ := t.shift(from, to); at > 0 {
		from = at
	} else {
		from += (to - from) * 2 / 5 // until the queue is short
	}
	e := flow(t, from, to)
	return e, e.Value > 0
}

// shift is when, while it was kept busy, a service began to do more or less than before, by at least 6 % and more than
// chance, and how many calls a second it did before and after; 0 where it did not.
func (t Trace) shift(from, to time.Duration) (at time.Duration, before, after float64) {
	const bin, fewest = 2500 * time.Millisecond, 4
	n := int((to - from) / bin)
	if n < 2*fewest {
		return 0, 0, 0
	}
	done := t.ends(from, to)
	counts := make([]float64, n)
	for _, x := range done {
		counts[min(n-1, int((x-from.Seconds())/bin.Seconds()))] += 1 / bin.Seconds()
	}
	best := 5.0
	for k := fewest; k <= n-fewest; k++ {
		a, b := counts[:k], counts[k:]
		x, y := stat.Mean(a), stat.Mean(b)
		se := math.Sqrt(stat.Variance(a)/float64(len(a)) + stat.Variance(b)/float64(len(b)) + 1e-9)
		if z := math.Abs(x-y) / se; z > best && math.Abs(x-y) > 0.06*max(x, y) {
			best, at, before, after = z, from+time.Duration(k)*bin, x, y
		}
	}
	return at, before, after
}
