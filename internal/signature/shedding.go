package signature

import (
	"fmt"
	"math"
)

// waits is how surely calls that are served wait in a queue before, 0…1: they take several times as long as far below
// the capacity.
func (f features) waits(e Evidence) float64 {
	base := e.BaseP50.Seconds()
	took := f.acceptance.p50
	if f.mildly > 0 {
		took = min(took, f.mildly)
	}
	if base <= 0 || took == 0 {
		return 0
	}
	return clamp((took/base-1.5)/1.5) * clamp((took-base)/0.01)
}

// shedding scores a queue that drops calls: those that are served have waited, and the goodput holds.
func (f features) shedding(e Evidence, enough, waits float64) classScore {
	holds := 1 - clamp((1-f.late/max(e.Capacity, 1e-9)-0.2)/0.3)
	steady := 1.0 // in a queue that drops nothing, responses go on growing
	if f.wantDrift > 0 {
		steady = 1 - clamp((f.lateDrift/f.wantDrift-0.3)/0.3)
	}
	if f.turns >= 1 && f.separation < 0.8 {
		holds *= 0.3 // a window turns: calls wait while a burst is served
	}
	behind := f.leavesBehind()
	switch {
	case f.refusedBehindService():
		return classScore{against: "calls are refused after they were served"}
	case f.waitsAsRefused(e) || f.servedUntilRefused(e) || behind:
		waits = 1
	}
	x := classScore{score: enough * waits * holds * steady, against: "calls that are served are served as fast as ever"}
	if steady < wins {
		x.against = "responses go on growing, as in a queue that drops nothing"
	}
	byAge := f.rejection.p50 > 0.4*f.acceptance.p50
	switch queued := f.acceptance.p50 * e.Capacity; {
	case byAge && !behind && !f.refusesByAge(e):
		x.score *= 0.6 // a tarpit delays refusals as well
	case !byAge && !behind && queued > 0:
		x.score *= clamp(float64(f.level)/queued/0.2 - 0.5) // by its length: a queue is in flight when calls are refused
	}
	x.evidence = f.sheddingEvidence(byAge, behind)
	return x
}

func (f features) sheddingEvidence(byAge, behind bool) string {
	switch {
	case byAge && behind:
		return fmt.Sprintf("calls were refused after they had waited %s [%s, %s], while later ones were served within %s: a "+
			"queue that serves the newest call first, and drops calls by their age",
			short(f.rejection.p50), short(f.rejection.p10), short(f.rejection.p90), short(f.acceptance.p50))
	case byAge:
		return fmt.Sprintf("calls were refused after they had waited %s [%s, %s], and calls that were served took %s: a "+
			"queue that drops calls by their age",
			short(f.rejection.p50), short(f.rejection.p10), short(f.rejection.p90), short(f.acceptance.p50))
	case behind:
		return fmt.Sprintf("%.0f %% of the outstanding calls were overtaken by later ones, and others were refused within "+
			"%s: a queue that serves the newest call first, and drops calls", 100*f.overtaking, short(f.rejection.p90))
	}
	return fmt.Sprintf("calls were refused within %s while about %d others were in flight, and calls that were served "+
		"had waited (%s): a queue that drops calls by its length",
		short(f.rejection.p90), f.level, short(f.acceptance.p50))
}

// waitsAsRefused reports whether calls that are served wait for as long as those wait that are refused: the line moves,
// and whoever is at its front after that time is refused.
func (f features) waitsAsRefused(e Evidence) bool {
	age, served := f.rejection.p50, e.BaseP50.Seconds()
	if held := e.Sharp.HeldP50.Seconds(); held > 0 {
		served = min(served, held)
	}
	return age > 0.02 && f.refusesAfterFixedTime() && math.Abs(f.acceptance.p50-served-age) < 0.3*age
}

// servedUntilRefused reports whether the slowest calls that were served took as long as refusals take, all of which take
// the same time, and hardly one took longer: calls that wait are refused at that age. A tarpit delays refusals alone.
func (f features) servedUntilRefused(e Evidence) bool {
	age, base := f.rejection.p50, e.BaseP50.Seconds()
	return f.good >= 100 && age > 0.02+2*base && f.refusesAfterFixedTime() && f.eventual.p99 > 0.8*age &&
		f.eventual.p99 < 1.15*age+base && f.eventual.most < 1.3*age+2*base
}

// leavesBehind reports whether calls stay in a queue while later ones are served, and some of them are refused in the
// end.
func (f features) leavesBehind() bool {
	return f.newestFirst && (f.overtaking > 0.3 || f.refusesAfterFixedTime() && f.rejection.p50 > 2*f.acceptance.p50)
}

// refusedBehindService reports whether refusals take as long as good answers, and like them unequally long: calls are
// refused behind the service, such as by a dependency with a quota.
func (f features) refusedBehindService() bool {
	near := func(a, b float64) bool { return a > 0 && math.Abs(a-b) < 0.25*b }
	return near(f.rejection.p10, f.acceptance.p10) && near(f.rejection.p50, f.acceptance.p50) &&
		near(f.rejection.p90, f.acceptance.p90) && f.rejection.p90 > 1.2*f.rejection.p10
}

// refusesAfterFixedTime reports whether all refusals take the same time, as those of a deadline or of a tarpit do.
func (f features) refusesAfterFixedTime() bool {
	return f.rejection.p90-f.rejection.p10 <= 0.05*f.rejection.p50+0.002
}

// refusesByAge reports whether calls are refused once they have waited for a certain time: the refusals take that long,
// and served calls have waited for a good part of it.
func (f features) refusesByAge(e Evidence) bool {
	base := e.BaseP50.Seconds()
	return f.waitsAsRefused(e) || f.servedUntilRefused(e) || f.rejection.p50 > 0.02+0.5*base && f.rejection.p10 > 0.7*f.rejection.p50 &&
		f.acceptance.p50-base > 0.3*f.rejection.p50
}
