package capacity

import (
	"fmt"
	"math"
	"time"

	"tare/internal/load"
	"tare/internal/stat"
)

// This file is about targets of which only some calls need what is short, such as one worker for every write: beyond a
// rate, those calls wait longer and longer while the others are answered as fast as ever.

const (
	// someCalls is the share of the calls whose responses are judged by themselves, the slowest of all: as many as may
	// end badly at a rate that holds.
	someCalls = mostBad
	// someParts is in how many parts of a step they are compared, and fewestOfPart how many calls each has at least.
	someParts, fewestOfPart = 8, 50
	// someNote is the note of a step that broke because some calls waited.
	someNote     = "some calls wait longer and longer"
	someOpenNote = "undecided: some calls waited longer and longer, which may be chance"
	// someBehind is the growth, in seconds per second, from which on chance does not explain it: calls that come at
	// random, one among twenty others, make a queue that wavers.
	someBehind = 0.15
	// little is a time in seconds by which responses differ for no reason.
	little = 0.05
)

// someWait returns by how many seconds per second the responses of the slowest calls of a step grew while others did
// not: the slope of a line through the responses of its parts. It is 0 where they did not grow, or did not grow
// steadily, as in a step in which the target or its host stood still.
func (t Trace) someWait(s Step) float64 {
	length := s.Length().Seconds()
	part := s.Length() / someParts
	if s.Segment.Offered < someParts*fewestOfPart || part <= 0 {
		return 0
	}
	var x, slow, usual []float64
	for k := range someParts {
		from := s.Segment.Start + part*time.Duration(k)
		took := t.waits(from, from+part)
		if len(took) < fewestOfPart/2 {
			return 0
		}
		x = append(x, float64(k)*part.Seconds())
		slow = append(slow, stat.Quantile(took, 1-someCalls))
		usual = append(usual, stat.Quantile(took, 0.5))
	}
	const sure = 5 // standard errors: where calls hang from an instant on, or the target stops, growth is not steady
	l, ok := stat.Regress(x, slow)
	median, _ := stat.Regress(x, usual)
	least := max(fallsBehind/2, sure*l.SE, wavers*slow[0]/length)
	if !ok || !(l.Slope >= least) || median.Slope > l.Slope/2 {
		return 0
	}
	return l.Slope
}

// waits returns how long the calls that were due between two instants took, in seconds, or waited for an answer until
// they timed out or the calls were read.
func (t Trace) waits(from, to time.Duration) (took []float64) {
	for c := range t.due(from, to) {
		switch {
		case c.Done == 0:
			took = append(took, (t.Read - c.Intended).Seconds())
		case c.Outcome.Good() || c.Outcome == load.Timeout:
			took = append(took, c.Response().Seconds())
		}
	}
	return took
}

// someSlow reports whether the slowest calls of a step of the ramp take far longer than in those before, while others
// do not: they may have begun to wait.
func (r *session) someSlow(step *Step) bool {
	now, answered := r.s.Now(), 0.0
	var took []float64
	for c := range r.due(step.Segment.Start, step.Segment.End) {
		switch {
		case c.Done == 0:
			took = append(took, (now - c.Intended).Seconds())
		case c.Outcome.Good():
			took = append(took, c.Response().Seconds())
			answered = max(answered, c.Response().Seconds())
		}
	}
	if len(took) < fewestOfPart {
		return false
	}
	before, slow := r.slow, stat.Quantile(took, 1-someCalls)
	if before == 0 || slow < before {
		r.slow = slow
	}
	most := 2*before + little
	// where no call was answered late, those that are open hang
	return before > 0 && slow > most && answered > most && stat.Quantile(took, 0.5) < 2*r.typical.Seconds()+little/10
}

// narrow offers a rate at which some calls may wait for long enough to tell. If they do, it looks for the highest rate
// at which they do not, and ends the search. Otherwise it returns the step, and whether the rate broke altogether.
// So is a rate after which the target does not become as it was.
func (r *session) narrow(rate float64) (step *Step, broke bool, err error) {
	first := len(r.t.Steps) - 1
	low, held, fails := rate/2, 0.0, 0.0
	for range 9 {
		switch calm, err := r.calms(rate / 10); {
		case err != nil:
			return nil, false, err
		case !calm && fails == 0:
			return &r.t.Steps[first], true, nil
		case !calm:
			return nil, false, r.someWaitFrom(fails)
		}
		if step, broke, err = r.climbSlowly(rate); err != nil {
			return nil, false, err
		}
		some := r.t.someWait(*step)
		switch {
		case step.ClientLimited:
			return nil, false, r.someWaitFrom(fails)
		case fails == 0 && some == 0:
			return step, broke, nil
		case some >= someBehind:
			step.Passed, step.Note, fails = new(false), someNote, rate
		case some > 0:
			step.Note, fails = someOpenNote, rate
		case broke:
			step.Passed, fails = new(false), rate
		default:
			r.hold(step)
			held = rate
		}
		switch {
		case held > 0 && fails < 1.15*held:
			return nil, false, r.someWaitFrom(fails)
		case held > 0:
			rate = math.Sqrt(held * fails)
		case rate > 1.3*low:
			rate = math.Sqrt(low * rate)
		default:
			rate, low = low, low/2
		}
	}
	return nil, false, r.someWaitFrom(fails)
}

// climbSlowly offers a rate for long enough to tell whether some calls wait, and waits until they have ended. It ends
// early where many have waited for long: a target goes on with calls that have timed out.
func (r *session) climbSlowly(rate float64) (step *Step, broke bool, err error) {
	length := min(lasting(rate, lastStretch, 2*someParts*fewestOfPart), 2*lastStretch)
	before, next := r.seen.last(), 2*time.Second
	if _, err = r.offer(RoleRamp, rate, length, func(elapsed time.Duration) bool {
		now := r.seen.last()
		if bad, ended := now.bad-before.bad, now.good+now.bad-before.good-before.bad; bad >= 8 &&
			float64(bad) > (0.1+r.floor())*float64(ended) {
			broke = true
		} else if elapsed >= next {
			next = elapsed + time.Second/2
			until := now.at - r.o.Timeout/3
			old, n := countBad(r.due(max(now.at-elapsed, until-time.Second), until))
			broke = old >= 5 && float64(old) > (someCalls+r.floor())*float64(n)
		}
		return broke
	}); err != nil {
		return nil, false, err
	}
	tried := len(r.t.Steps) - 1
	if a := r.auditOf(&r.t.Steps[tried]); !a.Valid {
		r.t.Steps[tried].ClientLimited, r.t.Steps[tried].Note = true, a.Reason
	}
	if err := r.drain("until its calls have ended"); err != nil {
		return nil, false, err
	}
	r.read()
	return &r.t.Steps[tried], broke, nil
}

// calms waits for the calls that are open, and then offers a low rate until the slowest calls are answered about as
// fast as before the load. It reports whether they are.
func (r *session) calms(rate float64) (bool, error) {
	if err := r.drain("some calls may wait longer and longer"); err != nil {
		return false, err
	}
	rate = max(rate, r.o.Start)
	for begun := r.s.Now(); r.s.Now()-begun < 2*patient; {
		if _, err := r.offer(RoleSingle, rate, lasting(rate, time.Second, fewestOfPart), nil); err != nil {
			return false, err
		}
		from := r.t.Steps[len(r.t.Steps)-1].Segment
		if err := r.drain("until the slowest calls are as fast as before"); err != nil {
			return false, err
		}
		r.read()
		if stat.Quantile(r.t.waits(from.Start, from.End), 1-someCalls) <= 3*r.slow+little {
			return true, nil
		}
	}
	return false, nil
}

// someWaitFrom ends the search at a rate from which on some calls wait longer and longer, or may.
func (r *session) someWaitFrom(rate float64) error {
	if from, _ := r.t.someWaitedFrom(); from > 0 {
		r.stop(StopFound, someWaited(from))
	} else if rate > 0 {
		r.stop(StopFound, fmt.Sprintf("at %s/s some calls may have waited longer and longer", number(rate)))
	}
	return errStop
}

func someWaited(rate float64) string {
	return fmt.Sprintf("at %s/s some calls waited longer and longer, and the others were answered as fast as ever",
		number(rate))
}

// someWaitedFrom returns the lowest rate at which some calls waited longer and longer, or 0, and whether some may have
// at any rate. Steps in which other work kept the target's processors busy are left out: it makes calls wait, too.
func (t Trace) someWaitedFrom() (rate float64, mayHave bool) {
	for _, s := range t.Steps {
		if s.Note == someNote && (rate == 0 || s.Rate < rate) && !t.inCrowd(s) {
			rate = s.Rate
		}
		mayHave = mayHave || s.Note == someNote || s.Note == someOpenNote
	}
	return rate, mayHave
}
