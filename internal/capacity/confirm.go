package capacity

import (
	"math"
	"slices"
	"time"

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
	// farOff is the share of the estimate below which calls that fail may fail at any rate.
	farOff = 0.85
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
			} else if a.done() && !a.reopens() {
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
		traits, last := r.class().Traits(), r.t.Steps[len(r.t.Steps)-1]
		if role == RoleConfirmLow && !held && last.Passed == nil {
			a.leaveOpen(rate)
			continue
		}
		if was := r.floor(); !held && rate < farOff*first && !r.unexplained && r.failed(last).share() > was+resolution {
			// Calls fail where the overload's were answered: do they at any rate?
			r.unexplained = true
			if err := r.farBelow(); err != nil {
				return 0, err
			}
			if r.floor() > was+resolution {
				a = r.aim()
				first = a.center
				continue
			}
		}
		fails := traits.Steady || traits.Lossless && last.Note == failNote
		if role == RoleConfirmLow && !held && fails && got < 0.93*(1-r.floor())*rate && !r.rests {
			if r.overloads() < 3 {
				return max(got, rate/100), nil // it may have been a stall in which nothing passed at all
			}
			r.rests = true // what it lets pass depends on what was offered before
		}
		if r.warmer() && r.overloads() < 6 {
			return max(rate, r.fastest), nil
		}
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
		held, goodput, err := r.drifts(role, rate, max(10*time.Second, 8*r.block(rate)))
		if held && err == nil && role == RoleConfirmHigh && (r.canBeKeptBusy() || r.class().Traits().Falls) {
			return r.lasts(rate, r.stretch()) // it did not do as much under overload, or when it was kept busy
		}
		return held, goodput, err
	}
	if r.gradual() {
		return r.sheds(role, rate, 1)
	}
	return r.loses(role, rate, 1)
}

// conclude lets a long stretch agree with the lower side of a bracket that short ones may err about, or do not suffice
// to state, where it has not yet, and a target that has answered few calls warm up. A bracket that is not done any more
// asks for further confirmations.
func (r *session) conclude(a *aim) error {
	r.judge() // the bracket may tell classes apart
	if r.lasted < a.lo && (r.class().Traits().Falls || r.gradual() || r.heldTooBriefly(a.lo)) {
		d := max(r.stretch(), r.t.leastHeld(r.estimate.verdict))
		if held, err := r.lowerSideLasts(a, d); err != nil || !held {
			return err
		}
	}
	return r.warmUp(a)
}

// heldTooBriefly reports whether a rate held, but at no stretch for as long as a report demands of the class.
func (r *session) heldTooBriefly(rate float64) bool {
	longest := time.Duration(0)
	for _, s := range r.t.Steps {
		if s.confirmation() && *s.Passed && s.Rate >= rate {
			longest = max(longest, s.Length())
		}
	}
	return longest > 0 && longest < r.t.leastHeld(r.estimate.verdict)
}

// lowerSideLasts reports whether the lower side of a bracket holds for d. Where it does not, it moves the bracket below
// that side, and to no more calls a second than were answered well.
func (r *session) lowerSideLasts(a *aim, d time.Duration) (bool, error) {
	held, got, err := r.lasts(a.lo, d)
	if err == nil && !held {
		r.long = true
		a.learn(trial{rate: a.lo, length: r.t.Steps[len(r.t.Steps)-1].Length()})
		a.center = min(a.center, got)
		a.fine = max(a.fine, 0.08)
	}
	return held, err
}

// warmUp holds the lower side of a bracket until the target counts as warm, and tries the upper side again: it may hold
// now. Where the time does not suffice, the upper side is not stated.
func (r *session) warmUp(a *aim) error {
	// what a limiter lets pass does not depend on how fast it answers
	if a.lo <= 0 || r.class().Traits().Saves {
		return nil
	}
	r.read()
	w, left := r.t.warmth(a.hi), r.remaining()-20*time.Second
	d := w.until(warmAfter, a.lo)
	if d > left { // fewer calls have to do
		d = w.missing(a.lo)
	}
	if d == 0 || d > left {
		return nil
	}
	if held, err := r.lowerSideLasts(a, d); err != nil || !held {
		return err
	}
	held, _, err := r.verify(RoleConfirmHigh, a.hi)
	if err != nil {
		return err
	}
	a.learn(trial{a.hi, held, r.t.Steps[len(r.t.Steps)-1].Length()})
	return nil
}

// faster is the largest ratio of a confirmation's median response to those well below the capacity that shows a target
// that was cold then.
const faster = 0.67

// warmer reports whether the target answered the calls of the last step clearly faster than it had answered the ramp's,
// at lower rates: it was not warm then, and what broke it before says nothing. That matters where the capacity depends
// on how fast it answers.
func (r *session) warmer() bool {
	if r.class().Traits().Saves {
		return false
	}
	r.read()
	b, s := baseOf(r.t), r.t.Steps[len(r.t.Steps)-1]
	if b.p50 == 0 {
		return false
	}
	response := responses(r.t.due(s.Segment.Start, s.Segment.End), 0)
	if len(response) < 50 {
		return false
	}
	usual := b.p50
	if r.warm > 0 {
		usual = min(usual, r.warm) // it was seen to be warm before
	}
	median := time.Duration(stat.Quantile(response, 0.5))
	if float64(median) >= faster*float64(usual) {
		return false
	}
	r.warm = median
	return true
}

// prepare brings the target into the state that the confirmation needs.
func (r *session) prepare(role Role) error {
	traits := r.class().Traits()
	switch {
	case r.stands():
		return r.prime()
	case r.spent:
		empty := func() bool { return float64(r.seen.last().open) <= 2*r.estimate.Value*r.typical.Seconds()+2 }
		return r.pause(r.o.Timeout, empty, "until the queue is empty")
	case r.rests || traits.Falls:
		return r.settle("until the target is idle")
	case r.waits():
		quiet := r.quiet(max(time.Second, r.longestAnswer()))
		if err := r.pause(r.o.Timeout+time.Second, quiet, "until the queue is empty"); err != nil {
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
	response := responses(r.t.due(0, math.MaxInt64), r.s.Now()-2*time.Second)
	if len(response) == 0 {
		return time.Second
	}
	return time.Duration(stat.Quantile(response, 0.99)) / 4
}

// trial is what a confirmation showed: that a rate held for a while, or that it broke within it.
type trial struct {
	rate   float64
	held   bool
	length time.Duration
}

// bracket is the highest rate that holds and the lowest that breaks, by confirmations that do not contradict each
// other.
type bracket struct {
	trials      []trial
	lo, hi      float64 // 0: not known
	held, broke int     // trials that showed it
}

// add takes what a confirmation showed. It makes void what was shown before and contradicts it, for a target changes;
// but that a rate held says nothing against another that was no higher and broke only after a longer time: then add
// returns false.
func (b *bracket) add(x trial) bool {
	contradicts := func(y trial) bool {
		return x.held && !y.held && y.rate <= x.rate || !x.held && y.held && y.rate >= x.rate
	}
	for _, y := range b.trials {
		if x.held && contradicts(y) && y.length > x.length+x.length/10 {
			return false
		}
	}
	b.trials = append(slices.DeleteFunc(b.trials, contradicts), x)
	b.lo, b.hi, b.held, b.broke = 0, 0, 0, 0
	for _, y := range b.trials {
		switch {
		case y.held && y.rate > b.lo:
			b.lo, b.held = y.rate, 1
		case y.held && y.rate == b.lo:
			b.held++
		case !y.held && (b.hi == 0 || y.rate < b.hi):
			b.hi, b.broke = y.rate, 1
		case !y.held && y.rate == b.hi:
			b.broke++
		}
	}
	return true
}

// aim is a bracket in the making.
type aim struct {
	bracket
	center, width float64
	fine          float64 // the first width
	shift         float64 // of the next surprise
	enough        int     // trials that have to show that a rate holds
	again         int     // and that one breaks
	open          float64 // the lowest rate above lo of which it stays open whether it holds; 0: there is none
	reopened      bool    // whether such rates were tried once more after a lower one held
}

func (a aim) narrow() bool { return a.lo > 0 && a.hi > 0 && a.top()/a.lo < 1+2.6*max(a.fine, 0.02) }

// top is where to look for a rate that holds no longer: where one breaks, or stays open.
func (a aim) top() float64 {
	if a.open > a.lo {
		return min(a.open, a.hi)
	}
	return a.hi
}

// reopens has the rates that stayed open tried once more: the host may hold back no calls any more.
func (a *aim) reopens() bool {
	again := a.top() < a.hi && !a.reopened
	a.open, a.reopened = 0, true
	return again && !a.narrow()
}

func (a aim) done() bool { return a.narrow() && a.held >= a.enough && a.broke >= a.again }

// next is the step to take: high first, then low, then the middle of a wide bracket, then both sides again.
func (a aim) next(most float64) (Role, float64) {
	switch {
	case a.hi == 0 && a.center < most*0.999:
		return RoleConfirmHigh, min(a.center*(1+a.width), most)
	case a.lo == 0:
		return RoleConfirmLow, a.center * (1 - a.width)
	case a.hi == 0:
		return "", 0
	case !a.narrow():
		return RoleConfirmLow, math.Sqrt(a.lo * a.top())
	case a.broke <= a.held:
		return RoleConfirmHigh, a.hi
	}
	return RoleConfirmLow, a.lo
}

// widen moves the higher rate further away, where noise left open whether it breaks; false where it is far away
// already.
func (a *aim) widen() bool {
	if a.hi > 0 || a.width >= 0.15 {
		return false
	}
	a.width *= 2
	return true
}

// learn takes what a confirmation showed, and moves the center beyond it where that was not expected. It returns false
// where the stretch was too short to say anything against another.
func (a *aim) learn(x trial) bool {
	expected := x.held == (x.rate < a.center)
	if !a.add(x) {
		return false
	}
	if expected || a.lo > 0 && a.hi > 0 {
		return true
	}
	// The other side is to be looked for beyond the rate that surprised.
	if x.held {
		a.move(x.rate * (1 + a.shift))
	} else {
		a.move(x.rate / (1 + a.shift))
	}
	return true
}

// leaveOpen looks for a rate that holds below one of which it stays open whether it does.
func (a *aim) leaveOpen(rate float64) {
	if a.open = rate; a.lo == 0 {
		a.move(rate / (1 + a.shift))
	}
}

// move moves the center, and lets the next surprise move it further.
func (a *aim) move(center float64) {
	a.center, a.shift, a.width = center, min(0.5, 3*a.shift), min(0.3, 1.5*a.width)
}
