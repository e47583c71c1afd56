package capacity

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tare/internal/stat"
)

const (
	// fallsBehind is how much faster than a target's capacity a rate must be, as a share of it, for a step to show that it
	// is too fast.
	fallsBehind = 0.1
	// fewest is how many calls a step has to have for its rate to count where the generator ended the search: more than
	// limiters usually save up.
	fewest = 1000
	// wavers is how much the median response may change within a step for no reason, as a share of it.
	wavers = 0.5
)

// atLeast states the fastest step that the target kept up with, where nothing broke and single calls were answered
// afterwards. Where the generator ended the search, only steps count that are long enough for calls that were saved up
// not to explain them.
func (r *Result) atLeast(t Trace) {
	enough := anyLength
	if t.Stop == StopClient {
		enough = longEnough
	}
	best, behind := t.fastestKeptUp(enough)
	if behind > best {
		r.because(
			fmt.Sprintf(
				"at %s/s answers came later and later, or failed, so that it may be too fast for the target", number(behind),
			),
		)
	}
	if r.Wedged {
		r.because("single calls were not answered any more after the load had stopped")
		return
	}
	if best == 0 && t.Stop == StopClient {
		if short, _ := t.fastestKeptUp(anyLength); short > 0 {
			r.because(fmt.Sprintf("the target answered up to %s/s, which was offered too briefly to say that it holds: it may "+
				"have served a burst allowance", number(short)))
		}
	}
	r.AtLeast = best
}

// anyLength accepts every step.
func anyLength(*Step) bool { return true }

// longEnough reports whether a step cannot be explained by calls that were saved up.
func longEnough(s *Step) bool { return s.Segment.Offered >= fewest && s.Length() >= longerStep-poll }

func (r *Result) because(reason string) {
	if r.Reason != "" {
		r.Reason += "; "
	}
	r.Reason += reason
}

// fastestKeptUp is the fastest step of the ramp, or overload that was none, that the target kept up with; behind is the
// slowest that passed, but that it did not keep up with. Steps are short: a target that can take half of a rate may
// well end one with all calls answered soon after, and that is not a rate that it holds. Only steps count that are
// enough.
func (t Trace) fastestKeptUp(enough func(*Step) bool) (best, behind float64) {
	floor := baseOf(t).floor
	for i := range t.Steps {
		s := &t.Steps[i]
		if s.Passed == nil || s.ClientLimited || s.Role != RoleRamp && s.Role != RoleOverload && !confirms(s.Role) {
			continue
		}
		switch {
		case *s.Passed && confirms(s.Role):
		case !*s.Passed:
			if best >= s.Rate {
				best = 0 // it held before, and does not any more
			}
		case !enough(s):
		case t.keptUp(s) && !t.losesMoreThan(*s, floor+mostBad):
			best = max(best, s.Rate)
		case behind == 0 || s.Rate < behind:
			behind = s.Rate
		}
	}
	return best, behind
}

// keptUp reports whether the responses of the last quarter of a step were about those of its first. At a rate above the
// capacity they grow by rate ÷ capacity − 1 per second.
func (t Trace) keptUp(s *Step) bool {
	length := s.Length()
	first, early := t.median(s.Segment.Start, s.Segment.Start+length/4)
	last, late := t.median(s.Segment.End-length/4, s.Segment.End)
	if !early || !late || math.IsInf(first, 1) {
		return true // too few calls to say otherwise; or most fail at any rate
	}
	return last-first <= wavers*first+fallsBehind*0.75*length.Seconds()
}

// median is the median response, in seconds, of the calls that were due in a time; those that were never answered have
// taken as long as was waited for them, and one that failed would have taken forever. ok is false where there are none.
func (t Trace) median(from, to time.Duration) (seconds float64, ok bool) {
	var response []float64
	for c := range t.due(from, to) {
		switch {
		case c.Done == 0:
			response = append(response, (t.Read - c.Intended).Seconds())
		case c.Outcome.Good():
			response = append(response, c.Response().Seconds())
		default:
			response = append(response, math.Inf(1))
		}
	}
	if len(response) == 0 {
		return 0, false
	}
	slices.Sort(response)
	return stat.SortedQuantile(response, 0.5), true
}
