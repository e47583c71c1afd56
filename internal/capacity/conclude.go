package capacity

import (
	"time"

	"tare/internal/load"
)

const (
	// enoughLoad is how long a service is under load before its capacity is stated: it may scale up, or run out of credits, only after a while.
	enoughLoad = 55 * time.Second
	// lastStretch is how long a service has to hold its rate at least after the bracket was found.
	lastStretch = 12 * time.Second
	// changed is by how much, as a share, a second overload may differ before the target counts as changed.
	changed = 0.08
)

// conclude lets independent stretches agree with the bracket: what a service can do has to hold until it has been under load for a while, and beyond the
// bracket no more may pass than before. A goodput above 0 asks for another overload, from there; a bracket that is not done any more for further
// confirmations.
func (r *session) conclude(a *aim) (goodput float64, err error) {
	if left := r.enough() - r.loaded(); left > 0 {
		held, got, err := r.lasts(a.lo, left)
		if err != nil {
			return 0, err
		}
		if !held {
			r.long = true
			a.fail(a.lo)
			a.center = min(got, a.hi)
			return 0, nil
		}
	}
	traits := r.class().Traits()
	if traits.Falls || traits.Saves || traits.Strands || r.rests || r.t.Allowance > 0 {
		return 0, nil // what was saved up since would pass as well
	}
	if r.checks++; r.checks > 3 {
		return 0, nil
	}
	got, err := r.check(min(overdrive*a.hi/(1-min(0.5, r.floor())), r.o.MaxRate))
	if err != nil {
		return 0, err
	}
	if got/(1-min(0.5, r.estimate.failing)) > max(a.hi, r.estimate.Value)*(1+changed) {
		return got, nil
	}
	return 0, nil
}

// enough is how long the target has to be under load before its capacity is stated; the last stretch of a service has a length of its own.
func (r *session) enough() time.Duration {
	switch {
	case r.class().Traits().Falls:
		return max(enoughLoad, r.loaded()+2*lastStretch)
	case r.class().Traits().Served:
		return max(enoughLoad, r.loaded()+lastStretch)
	case r.gradual():
		return enoughLoad / 2
	}
	return 0
}

// loaded is how long load was offered so far, in steps that did not break.
func (r *session) loaded() time.Duration {
	var d time.Duration
	for _, s := range r.t.Steps {
		if s.Rate > 0 && s.Role != RoleSingle {
			d += s.Length()
		}
	}
	return d
}

// check offers more than the capacity once more, and says how many calls per second end well after the first second.
func (r *session) check(rate float64) (goodput float64, err error) {
	d := lasting(rate, 3*time.Second, 100)
	if p := time.Duration(r.estimate.verdict.Period * 1e9); p > 0 {
		d = whole(d, p)
	}
	if d > 8*time.Second {
		return 0, nil // a window that long says no more than the first time
	}
	step, err := r.offer(RoleCheck, rate, d, nil)
	if err != nil {
		return 0, err
	}
	from := d / 3
	if r.class().Traits().Windowed {
		from = 0
	}
	return r.seen.goodput(step.Length() - from), nil
}

// lasts offers a rate that held for longer, and ends early when more calls wait than would within two seconds, or when calls fail.
func (r *session) lasts(rate float64, d time.Duration) (held bool, goodput float64, err error) {
	if err := r.prepare(RoleConfirmLow); err != nil {
		return false, 0, err
	}
	const recent = 5 * time.Second
	usual, broke := r.floor()+0.03, false
	step, err := r.offer(RoleConfirmLow, rate, d, func(elapsed time.Duration) bool {
		now, c := r.seen.over(min(recent, elapsed))
		broke = float64(now.open) > max(20, 2*rate+3*rate*r.typical.Seconds()) ||
			c.bad >= 8 && elapsed > time.Second && float64(c.bad) > usual*float64(c.bad+c.good)
		return broke
	})
	if err != nil {
		return false, 0, err
	}
	if held = !broke; held && r.gradual() {
		_, mean := r.share(step.Segment.Start, step.Length()-time.Second, lasting(rate, time.Second, 10), r.floor()+0.01, lost)
		held = mean <= r.floor()+0.01
	}
	step.Passed, step.Note = &held, "does it last?"
	return held, r.seen.goodput(min(recent, step.Length())), nil
}

// sheds tries a rate at a target whose refusals become more frequent little by little: by a sequential test over batches, whether more than 1 % of the calls,
// beyond those that fail at any rate, do not end well. What noise leaves open is decided by their share.
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
		open, mean = r.share(begun, elapsed-settled-old, batch, most, lost)
		return open != nil
	})
	if err != nil {
		return false, 0, err
	}
	if open == nil {
		_, mean = r.share(begun, step.Length()-settled-old, batch, most, lost)
		open = new(mean <= most)
	}
	if *open && r.pooled(rate) > most {
		open = new(false) // it held now, and did not before: together it does not
	}
	if step.Passed = open; !*open {
		step.Note = failNote
	}
	return *open, r.seen.goodput(step.Length() - settled), nil
}

// pooled is the share of the calls that did not end well over all confirmations of about that rate since the last overload, without the first second of each.
func (r *session) pooled(rate float64) float64 {
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
		for _, c := range due(r.s.Calls(from), from, s.Segment.End-r.old()) {
			if n++; lost(c) {
				bad++
			}
		}
	}
	return float64(bad) / float64(max(1, n))
}

// lost reports whether a call that is old enough to tell did not end well.
func lost(c load.Call) bool { return c.Done == 0 || !c.Outcome.Good() }
