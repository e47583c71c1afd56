package capacity

import (
	"math"
	"time"

	"tare/internal/load"
	"tare/internal/signature"
	"tare/internal/stat"
)

const (
	// maxTries bounds the confirmations after one overload.
	maxTries = 18
	// refining is how long a search goes on to narrow a bracket.
	refining = 140 * time.Second
	// agreeing is how many stretches have to show that a rate holds, and that one breaks, where calls wait: the first may
	// have been slow for a while. Of a limiter the overload has shown what it lets pass, and one stretch on either side
	// agrees with that.
	agreeing = 2
	// clearly is how many calls more than the estimate allows are offered at least to see whether a rate breaks.
	clearly = 5
	// surprise is by how much the estimate shifts when a rate does not do what is expected of it; each further surprise
	// shifts by three times as much.
	surprise = 0.015
)

// confirm brackets the estimate: first a rate just above, which should break, then one just below, which should hold,
// and both again. On a contradiction the estimate shifts, further each time. A goodput above 0 asks for another
// overload, from there: the first was not the whole truth.
func (r *session) confirm() (goodput float64, err error) {
	if again, err := r.experiment(); again || err != nil {
		return r.fastest, err
	}
	a := r.aim()
	first := a.center
	if !(a.center > 0) {
		if r.fastest <= 0 {
			return 0, nil
		}
		a.center, first = r.fastest, math.Inf(1) // nothing passed under overload: which rate holds is looked for from rest
		a.width, a.shift = 0.1, 0.1
	}
	for try := 0; try < maxTries && (try < 4 || r.s.Now()-r.start < refining); try++ {
		if a.done() {
			if err := r.conclude(&a); err != nil {
				return 0, err
			} else if a.done() {
				break
			}
		}
		role, rate := a.next(r.o.MaxRate)
		if rate <= 0 {
			break
		}
		held, got, err := r.verify(role, rate)
		if err != nil {
			return 0, err
		}
		if role == RoleConfirmLow && !held && got < 0.93*(1-r.floor())*rate && (r.class().Traits().Steady || r.lossy()) &&
			!r.rests {
			if r.overloads() < 3 {
				return max(got, rate/100), nil // it may have been a stall in which nothing passed at all
			}
			r.rests = true // what it lets pass depends on what was offered before
		}
		if r.warmer() && r.overloads() < 6 {
			return max(rate, r.fastest), nil
		}
		last := r.t.Steps[len(r.t.Steps)-1]
		if role == RoleConfirmHigh && last.Passed == nil && a.hi == 0 {
			if a.widen() {
				continue
			}
			if held, _, err = r.lasts(rate, 2*r.stretch()); err != nil {
				return 0, err
			}
			last = r.t.Steps[len(r.t.Steps)-1]
		}
		r.long = !a.learn(trial{rate, held, last.Length()}) || r.long
		if a.lo > 1.25*first && r.overloads() < 6 && !r.rests {
			return a.lo, nil // the overload met another limit, or a target that was not warm yet
		}
		if role == RoleConfirmHigh && !held {
			if err := r.fill(); err != nil {
				return 0, err
			}
		}
	}
	return 0, nil
}

// experiment tries what tells likely causes apart. It reports whether the target became warm meanwhile, so that it is
// to be overloaded again.
func (r *session) experiment() (again bool, err error) {
	was := r.warm
	for _, try := range []func() error{r.allowance, r.pauseWhereCallsHang, r.places, r.remembers, r.keepBusy} {
		if err := try(); err != nil {
			return false, err
		}
	}
	return r.warm != was && r.overloads() < 6, nil
}

// aim begins a bracket around the estimate.
func (r *session) aim() aim {
	a := aim{center: r.estimate.Value, width: r.width(), shift: surprise, enough: 1, again: 1}
	if a.fine = a.width; r.class().Traits().Falls {
		a.fine, a.again = 0.06, agreeing // each rate takes long to confirm, and the target may be warm only after the first
	} else if !r.canBeKeptBusy() && (r.waits() || r.gradual()) {
		a.enough, a.again = agreeing, agreeing
	}
	return a
}

// gradual reports whether calls are refused little by little around the capacity: places are taken by chance, and a
// limit on the rate lets a steady one pass.
func (r *session) gradual() bool {
	t, queued := r.class().Traits(), r.estimate.verdict.Queued
	counting := 2 / math.Max(1, r.estimate.Value*15) // how far a single call more or less moves the estimate
	noisy := r.estimate.N > 0 && r.estimate.Half() > 0.015+counting+r.floor()
	return t.Gradual || t.Places && baseOf(r.t).varied() ||
		t.Steady && !t.Windowed && !t.Strands && noisy && (t.Limiter || !queued)
}

// waits reports whether rates are judged by whether responses grow, each from rest: calls wait, and the limit saves
// nothing up.
func (r *session) waits() bool {
	t := r.class().Traits()
	return t.Waits || r.estimate.verdict.Queued && !t.Saves && !t.Places && !t.Strands
}

// lossy reports whether calls failed in the last step, though the class is one whose calls wait.
func (r *session) lossy() bool {
	return r.class() == signature.Queue && r.t.Steps[len(r.t.Steps)-1].Note == failNote
}

// width is how far from the estimate to confirm: 2 %, or as far as noise demands.
func (r *session) width() float64 {
	w := max(0.02, min(0.15, r.estimate.Half()*1.5))
	if r.class().Traits().Falls {
		w = 0.02 // its interval is wide on purpose: the bracket will tell
	}
	if !r.waits() {
		_, counted := r.lossTime(r.estimate.Value)
		n := r.estimate.Value * counted.Seconds()
		w = max(w, min(0.5, clearly/n))
	}
	return w
}

// verify tries one rate, and says whether it held and how many calls per second ended well. What noise leaves open is
// taken as expected, and the trace says so.
func (r *session) verify(role Role, rate float64) (held bool, goodput float64, err error) {
	if err := r.prepare(role); err != nil {
		return false, 0, err
	}
	if role == RoleConfirmLow && (r.canBeKeptBusy() || r.long || r.class().Traits().Falls) {
		return r.lasts(rate, r.stretch())
	}
	if r.waits() || r.class().Traits().Unaccepted {
		held, goodput, err := r.drifts(role, rate)
		if held && err == nil && role == RoleConfirmHigh && (r.canBeKeptBusy() || r.class().Traits().Falls) {
			return r.lasts(rate, r.stretch()) // it did not do as much under overload, or when it was kept busy
		}
		return held, goodput, err
	}
	if r.gradual() {
		return r.sheds(role, rate)
	}
	return r.loses(role, rate, 1)
}

// prepare brings the target into the state that the confirmation needs.
func (r *session) prepare(role Role) error {
	traits := r.class().Traits()
	switch {
	case r.stands():
		return r.prime()
	case r.spent:
		return r.pause(
			r.o.Timeout, func() bool { return float64(r.seen.last().open) <= 2*r.estimate.Value*r.typical.Seconds()+2 },
			"until the queue is empty",
		)
	case r.rests || traits.Falls:
		return r.settle("until the target is idle")
	case r.waits():
		if err := r.pause(
			r.o.Timeout+time.Second, r.quiet(max(time.Second, r.longestAnswer())), "until the queue is empty",
		); err != nil {
			return err
		}
		return r.settle("until the queue is empty")
	case traits.Strands && !traits.Saves && role == RoleConfirmLow:
		if err := r.settle("until only stuck calls are left"); err != nil {
			return err
		}
		r.judge() // some may have been answered after all
		return nil
	}
	if err := r.waitForConnections(); err != nil {
		return err
	}
	return r.useUp()
}

// waitForConnections waits until no call waits for a connection: those are not the next step's.
func (r *session) waitForConnections() error {
	if p := r.s.Progress(); float64(p.Waiting) <= 0.02*r.estimate.Value {
		return nil
	}
	return r.pause(r.o.Timeout, func() bool { return r.s.Progress().Waiting == 0 }, "until no call waits for a connection")
}

// useUp offers more than the estimate for as long as a limiter needs to refuse calls that it has saved up since it was
// last at its limit: in pauses, and while rates below the estimate were offered.
func (r *session) useUp() error {
	traits := r.class().Traits()
	rate := min(1.5*r.estimate.Value, r.o.MaxRate)
	if !traits.Saves || traits.Strands || traits.Windowed || rate < 1.05*r.estimate.Value {
		return nil
	}
	saved := r.saved()
	if saved < 0.5 {
		return nil
	}
	d := time.Duration((1.5*saved + 2) / (rate - r.estimate.Value) * 1e9)
	_, err := r.offer(RolePrime, rate, max(50*time.Millisecond, min(d, 12*time.Second)), nil)
	return err
}

// saved is how many calls a limiter can have saved up since the last overload, if its rate is the estimate.
func (r *session) saved() float64 {
	over := lastOverload(r.t)
	if len(over) == 0 {
		return 0
	}
	_, at := span(over)
	saved := 0.0
	for _, s := range r.t.Steps {
		if s.Segment.Start >= at {
			saved = max(0, saved+r.estimate.Value*(s.Segment.End-at).Seconds()-float64(s.Segment.Offered))
			at = s.Segment.End
		}
	}
	return saved + r.estimate.Value*(r.s.Now()-at).Seconds()
}

// longestAnswer is the p99 of the responses of the last second: while that long nothing ends, nothing will.
func (r *session) longestAnswer() time.Duration {
	var response []float64
	now := r.s.Now()
	for c := range r.t.due(0, math.MaxInt64) {
		if c.Done > now-2*time.Second && c.Outcome.Good() {
			response = append(response, float64(c.Response()))
		}
	}
	if len(response) == 0 {
		return time.Second
	}
	return time.Duration(stat.Quantile(response, 0.99)) / 4
}

// nextWindow is when the limiter's window turns next, and its period; 0 where there is none.
func (r *session) nextWindow() (next, period time.Duration) {
	period = time.Duration(r.estimate.verdict.Period * 1e9)
	over := lastOverload(r.t)
	if !r.class().Traits().Windowed || period <= 0 || len(over) == 0 {
		return 0, 0
	}
	from, to := span(over)
	_, _, last, n := signature.Cycle(ends(r.t.due(0, to+1), from, to))
	if n == 0 {
		return 0, 0
	}
	next = time.Duration(last * 1e9)
	for next < r.s.Now() {
		next += period
	}
	return next, period
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

// tolerance is the share of n calls that may fail: 0.5 %, and where some always fail those and two standard errors.
func (r *session) tolerance(n int) float64 {
	f := r.floor()
	return 0.005 + 2*math.Sqrt(f*(1-f)/math.Max(1, float64(n)))
}

// loses counts calls that fail or hang.
func (r *session) loses(role Role, rate float64, try int) (held bool, goodput float64, err error) {
	before, counted := r.lossTime(rate)
	step, err := r.offer(role, rate, before+counted, nil)
	if err != nil {
		return false, 0, err
	}
	now, from := r.s.Now(), step.Segment.Start+before
	calls := undisturbed(due(r.s.Calls(from), from, step.Segment.End))
	bad, failed, n := losses(calls, now, r.old())
	if usual := r.floor() + r.tolerance(n); float64(failed) > max(1, usual*float64(n)) {
		bad += failed // these are more than those that fail at any rate
	}
	goodput = r.seen.goodput(counted)
	held = 2*n >= len(calls) && float64(bad) <= excused(n) && goodput >= 0.9*(1-r.floor())*rate
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
	if a := r.auditOf(step); r.burstExplains(step, a) {
		step.Passed, step.Note = nil, offeredAgain(a)
		if try <= mostTries {
			return r.loses(role, rate, try+1)
		}
		step.Note = "undecided: the host held calls back"
	}
	return held, goodput, nil
}

// onlyAtFirst reports whether calls were refused or hung in the first half of a step, and not in its second.
func (r *session) onlyAtFirst(s *Step) bool {
	from := s.Segment.Start + s.Length()/2
	bad, failed, n := losses(undisturbed(due(r.s.Calls(from), from, s.Segment.End)), r.s.Now(), r.old())
	return n > 0 && float64(bad+failed) <= excused(n)+r.floor()*float64(n)
}

// excused is how many of n calls may be refused or hang at a rate that holds.
func excused(n int) float64 { return max(1, 0.005*float64(n)) }

// old is how long a call has to be open to be counted as hanging: clearly longer than answers have taken so far.
func (r *session) old() time.Duration {
	now := r.s.Now()
	var all, recent []float64
	for _, c := range r.s.Calls(max(0, now-30*time.Second)) {
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

// losses counts calls that were refused, lost or have been open for at least old; those that were answered wrongly; and
// all that are old enough to tell.
func losses(calls []load.Call, now, old time.Duration) (bad, failed, n int) {
	for _, c := range calls {
		switch {
		case c.Outstanding(now):
			if c.Intended < now-old {
				bad++
				n++
			}
		case c.Outcome.Good():
			n++
		case c.Outcome == load.Failed || c.Outcome == load.Wrong:
			failed++
			n++
		default:
			bad++
			n++
		}
	}
	return bad, failed, n
}
