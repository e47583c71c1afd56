package signature

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// rejections scores limiters that turn calls away, and queues that drop them.
func rejections(e Evidence, f features, found map[Class]classScore) {
	share := f.share(f.rejected)
	if share <= 0 {
		return
	}
	enough := min(1, share/0.1) // 5 % is enough
	waits := f.waits(e)
	leaks, places := clamp((e.Sharp.Leak-0.002)/0.004), f.places(e)
	if f.clockwork(e) {
		leaks, places = 0, 0
	}
	found[FixedWindow] = f.windows(e, enough, waits)
	if f.inGroups {
		places = 0.9
	}
	if f.level > 0 {
		found[ConcurrencyLimit] = classScore{
			score:    enough * max(f.separation*0.625, places, 0.6*leaks), // the area of 0.9 is enough
			evidence: f.placesEvidence(e),
			against:  f.againstPlaces(),
		}
	}
	found[Shedding] = f.shedding(e, enough, waits)
	found[Penalty] = f.penalty(e, enough)
	if f.refusedBehindService() {
		waits, leaks = 0, 0
	}
	bucket := enough * f.constant(e) * (1 - 0.8*waits) * (1 - 0.6*leaks)
	if f.bursts[0] > 0 && places >= wins {
		bucket *= 0.4
	}
	found[TokenBucket] = classScore{
		score: bucket,
		evidence: fmt.Sprintf("%.1f %% of the calls were refused %s, and the rate of accepted ones stayed at %s/s "+
			"(variation %.1f %%)",
			100*share, f.delayed(), rate(e.Capacity), 100*f.acceptVariation),
		against: f.againstBucket(e),
	}
}

// againstBucket says what is seen that a steady limit on the rate would not do; "" if nothing.
func (f features) againstBucket(e Evidence) string {
	switch {
	case f.good < 5:
		return "hardly any call was accepted"
	case f.constant(e) < 0.7:
		return fmt.Sprintf("the rate of accepted calls varied by %.1f %%", 100*f.acceptVariation)
	case f.waits(e) >= wins && !f.refusedBehindService():
		return fmt.Sprintf("calls that were accepted took %s, and %s well below the limit: they had waited",
			short(f.acceptance.p50), short(e.BaseP50.Seconds()))
	}
	return ""
}

// againstPlaces says that calls are refused however many are in flight; "" where they are not.
func (f features) againstPlaces() string {
	if f.separation > wins {
		return ""
	}
	return fmt.Sprintf("refusals are not explained by the number in flight (separation %.2f)", f.separation)
}

// constant is how surely calls are accepted at a constant rate, 0…1.
func (f features) constant(e Evidence) float64 {
	switch {
	case f.good < 5: // nothing is accepted, at no constant rate
		return 0
	case e.Repeats:
		return 1
	}
	return 1 - 0.6*clamp((f.dispersion-0.05)/0.1)
}

// delayed says how long refusals took.
func (f features) delayed() string {
	if f.rejection.p50 < 0.1 {
		return "within " + short(f.rejection.p90)
	}
	return "after " + short(f.rejection.p50)
}

// refusesAsSet reports whether refusals come at once, or after the same time each: no queue delays them.
func (f features) refusesAsSet(e Evidence) bool {
	return f.rejection.p50 < 0.02+2*e.BaseP50.Seconds() || f.refusesAfterFixedTime()
}

// clockwork reports whether calls are accepted as regularly as by a clock, though they take unequally long. A limit on
// the calls in flight does not do so, since it waits for calls to end.
func (f features) clockwork(e Evidence) bool {
	return f.dispersion > 0 && f.dispersion < 0.01 && f.good >= 200 && f.acceptance.p90 > 2*f.acceptance.p10 && !e.Repeats
}

// places scores two bursts from rest: a limit on calls in flight takes the same number of each, and as many as the
// accepted rate keeps in flight.
func (f features) places(e Evidence) float64 {
	a, b := float64(f.bursts[0]), float64(f.bursts[1])
	flight := e.Capacity * e.BaseMean.Seconds() // by Little's law
	if a < 2 || b < 1 || f.burstSize < 1.5*a || flight < 1.5 {
		return 0
	}
	weight := 2.5
	if f.separation > 0.15 {
		weight = 1 // refusals do follow the number in flight, blurred by what lies between
	}
	return clamp(1.2 - math.Abs(a-b)/a - weight*math.Abs(a/flight-1))
}

func (f features) placesEvidence(e Evidence) string {
	if f.inGroups {
		return fmt.Sprintf("calls are accepted in groups of about %.0f, every %s: as soon as those before have been answered",
			f.turn*e.Capacity, short(f.turn))
	}
	if e.Sharp.Leak > 0 && f.separation < 0.8 && f.places(e) < wins {
		return fmt.Sprintf("%.1f %% of the calls were refused at rates clearly below the accepted %s/s: when chance has "+
			"all places taken, and not when a rate is exceeded",
			100*e.Sharp.Leak, rate(e.Capacity))
	}
	if f.bursts[0] > 0 && f.separation < 0.8 {
		return fmt.Sprintf("of %.0f calls at once, %d were accepted, and of as many a little later %d: as many as the "+
			"accepted rate keeps in flight",
			f.burstSize, f.bursts[0], f.bursts[1])
	}
	return fmt.Sprintf("calls are refused when %d are in flight, and accepted below (separation %.2f)",
		f.level, f.separation)
}

// penalty scores a limiter that lets hardly anything pass beyond its limit, because refused calls count as well.
func (f features) penalty(e Evidence, enough float64) classScore {
	if !(e.Sharp.Held > 0) {
		return f.penaltyUnderOverload(e, enough)
	}
	left, at := e.Sharp.Goodput/e.Sharp.Held, e.Sharp.Failed
	over := f.late / e.Sharp.Held
	if f.window.Rate <= e.Sharp.Held {
		over = left // it was no overload
	}
	if over < left {
		left, at = over, f.window.Rate
	}
	quick := 1 - clamp((f.rejection.p50-3*e.BaseP50.Seconds()-0.01)/max(0.01, e.BaseP50.Seconds()))
	if f.refusesAfterFixedTime() {
		quick = 1 // a tarpit's delay
	}
	return classScore{
		// a window that was used up before lets nothing pass for a while, and much later on
		score: enough * quick * clamp((0.8-left)/0.6) * (1 - clamp((over-0.4)/0.3)),
		evidence: fmt.Sprintf("at %s/s every call passed; at %s/s only %s/s did, and the others were refused %s: refused "+
			"calls count against the limit as well",
			rate(e.Sharp.Held), rate(at), rate(left*e.Sharp.Held), f.delayed()),
		against: fmt.Sprintf("%.0f %% of what passed below the limit still passed above it", 100*left),
	}
}

// penaltyUnderOverload scores the same where no rate was confirmed, by an overload that is longer than windows are.
func (f features) penaltyUnderOverload(e Evidence, enough float64) classScore {
	const windows = 25 * time.Second
	long := f.window.End - f.window.Start
	if long < windows || f.slower > 3 || f.turns > 1 || f.best == 0 || !f.refusesAsSet(e) || !f.passesInEveryQuarter() {
		return classScore{}
	}
	return classScore{
		score: enough * clamp((0.3-f.late/f.best)/0.3),
		evidence: fmt.Sprintf("for %s hardly any call passed (%s/s), where %s/s did before, and the others were refused %s: "+
			"refused calls count against the limit as well",
			short(long.Seconds()), rate(f.late), rate(f.best), f.delayed()),
		against: fmt.Sprintf("%s/s went on passing under overload", rate(f.late)),
	}
}

// passesInEveryQuarter reports whether some calls passed in each quarter of the window's second half: a window that is
// shut lets none through until it turns.
func (f features) passesInEveryQuarter() bool {
	to := f.window.End.Seconds()
	mid := (f.window.Start.Seconds() + to) / 2
	i, _ := slices.BinarySearch(f.done, mid)
	return slices.Min(counted(f.done[i:], mid, to, 4)) >= 1
}
