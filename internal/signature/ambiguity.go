package signature

import (
	"fmt"
	"math"
)

// ambiguous is the most that a class scores that another explains as well.
const ambiguous = 0.45

// A limiting function withholds a class, with what speaks against it.
type limiting func(c Class, against string)

// disagree withholds classes that the evidence does not tell from others.
func (f features) disagree(e Evidence, found map[Class]classScore) {
	limit := func(c Class, against string) {
		if x := found[c]; x.score > ambiguous {
			x.score, x.against = ambiguous, against
			found[c] = x
		}
	}
	f.doubtCollapse(e, limit)
	switch hangs := found[QuotaHang].score; {
	case hangs >= wins && hangs > found[Collapse].score:
		limit(Collapse, "some calls hang forever while later ones are answered")
	case found[TokenBucket].score > 0.3 && f.share(f.rejected) > 0.05:
		limit(Collapse, "a limit on the rate, with calls saved up before, explains it as well")
	}
	if f.singly > 0.5 {
		limit(Pauses, "single calls take as long, while others are answered")
	}
	if f.newestFirst && f.overtaking > 0.5 {
		limit(ConnectionRefused, "calls that connect wait for long: connections run out because calls do not end")
	}
	f.doubtBuckets(e, limit)
	if found[TokenBucket].score <= ambiguous && !f.refusesByAge(e) && f.turns < 1 {
		f.boundedQueue(found)
	}
	if found[TokenBucket].score >= ambiguous {
		limit(Penalty, "a limit on the rate explains it as well")
	}
	f.doubtPlaces(e, found, limit)
	f.doubtQueues(e, found, limit)
}

// doubtBuckets withholds limits on the rate where calls that were accepted have waited, or come in bursts.
func (f features) doubtBuckets(e Evidence, limit limiting) {
	if f.newestFirst {
		limit(TokenBucket, "calls that were taken were left behind by later ones")
		limit(FixedWindow, "calls that were taken were left behind by later ones")
	}
	held := e.Sharp.HeldP50.Seconds()
	if held > 0 && f.acceptance.p50 > 1.25*held+0.002 && !f.refusedBehindService() {
		limit(TokenBucket, fmt.Sprintf("calls that were accepted took %s under overload and %s just below the limit: they "+
			"waited", short(f.acceptance.p50), short(held)))
	}
	if f.refusesByAge(e) {
		against := fmt.Sprintf("calls were refused after they had waited %s, and those that were served had waited as well",
			short(f.rejection.p50))
		limit(ConcurrencyLimit, against)
		limit(TokenBucket, against)
	}
	if f.bursty() {
		limit(TokenBucket, "calls are refused when hardly any is in flight, and accepted while many are: they are accepted "+
			"in bursts")
	}
}

// doubtPlaces decides between a limit on calls at once and what looks like one.
func (f features) doubtPlaces(e Evidence, found map[Class]classScore, limit limiting) {
	if places := clamp(found[ConcurrencyLimit].score); f.separation > 0.9 && places > clamp(found[Shedding].score) {
		limit(Shedding, "calls are refused exactly when so many are in flight")
	}
	if f.savesBeyondPlaces(e) {
		limit(ConcurrencyLimit, fmt.Sprintf("of %.0f calls at once from rest %d were accepted, where calls are refused when "+
			"%d are in flight", f.burstSize, f.bursts[0], f.level))
	}
	places := found[ConcurrencyLimit].score
	near := places >= wins || f.places(e) > 0.4
	if near && places < 0.61 && clamp(found[TokenBucket].score) > 0.9 {
		limit(ConcurrencyLimit, "a limit on the rate explains it as well")
		limit(TokenBucket, "a limit on the calls in flight explains it as well")
	}
}

// doubtQueues decides between a queue and a collapse.
func (f features) doubtQueues(e Evidence, found map[Class]classScore, limit limiting) {
	if f.fallsSharply(e) {
		limit(Queue, fmt.Sprintf("%s/s were held, and of %s/s only %s/s were answered", rate(e.Sharp.Held),
			rate(e.Sharp.Failed), rate(e.Sharp.Goodput)))
	}
	// it has not become faster meanwhile
	if held := e.Sharp.Held * (1 - e.ErrorFloor); f.late < 0.85*held && f.best > 0.9*held && f.share(f.rejected) < 0.05 {
		limit(Queue, fmt.Sprintf("%s/s were held, and under overload only %s/s were answered", rate(held), rate(f.late)))
	}
	collapse, queue := clamp(found[Collapse].score), clamp(found[Queue].score)
	switch {
	case f.share(f.rejected) > 0.6 && (f.rejection.p50 < 0.05+3*e.BaseP50.Seconds() || f.refusesAfterFixedTime()):
		limit(Collapse, "most calls were turned away, and not answered late")
		limit(CPUThrottling, "most calls were turned away, which leaves gaps between the others")
	case queue >= collapse:
		limit(Collapse, "a queue explains it as well")
	}
}

// boundedQueue adds what speaks for places to what speaks for a queue: a queue that drops calls at random, or that is
// short, has some of both.
func (f features) boundedQueue(found map[Class]classScore) {
	x, places := found[Shedding], found[ConcurrencyLimit].score
	if x.score > 0.2 && x.score < wins && places > 0.2 && places < wins && x.score+places >= wins {
		x.score = wins
		found[Shedding] = x
	}
}

// savesBeyondPlaces reports whether both bursts from rest took clearly more calls than are in flight when calls are
// refused: an allowance was saved up, and there are not that many places.
func (f features) savesBeyondPlaces(e Evidence) bool {
	least, flight := float64(min(f.bursts[0], f.bursts[1])), e.Capacity*e.BaseMean.Seconds()
	return f.level > 0 && f.dispersion < 0.03 && least < f.burstSize && least > 1.4*float64(f.level+1) &&
		least > 1.3*flight+2
}

// fallsSharply reports whether a rate just above one that was held had much less answered, without refusals: a queue
// would go on answering what it can.
func (f features) fallsSharply(e Evidence) bool {
	return e.Sharp.Held > 0 && e.Sharp.Failed < 1.3*e.Sharp.Held && e.Sharp.Goodput < 0.75*(1-e.ErrorFloor)*e.Sharp.Held &&
		f.late < 0.75*e.Sharp.Held && f.share(f.rejected) < 0.05
}

// doubtCollapse withholds the collapse where a limiter may be what lets less pass: only answers that take longer and
// longer show that the service is at its end.
func (f features) doubtCollapse(e Evidence, limit limiting) {
	rejected := float64(f.rejected) / (f.window.End - f.window.Start).Seconds()
	noise := math.Sqrt(f.best + f.late/max(1e-9, (f.window.End-f.window.Start).Seconds()/2))
	switch {
	case f.late == 0 && f.before < 2:
		limit(Collapse, "the last calls that were answered were answered as fast as ever")
	case f.share(f.rejected) > 0.2 && f.late+rejected > 0.75*f.window.Rate && f.rejection.p50 < 0.05+3*e.BaseP50.Seconds():
		limit(Collapse, "calls were turned away at once")
	case f.late == 0 && f.rejected == 0 && f.left > f.n*9/10 && f.revived:
		limit(Collapse, "nothing was answered under overload, neither late nor with an error, and later calls were")
	case f.best-f.late < 3*noise:
		limit(Collapse, "so few calls may show that by chance")
	}
}
