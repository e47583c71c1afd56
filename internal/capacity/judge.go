package capacity

import (
	"math"
	"slices"
	"time"

	"tare/internal/load"
	"tare/internal/signature"
	"tare/internal/stat"
)

// judgement is what an overload says: how much, and how.
type judgement struct {
	stat.Estimate
	verdict signature.Verdict
	failing float64 // share of the calls that were taken that fails at any rate
}

// judge estimates and classifies the given overload steps of a trace.
func judge(t Trace, b base, over []Step) judgement {
	e := overloaded(t, over)
	v := signature.Classify(evidence(t, b, over, e))
	j := judgement{Estimate: e, verdict: v}
	switch {
	case v.Method().Traits().Places:
		j.Estimate = littles(t, b, over, v.InFlight, e)
	case v.Method().Traits().Falls:
		j.Estimate = beforeTheFall(t, over, e)
	case v.Method().Traits().Waits:
		j.Estimate = drained(t, over, e)
	}
	if busy, ok := t.busyGoodput(over); ok {
		j.Estimate = busy
	}
	j.failing = failing(t, b, over, v.Class)
	// The capacity counts calls that the target takes: of those it fails a share anyway.
	taken := 1 - j.failing
	j.Value, j.Lo, j.Hi = j.Value/taken, j.Lo/taken, j.Hi/taken
	return j
}

// failing is the share of the calls that were taken, neither refused nor left hanging, that failed in the overload,
// where that is due to the target and not to the load: a few fail, or some failed in the ramp already.
func failing(t Trace, b base, over []Step, c signature.Class) float64 {
	if traits := c.Traits(); traits.Falls && traits.Served {
		return b.floor
	}
	from, to := span(over)
	good, failed := 0, map[uint16]int{} // by status
	for c := range t.due(from, to) {
		switch {
		case c.Outstanding(to):
		case c.Outcome.Good():
			good++
		case c.Outcome == load.Failed || c.Outcome == load.Wrong:
			failed[c.Status]++
		}
	}
	bad, rare := 0, map[uint16]bool{}
	for status, n := range failed {
		bad += n
		most := 0.03 * float64(good+n)
		rare[status] = float64(n) < most+2*math.Sqrt(most) // too few to be what a limiter says
	}
	if good == 0 {
		return b.floor
	}
	share := float64(bad) / float64(good+bad)
	if share < 0.03 || b.floor > 0 && share < 3*b.floor+0.05 {
		return share
	}
	return max(b.floor, t.share(rare))
}

// share is how many calls failed with one of these statuses, over the whole search, relative to them and the good ones.
func (t Trace) share(statuses map[uint16]bool) float64 {
	good, bad := 0, 0
	for c := range t.due(0, math.MaxInt64) {
		switch {
		case c.Done == 0:
		case c.Outcome.Good():
			good++
		case (c.Outcome == load.Failed || c.Outcome == load.Wrong) && statuses[c.Status]:
			bad++
		}
	}
	return float64(bad) / float64(max(1, good+bad))
}

// overloaded is the rate of successes over the overload steps, without their first tenth.
func overloaded(t Trace, over []Step) stat.Estimate {
	from, to := span(over)
	from += (to - from) / 10
	return flow(t, from, to)
}

func flow(t Trace, from, to time.Duration) stat.Estimate {
	e, _ := throughput(t.ends(from, to), from.Seconds(), to.Seconds())
	return e
}

// reach is how long before an instant the calls can have been due that end after it.
func (t Trace) reach() time.Duration { return t.Timeout + time.Second }

func span(steps []Step) (from, to time.Duration) {
	return steps[0].Segment.Start, steps[len(steps)-1].Segment.End
}

// drained adds what follows the overload without load to a noisy estimate: as long as a queue is well filled, it is
// served at capacity as well.
func drained(t Trace, over []Step, e stat.Estimate) stat.Estimate {
	from, to := span(over)
	from += (to - from) / 10
	if e.Half() < steady || e.N < 4 {
		return e
	}
	for _, s := range t.Steps {
		if s.Role != RoleDrain || s.Segment.Start < to || s.Segment.Start > to+10*time.Millisecond {
			continue
		}
		if end := queueFilledUntil(t, to, s.Segment.End); end > to {
			if f := flow(t, from, end); f.Value > 0 {
				return f
			}
		}
	}
	return e
}

// queueFilledUntil is the last instant up to to at which at least a tenth, and forty, of the calls outstanding at from
// were.
func queueFilledUntil(t Trace, from, to time.Duration) time.Duration {
	n, left := 0, []float64(nil)
	for c := range t.due(from-t.reach(), from) {
		if c.Done == 0 || c.Done > from {
			n++
			if c.Done != 0 && c.Done <= to && c.Outcome.Good() {
				left = append(left, c.Done.Seconds())
			}
		}
	}
	keep := max(40, n/10)
	if gone := n - keep; gone > 0 && len(left) > 0 {
		return min(to, time.Duration(stat.Quantile(left, min(1, float64(gone)/float64(len(left))))*1e9))
	}
	return from
}

// littles is the capacity of a limit on calls in flight by Little's law, limit ÷ service time: under overload a slot
// stays empty until the next call arrives, so that the goodput is a little less. It holds where answers take as long as
// ever; else calls wait in a queue.
func littles(t Trace, b base, over []Step, limit int, e stat.Estimate) stat.Estimate {
	from, to := span(over)
	sum, n := 0.0, 0
	for c := range t.due(from, to) {
		if c.Done != 0 && c.Sent != 0 && c.Outcome.Good() {
			sum += c.Service().Seconds()
			n++
		}
	}
	if n == 0 || sum <= 0 || limit < 1 {
		return e
	}
	mean := sum / float64(n)
	v := float64(limit) / mean
	if mean > 1.3*b.p50.Seconds() || v < e.Value || v > 1.3*e.Value {
		return e
	}
	half := e.Half() * v
	return stat.Estimate{Value: v, Lo: min(e.Lo, v-half), Hi: v + half, Level: e.Level, N: e.N}
}

// beforeTheFall is the highest goodput of a target that collapses: over any half second up to the end of the
// overload.
func beforeTheFall(t Trace, over []Step, e stat.Estimate) stat.Estimate {
	best := e.Value
	_, to := span(over)
	from := t.Steps[0].Segment.Start
	in := t.ends(from, to)
	const width = 0.5
	j := 0
	for i, x := range in {
		for in[j] < x-width {
			j++
		}
		best = max(best, float64(i-j)/width)
	}
	return stat.Estimate{Value: best, Lo: min(e.Lo, best), Hi: best * 1.3, Level: e.Level, N: e.N}
}

// evidence is what the classifier sees of a trace.
func evidence(t Trace, b base, over []Step, estimate stat.Estimate) signature.Evidence {
	capacity := estimate.Value
	e := signature.Evidence{
		Now: t.Read, Capacity: capacity, BaseP50: b.p50, BaseP99: b.p99, BaseMean: b.mean, ErrorFloor: b.floor,
		Allowance: t.Allowance,
		Timeout:   t.Timeout, Local: t.Local, Calls: t.log(), Repeats: estimate.N <= -4 && estimate.Half() < 0.03,
		Stolen: stolen(over),
	}
	from, to := span(over)
	for _, s := range t.Steps {
		w := signature.Window{
			Role: string(s.Role), Rate: s.Rate, Start: s.Segment.Start, End: s.Segment.End, Sent: s.Segment.Sent,
			Due: s.Segment.Offered,
		}
		switch {
		case s.Role == RoleRamp && s.Segment.End <= from:
			e.Windows = append(e.Windows, w)
		case s.Role == RoleFill && s.Segment.Start >= to:
			e.Windows = append(e.Windows, w)
			to = max(to, s.Segment.Start)
		case s.Role == RoleBurst && s.Segment.Start >= to:
			e.Windows = append(e.Windows, w)
		case s.Role == RoleOverload && s.Segment.Start == from:
			w.End = to
			e.Windows = append(e.Windows, w)
		}
	}
	if begin, end, ok := t.busy(to); ok {
		e.Windows = append(e.Windows, signature.Window{Role: string(RoleBusy), Start: begin + (end-begin)/3, End: end})
	}
	e.Sharp = t.sharp(from, b.floor)
	e.Sharp.Leak = t.shareFailingBelow(to, b.floor, capacity)
	return e
}

// stolen is the share of the processors' time that the hypervisor took in some steps; 0 where that is not known.
func stolen(steps []Step) float64 {
	var all, taken float64
	for i := range steps {
		if h := steps[i].host(); h != nil {
			all, taken = all+h.All, taken+h.Stolen
		}
	}
	if !(all > 0) {
		return 0
	}
	return taken / all
}

// sharp compares the highest rate that was confirmed to hold with the lowest that was confirmed to break, by what
// passed at the end of that.
func (t Trace) sharp(since time.Duration, floor float64) signature.Sharp {
	lo, hi := t.bracket(since, floor, 0)
	if lo == 0 || hi == 0 {
		return signature.Sharp{}
	}
	for _, s := range t.Steps {
		if confirms(s.Role) && s.Rate == hi && s.Passed != nil && !*s.Passed && s.Segment.Start >= since {
			mid := s.Segment.Start + s.Length()/2
			n := len(t.ends(mid, s.Segment.End))
			return signature.Sharp{
				Held: lo, Failed: hi, Goodput: float64(n) / max(1e-9, (s.Segment.End-mid).Seconds()),
				HeldP50: t.servedAt(lo, since),
			}
		}
	}
	return signature.Sharp{}
}

// servedAt is the median service time of the last confirmation at that rate.
func (t Trace) servedAt(rate float64, since time.Duration) time.Duration {
	for _, s := range slices.Backward(t.Steps) {
		if !confirms(s.Role) || s.Rate != rate || s.Segment.Start < since {
			continue
		}
		var served []float64
		for c := range t.due(s.Segment.Start, s.Segment.End) {
			if c.Done != 0 && c.Sent != 0 && c.Outcome.Good() {
				served = append(served, float64(c.Service()))
			}
		}
		if len(served) > 20 {
			return time.Duration(stat.Quantile(served, 0.5))
		}
	}
	return 0
}

// shareFailingBelow is the share of calls, beyond the floor, that did not end well in confirmations at 60 to 92 % of
// the capacity that followed another at no higher a rate, so that nothing of a faster one was left. 0 where there are
// fewer than 200 calls.
func (t Trace) shareFailingBelow(since time.Duration, floor, capacity float64) float64 {
	bad, n, last := 0, 0, math.Inf(1)
	for _, s := range t.Steps {
		if s.Segment.Start < since || s.Rate <= 0 || s.Role == RoleSingle {
			continue
		}
		if confirms(s.Role) && s.Rate > 0.6*capacity && s.Rate < 0.92*capacity && last <= s.Rate {
			for c := range t.due(s.Segment.Start, s.Segment.End) {
				if c.Outstanding(t.Read) {
					continue
				}
				if n++; !c.Outcome.Good() {
					bad++
				}
			}
		}
		last = s.Rate
	}
	if n < 200 {
		return 0
	}
	return max(0, float64(bad)/float64(n)-floor)
}

// burst is how many calls above the capacity were taken before it broke: successes − capacity × time, from the first
// offer above the capacity on. It has a meaning for limiters with an allowance only.
func burst(t Trace, j judgement) *float64 {
	if t.Allowance > 0 {
		return &t.Allowance
	}
	if c := j.verdict.Method().Traits(); !c.Saves || c.Windowed || c.Falls {
		return nil
	}
	over := lastOverload(t)
	_, to := span(over)
	for _, s := range t.Steps {
		if s.Rate <= j.Value || s.Segment.Start >= to {
			continue
		}
		n := 0
		for c := range t.due(s.Segment.Start, to) {
			if c.Done != 0 && c.Outcome.Good() {
				n++
			}
		}
		b := math.Max(0, float64(n)-j.Value*(to-s.Segment.Start).Seconds())
		return &b
	}
	return nil
}
