package capacity

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"tare/internal/load"
	"tare/internal/signature"
	"tare/internal/stat"
)

// This file decides whether a rate holds: by the calls that are lost, by responses that grow, or by whether it lasts.

// loses counts calls that fail or hang.
func (r *session) loses(role Role, rate float64, try int) (held bool, goodput float64, err error) {
	before, counted := r.lossTime(rate)
	step, err := r.offer(role, rate, before+counted, nil)
	if err != nil {
		return false, 0, err
	}
	bad, failed, n, young := losses(r.due(step.Segment.Start+before, step.Segment.End), r.s.Now(), r.old())
	if usual := r.floor() + r.tolerance(n); float64(failed) > max(1, usual*float64(n)) {
		bad += failed // these are more than those that fail at any rate
	}
	goodput = r.seen.goodput(counted)
	held = n >= young && float64(bad) <= excused(n) && goodput >= 0.9*(1-r.floor())*rate
	if held && r.savedExplains(step) {
		return false, goodput, nil
	}
	if step.Passed = &held; !held {
		step.Note = failNote
	}
	if !held && try == 1 && (role == RoleConfirmLow || r.onlyAtFirst(step)) {
		// A limiter may still remember the overload: the rate has a second chance, and only that counts.
		step.Passed, step.Note = nil, "broke at first: tried again"
		return r.loses(role, rate, try+1)
	}
	if held || role != RoleConfirmLow {
		return held, goodput, nil
	}
	if r.leftOpen(step, try) {
		return r.loses(role, rate, try+1)
	}
	return held, goodput, nil
}

// savedExplains leaves open whether the rate of a step that held holds, where a limiter of the estimated rate would
// have let all of its calls pass, too, by what it had saved up since it last refused one: the host may have stood still
// in between, and calls may have been sent late.
func (r *session) savedExplains(step *Step) bool {
	traits := r.class().Traits()
	if !traits.Saves || traits.Windowed || traits.Strands || step.Rate <= r.estimate.Value {
		return false
	}
	r.read()
	if !r.t.savedExplains(*step, r.estimate.Value) {
		return false
	}
	step.Passed, step.Note = nil, "undecided: the limiter may have saved up as many calls"
	return true
}

// savedExplains reports whether a limit of the given rate explains most of the calls by which a step exceeds it.
func (t Trace) savedExplains(s Step, rate float64) bool {
	over := lastOverload(t)
	if len(over) == 0 {
		return false
	}
	refused := over[0].Segment.Start
	for c := range t.due(refused, s.Segment.Start) {
		if c.Outcome == load.Refused {
			refused = max(refused, c.Sent)
		}
	}
	passed, last := 0.0, refused
	for c := range t.due(over[0].Segment.Start, s.Segment.End) {
		if c.Outcome.Good() && c.Sent > refused {
			passed, last = passed+1, max(last, c.Sent)
		}
	}
	unexplained := passed - 1 - rate*(last-refused).Seconds()
	return unexplained < (s.Rate-rate)*s.Length().Seconds()/2
}

// leftOpen leaves open whether the rate of a step that broke holds, where calls that came together explain that, and
// reports whether it is to be offered again.
func (r *session) leftOpen(step *Step, try int) (again bool) {
	a := r.auditOf(step)
	if !r.burstExplains(step, a) {
		return false
	}
	step.Passed, step.Note = nil, offeredAgain(a)
	most := mostTries
	if r.heldBack {
		most = 1 // it will go on: lower rates are more likely to be decided
	}
	if try <= most {
		return true
	}
	r.heldBack, step.Note = true, "undecided: the host held calls back"
	return false
}

// lossTime is how long to try a rate at which losses are counted, and how much of that comes before the count: until a
// window turns, or until a bucket that has filled in a pause is empty again.
func (r *session) lossTime(rate float64) (before, counted time.Duration) {
	if next, period := r.nextWindow(); period > 0 {
		return next - r.s.Now(), whole(2*time.Second, period)
	}
	counted = max(2*time.Second, min(lasting(rate, 0, 300), 6*time.Second), min(lasting(rate, 0, 100), 10*time.Second))
	counted = max(counted, r.t.leastHeld(r.estimate.verdict))
	if r.rests {
		return 5 * time.Second, max(5*time.Second, counted)
	}
	if traits := r.class().Traits(); traits.Saves && traits.Strands {
		before = min(3*counted, time.Duration(1.2*r.saved()/(surprise*r.estimate.Value)*1e9))
	}
	return before, counted
}

// nextWindow returns when the limiter's window turns next, and its period; both are 0 if no window was seen.
func (r *session) nextWindow() (next, period time.Duration) {
	period = r.period()
	over := lastOverload(r.t)
	if !r.class().Traits().Windowed || period <= 0 || len(over) == 0 {
		return 0, 0
	}
	from, to := span(over)
	_, _, last, n := signature.Cycle(signature.Ends(r.t.due(0, to+1), from, to))
	if n == 0 {
		return 0, 0
	}
	next = time.Duration(last * 1e9)
	for next < r.s.Now() {
		next += period
	}
	return next, period
}

// onlyAtFirst reports whether calls were refused or hung in the first half of a step, and not in its second.
func (r *session) onlyAtFirst(s *Step) bool {
	bad, failed, n, _ := losses(r.due(s.Segment.Start+s.Length()/2, s.Segment.End), r.s.Now(), r.old())
	return n > 0 && float64(bad+failed) <= excused(n)+r.floor()*float64(n)
}

// tolerance is the share of n calls that may fail: 0.5 %, and where some always fail those and two standard errors.
func (r *session) tolerance(n int) float64 {
	f := r.floor()
	return 0.005 + 2*math.Sqrt(f*(1-f)/math.Max(1, float64(n)))
}

// excused is how many of n calls may be refused or hang at a rate that holds.
func excused(n int) float64 { return max(1, 0.005*float64(n)) }

// old is how long a call has to be open to be counted as hanging: clearly longer than answers have taken so far.
func (r *session) old() time.Duration {
	now := r.s.Now()
	var all, recent []float64
	for c := range r.due(max(0, now-30*time.Second), math.MaxInt64) {
		if c.Done == 0 || !c.Outcome.Good() || c.Sent == 0 {
			continue
		}
		all = append(all, float64(c.Service()))
		if c.Done > now-3*time.Second {
			recent = append(recent, float64(c.Response()))
		}
	}
	d := max(float64(time.Second/2), 2*float64(baseOf(r.t).p99))
	if len(all) > 0 {
		d = max(d, 2*stat.Quantile(all, 0.99))
	}
	if len(recent) > 0 {
		d = max(d, 3*stat.Quantile(recent, 0.9))
	}
	return min(time.Duration(d), r.o.Timeout/2)
}

// losses counts the undisturbed calls that were refused, lost or have been open for at least old; those that were
// answered wrongly; all that are old enough to tell; and those that are too young for that.
func losses(calls iter.Seq[*load.Call], now, old time.Duration) (bad, failed, n, young int) {
	for c := range undisturbed(calls) {
		switch {
		case c.Outstanding(now) && c.Intended >= now-old:
			young++
			continue
		case c.Outstanding(now):
			bad++
		case c.Outcome.Good():
		case c.Outcome == load.Failed || c.Outcome == load.Wrong:
			failed++
		default:
			bad++
		}
		n++
	}
	return bad, failed, n, young
}

// lastStretch is how long a service has to hold a rate at a stretch; a target that collapses, or refuses calls little
// by little, twice as long.
const lastStretch = 12 * time.Second

// loaded is how long load was offered so far.
func (r *session) loaded() time.Duration {
	var d time.Duration
	for _, s := range r.t.Steps {
		if s.Rate > 0 && s.Role != RoleSingle {
			d += s.Length()
		}
	}
	return d
}

// lasts offers a rate for longer, and ends early when more calls wait than would within two seconds, or when more calls
// have failed than may over all of it.
func (r *session) lasts(rate float64, d time.Duration) (held bool, goodput float64, err error) {
	if err := r.prepare(RoleConfirmLow); err != nil {
		return false, 0, err
	}
	traits := r.class().Traits()
	// else calls that are open may be ones that are turned away late
	queues := !traits.Saves && !traits.Places && !traits.Strands
	fails, broke := r.exceeds(r.allowed(uint64(rate*d.Seconds()))), false
	inFlight := rate * max(3*r.typical, 2*baseOf(r.t).mean).Seconds() // without a queue, at most
	step, err := r.offer(RoleConfirmLow, rate, d, func(elapsed time.Duration) bool {
		broke = queues && float64(r.seen.last().open) > max(20, 2*rate+inFlight) || fails(elapsed)
		return broke
	})
	if err != nil {
		return false, 0, err
	}
	if held = !broke && !fails(math.MaxInt64); held && queues {
		// Above the capacity a queue grows by rate ÷ capacity − 1 per second.
		held = r.seen.waiting(step.Length()/4)-inFlight <= max(12, 0.25*rate)
	}
	if held && r.savedExplains(step) {
		return false, r.seen.goodput(min(5*time.Second, step.Length())), nil
	}
	step.Passed, step.Note = &held, "does it last?"
	if held {
		r.lasted = max(r.lasted, rate)
	}
	return held, r.seen.goodput(min(5*time.Second, step.Length())), nil
}

// exceeds returns a condition: more than most of the calls that are due from now on have failed or hang. It looks at
// them twice a second, for they are many.
func (r *session) exceeds(most float64) func(elapsed time.Duration) bool {
	old, begun, next := r.old(), r.s.Now(), time.Second/2
	return func(elapsed time.Duration) bool {
		if elapsed < next {
			return false
		}
		next = elapsed + time.Second/2
		fails := func() bool {
			bad, failed, _, _ := losses(r.due(begun, math.MaxInt64), r.s.Now(), old)
			return float64(bad+failed) > most
		}
		if !fails() {
			return false
		}
		old = max(old, r.old()) // by now it is known how long calls take at this rate
		return fails()
	}
}

// allowed is how many of n calls may fail at a rate that holds, where they fail little by little.
func (r *session) allowed(n uint64) float64 {
	most := (r.floor() + 0.01) * float64(n)
	if !r.gradual() && !r.class().Traits().Drops {
		most += 2 * math.Sqrt(most) // these fail by the share of calls that are refused, the others by their responses
	}
	return most + 1
}

// stretch is how long a rate is offered from rest to a service that was kept busy before: longer where calls are
// refused little by little.
func (r *session) stretch() time.Duration {
	d := lasting(r.estimate.Value, lastStretch, 600)
	switch {
	case r.long:
		d = 40 * time.Second
	case r.gradual(), r.class().Traits().Drops, r.class().Traits().Falls:
		d = 2 * lastStretch
	}
	return min(d, 40*time.Second)
}

// sheds tries a rate at a target whose refusals become more frequent little by little: by a sequential test over
// batches, whether more than 1 % of the calls, beyond those that fail at any rate, do not end well. What noise leaves
// open is decided by their share. A step that calls which came together can have broken is offered again.
func (r *session) sheds(role Role, rate float64, try int) (held bool, goodput float64, err error) {
	most := r.floor() + 0.01
	batch := whole(lasting(rate, 500*time.Millisecond, 10), r.period())
	old := r.old()
	settled := time.Second + 2*r.typical // the queue of the step before
	begun, next := r.s.Now()+settled, settled+old+5*batch
	var open *bool
	length := max(12*batch, 8*time.Second)
	if r.long {
		length *= 2
	}
	step, err := r.offer(role, rate, settled+old+length, func(elapsed time.Duration) bool {
		if elapsed < next {
			return false
		}
		next = elapsed + batch
		open, _ = r.share(begun, elapsed-settled-old, batch, most)
		return open != nil
	})
	if err != nil {
		return false, 0, err
	}
	if open == nil {
		_, mean := r.share(begun, step.Length()-settled-old, batch, most)
		open = new(mean <= most)
	}
	if *open && r.lossOverConfirmations(rate) > most {
		open = new(false) // it held now, and did not before: together it does not
	}
	goodput = r.seen.goodput(step.Length() - settled)
	if *open && r.savedExplains(step) {
		return false, goodput, nil
	}
	if step.Passed = open; !*open {
		step.Note = failNote
	}
	if again := !*open && role == RoleConfirmLow && r.leftOpen(step, try); again {
		return r.sheds(role, rate, try+1)
	}
	return *open, goodput, nil
}

// share tests whether at most a share of the calls that were due within d from begun on ended badly: nil where noise
// leaves it open. The mean share of the batches is returned as well. Calls that were held back are left out.
func (r *session) share(begun, d, batch time.Duration, most float64) (held *bool, mean float64) {
	n := max(0, int(d/batch))
	slow, all := make([]float64, n), make([]float64, n)
	total, over := 0.0, 0.0
	var stopped heldBack
	for c := range r.due(begun, math.MaxInt64) {
		if stopped.disturbs(c) {
			continue
		}
		k := int((c.Intended - begun) / batch)
		if k < 0 || k >= n {
			continue
		}
		all[k]++
		total++
		if endedBadly(c) {
			slow[k]++
			over++
		}
	}
	for k := range slow {
		slow[k] /= math.Max(1, all[k])
	}
	e, ok := stat.MeanInterval(slow, level)
	switch {
	case !ok || total < 3/most && over <= most*total: // none of n calls proves less than 3/n
		return nil, over / math.Max(1, total)
	case e.Hi <= most:
		return new(true), e.Value
	case e.Lo > most:
		return new(false), e.Value
	}
	return nil, e.Value
}

// lossOverConfirmations is the share of the calls that did not end well over all confirmations of about that rate since
// the last overload, without the first second of each and without those that were left open.
func (r *session) lossOverConfirmations(rate float64) float64 {
	over := lastOverload(r.t)
	if len(over) == 0 {
		return 0
	}
	bad, n := 0, 0
	for _, s := range r.t.Steps {
		open := s.Passed == nil && s.Note != ""
		if !confirms(s.Role) || open || s.Segment.Start < over[0].Segment.Start || s.Rate < 0.99*rate || s.Rate > 1.01*rate {
			continue
		}
		b, due := countBad(undisturbed(r.due(s.Segment.Start+time.Second, s.Segment.End-r.old())))
		bad, n = bad+b, n+due
	}
	return float64(bad) / float64(max(1, n))
}

// failNote is the note of a step that was ended because calls failed.
const failNote = "calls fail"

// drifts tries a rate at a target whose calls wait, for most at most: above the capacity responses grow by
// rate ÷ capacity − 1 per second. It is a sequential test of that slope against half of what a bracket of 2 % should
// show. A rate that should hold has a second, longer chance to be decided.
func (r *session) drifts(role Role, rate float64, most time.Duration) (held bool, goodput float64, err error) {
	block := r.block(rate)
	var open *bool
	failing := false
	next := max(5*block, 2500*time.Millisecond)
	step, err := r.offer(role, rate, most, func(elapsed time.Duration) bool {
		if elapsed < time.Second {
			return false
		}
		_, c := r.seen.over(elapsed)
		if failing = c.bad >= 8 && r.fails(r.s.Now()-elapsed); failing || elapsed < next {
			return failing
		}
		next += block
		open = r.slope(rate, r.s.Now()-elapsed, elapsed, block)
		return open != nil
	})
	if err != nil {
		return false, 0, err
	}
	goodput = r.seen.goodput(step.Length())
	if _, c := r.seen.over(step.Length()); failing || float64(c.bad) > r.allowed(c.due) {
		step.Passed, step.Note = new(false), failNote
		return false, goodput, nil
	}
	if r.class().Traits().Unaccepted {
		calls := r.due(step.Segment.Start, step.Segment.End)
		_, n := countBad(calls)
		if stuck := signature.Stuck(calls, r.s.Now()); float64(stuck) > excused(n) {
			step.Passed, step.Note = new(false), fmt.Sprintf("%d calls are stuck", stuck)
			return false, goodput, nil
		}
	}
	if open == nil {
		open = r.slope(rate, step.Segment.Start, step.Length(), block)
	}
	if _, c := r.seen.over(step.Length() / 2); open == nil && float64(c.good) < 0.8*(1-r.floor())*float64(c.due) {
		open = new(false)
	}
	if step.Passed = open; open != nil {
		return *open, goodput, nil
	}
	step.Note = "undecided: noise"
	if longer := 25 * time.Second; role == RoleConfirmLow && most < longer && r.remaining() > 2*longer {
		return r.drifts(role, rate, longer)
	}
	return role == RoleConfirmLow, goodput, nil
}

// fails reports whether clearly more calls that were due since from fail than fail at any rate.
func (r *session) fails(from time.Duration) bool {
	bad, n := 0, 0
	for c := range undisturbed(r.due(from, math.MaxInt64)) {
		if c.Done == 0 {
			continue
		}
		if n++; !c.Outcome.Good() {
			bad++
		}
	}
	return bad >= 8 && float64(bad) > (r.floor()+0.015+1.5*r.tolerance(n))*float64(n)
}

// block is the length of the blocks whose responses are compared: at least half a second, five calls, and whole periods
// of a scheduler.
func (r *session) block(rate float64) time.Duration {
	return whole(whole(lasting(rate, time.Second/2, 5), r.period()), poll)
}

// period returns the period of the target's answers; 0 if none was seen.
func (r *session) period() time.Duration { return time.Duration(r.estimate.verdict.Period * 1e9) }

// whole rounds d up to a multiple of unit.
func whole(d, unit time.Duration) time.Duration {
	if unit <= 0 || d%unit == 0 {
		return d
	}
	return d + unit - d%unit
}

// slope decides whether responses grow over a step that began at from: nil when noise leaves it open.
func (r *session) slope(rate float64, from, elapsed, block time.Duration) *bool {
	now := from + elapsed
	calls := r.due(from, now)
	if r.class().Traits().Unaccepted {
		calls = answered(calls, now)
	}
	x, y := blocks(calls, from, now, block, r.class().Traits().Periodic)
	if r.stands() {
		x, y = r.backlog(from, now, block)
	} else if len(x) > 4 {
		x, y = x[:len(x)-1], y[:len(y)-1] // calls of the last block are still young
	}
	l, ok := stat.Regress(x, y)
	if !ok || math.IsNaN(l.SE) {
		return nil
	}
	if r.idle(calls, now, elapsed) {
		return new(true)
	}
	const correlated = 2.5 // residuals of a queue are autocorrelated
	threshold := 0.01
	if r.canBeKeptBusy() {
		threshold = max(threshold, (rate/r.estimate.Value-1)/2) // half of what the estimate says
	}
	switch se := max(2*correlated*l.SE, 2*r.walk(elapsed)); {
	case l.Slope+se < threshold && (r.stands() || !r.answersNone(calls, now, block)):
		return new(true)
	case l.Slope-se > threshold:
		return new(false)
	}
	return nil
}

// idle reports whether the calls of the second half of a step were answered about as fast as far below the capacity,
// and hardly any is outstanding for longer: no queue stands.
func (r *session) idle(calls iter.Seq[*load.Call], now, elapsed time.Duration) bool {
	if r.typical == 0 || elapsed < 8*time.Second || r.stands() {
		return false
	}
	quick, n := 0, 0
	for c := range calls {
		if c.Intended < now-elapsed/2 || c.Outstanding(now) && c.Intended > now-4*r.typical-20*time.Millisecond {
			continue
		}
		if n++; !c.Outstanding(now) && c.Outcome.Good() && c.Response() <= 2*r.typical+2*time.Millisecond {
			quick++
		}
	}
	return n >= 20 && 10*quick >= 9*n
}

// answersNone reports whether the target answers hardly any call of a step: most are outstanding, those of its last
// block aside, which are young. Of such a call nothing is known but its age, and ages fall from call to call: a target
// that answers nothing would seem to become faster. Behind a full listen queue most calls may be stuck, which drifts
// counts; there it is mute if none is answered.
func (r *session) answersNone(calls iter.Seq[*load.Call], now, block time.Duration) bool {
	outstanding, good, n := 0, 0, 0
	for c := range calls {
		if c.Intended >= now-block {
			continue
		}
		switch n++; {
		case c.Outstanding(now):
			outstanding++
		case c.Outcome.Good():
			good++
		}
	}
	if r.class().Traits().Unaccepted {
		return good == 0
	}
	return 2*outstanding > n
}

// walk is the standard error of a slope over a stretch that a queue's own randomness gives: its backlog is a random
// walk, whose slope has 6/5 of the variance of its mean. The overload has shown how random.
func (r *session) walk(stretch time.Duration) float64 {
	over := lastOverload(r.t)
	if len(over) == 0 || r.estimate.N < 4 || r.class().Traits().Falls {
		return 0
	}
	from, to := span(over)
	se := r.estimate.Half() / stat.StudentQuantile((1+level)/2, float64(r.estimate.N-1))
	return se * math.Sqrt(1.2*(to-from).Seconds()/stretch.Seconds())
}

// answered leaves out calls that are stuck: outstanding, though calls that were sent later have been answered.
func answered(calls iter.Seq[*load.Call], now time.Duration) iter.Seq[*load.Call] {
	var newest time.Duration
	for c := range calls {
		if !c.Outstanding(now) && c.Outcome.Good() {
			newest = max(newest, c.Sent)
		}
	}
	return func(yield func(*load.Call) bool) {
		for c := range calls {
			if stuck := c.Outstanding(now) && c.Sent != 0 && c.Sent < newest; !stuck && !yield(c) {
				return
			}
		}
	}
}

// blocks are the median responses, or the longest, of calls due in each block; of an outstanding call its age so far.
func blocks(calls iter.Seq[*load.Call], from, now, block time.Duration, longest bool) (x, y []float64) {
	n := int((now - from) / block)
	ages := make([][]float64, n)
	for c := range calls {
		k := int((c.Intended - from) / block)
		if k < 0 || k >= n {
			continue
		}
		age := (now - c.Intended).Seconds()
		if !c.Outstanding(now) {
			age = c.Response().Seconds()
		}
		ages[k] = append(ages[k], age)
	}
	for k, a := range ages {
		switch {
		case len(a) == 0:
			continue
		case longest:
			y = append(y, slices.Max(a))
		default:
			y = append(y, stat.Quantile(a, 0.5))
		}
		x = append(x, float64(k)*block.Seconds())
	}
	return x, y
}
