package limit

import (
	"fmt"

	"tare/internal/signature"
	"tare/internal/unit"
)

// leastRefused is the share of refused calls that shows a limit: a few are refused as another call ends.
const leastRefused = 0.1

// mostIdle is the share of the time in which a single place is taken at least if it is what refuses calls.
const mostIdle = 0.4

// places is how many places a target seems to have that refuses calls by the number in flight: as many as it accepts at
// once after a pause, or else as are in flight when it refuses. 0: none were seen.
func (e *Evidence) places() int {
	switch s := &e.Signature; {
	case s.Class != signature.ConcurrencyLimit || s.InFlight < 1:
		return 0
	case s.AtOnce > 0:
		return s.AtOnce
	default:
		return s.InFlight
	}
}

// againstPlaces is an observation that so many places do not explain, and a limit on the rate with an allowance of as
// many calls does: calls are refused while places are free, or more are served than there are. "": there is none.
func (f *facts) againstPlaces() string {
	n, one, full := f.places(), f.single(), f.Signature.InFlight
	switch {
	case n == 0:
		return ""
	case n < full || n > full+1: // the client sees ends a little late: it may count one too few
		return fmt.Sprintf("under overload it refuses calls with %d in flight, and after a pause it accepts %d at once",
			full, n)
	case one == nil:
		return ""
	}
	for _, x := range f.all {
		m, refused := x.measured(), float64(x.Bad)/float64(max(1, x.Bad+total(x.Counts)))
		switch each := min(one.Service, x.Service); {
		case refused < leastRefused:
		case x.InFlight == 1 && m.rate > 0 && m.rate*x.Service < mostIdle:
			return fmt.Sprintf("with one call in flight at most, and none for %s of the time, it refuses %s of the calls",
				percent(1-m.rate*x.Service), percent(refused))
		case x.InFlight < n:
			return fmt.Sprintf("with %d in flight at most it refuses %s of the calls, and after a pause it accepts %d at once",
				x.InFlight, percent(refused), n)
		case m.rate-noise*m.err > (1+same)*float64(n)/each:
			return fmt.Sprintf("it serves %s that take %s each, which is more than %d in flight, and after a pause it "+
				"accepts %[3]d at once", perSecond(m.rate), unit.Seconds(each), n)
		}
	}
	return ""
}
