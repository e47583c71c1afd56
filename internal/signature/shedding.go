package signature

import "fmt"

// shedding is about queues that drop calls: those that are served have waited, and the goodput holds.
var shedding = definition{
	class: Shedding, phrase: "a queue that drops calls", refuses: true, byTimes: true,
	traits: Traits{Drops: true, Waits: true, Served: true, Limiter: true},
	score:  (*features).sheddingScore,
}

func (f *features) sheddingScore() classScore {
	waits, holds := f.waits(), 1-clamp((1-f.late/max(f.Capacity, 1e-9)-0.2)/0.3)
	holds = min(holds, 1-clamp((f.fall-0.6)/0.2)) // what it does when most calls are dropped is no capacity
	steady := 1.0                                 // in a queue that drops nothing, responses go on growing
	if f.wantDrift > 0 {
		steady = 1 - clamp((f.lateDrift/f.wantDrift-0.3)/0.3)
	}
	if f.turns >= 1 && f.separation < 0.8 {
		holds *= 0.3 // a window turns: calls wait while a burst is served
	}
	// calls stay in a queue while later ones are served, and some of them are refused in the end
	behind := f.newestFirst &&
		(f.overtaking > 0.3 || f.refusesAfterFixedTime() && f.rejection.p50 > 2*f.acceptance.p50)
	switch {
	case f.behindService && !f.followsLoad():
		return classScore{against: "calls are refused after they were served"}
	case f.waitsAsRefused() || f.servedUntilRefused() || behind:
		waits = 1
	}
	x := classScore{score: f.enough() * waits * holds * steady}
	byAge, long := f.rejection.p50 > 0.4*f.acceptance.p50, 1.0
	switch queued := f.acceptance.p50 * f.Capacity; {
	case byAge && !behind && !f.refusesByAge():
		x.score *= 0.6 // a tarpit delays refusals as well
	case !byAge && !behind && queued > 0:
		long = clamp(float64(f.level)/queued/0.2 - 0.5) // by its length: a queue is in flight when calls are refused
		x.score *= long
	}
	switch {
	case steady < wins:
		x.against = "responses go on growing, as in a queue that drops nothing"
	case waits == 0:
		x.against = "calls that are served are served as fast as ever"
	case waits < wins:
		x.against = fmt.Sprintf("calls that are served took %s, and %s well below the limit", short(f.acceptance.p50),
			short(f.BaseP50.Seconds()))
	case long < wins:
		x.against = fmt.Sprintf("half of the refusals came with at most %d others in flight: too few for a queue in which a "+
			"call takes %s", f.level, short(f.acceptance.p50))
	}
	x.evidence = f.sheddingEvidence(byAge, behind)
	return x
}

func (f *features) sheddingEvidence(byAge, behind bool) string {
	aged := fmt.Sprintf("calls were refused after they had waited %s [%s, %s], ",
		short(f.rejection.p50), short(f.rejection.p10), short(f.rejection.p90))
	switch {
	case byAge && behind:
		return aged + fmt.Sprintf("while later ones were served within %s: a queue that serves the newest call first, and "+
			"drops calls by their age", short(f.acceptance.p50))
	case byAge:
		return aged + fmt.Sprintf("and calls that were served took %s: a queue that drops calls by their age",
			short(f.acceptance.p50))
	case behind:
		return fmt.Sprintf("%.0f %% of the outstanding calls were overtaken by later ones, and others were refused within "+
			"%s: a queue that serves the newest call first, and drops calls", 100*f.overtaking, short(f.rejection.p90))
	}
	return fmt.Sprintf("calls were refused within %s while about %d others were in flight, and calls that were served "+
		"had waited (%s): a queue that drops calls by its length", short(f.rejection.p90), f.level, short(f.acceptance.p50))
}
