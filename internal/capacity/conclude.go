package capacity

import (
	"math"
	"time"

	"tare/internal/load"
)

// lastStretch is how long a service has to hold a rate at a stretch; a target that collapses, or refuses calls little
// by little, twice as long.
const lastStretch = 12 * time.Second

// conclude lets a long stretch agree with the lower side of a bracket that short ones may err about, where it has not
// yet, and a target that has answered few calls warm up. A bracket that is not done any more asks for further
// confirmations.
func (r *session) conclude(a *aim) error {
	r.judge() // the bracket may tell classes apart
	if traits := r.class().Traits(); r.lasted >= a.lo || !traits.Falls && !r.gradual() {
		return r.warmUp(a)
	}
	held, got, err := r.lasts(a.lo, r.stretch())
	switch {
	case err != nil:
		return err
	case held:
		return r.warmUp(a)
	}
	r.breaks(a, got)
	return nil
}

// breaks moves a bracket below its lower side, which did not last: only got calls a second were answered well.
func (r *session) breaks(a *aim, got float64) {
	r.long = true
	a.learn(trial{rate: a.lo, length: r.t.Steps[len(r.t.Steps)-1].Length()})
	a.center = min(a.center, got)
	a.fine = max(a.fine, 0.08)
}

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
			bad, failed, _ := losses(undisturbed(r.s.Calls(begun)), r.s.Now(), old)
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
// open is decided by their share.
func (r *session) sheds(role Role, rate float64) (held bool, goodput float64, err error) {
	most := r.floor() + 0.01
	batch := lasting(rate, 500*time.Millisecond, 10)
	if p := time.Duration(r.estimate.verdict.Period * 1e9); p > 0 {
		batch = whole(batch, p)
	}
	old := r.old()
	settled := time.Second + 2*r.typical // the queue of the step before
	begun, next := r.s.Now()+settled, settled+old+5*batch
	var open *bool
	var mean float64
	length := max(12*batch, 8*time.Second)
	if r.long {
		length *= 2
	}
	step, err := r.offer(role, rate, settled+old+length, func(elapsed time.Duration) bool {
		if elapsed < next {
			return false
		}
		next = elapsed + batch
		open, mean = r.share(begun, elapsed-settled-old, batch, most, true, endedBadly)
		return open != nil
	})
	if err != nil {
		return false, 0, err
	}
	if open == nil {
		_, mean = r.share(begun, step.Length()-settled-old, batch, most, true, endedBadly)
		open = new(mean <= most)
	}
	if *open && r.lossOverConfirmations(rate) > most {
		open = new(false) // it held now, and did not before: together it does not
	}
	if step.Passed = open; !*open {
		step.Note = failNote
	}
	return *open, r.seen.goodput(step.Length() - settled), nil
}

// lossOverConfirmations is the share of the calls that did not end well over all confirmations of about that rate since
// the last overload, without the first second of each.
func (r *session) lossOverConfirmations(rate float64) float64 {
	over := lastOverload(r.t)
	if len(over) == 0 {
		return 0
	}
	bad, n := 0, 0
	for _, s := range r.t.Steps {
		if !confirms(s.Role) || s.Segment.Start < over[0].Segment.Start || s.Rate < 0.99*rate || s.Rate > 1.01*rate {
			continue
		}
		from := s.Segment.Start + time.Second
		for _, c := range undisturbed(due(r.s.Calls(from), from, s.Segment.End-r.old())) {
			if n++; endedBadly(&c) {
				bad++
			}
		}
	}
	return float64(bad) / float64(max(1, n))
}

// endedBadly reports whether a call that is old enough to tell did not end well.
func endedBadly(c *load.Call) bool { return c.Done == 0 || !c.Outcome.Good() }
