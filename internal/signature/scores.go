package signature

import (
	"fmt"
	"math"
	"strings"
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
	if share == 0 {
		return ""
	}
	return fmt.Sprintf("only %.1f %% of the calls could not connect", 100*share)
}

// hangs scores calls that are never answered while later ones are.
func hangs(_ Evidence, f features, found map[Class]classScore) {
	stuck := f.stuckFirst + f.stuckLater
	if f.hung && f.overtaking > 0 && !f.newestFirst {
		s := f.overtaking / 0.6 // 30 % is enough
		found[QuotaHang] = classScore{
			score: clamp(s) * (1 - 0.6*f.flatness()),
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

// fewWaits is how many calls wait for a connection at least where a listen queue is full.
const fewWaits = 5

// flatness is 1 when the number of stuck calls was the same at all fill rates, 0 when it was not, or is not known.
func (f features) flatness() float64 {
	n := len(f.fills)
	if n < 2 || f.fills[n-1] == 0 {
		return 0
	}
	a, b := float64(f.fills[n-2]), float64(f.fills[n-1])
	if math.Abs(a-b) <= max(1, 0.005*b) && f.fillWaits >= fewWaits {
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
	if f.fillWaits < fewWaits {
		return 0.2, "", fmt.Sprintf("at %s/s no call waited for a connection: so few fill no queue", rate(f.fillRates[n-1]))
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

// slowdown scores a goodput that falls under load.
func slowdown(e Evidence, f features, found map[Class]classScore) {
	errors := math.Max(0, f.share(f.failed+f.timed)-e.ErrorFloor)
	if e.Allowance > 0 {
		found[Collapse] = classScore{against: fmt.Sprintf("goodput fell once an allowance of %.0f calls was used up, not "+
			"for "+
			"the load", e.Allowance)}
		return
	}
	if f.down() {
		found[Collapse] = classScore{score: 1, evidence: fmt.Sprintf("no call could connect for %.0f %% of the time, where "+
			"%s/s had been served before: the target was down", 100*f.away, rate(f.best))}
		return
	}
	turned := f.share(f.rejected) > 0.05
	if f.late > 0 && f.slower < 3 && !f.newestFirst && (turned || errors < 0.05) {
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

// down reports whether a target that had served calls could not be reached at all for a part of the overload.
func (f features) down() bool { return f.away > 0.1 && f.best > 0 }

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
			x.score = 0.8
			x.evidence = throttledText(*t)
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
	}
	if t := e.Local.Paused; t != nil && *t > 0.015 {
		p.score = max(p.score, 0.6)
	}
	if f.gaps < 0.015 && f.longest > 0 {
		p.against = fmt.Sprintf("the target never went longer than %s without an answer", short(f.longest))
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
