package capacity

import (
	"math"
	"time"

	"tare/internal/load"
	"tare/internal/signature"
	"tare/internal/stat"
)

// This file tries out what tells likely causes of a break apart, before rates are confirmed.

// experiment tries what tells likely causes apart. It reports whether the target became warm meanwhile, so that it is
// to be overloaded again.
func (r *session) experiment() (again bool, err error) {
	if len(lastOverload(r.t)) == 0 {
		return false, nil // what broke the target was taken when it was offered again
	}
	was := r.warm
	for _, try := range []func() error{
		r.allowance, r.pauseWhereCallsHang, r.places, r.remembers, r.failAnyway, r.keepBusy,
	} {
		if err := try(); err != nil {
			return false, err
		}
	}
	return r.warm != was && r.overloads() < 6, nil
}

// A limiter that lets calls wait may have saved up an allowance, as a token bucket has: at first it serves more than
// its rate. That looks like a collapse, when the allowance is used up and goodput falls to the rate; and it makes rates
// above the capacity hold for a while after every rest. So it is told apart by a rate between the two that is held for
// long enough to use up what was saved, and rates are then confirmed with a queue that stands, so that nothing can be
// saved.

// allowance finds out whether what was served beyond the capacity at first was an allowance.
func (r *session) allowance() error {
	if !r.class().Traits().MaySave {
		return nil
	}
	over := lastOverload(r.t)
	e := overloaded(r.t, over)
	saved := surplus(r.t, over, e.Value)
	from, to := span(over)
	if e.Value <= 0 || saved < max(10, 0.05*e.Value, 3*e.Half()*e.Value*(to-from).Seconds()) {
		return nil
	}
	used, err := r.usesUp(saved, e.Value, max(r.estimate.Value, r.fastest))
	if err != nil {
		return err
	}
	if !used {
		r.judge() // a rate that was held may tell what refuses calls
		return nil
	}
	r.t.Allowance = saved
	if r.class().Traits().Lossless {
		return nil
	}
	// Without the allowance, the overload looks as what it is.
	r.fastest = min(r.fastest, e.Value)
	_, err = r.overload(e.Value)
	return err
}

// surplus is how many calls ended well beyond rate × time, from the first offer above the rate on.
func surplus(t Trace, over []Step, rate float64) float64 {
	_, to := span(over)
	best := 0.0
	for _, s := range t.Steps {
		if s.Rate <= rate || s.Segment.Start >= to {
			continue
		}
		n := t.ended(s.Segment.Start, to)
		best = max(best, float64(n)-rate*(to-s.Segment.Start).Seconds())
	}
	return best
}

// usesUp holds a rate between low and high from rest on, for so long that saved calls would be used up. It reports
// whether calls then began to wait, after more of them had passed than at low: a target that had collapsed under its
// queue takes the rate for ever, and one that has become slower saves nothing up while it rests.
func (r *session) usesUp(saved, low, high float64) (bool, error) {
	rate := min(low+0.3*(high-low), r.o.MaxRate) // well below what a target that collapses can take
	if rate < 1.02*low {
		return false, nil
	}
	d := time.Duration((2.5*saved/(rate-low) + 2) * 1e9)
	if d > 40*time.Second {
		return false, nil
	}
	if err := r.prepare(RoleConfirmHigh); err != nil {
		return false, err
	}
	r.watchNow()
	waiting := float64(r.seen.last().open) + 0.25*saved + 0.05*rate + 3*math.Sqrt(rate*d.Seconds())
	used := func(time.Duration) bool { return float64(r.seen.last().open) > waiting }
	step, err := r.offer(RoleConfirmHigh, rate, d, used)
	if err != nil {
		return false, err
	}
	step.Passed, step.Note = new(!used(d)), "is it an allowance that is used up?"
	r.read()
	return !*step.Passed && r.t.ranAhead(*step, low, saved), nil
}

// ranAhead reports whether clearly more calls ended well in a step than at the rate low: at least a quarter of what an
// allowance of that rate saved up while the target rested before, and of no more than the given number of calls.
func (t Trace) ranAhead(s Step, low, most float64) bool {
	rested := time.Duration(0)
	for c := range t.due(0, s.Segment.Start) {
		rested = max(rested, c.Done)
	}
	saved := min(most, low*(s.Segment.Start-rested).Seconds())
	return float64(t.ended(s.Segment.Start, s.Segment.End))-low*s.Length().Seconds() >= saved/4
}

// stands reports whether confirmations are made with a queue that stands.
func (r *session) stands() bool { return r.t.Allowance > 0 && r.class().Traits().Lossless }

// prime brings the queue to between half a second and a quarter of the timeout.
func (r *session) prime() error {
	least := 0.5 * r.estimate.Value
	most := max(3*least, 0.25*r.o.Timeout.Seconds()*r.estimate.Value)
	open := func() float64 { return float64(r.seen.last().open) }
	switch r.watchNow(); {
	case open() > most:
		return r.pause(r.o.Timeout, func() bool { return open() <= most }, "until the queue is shorter")
	case open() >= least:
		return nil
	}
	rate := min(1.5*r.estimate.Value, r.o.MaxRate)
	if rate <= 1.01*r.estimate.Value {
		return nil
	}
	d := time.Duration((least + 1.5*r.t.Allowance) / (rate - r.estimate.Value) * 1e9)
	_, err := r.offer(RolePrime, rate, d, func(time.Duration) bool { return open() >= 1.5*least })
	return err
}

func (r *session) watchNow() { r.seen.add(r.s.Progress()) }

// backlog is the mean time in each block for which the open calls would keep the target busy.
func (r *session) backlog(from, now, block time.Duration) (x, y []float64) {
	n := int((now - from) / block)
	sum, count := make([]float64, n), make([]float64, n)
	for _, m := range r.seen.moments {
		if k := int((m.at - from) / block); m.at >= from && k < n {
			sum[k] += float64(m.open) / r.estimate.Value
			count[k]++
		}
	}
	for k := range n {
		if count[k] > 0 {
			x = append(x, float64(k)*block.Seconds())
			y = append(y, sum[k]/count[k])
		}
	}
	return x, y
}

// pauseWhereCallsHang stops the load for a moment where calls hang though later ones are answered: a queue that serves
// the newest call first answers those that hang as soon as no new ones come, and a limiter that lets calls hang does
// not. What that saves up meanwhile is used up again.
func (r *session) pauseWhereCallsHang() error {
	hangs := func() bool { t := r.class().Traits(); return t.Strands && t.Saves }
	if !hangs() {
		return nil
	}
	p99 := baseOf(r.t).p99
	d := max(200*time.Millisecond, 4*p99, time.Duration(40/r.estimate.Value*1e9))
	if quiet := r.quiet(d); r.s.Progress().Waiting > 0 { // for a connection: such calls are still load
		sent := func() bool { return r.s.Progress().Waiting == 0 || quiet() }
		if err := r.pause(r.o.Timeout, sent, "until no call waits for a connection"); err != nil {
			return err
		}
	}
	begun := r.s.Now()
	if err := r.pause(d, nil, "are calls that hang answered without load?"); err != nil {
		return err
	}
	if from := begun + 2*p99; signature.CountEnds(r.due(max(0, begun-r.o.Timeout), math.MaxInt64), from, r.s.Now()) >= 5 {
		longer := min(time.Duration(1.2*float64(r.seen.last().open)/r.estimate.Value*1e9), 2*time.Second)
		if err := r.pause(longer, nil, "they are: all that wait are answered"); err != nil {
			return err
		}
		d += longer
	}
	if r.judge(); !hangs() {
		return nil
	}
	_, err := r.offer(RolePrime, min(1.5*r.estimate.Value, r.o.MaxRate), 3*d, nil)
	return err
}

// places tells a limit on calls in flight from one on their rate where the refusals do not: two bursts from rest. A
// limit on places takes the same number of each, as many as the accepted rate keeps in flight; a bucket takes what it
// has saved up.
func (r *session) places() error {
	base := baseOf(r.t).mean
	flight := r.estimate.Value * base.Seconds()
	traits, v := r.class().Traits(), r.estimate.verdict
	refuses := traits.Limiter && !traits.Waits && !traits.Strands && !traits.Falls && !traits.Windowed
	if !refuses || flight < 2 || r.rests || v.Class.Traits().Gradual && v.Scores[v.Class] > 0.61 {
		return nil
	}
	n := int(2*flight) + 10
	over := time.Duration(math.Ceil(float64(n)/r.o.MaxRate*1e9)) + time.Microsecond
	if over > base/3 || n > r.o.MaxConns/2 {
		return nil // not at once, as this limit sees it
	}
	for range 2 {
		if err := r.drain("before a burst"); err != nil {
			return err
		}
		if err := r.pause(max(4*base, 100*time.Millisecond), nil, "before a burst"); err != nil {
			return err
		}
		d := over + 3*base + 50*time.Millisecond
		step := Step{Role: RoleBurst, Rate: float64(n) / over.Seconds()}
		if _, err := r.offerProcess(step, load.Burst{Calls: n, Over: over, Duration: d}, nil); err != nil {
			return err
		}
	}
	r.judge()
	return nil
}

// remembers finds out whether a limiter lets so little through because of what was offered before. Where far more held
// in the ramp than passes under overload, a rate between the two is held from rest, for longer than what can have been
// saved up lasts: then each rate is to be confirmed from rest.
func (r *session) remembers() error {
	traits, value := r.class().Traits(), r.estimate.Value
	if !traits.Saves || traits.Strands || r.rests || value <= 0 || r.fastest < 3*value {
		return nil
	}
	rate := min(math.Sqrt(value*r.fastest), r.o.MaxRate)
	d := time.Duration((1.5*surplus(r.t, lastOverload(r.t), value)+20)/(rate-value)*1e9) + time.Second
	if d > 40*time.Second {
		return nil
	}
	if err := r.settle("until the limiter has forgotten the overload"); err != nil {
		return err
	}
	broke := r.exceeds(excused(int(rate * d.Seconds())))
	step, err := r.offer(RoleConfirmHigh, rate, d, broke)
	if err != nil {
		return err
	}
	r.rests = !broke(math.MaxInt64)
	step.Passed, step.Note = new(r.rests), "does it pass from rest?"
	r.judge()
	return nil
}

// mostRare is the share of the calls that were taken below which failures are not the load's doing.
const mostRare = 0.03

// failAnyway finds out whether the calls that fail under overload fail at any rate: a quarter, and then half, of what
// was answered well is offered. What a limit refuses, it does not refuse there.
func (r *session) failAnyway() error {
	all := r.failed(lastOverload(r.t)...)
	if all.share() < mostRare || all.share() > 5*mostRare && !baseOf(r.t).usual.fits(all) {
		return nil // hardly any fail, or many that did not fail in the ramp
	}
	return r.farBelow()
}

// failed counts the calls of steps that were taken, and those of them that failed.
func (r *session) failed(steps ...Step) (x tally) {
	from, to := span(steps)
	for c := range r.due(from, to) {
		x.takes(c)
	}
	return x
}

// farBelow offers a quarter, and then half, of the estimate, and judges anew.
func (r *session) farBelow() error {
	const most = 8 * time.Second
	well := r.estimate.Value * (1 - r.estimate.failing)
	if well <= 0 || r.remaining() < 5*most {
		return nil
	}
	wait := r.drain
	if r.class().Traits().Falls {
		wait = r.settle
	}
	if err := wait("a rate far below is tried"); err != nil {
		return err
	}
	for _, rate := range []float64{well / 4, well / 2} {
		step, err := r.offer(RoleConfirmLow, rate, min(most, lasting(rate, 3*time.Second, 1000)), nil)
		if err != nil {
			return err
		}
		step.Note = farNote
		if r.read(); r.t.farBelow().interval().Hi < mostRare {
			break // hardly any
		}
	}
	r.judge()
	return nil
}

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
	_, before, after := r.t.shifted()
	r.spent = after < before
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

// shifted is when a service that was kept busy after the last overload began to do more or less, and how many calls a
// second it did before and after; 0 where it did not.
func (t Trace) shifted() (at time.Duration, before, after float64) {
	over := lastOverload(t)
	if len(over) == 0 {
		return 0, 0, 0
	}
	_, end := span(over)
	from, to, _ := t.busy(end)
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
	return min(r.o.MaxRate, goodput/(1-min(0.5, r.floor()))*(1+max(-0.6, min(0.3, more))))
}

// busy returns when the service was kept busy after the given instant; ok is false if it never was.
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

// longEnoughBusy is how long a target is busy at least for what it does to be no moment's weakness.
const longEnoughBusy = 10 * time.Second

// busyFrom is what a target did in an overload and, where that was short, as it was kept busy after it; and for how
// long that was.
func (t Trace) busyFrom(over []Step) (e stat.Estimate, length time.Duration) {
	if len(over) == 0 || over[0].ClientLimited {
		return e, 0
	}
	from, to := span(over)
	last, paused := to, false
	from += min((to-from)/10, time.Second)
	for _, s := range t.Steps {
		switch {
		case s.Segment.Start < last:
		case s.Role == RoleOverload, to-from >= longEnoughBusy:
			return flow(t, from, to), to - from
		case s.Role != RoleBusy:
			paused = true
		case paused:
			from, to, paused = s.Segment.Start+2*time.Second, s.Segment.End, false
		default:
			to = s.Segment.End
		}
	}
	return flow(t, from, to), to - from
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
