package signature

import (
	"fmt"
	"math"

	"tare/internal/stat"
)

// concurrencyLimit is about places that are all taken when calls are refused.
var concurrencyLimit = definition{
	class: ConcurrencyLimit, phrase: "a limit on the calls in flight", refuses: true, byTimes: true,
	traits: Traits{Places: true, Gradual: true, Limiter: true},
	score: func(f *features) classScore {
		if f.level <= 0 {
			return classScore{}
		}
		x := classScore{
			score:    f.enough() * max(f.separation*0.625, f.placesTaken()), // the area of 0.9 is enough
			evidence: f.placesEvidence(),
		}
		if f.separation <= wins {
			x.against = fmt.Sprintf("refusals are not explained by the number in flight (separation %.2f)", f.separation)
		}
		return x
	},
	doubt: func(f *features) string {
		if f.behindService && !f.followsLoad() {
			return "calls are refused after they were served"
		}
		return f.refusedAfterWait()
	},
	shown: func(f *features) bool {
		// a limit on the rate does not refuse by the calls in flight
		return f.separation >= certain && f.nothingLike(ConcurrencyLimit, TokenBucket)
	},
}

// followsLoad reports whether refusals follow the number of calls in flight.
func (f *features) followsLoad() bool { return f.separation > wins }

// placesTaken is how surely places are what limits the calls, 0…1, by groups and bursts.
func (f *features) placesTaken() float64 {
	switch {
	case f.inGroups:
		return 0.9
	case f.clockwork():
		return 0
	}
	return f.placesByBursts()
}

// clockwork reports whether calls are accepted regularly though they take unequally long: a limit on the calls in
// flight waits for them to end.
func (f *features) clockwork() bool {
	return f.dispersion >= 0 && f.dispersion < 0.03*f.unequal && f.good >= 200
}

// placesByBursts scores two bursts from rest: a limit on calls in flight takes the same number of each, and as many as
// the accepted rate keeps in flight.
func (f *features) placesByBursts() float64 {
	a, b := float64(f.bursts[0]), float64(f.bursts[1])
	flight := f.Capacity * f.BaseMean.Seconds() // by Little's law
	if f.burstWaits || a < 2 || b < 1 || f.burstSize < 1.5*a || flight < 1.5 {
		return 0
	}
	weight := 2.5
	if f.separation > 0.15 {
		weight = 1 // refusals do follow the number in flight, blurred by what lies between
	}
	return clamp(1.2 - math.Abs(a-b)/a - weight*math.Abs(a/flight-1))
}

func (f *features) placesEvidence() string {
	switch {
	case f.inGroups:
		return fmt.Sprintf("calls are accepted in groups of about %.0f, every %s: as soon as those before have been answered",
			f.turn*f.Capacity, short(f.turn))
	case f.bursts[0] > 0 && f.separation < 0.8:
		return fmt.Sprintf("of %.0f calls at once, %d were accepted, and of as many a little later %d: as many as the "+
			"accepted rate keeps in flight", f.burstSize, f.bursts[0], f.bursts[1])
	}
	return fmt.Sprintf("calls are refused when %d are in flight, and accepted below (separation %.2f)", f.level,
		f.separation)
}

// countBursts counts the accepted calls of the last two bursts.
func (f *features) countBursts() {
	windows := f.windowsOf("burst")
	if len(windows) < 2 {
		return
	}
	var served []float64
	for i, w := range windows[len(windows)-2:] {
		f.burstSize = float64(w.Due)
		for c := range f.Calls.Due(w.Start, w.End) {
			if c.Done != 0 && c.Outcome.Good() {
				f.bursts[i]++
				served = append(served, c.Service().Seconds())
			}
		}
	}
	f.burstWaits = len(served) > 0 && stat.Quantile(served, 0.5) > 1.5*f.atRest()+0.01
}
