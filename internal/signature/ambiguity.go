package signature

import (
	"fmt"
	"slices"
)

// ambiguous is the most that a class scores that another explains as well.
const ambiguous = 0.45

// limit withholds a class, with what speaks against it, if anything does; a collapse that was seen is not withheld.
func (f *features) limit(c Class, against string) {
	if x := f.found[c]; against != "" && x.score > ambiguous && (c != Collapse || !f.down()) {
		x.score, x.against = ambiguous, against
		f.found[c] = x
	}
}

// withhold withholds a class that nothing contradicts, with why it cannot be told, if it cannot.
func (f *features) withhold(c Class, why string) {
	was := f.found[c].score
	f.limit(c, why)
	if x := f.found[c]; x.score < was {
		x.withheld = true
		f.found[c] = x
	}
}

// disagree withholds classes that the evidence does not tell from others.
func (f *features) disagree() {
	if f.down() {
		for _, c := range []Class{ConnectionRefused, Shedding, Penalty, FixedWindow, TokenBucket, Pauses} {
			f.limit(c, "the target was down")
		}
	}
	for _, d := range definitions {
		if d.doubt != nil {
			f.limit(d.class, d.doubt(f))
		}
	}
	f.withhold(Collapse, f.collapseUntold())
	f.withhold(TokenBucket, f.leftByLater())
	f.withhold(FixedWindow, f.leftByLater())
	bucket := f.found[TokenBucket].score
	switch hangs := f.found[QuotaHang].score; {
	case hangs >= wins && hangs > f.found[Collapse].score:
		f.limit(Collapse, "some calls hang forever while later ones are answered")
	case bucket > 0.3 && f.share(f.rejected) > 0.05:
		f.withhold(Collapse, "a limit on the rate, with calls saved up before, explains it as well")
	}
	// A queue that drops calls at random, or that is short, has some of a queue and some of places.
	x, places := f.found[Shedding], f.found[ConcurrencyLimit].score
	if bucket <= ambiguous && !f.refusesByAge() && f.turns < 1 &&
		min(x.score, places) > 0.2 && max(x.score, places) < wins && x.score+places >= wins {
		x.score = wins
		f.found[Shedding] = x
	}
	if bucket >= ambiguous && !f.refusesEarly() {
		f.withhold(Penalty, "a limit on the rate explains it as well")
	}
	if f.found[Penalty].score > 0.4 && f.found[FixedWindow].score < certain {
		f.withhold(FixedWindow, "a limit that counts refused calls explains it as well")
	}
	f.doubtPlaces()
	f.doubtQueues()
}

// leftByLater says why the target may be a queue that serves the newest call first, and not a limit on the rate: later
// calls were answered before earlier ones. A busy host causes that, too. It is "" where no call was left behind.
func (f *features) leftByLater() string {
	if f.newestFirst {
		return "calls that were taken were left behind by later ones"
	}
	return ""
}

// refusedAfterWait says that limits do not make calls wait before they refuse them; "" where none did, or where calls
// that were accepted long before decide.
func (f *features) refusedAfterWait() string {
	if f.refusesByAge() && !(f.countsCalls() && f.countWindow > 10*f.rejection.p50) {
		return fmt.Sprintf("calls were refused after they had waited %s, and those that were served had waited as well",
			short(f.rejection.p50))
	}
	return ""
}

// nothingLike reports whether no class scores nearly enough beside c, one that may score as much, and CPUThrottling.
func (f *features) nothingLike(c ...Class) bool {
	const near = 0.4
	for other, x := range f.found {
		if x.score > near && other != CPUThrottling && !slices.Contains(c, other) {
			return false
		}
	}
	return true
}

// doubtPlaces decides between a limit on calls at once and what looks like one.
func (f *features) doubtPlaces() {
	if places := clamp(f.found[ConcurrencyLimit].score); f.separation > 0.9 && places > clamp(f.found[Shedding].score) {
		f.limit(Shedding, "calls are refused exactly when so many are in flight")
	}
	// Both bursts from rest took clearly more calls than are in flight when calls are refused: an allowance was saved up.
	least, flight := float64(min(f.bursts[0], f.bursts[1])), f.Capacity*f.BaseMean.Seconds()
	if f.level > 0 && f.dispersion < 0.03 && least < f.burstSize && least > 1.4*float64(f.level+1) &&
		least > 1.3*flight+2 {
		f.limit(ConcurrencyLimit, fmt.Sprintf("of %.0f calls at once from rest %d were accepted, where calls are refused "+
			"when %d are in flight", f.burstSize, f.bursts[0], f.level))
	}
	if f.countsCalls() || f.counted >= counts && f.counted > f.separation+0.1 {
		f.limit(ConcurrencyLimit, fmt.Sprintf("the number of calls accepted in the last %s explains refusals better "+
			"(separation %.2f) than the number in flight (%.2f)", short(f.countWindow), f.counted, f.separation))
	}
	places := f.found[ConcurrencyLimit].score
	near := places >= wins || f.placesTaken() > 0.4 && !f.behindService
	// refusals that take as long as answers do not tell where calls are refused
	alike := f.behindService && f.followsLoad()
	if alike || near && places < 0.61 && clamp(f.found[TokenBucket].score) > 0.9 {
		f.withhold(ConcurrencyLimit, "a limit on the rate explains it as well")
		f.withhold(TokenBucket, "a limit on the calls in flight explains it as well")
	}
}

// doubtQueues decides between a queue and a collapse.
func (f *features) doubtQueues() {
	switch {
	case f.share(f.rejected) > 0.6 && (f.refusesSoon() || f.refusesAfterFixedTime() && !f.missesDeadline()):
		if !f.slowedDown() || !f.refusesSoon() {
			f.limit(Collapse, "most calls were turned away, and not answered late")
		}
		f.limit(CPUThrottling, "most calls were turned away, which leaves gaps between the others")
	case clamp(f.found[Queue].score) >= clamp(f.found[Collapse].score):
		f.withhold(Collapse, "a queue explains it as well")
	}
}
