package capacity

import (
	"math"
	"slices"
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
	// agreeing is how many stretches have to show that a rate holds, and that one breaks, where calls wait: the first may have been slow for a while. Of a
	// limiter the overload has shown what it lets pass, and one stretch on either side agrees with that.
	agreeing = 2
	// clearly is how many calls more than the estimate allows are offered at least to see whether a rate breaks.
	clearly = 5
	// surprise is by how much the estimate shifts when a rate does not do what is expected of it; each further surprise shifts by three times as much.
	surprise = 0.015
)

// aim is a bracket in the making.
type aim struct {
	center, width float64
	fine          float64 // the first width
	shift         float64 // of the next surprise
	lo, hi        float64 // held and broke, 0: not yet
	held, broke   int     // stretches that showed it
	enough        int     // of these
}

// confirm brackets the estimate: first a rate just above, which should break, then one just below, which should hold, and both again. On a
// contradiction the estimate shifts, further each time. A goodput above 0 asks for another overload, from there: the first was not the whole truth.
func (r *session) confirm() (goodput float64, err error) {
	if err := r.allowance(); err != nil {
		return 0, err
	}
	if err := r.places(); err != nil {
		return 0, err
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
			again, err := r.conclude(&a)
			if err != nil || again > 0 {
				return again, err
			}
			if a.done() {
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
		if role == RoleConfirmLow && !held && got < 0.93*(1-r.floor())*rate && (r.class().Traits().Steady || r.lossy()) && !r.rests {
			if r.overloads() < 3 {
				return max(got, 1e-9), nil
			}
			r.rests = true // what it lets pass depends on what was offered before
		}
		if role == RoleConfirmHigh && r.t.Steps[len(r.t.Steps)-1].Passed == nil && a.widen() {
			continue
		}
		a.learn(rate, held)
		if a.lo > 1.25*first && r.overloads() < 6 {
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
	a := aim{center: r.estimate.Value, width: r.width(), shift: surprise, enough: 1}
	if a.fine = a.width; r.waits() || r.gradual() {
		a.enough = agreeing
	}
	return a
}

// gradual reports whether calls are refused little by little around the capacity: places are taken by chance, and a limit on the rate lets a steady one pass.
func (r *session) gradual() bool {
	t := r.class().Traits()
	counting := 2 / math.Max(1, r.estimate.Value*15) // how far a single call more or less moves the estimate
	return t.Gradual || t.Steady && !t.Windowed && !t.Strands && r.estimate.N > 0 && r.estimate.Half() > 0.015+counting+r.floor()
}

// waits reports whether rates are judged by whether responses grow, each from rest: calls wait, and the limit saves nothing up.
func (r *session) waits() bool {
	t := r.class().Traits()
	return t.Waits || r.estimate.verdict.Queued && !t.Saves && !r.gradual() && !t.Strands
}

// lossy reports whether calls failed in the last step, though the class is one whose calls wait.
func (r *session) lossy() bool {
	return r.class() == signature.Queue && r.t.Steps[len(r.t.Steps)-1].Note == failNote
}

func (a aim) narrow() bool { return a.lo > 0 && a.hi > 0 && a.hi/a.lo < 1+2.6*max(a.fine, 0.02) }

func (a aim) done() bool { return a.narrow() && a.held >= a.enough && a.broke >= a.enough }

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
		return RoleConfirmLow, math.Sqrt(a.lo * a.hi)
	case a.broke <= a.held:
		return RoleConfirmHigh, a.hi
	}
	return RoleConfirmLow, a.lo
}

// widen moves the higher rate further away, where noise left open whether it breaks; false where it is far away already.
func (a *aim) widen() bool {
	if a.hi > 0 || a.width >= 0.08 {
		return false
	}
	a.width *= 2
	return true
}

func (a *aim) learn(rate float64, held bool) {
	expected := held == (rate < a.center)
	if held {
		a.hold(rate)
	} else {
		a.fail(rate)
	}
	if expected || a.lo > 0 && a.hi > 0 {
		return
	}
	// The other side is to be looked for beyond the rate that surprised.
	if held {
		a.center = rate * (1 + a.shift)
	} else {
		a.center = rate / (1 + a.shift)
	}
	a.shift = min(0.5, 3*a.shift)
	a.width = min(0.3, 1.5*a.width)
}

// hold notes that a rate held. What broke at it or below before is not true any more.
func (a *aim) hold(rate float64) {
	if a.hi > 0 && a.hi <= rate {
		a.hi, a.broke = 0, 0
	}
	switch {
	case rate == a.lo:
		a.held++
	case rate > a.lo:
		a.lo, a.held = rate, 1
	}
}

// fail notes that a rate broke. What held at it or above before is not true any more.
func (a *aim) fail(rate float64) {
	if a.lo >= rate {
		a.lo, a.held = 0, 0
	}
	switch {
	case rate == a.hi:
		a.broke++
	case a.hi == 0 || rate < a.hi:
		a.hi, a.broke = rate, 1
	}
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

// verify tries one rate, and says whether it held and how many calls per second ended well. What noise leaves open is taken as expected, and
// the trace says so.
func (r *session) verify(role Role, rate float64) (held bool, goodput float64, err error) {
	if err := r.prepare(role); err != nil {
		return false, 0, err
	}
	if r.waits() || r.class() == signature.AcceptQueue {
		return r.drifts(role, rate)
	}
	if r.gradual() {
		return r.sheds(role, rate)
	}
	return r.loses(role, rate, false)
}

// prepare brings the target into the state that the confirmation needs.
func (r *session) prepare(role Role) error {
	traits := r.class().Traits()
	switch {
	case r.stands():
		return r.prime()
	case r.rests || traits.Falls:
		return r.settle("until the target is idle")
	case r.waits():
		if err := r.pause(r.o.Timeout+time.Second, r.quiet(max(time.Second, r.longestAnswer())), "until the queue is empty"); err != nil {
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
	if err := r.unqueue(); err != nil {
		return err
	}
	return r.useUp()
}

// unqueue waits until no call waits for a connection: those are not the next step's.
func (r *session) unqueue() error {
	if p := r.s.Progress(); float64(p.Waiting) <= 0.02*r.estimate.Value {
		return nil
	}
	return r.pause(r.o.Timeout, func() bool { return r.s.Progress().Waiting == 0 }, "until no call waits for a connection")
}

// useUp offers more than the estimate for as long as a limiter needs to refuse calls that it has saved up since it was last at its limit: in pauses, and
// while rates below the estimate were offered.
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

// saved is how many calls fewer than the estimate allows were offered since more than the estimate was.
func (r *session) saved() float64 {
	due, now := 0, r.s.Now()
	for _, s := range slices.Backward(r.t.Steps) {
		if s.Rate > 1.01*r.estimate.Value {
			return r.estimate.Value*(now-s.Segment.End).Seconds() - float64(due)
		}
		due += s.Segment.Offered
	}
	return 0
}

// longestAnswer is the p99 of the responses of the last second: while that long nothing ends, nothing will.
func (r *session) longestAnswer() time.Duration {
	var response []float64
	now := r.s.Now()
	for _, c := range r.t.Calls {
		if c.Done > now-2*time.Second && c.Outcome.Good() {
			response = append(response, float64(c.Response()))
		}
	}
	if len(response) == 0 {
		return time.Second
	}
	return time.Duration(stat.Quantile(response, 0.99)) / 4
}

// turn is when the limiter's window turns next, and its period; 0 where there is none.
func (r *session) turn() (next, period time.Duration) {
	period = time.Duration(r.estimate.verdict.Period * 1e9)
	over := lastOverload(r.t)
	if r.class() != signature.FixedWindow || period <= 0 || len(over) == 0 {
		return 0, 0
	}
	from, to := span(over)
	_, _, last, n := signature.Cycle(ends(r.t.Calls, from, to))
	if n == 0 {
		return 0, 0
	}
	next = time.Duration(last * 1e9)
	for next < r.s.Now() {
		next += period
	}
	return next, period
}

// lossTime is how long to try a rate at which losses are counted, and how much of that comes before the count: until a window turns, or
// until a bucket that has filled in a pause is empty again.
func (r *session) lossTime(rate float64) (before, counted time.Duration) {
	if next, period := r.turn(); period > 0 {
		return next - r.s.Now(), whole(2*time.Second, period)
	}
	counted = max(2*time.Second, min(lasting(rate, 0, 300), 6*time.Second), min(lasting(rate, 0, 100), 10*time.Second))
	if r.rests {
		return 5 * time.Second, max(5*time.Second, counted)
	}
	return 0, counted
}

// tolerance is the share of n calls that may fail: 0.5 %, and where some always fail those and two standard errors.
func (r *session) tolerance(n int) float64 {
	f := r.floor()
	return 0.005 + 2*math.Sqrt(f*(1-f)/math.Max(1, float64(n)))
}

// loses counts calls that fail or hang.
func (r *session) loses(role Role, rate float64, again bool) (held bool, goodput float64, err error) {
	before, counted := r.lossTime(rate)
	step, err := r.offer(role, rate, before+counted, nil)
	if err != nil {
		return false, 0, err
	}
	now, from := r.s.Now(), step.Segment.Start+before
	calls := due(r.s.Calls(from), from, step.Segment.End)
	bad, failed, n := losses(calls, now, r.old())
	if usual := r.floor() + r.tolerance(n); float64(failed) > max(1, usual*float64(n)) {
		bad += failed // these are more than those that fail at any rate
	}
	goodput = r.seen.goodput(counted)
	held = float64(bad) <= excused(n) && goodput >= 0.9*(1-r.floor())*rate
	if step.Passed = &held; !held {
		step.Note = failNote
	}
	if !held && role == RoleConfirmLow && !again {
		// A limiter may still remember the overload: the rate has a second chance, and only that counts.
		step.Passed, step.Note = nil, "broke at first: tried again"
		return r.loses(role, rate, true)
	}
	return held, goodput, nil
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
	d := float64(time.Second / 2)
	if len(all) > 0 {
		d = max(d, 2*stat.Quantile(all, 0.99))
	}
	if len(recent) > 0 {
		d = max(d, 3*stat.Quantile(recent, 0.9))
	}
	return min(time.Duration(d), r.o.Timeout/2)
}

// losses counts calls that were refused, lost or have been open for at least old; those that were answered wrongly; and all that are old enough to tell.
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
