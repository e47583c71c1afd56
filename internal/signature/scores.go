package signature

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// connections scores the generator's own limit and the failures to connect.
func connections(_ Evidence, f features, found map[Class]classScore) {
	if !f.audit.Valid {
		found[Client] = classScore{score: 1, evidence: f.audit.Reason}
	}
	for _, c := range []Class{ConnectionRefused, PortExhaustion, FDExhaustion} {
		share := f.share(f.dial[c])
		found[c] = classScore{
			// 5 % is enough; where nothing is served, nothing listens
			score: share / 0.1 * min(1, 10*f.late/max(f.best, 1e-9)) * (1 - clamp((f.away-0.1)/0.2)),
			evidence: fmt.Sprintf("%.1f %% of the calls could not connect (%s)", 100*share, map[Class]string{
				ConnectionRefused: "the target refused the connection",
				PortExhaustion:    "the client had no ephemeral port left",
				FDExhaustion:      "the client had no file descriptor left",
			}[c]),
			against: f.againstDial(share),
		}
	}
}

func (f features) againstDial(share float64) string {
	if f.away > 0.1 {
		return fmt.Sprintf("no call could connect for %.0f %% of the time: the target was away", 100*f.away)
	}
	return fmt.Sprintf("only %.1f %% of the calls could not connect", 100*share)
}

// hangs scores calls that are never answered while later ones are.
func hangs(_ Evidence, f features, found map[Class]classScore) {
	stuck := f.stuckFirst + f.stuckLater
	if f.hung && f.overtaking > 0 && !f.newestFirst {
		s := f.overtaking / 0.6 // 30 % is enough
		found[QuotaHang] = classScore{
			score: s * (1 - 0.6*f.flatness()),
			evidence: fmt.Sprintf("%.0f %% of the outstanding calls were overtaken: sent before calls that have long been "+
				"answered, on connections that had answered before (%d of %d)",
				100*f.overtaking, f.stuckLater, stuck),
			against: f.againstHang(),
		}
	}
	if stuck == 0 || !f.hung {
		return
	}
	first := float64(f.stuckFirst) / float64(stuck)
	x := classScore{against: fmt.Sprintf("%d of %d stuck calls were on connections that had answered before",
		f.stuckLater, stuck)}
	if first >= 0.9 && f.stuckFirst >= 5 {
		x.score = 0.7
		x.evidence = fmt.Sprintf("%d calls were stuck, %.0f %% of them on established connections that never answered at all",
			stuck, 100*first)
		if len(f.fills) > 0 {
			x.score, x.evidence, x.against = f.filled()
		}
	}
	found[AcceptQueue] = x
}

// flatness is 1 when the number of stuck calls was the same at all fill rates, 0 when it was not, or is not known.
func (f features) flatness() float64 {
	n := len(f.fills)
	if n < 2 || f.fills[n-1] == 0 {
		return 0
	}
	a, b := float64(f.fills[n-2]), float64(f.fills[n-1])
	if math.Abs(a-b) <= max(1, 0.005*b) {
		return 1
	}
	return 0
}

func (f features) filled() (score float64, evidence, against string) {
	n := len(f.fills)
	last, at := f.fills[n-1], make([]string, n)
	for i, r := range f.fillRates {
		at[i] = rate(r) + "/s"
	}
	where := strings.Join(at, " and at ")
	if f.flatness() == 1 {
		return 1, fmt.Sprintf("%d calls on established connections were never answered, at %s alike = a backlog of %d + 1",
			last, where, last-1), ""
	}
	if a, b := float64(f.fills[0]), float64(last); n > 1 && b > 1.5*a {
		return 0.2, "", "the number of stuck calls grew with the rate"
	}
	return 0.55, fmt.Sprintf("%v calls on established connections were never answered at %s: connections that were "+
			"never accepted, though the queue was not seen full", f.fills, where),
		"the number of stuck calls did not level off"
}

func (f features) againstHang() string {
	if f.flatness() == 1 {
		return "stuck calls would grow with the rate, and they stayed at " + fmt.Sprint(f.stuckNow())
	}
	if f.stuckFirst > 9*f.stuckLater {
		return "calls would hang on connections that had answered before, too"
	}
	return ""
}

// rejections scores limiters that turn calls away.
func rejections(e Evidence, f features, found map[Class]classScore) {
	share := f.share(f.rejected)
	if share <= 0 {
		return
	}
	enough := min(1, share/0.1) // 5 % is enough
	waits := f.waits(e)
	if f.turns >= 1 && f.turn > 0 {
		own := 1.0
		if f.period > 0 && f.period <= 0.25 && math.Abs(f.turn/f.period-1) < 0.1 {
			own = 0.3 // the scheduler's period
		} else if most := f.crowded(e); float64(most) > 6*f.turn*e.Capacity {
			own = 0.3 // a window never let so many through
		}
		found[FixedWindow] = classScore{
			score: enough * own,
			evidence: fmt.Sprintf("calls are accepted in bursts that begin every %s, about %.0f calls each, and refused "+
				"until the next", short(f.turn), f.turn*e.Capacity),
		}
	}
	if f.turns < 1 && f.bursty() && waits == 0 && !f.newestFirst && f.refusesAsSet(e) {
		found[FixedWindow] = classScore{
			score: enough * wins,
			evidence: "calls are refused when hardly any is in flight, and accepted while many are: they are accepted in " +
				"bursts, whose period was not seen",
		}
	}
	leaks, places := clamp((e.Sharp.Leak-0.002)/0.004), f.places(e)
	if f.clockwork(e) {
		leaks, places = 0, 0
	}
	if f.level > 0 {
		found[ConcurrencyLimit] = classScore{
			score:    enough * max(f.separation*0.625, places, 0.6*leaks), // the area of 0.9 is enough
			evidence: f.placesEvidence(e),
			against:  fmt.Sprintf("refusals are not explained by the number in flight (separation %.2f)", f.separation),
		}
	}
	found[Shedding] = f.shedding(e, enough, waits)
	found[Penalty] = f.penalty(e, enough)
	constant := 1 - 0.6*clamp((f.dispersion-0.05)/0.1)
	if e.Repeats {
		constant = 1
	}
	if f.refusedBehindService() {
		waits, leaks = 0, 0
	}
	bucket := enough * constant * (1 - 0.8*waits) * (1 - 0.6*leaks)
	if f.good < 5 {
		bucket = 0 // nothing is accepted, at no constant rate
	}
	if f.bursts[0] > 0 && places >= wins {
		bucket *= 0.4
	}
	found[TokenBucket] = classScore{
		score: bucket,
		evidence: fmt.Sprintf("%.1f %% of the calls were refused %s, and the rate of accepted ones stayed at %s/s "+
			"(variation %.1f %%)",
			100*share, f.delayed(), rate(e.Capacity), 100*f.acceptVariation),
		against: "the accepted calls are better explained by something other than their rate",
	}
}

// delayed says how long refusals took.
func (f features) delayed() string {
	if f.rejection.p50 < 0.1 {
		return "within " + short(f.rejection.p90)
	}
	return "after " + short(f.rejection.p50)
}

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
	switch {
	case f.refusedBehindService():
		return classScore{against: "calls are refused after they were served"}
	case f.waitsAsRefused(e) || f.leavesBehind():
		waits = 1
	}
	x := classScore{score: enough * waits * holds * steady, against: "calls that are served are served as fast as ever"}
	if steady < wins {
		x.against = "responses go on growing, as in a queue that drops nothing"
	}
	if f.rejection.p50 > 0.4*f.acceptance.p50 {
		if !f.refusesByAge(e) && !f.leavesBehind() {
			x.score *= 0.6 // a tarpit delays refusals as well
		}
		x.evidence = fmt.Sprintf("calls were refused after they had waited %s [%s, %s], and calls that were served took "+
			"%s: a queue that drops calls by their age",
			short(f.rejection.p50), short(f.rejection.p10), short(f.rejection.p90), short(f.acceptance.p50))
		return x
	}
	if f.newestFirst && f.overtaking > 0.3 {
		x.evidence = fmt.Sprintf("%.0f %% of the outstanding calls were overtaken by later ones, and others were refused "+
			"within %s: a queue that serves the newest call first, and drops calls", 100*f.overtaking, short(f.rejection.p90))
		return x
	}
	if queued := f.acceptance.p50 * e.Capacity; queued > 0 {
		x.score *= clamp(float64(f.level)/queued/0.2 - 0.5) // by its length: a queue is in flight when calls are refused
	}
	x.evidence = fmt.Sprintf("calls were refused within %s while about %d others were in flight, and calls that were "+
		"served had waited (%s): a queue that drops calls by its length",
		short(f.rejection.p90), f.level, short(f.acceptance.p50))
	return x
}

// trickles reports whether some calls passed in each quarter of the window's second half: a window that is shut lets
// none through until it turns.
func (f features) trickles() bool {
	to := f.window.End.Seconds()
	mid := (f.window.Start.Seconds() + to) / 2
	i, _ := slices.BinarySearch(f.done, mid)
	return slices.Min(counted(f.done[i:], mid, to, 4)) >= 1
}

// penaltyUnderOverload scores the same where no rate was confirmed, by an overload that is longer than windows are.
func (f features) penaltyUnderOverload(e Evidence, enough float64) classScore {
	const windows = 25 * time.Second
	long := f.window.End - f.window.Start
	if long < windows || f.slower > 3 || f.turns > 1 || f.best == 0 || !f.refusesAsSet(e) || !f.trickles() {
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

// waitsAsRefused reports whether calls that are served wait for as long as those wait that are refused: the line moves,
// and whoever is at its front after that time is refused.
func (f features) waitsAsRefused(e Evidence) bool {
	age, served := f.rejection.p50, e.BaseP50.Seconds()
	if held := e.Sharp.HeldP50.Seconds(); held > 0 {
		served = min(served, held)
	}
	return age > 0.02 && f.refusesAfterFixedTime() && math.Abs(f.acceptance.p50-served-age) < 0.3*age
}

// leavesBehind reports whether calls stay in a queue while later ones are served, and some of them are refused in the end.
func (f features) leavesBehind() bool {
	return f.newestFirst && (f.overtaking > 0.3 || f.refusesAfterFixedTime() && f.rejection.p50 > 2*f.acceptance.p50)
}

// refusedBehindService reports whether refusals take as long as good answers, and like them unequally long: what refuses
// lies behind the service, such as a dependency with a quota.
func (f features) refusedBehindService() bool {
	near := func(a, b float64) bool { return a > 0 && math.Abs(a-b) < 0.25*b }
	return near(f.rejection.p10, f.acceptance.p10) && near(f.rejection.p50, f.acceptance.p50) &&
		near(f.rejection.p90, f.acceptance.p90) && f.rejection.p90 > 1.2*f.rejection.p10
}

// refusesAfterFixedTime reports whether all refusals take the same time, as those of a deadline or of a tarpit do.
func (f features) refusesAfterFixedTime() bool {
	return f.rejection.p90-f.rejection.p10 <= 0.05*f.rejection.p50+0.002
}

// bursty reports whether calls are refused when hardly any is in flight, and accepted while many are.
func (f features) bursty() bool { return f.separation < -0.8 }

// refusesAsSet reports whether refusals come at once, or after the same time each: no queue delays them.
func (f features) refusesAsSet(e Evidence) bool {
	return f.rejection.p50 < 0.02+2*e.BaseP50.Seconds() || f.refusesAfterFixedTime()
}

// clockwork reports whether calls are accepted as regularly as by a clock, though they take unequally long: nothing that
// waits for calls to end does so.
func (f features) clockwork(e Evidence) bool {
	return f.dispersion > 0 && f.dispersion < 0.01 && f.good >= 200 && f.acceptance.p90 > 2*f.acceptance.p10 && !e.Repeats
}

// penalty scores a limiter that lets hardly anything pass beyond its limit, because refused calls count as well.
func (f features) penalty(e Evidence, enough float64) classScore {
	if !(e.Sharp.Held > 0) {
		return f.penaltyUnderOverload(e, enough)
	}
	left, at := e.Sharp.Goodput/e.Sharp.Held, e.Sharp.Failed
	if over := f.late / e.Sharp.Held; over < left {
		left, at = over, f.window.Rate
	}
	quick := 1 - clamp((f.rejection.p50-3*e.BaseP50.Seconds()-0.01)/max(0.01, e.BaseP50.Seconds()))
	if f.refusesAfterFixedTime() {
		quick = 1 // a tarpit's delay
	}
	return classScore{
		score: enough * quick * clamp((0.8-left)/0.6),
		evidence: fmt.Sprintf("at %s/s every call passed; at %s/s only %s/s did, and the others were refused %s: refused "+
			"calls count against the limit as well",
			rate(e.Sharp.Held), rate(at), rate(left*e.Sharp.Held), f.delayed()),
		against: fmt.Sprintf("%.0f %% of what passed below the limit still passed above it", 100*left),
	}
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

// slowdown scores a goodput that falls under load.
func slowdown(e Evidence, f features, found map[Class]classScore) {
	errors := math.Max(0, f.share(f.failed+f.timed)-e.ErrorFloor)
	if e.Allowance > 0 {
		found[Collapse] = classScore{against: fmt.Sprintf("goodput fell once an allowance of %.0f calls was used up, not "+
			"for "+
			"the load", e.Allowance)}
		return
	}
	if turned := f.share(f.rejected) > 0.05; f.late > 0 && f.slower < 3 && (turned || errors < 0.05) {
		found[Collapse] = classScore{
			score:   f.fall / 0.6 * 0.4,
			against: "calls that are answered are answered as fast as ever",
		}
		return
	}
	found[Collapse] = classScore{
		score: f.fall / 0.6, // 30 % is enough
		evidence: fmt.Sprintf("goodput fell from %s/s to %s/s under load (answers took %.1f times as long, %.1f %% of the "+
			"calls failed)",
			rate(f.best), rate(f.late), f.slower, 100*errors),
		against: fmt.Sprintf("goodput held: %s/s at its best, %s/s at the end", rate(f.best), rate(f.late)),
	}
}

// rhythms scores a target that stands still now and then.
func rhythms(e Evidence, f features, found map[Class]classScore) {
	x := classScore{
		score: f.beat / rhythmic * wins,
		evidence: fmt.Sprintf("answers come in bursts every %s (Rayleigh R = %.2f), as under a CPU quota with that period",
			short(f.period), f.beat),
		against: fmt.Sprintf("answers do not cluster in any period of the scheduler (R = %.2f)", f.beat),
	}
	if f.period == 0 {
		x.score = min(x.score, 0.45)
		if t := e.Local.Throttled; t != nil && *t > 0.5 {
			x.score = 0.6
			x.evidence = fmt.Sprintf("the target's cgroup was throttled in %.0f %% of the scheduler's periods", 100**t)
		}
	}
	if x.score >= wins {
		x.against = "" // they do, and something else explains more
	}
	found[CPUThrottling] = x
	p := classScore{
		// 1.5 % is enough; refusals leave gaps as well
		score: f.gaps / 0.03 * min(1, float64(f.gapCount)/3) * (1 - clamp(f.share(f.rejected)/0.1-1)),
		evidence: fmt.Sprintf("answers stop altogether %d times, up to %s, for %.1f %% of the time, without a fixed period",
			f.gapCount,
			short(f.longest), 100*f.gaps),
		against: fmt.Sprintf("there are only %.1f %% of the time without answers", 100*f.gaps),
	}
	if t := e.Local.Paused; t != nil && *t > 0.015 {
		p.score = max(p.score, 0.6)
	}
	if p.score >= wins {
		p.against = ""
	}
	found[Pauses] = p
}

// queues scores a queue: what is offered beyond the capacity waits, first come first served.
func queues(e Evidence, f features, found map[Class]classScore) {
	if !(f.wantDrift > 0) || f.good == 0 {
		return
	}
	// Of a call that was due at t and waits behind all others, the response grows by rate ÷ capacity − 1 per second; of
	// those that ended within the window as well.
	off := math.Abs(f.drift/f.wantDrift - 1)
	grown := float64(f.outstanding) / max(1, (f.window.Rate-e.Capacity)*(f.window.End-f.window.Start).Seconds())
	losses := math.Max(0, f.share(f.failed+f.timed+f.unconnected())+float64(f.refused)/float64(f.n-f.left)-e.ErrorFloor)
	s := (1 - off/0.6) * min(1, f.fifo/0.9)
	if f.newestFirst { // calls that are left behind may time out, and are the same that others have left behind before
		s, losses = max(s, wins), losses-f.share(f.timed)
	} else if math.Abs(grown-1) < 0.5 && f.slower > 2 && !f.hung { // not in order, and yet a queue
		s = max(s, wins)
	}
	s *= 1 - clamp(losses/0.1)
	found[Queue] = classScore{
		score:    s,
		evidence: f.queueEvidence(),
		against: fmt.Sprintf("responses grow by %.3f s per second, where a queue at this rate gives %.3f",
			f.drift, f.wantDrift),
	}
}

func (f features) queueEvidence() string {
	if f.newestFirst && f.fifo < 0.9 {
		return fmt.Sprintf("%.0f %% of the outstanding calls were overtaken by later ones, and they are answered once "+
			"fewer come: a queue that serves the newest call first",
			100*f.overtaking)
	}
	return fmt.Sprintf("responses grow by %.3f s per second, where an endless queue at this rate gives %.3f; answers "+
		"come in the order of the calls (r = %.2f)",
		f.drift, f.wantDrift, f.fifo)
}

// ambiguous is the most that a class scores that another explains as well.
const ambiguous = 0.45

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
	if found[TokenBucket].score <= ambiguous && !f.refusesByAge(e) && f.turns < 1 {
		f.boundedQueue(found)
	}
	if f.fallsSharply(e) {
		limit(Queue, fmt.Sprintf("%s/s were held, and of %s/s only %s/s were answered", rate(e.Sharp.Held),
			rate(e.Sharp.Failed), rate(e.Sharp.Goodput)))
	}
	if places := clamp(found[ConcurrencyLimit].score); f.separation > 0.9 && places > clamp(found[Shedding].score) {
		limit(Shedding, "calls are refused exactly when so many are in flight")
	}
	if f.newestFirst && f.overtaking > 0.5 {
		limit(ConnectionRefused, "calls that connect wait for long: connections run out because calls do not end")
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
	if f.savesBeyondPlaces(e) {
		limit(ConcurrencyLimit, fmt.Sprintf("of %.0f calls at once from rest %d were accepted, where calls are refused when "+
			"%d are in flight", f.burstSize, f.bursts[0], f.level))
	}
	if f.bursty() {
		limit(TokenBucket, "calls are refused when hardly any is in flight, and accepted while many are: they are accepted "+
			"in bursts")
	}
	if places := found[ConcurrencyLimit].score; (places >= wins || f.places(e) > 0.4) && places < 0.61 && clamp(found[TokenBucket].score) > 0.9 {
		limit(ConcurrencyLimit, "a limit on the rate explains it as well")
		limit(TokenBucket, "a limit on the calls in flight explains it as well")
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

// refusesByAge reports whether calls are refused once they have waited for a certain time: the refusals take that long,
// and served calls have waited for a good part of it.
func (f features) refusesByAge(e Evidence) bool {
	base := e.BaseP50.Seconds()
	return f.waitsAsRefused(e) || f.rejection.p50 > 0.02+0.5*base && f.rejection.p10 > 0.7*f.rejection.p50 &&
		f.acceptance.p50-base > 0.3*f.rejection.p50
}

// doubtCollapse withholds the collapse where a limiter may be what lets less pass: only answers that take longer and
// longer show that the service is at its end.
func (f features) doubtCollapse(e Evidence, limit func(Class, string)) {
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
