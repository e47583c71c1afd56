package capacity

import (
	"fmt"
	"iter"
	"math"
	"time"

	"tare/internal/load"
	"tare/internal/signature"
	"tare/internal/unit"
)

// This file decides what a step says in spite of a generator, or a host, that was held up meanwhile. Calls that were
// held up come together, which makes a rate harder to hold, and easier only for a limiter that saves up what passes
// while nothing is sent (savedExplains). A step that broke is offered again where the calls that came together can have
// broken it. Only a generator that cannot keep up makes a step say nothing.

const (
	// mostTries is how often a rate is offered at which the generator could not keep up, or which a burst can have broken.
	mostTries = 3
	// longerStep is how long a step lasts at least that is offered again.
	longerStep = 2 * time.Second
	// perDisplaced is how many calls may fail for one that came together with others.
	perDisplaced = 3
	// Of processors that generator and target share: from which share on they are full, and which share of them the
	// generator uses at least to be a reason for that.
	full, ownShare = 0.9, 0.1
	// accounted is how long a step is at least for the kernel's account of it to mean anything.
	accounted = 200 * time.Millisecond
)

// blame judges a step that ended. It reports whether the step is not the target's doing: then, until tries exceeds
// mostTries, the rate is to be offered again; after that, the generator is the limit at it. A step that bursts can have
// broken is believed in the end.
func (r *session) blame(step *Step, broke bool, tries *int) (blamed bool, err error) {
	a := r.auditOf(step)
	why := a.Reason
	if a.Valid && broke {
		why = r.crowded(step)
	}
	switch {
	case why != "" && (broke || a.AchievedRatio < signature.LeastAchieved):
		step.ClientLimited, step.Note = true, why
		if h := step.host(); h != nil {
			step.Note += fmt.Sprintf(" (of its processors' time %s was used, and %s stolen by the hypervisor)",
				signature.Percent(h.Busy/h.All), signature.Percent(h.Stolen/h.All))
		}
	case step.Role == RoleRamp && broke && *tries < mostTries && r.burstExplains(step, a):
		step.Note = offeredAgain(a) // but an overload is one however late it is sent
	default:
		return false, nil
	}
	if *tries++; *tries > mostTries {
		return true, nil
	}
	return true, r.drain("the step is repeated")
}

// auditOf judges the generator in a step.
func (r *session) auditOf(step *Step) Audit {
	return audit(r.due(step.Segment.Start, step.Segment.End), *step, r.s.Now())
}

// offeredAgain is the note of a step that is offered again because of calls that came together.
func offeredAgain(a Audit) string {
	return "broke, but the host held calls back, up to " + unit.Count(a.Displaced, "call") + " at a time: offered again"
}

// burstExplains reports whether calls that came together, because generator or host had been held up, can be why a step
// broke.
func (r *session) burstExplains(step *Step, a Audit) bool {
	if a.Displaced < 2 {
		return false
	}
	from, to := r.seen.at(step.Segment.Start), r.seen.at(step.Segment.End)
	bad := float64(to.bad-from.bad) - r.floor()*float64(to.bad+to.good-from.bad-from.good)
	return bad <= float64(perDisplaced*a.Bunched) && float64(to.open) <= float64(perDisplaced*a.Displaced)+
		max(20, step.Rate*r.typical.Seconds())
}

// crowded says why a step that broke may have broken for want of processor time that the generator used; "" where it
// did not.
func (r *session) crowded(step *Step) string {
	u := useOf([]Step{*step})
	own := u.share(u.Generator)
	if !r.o.Shared || u.All == 0 || step.Length() < accounted || u.BusyShare() < full || own < ownShare {
		return ""
	}
	return fmt.Sprintf("the processors that generator and target share were full, and the generator used %s of them",
		signature.Percent(own))
}

// host is what the processors did in a step; nil where that is not known.
func (s *Step) host() *load.Processors {
	if e := s.Segment.Effort; e != nil && e.Host != nil && e.Host.All > 0 {
		return e.Host
	}
	return nil
}

// A limited is a rate at which the generator was the limit, and why.
type limited struct {
	rate float64
	why  string
}

// retreat looks for a rate that holds, for long enough to say so, below one at which the generator was the limit. It
// returns the goodput of a rate that breaks although the generator keeps up; else it ends the search.
func (r *session) retreat(rate float64, why string) (goodput float64, err error) {
	lo, hi, lasted := r.fastest, rate, 0.0
	limits := []limited{{rate, why}}
	for range 8 {
		next := math.Sqrt(lo * hi)
		switch {
		case lo == 0:
			next = hi / 2
		case hi < 1.2*lo && lasted < lo:
			next = lo // it held for a moment: does it for longer?
		case hi < 1.2*lo:
			return 0, r.clientLimited(limits)
		}
		began := r.s.Now()
		step, broke, err := r.climb(next, min(lasting(next, 3*time.Second, fewest), 20*time.Second))
		if err != nil {
			return 0, err
		}
		tries := mostTries
		blamed, err := r.blame(step, broke, &tries)
		switch {
		case err != nil:
			return 0, err
		case blamed:
			hi, limits = next, append(limits, limited{next, step.Note})
			if lo = min(lo, next/1.5); lasted == 0 {
				lo = next / 4 // the host has become busier: what held before is far off
			}
			if err := r.drain("a lower rate is tried"); err != nil {
				return 0, err
			}
		case broke:
			step.Passed = new(false)
			if r.fastest > 0 {
				return max(r.seen.recent(r.s.Now()-began), min(r.fastest, next)), nil
			}
			hi = next
		default:
			r.learn(step)
			r.hold(step)
			lo, lasted = next, next
		}
	}
	return 0, r.clientLimited(limits)
}

// clientLimited ends the search because the generator is the limit: at the lowest rate above those that held or, where
// the host has become busier since, at a lower one.
func (r *session) clientLimited(limits []limited) error {
	r.read()
	held, _ := r.t.fastestKeptUp(longEnough)
	at, when := limits[len(limits)-1], "later, "
	for _, l := range limits {
		if l.rate > held && (when != "" || l.rate < at.rate) {
			at, when = l, ""
		}
	}
	r.stop(StopClient, fmt.Sprintf("%sat %s/s %s", when, number(at.rate), at.why))
	return errStop
}

const (
	// heldBackFrom is the lateness from which on a call counts as held back by a stop of the generator or its host.
	heldBackFrom = time.Millisecond
	// clearing is how long calls that came together disturb those that are sent after them.
	clearing = 50 * time.Millisecond
)

// A heldBack tells the calls that came together, because the generator had been stopped, and those that were sent soon
// after them: what became of them says nothing about the rate. It is asked about calls in the order in which they were
// due; the zero value is ready to use.
type heldBack struct {
	before time.Duration // when the call before was due
	until  time.Duration
	any    bool
}

// disturbs reports whether c is such a call. A call that was late by less than the time since the one before came to
// the target alone, as it should.
func (h *heldBack) disturbs(c *load.Call) bool {
	gap := c.Intended - h.before
	if !h.any {
		gap = 0
	}
	h.before, h.any = c.Intended, true
	if late := c.Lateness(); late >= heldBackFrom && late > gap {
		h.until = max(h.until, c.Sent+clearing)
	}
	return h.until > 0 && max(c.Sent, c.Intended) <= h.until
}

// undisturbed yields the calls that were not held back; all of them where hardly any is left.
func undisturbed(calls iter.Seq[*load.Call]) iter.Seq[*load.Call] {
	kept, all := 0, 0
	var h heldBack
	for c := range calls {
		if all++; !h.disturbs(c) {
			kept++
		}
	}
	if 4*kept < all {
		return calls
	}
	return func(yield func(*load.Call) bool) {
		var h heldBack
		for c := range calls {
			if !h.disturbs(c) && !yield(c) {
				return
			}
		}
	}
}
