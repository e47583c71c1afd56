package signature

import (
	"iter"
	"math"
	"net/http"

	"tare/internal/load"
	"tare/internal/stat"
)

// This file is about when calls are refused, and whether those that are served have waited.

// enough is how surely so many calls were rejected that it matters, 0…1: 5 % is enough to be chosen.
func (f *features) enough() float64 { return min(1, f.share(f.rejected)/0.1) }

// countRejected counts the rejected calls of the window, including those that learned of it later, and measures how
// long rejection took. Other answers than plain refusals count only if there are clearly more of them than at any rate.
func (f *features) countRejected() {
	other, n := 0, 0
	for c := range f.due() {
		if !c.Outstanding(f.Now) {
			n++
			if unexpected(c) {
				other++
			}
		}
	}
	extra := float64(other) - f.ErrorFloor*float64(n)
	plain := extra <= 0.05*float64(n)
	f.rejects = func(c *load.Call) bool { return c.Outcome == load.Refused || !plain && unexpected(c) }
	if !plain {
		f.rejected = int(extra)
	}
	f.acceptance = f.acceptedLate()
	var away, served []float64
	for c := range f.due() {
		switch {
		case c.Outstanding(f.Now) || c.Sent == 0:
		case c.Outcome.Good():
			served = append(served, c.Service().Seconds())
		case f.rejects(c):
			away = append(away, c.Service().Seconds())
			if c.Status == http.StatusGatewayTimeout {
				f.gatewayTimeouts++
			}
			if c.Outcome == load.Refused {
				f.rejected++
			}
		}
	}
	f.rejection, f.eventual = latenciesOf(away), latenciesOf(served)
	if mean := stat.Mean(served); len(served) > 1 && mean > 0 {
		f.unequal = stat.Variance(served) / (mean * mean)
	}
	f.endedWell = float64(len(served)) / float64(f.n)
	f.behindService = f.isRefusedBehindService()
}

// isRefusedBehindService reports whether calls are refused behind the service, such as by a dependency with a quota. It
// compares the refusals of the second half of the window with the good answers of that time: of several forms of
// refusals those of the most frequent one, since each is another control's.
func (f *features) isRefusedBehindService() bool {
	type form struct {
		outcome load.Outcome
		status  uint16
	}
	var usual []float64
	forms := map[form][]float64{}
	for c := range f.until(f.window.End) {
		late := c.Done > f.mid() && c.Done <= f.window.End
		if late && c.Sent != 0 && !c.Outcome.Good() && f.rejects(c) {
			x := form{c.Outcome, c.Status}
			if forms[x] = append(forms[x], c.Service().Seconds()); len(forms[x]) > len(usual) {
				usual = forms[x]
			}
		}
	}
	if len(usual) == 0 {
		return false
	}
	return f.refusedLike(latenciesOf(serviceTimes(f.answers(f.mid(), f.window.End))), latenciesOf(usual))
}

// unexpected reports whether c got an unexpected answer, or was cut off: limiters reject with 429 and 503, and some
// with 500, with a reset, or with 200 and an error document.
func unexpected(c *load.Call) bool {
	return c.Outcome == load.Failed || c.Outcome == load.Wrong || c.Outcome == load.ConnFailed && c.Sent != 0
}

// acceptedLate is how long the calls took that were served in the second half of the window, by which the queue that a
// ramp left is gone; in all of it where those are few.
func (f *features) acceptedLate() latencies {
	if late := serviceTimes(f.answers(f.mid(), f.window.End)); len(late) >= 50 {
		return latenciesOf(late)
	}
	return latenciesOf(serviceTimes(f.answers(f.window.Start, f.window.End)))
}

// serviceTimes returns the service times, in seconds, of answers.
func serviceTimes(answers iter.Seq[*load.Call]) (times []float64) {
	for c := range answers {
		if c.Sent != 0 {
			times = append(times, c.Service().Seconds())
		}
	}
	return times
}

// waits is how surely calls that are served wait in a queue before, 0…1: they take several times as long as far below
// the capacity.
func (f *features) waits() float64 {
	base := f.BaseP50.Seconds()
	took := f.acceptance.p50
	if f.mildly > 0 {
		took = min(took, f.mildly)
	}
	if base <= 0 || took == 0 {
		return 0
	}
	return clamp((took/base-1.5)/1.5) * clamp((took-base)/0.01)
}

// busy measures how long calls take when only a few are rejected: a service without capacity also makes calls wait
// then, and a limiter does not.
func (f *features) busy() {
	windows, away := f.windowsOf("busy"), 0
	if len(windows) == 0 {
		return
	}
	var served []float64
	for c := range f.Calls.Due(windows[0].Start, windows[0].End) {
		switch {
		case c.Outstanding(f.Now) || c.Sent == 0:
		case c.Outcome.Good():
			served = append(served, c.Service().Seconds())
		case f.rejects(c):
			away++
		}
	}
	if n := float64(len(served) + away); len(served) > 20 && float64(away)/n > 0.02+f.ErrorFloor {
		f.mildly = stat.Quantile(served, 0.5)
	}
}

// waitsAsRefused reports whether calls that are served wait for as long as those wait that are refused: the line moves,
// and whoever is at its front after that time is refused.
func (f *features) waitsAsRefused() bool {
	age := f.rejection.p50
	return age > 0.02 && f.refusesAfterFixedTime() && math.Abs(f.acceptance.p50-f.atRest()-age) < 0.3*age
}

// atRest is the median service time of calls that do not wait, s: a target may have been cold in the ramp.
func (f *features) atRest() float64 {
	if held := f.Sharp.HeldP50.Seconds(); held > 0 {
		return min(f.BaseP50.Seconds(), held)
	}
	return f.BaseP50.Seconds()
}

// servedUntilRefused reports whether the slowest calls that were served took as long as refusals take, all of which
// take the same time, and hardly one took longer: calls that wait are refused at that age. A tarpit delays only
// refusals.
func (f *features) servedUntilRefused() bool {
	age, base := f.rejection.p50, f.BaseP50.Seconds()
	return f.good >= 100 && age > 0.02+2*base && f.refusesAfterFixedTime() && f.eventual.p99 > 0.8*age &&
		f.eventual.p99 < 1.15*age+base && f.eventual.most < 1.3*age+2*base && f.eventual.p99 > 1.5*f.BaseP99.Seconds()
}

// refusedLike reports whether refusals take as long as good answers, and like them unequally long; or all but equally
// long, without a queue that both have waited in.
func (f *features) refusedLike(good, bad latencies) bool {
	near := func(a, b, most float64) bool { return a > 0 && math.Abs(a-b) < most*b }
	return near(bad.p50, good.p50, 0.25) && near(bad.p90, good.p90, 0.25) && bad.p90 > 1.2*bad.p10 ||
		near(bad.p10, good.p10, 0.05) && near(bad.p90, good.p90, 0.05) && good.p50 < 1.25*f.BaseP50.Seconds()
}

// refusesAfterFixedTime reports whether all refusals take the same time, as those of a deadline or of a tarpit do.
func (f *features) refusesAfterFixedTime() bool {
	return f.rejection.p90-f.rejection.p10 <= 0.05*f.rejection.p50+0.002
}

// missesDeadline reports whether calls are not refused but given up: most of those that are turned away have the status
// of a gateway that has waited for too long; or that comes after the same time for all, once calls had begun to wait
// for a good part of it.
func (f *features) missesDeadline() bool {
	const part = 0.15
	return 2*f.gatewayTimeouts > f.rejected || f.refusesAfterFixedTime() && !f.refusesSoon() && f.slowedDown() &&
		f.lastSlower()*f.BaseP50.Seconds() > part*f.rejection.p50
}

// lastSlower is how many times as long as well below the capacity the calls took that were answered last.
func (f *features) lastSlower() float64 {
	if f.late == 0 {
		return f.before
	}
	return f.slower
}

// slowedDown reports whether the calls that were answered last took much longer than well below the capacity.
func (f *features) slowedDown() bool { return f.lastSlower() >= 2 }

// refusesByAge reports whether calls are refused once they have waited for a certain time: the refusals take that long,
// and served calls have waited for a good part of it.
func (f *features) refusesByAge() bool {
	base, age := f.atRest(), f.rejection.p50
	return f.waitsAsRefused() || f.servedUntilRefused() ||
		age > 0.02+0.5*base && f.rejection.p10 > 0.7*age && f.acceptance.p50-base > 0.3*age
}

// refusesAsSet reports whether refusals come at once, or after the same time each: no queue delays them.
func (f *features) refusesAsSet() bool {
	return f.rejection.p50 < 0.02+2*f.BaseP50.Seconds() || f.refusesAfterFixedTime()
}

// delayed says how long refusals took.
func (f *features) delayed() string {
	if f.rejection.p50 < 0.1 {
		return "within " + short(f.rejection.p90)
	}
	return "after " + short(f.rejection.p50)
}
