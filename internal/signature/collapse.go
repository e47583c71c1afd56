package signature

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// collapse is about a goodput that falls under load.
var collapse = definition{
	class: Collapse, phrase: "a service that does less under load",
	traits: Traits{Waits: true, Falls: true, Served: true, MaySave: true},
	score:  (*features).collapseScore,
	doubt:  (*features).doubtCollapse,
}

// falls is by how much goodput falls, as a share of its best, for a score of 1: 30 % is enough to name it.
const falls = 0.6

func (f *features) collapseScore() classScore {
	errors := math.Max(0, f.share(f.failed+f.timed)-f.ErrorFloor)
	turned := f.share(f.rejected) > 0.05
	switch {
	case f.Allowance > 0:
		return classScore{against: fmt.Sprintf("goodput fell once an allowance of %.0f calls was used up, not for the load",
			f.Allowance)}
	case f.down():
		return classScore{score: 1, evidence: fmt.Sprintf("no call could connect for %.0f %% of the time, where %s/s had "+
			"been served before: the target was down", 100*f.away, rate(f.best))}
	case f.late > 0 && f.slower < 3 && !f.newestFirst && (turned || errors < 0.05):
		return classScore{score: f.fall / falls * 0.4, against: "calls that are answered are answered as fast as ever"}
	}
	return classScore{
		score: f.fall / falls,
		evidence: fmt.Sprintf("goodput fell from %s/s to %s/s under load (the last answers took %.1f times as long, %.1f %% "+
			"of the calls failed)", rate(f.best), rate(f.late), f.lastSlower(), 100*errors),
		against: f.goodputHeld(),
	}
}

// goodputHeld says how little goodput fell; "" where what was confirmed shows that less was done under load: more was
// held than was answered under overload, or a rate broke that is far below the best.
func (f *features) goodputHeld() string {
	const little = 0.05
	best, names := min(f.best, f.window.Rate), wins*falls
	switch {
	case f.answeredLess(), f.Sharp.Failed > 0 && f.Sharp.Failed < (1-names)*best:
		return ""
	case f.fall < little:
		return fmt.Sprintf("goodput held: %s/s at its best, %s/s at the end", rate(best), rate(f.late))
	}
	return fmt.Sprintf("goodput fell by %.0f %%, from %s/s in its best second to %s/s at the end, and %.0f %% would "+
		"show it", 100*f.fall, rate(best), rate(f.late), 100*names)
}

// answeredLess reports whether clearly less was answered under overload than a rate that was held, and hardly anything
// refused.
func (f *features) answeredLess() bool {
	held := f.Sharp.Held * (1 - f.ErrorFloor)
	return f.late < 0.85*held && f.best > 0.9*held && f.share(f.rejected) < 0.05
}

// doubtCollapse says why a limiter is what lets less pass: only answers that take longer and longer show that the
// service is at its end.
func (f *features) doubtCollapse() string {
	switch {
	case f.turnsAway() && !f.slowedDown():
		return "calls were turned away at once, and the others answered as fast as ever"
	case f.onlyHung():
		return "nothing was answered under overload, neither late nor with an error, and later calls were"
	}
	return ""
}

// turnsAway reports whether the calls that are not answered are refused at once.
func (f *features) turnsAway() bool {
	return f.share(f.rejected) > 0.2 && f.late+float64(f.rejected)/f.seconds() > 0.75*f.window.Rate && f.refusesSoon()
}

// collapseUntold says why the calls do not show whether the service does less under load: "" where they do.
func (f *features) collapseUntold() string {
	noise := math.Sqrt(f.clumps * (f.best + f.late/max(1e-9, f.seconds()/2)))
	switch {
	case f.turnsAway(): // by a limiter, or by a control that protects a service at its end
		return "calls were turned away at once"
	case f.late == 0 && f.before < 2:
		return "nothing was answered under overload, and the calls before it were answered as fast as ever"
	case f.best-f.late < 3*noise:
		return "so few calls may show that by chance"
	}
	return ""
}

// refusesSoon reports whether calls are refused about as fast as others are answered.
func (f *features) refusesSoon() bool { return f.rejection.p50 < 0.05+3*f.BaseP50.Seconds() }

// onlyHung reports whether nothing was answered under overload, not even late, though it lasted far longer than a call
// and calls just before had not waited for long; and calls that came after it were answered.
func (f *features) onlyHung() bool {
	return f.late == 0 && f.rejected == 0 && f.left > f.n*9/10 && f.revived && f.endedWell < 0.5 &&
		f.before*f.BaseP50.Seconds() < 0.3*f.Timeout.Seconds() &&
		f.seconds() > 4*f.BaseP50.Seconds()
}

// down reports whether a target that had served calls could not be reached at all for a part of the overload.
func (f *features) down() bool { return f.away > 0.1 && f.best > 0 }

// clumpsOf is the variance ÷ mean of the numbers of instants in quarters of a second between two, at least 1, which is
// that of chance: where single calls occupy a service for long, the others come in clumps.
func clumpsOf(t []float64, from, to float64) float64 {
	parts := int((to - from) * 4)
	i, _ := slices.BinarySearch(t, from)
	if t = t[i:]; parts < 4 || len(t) == 0 {
		return 1
	}
	return min(4, max(1, dispersionOf(t, from, to, parts)))
}

// bestGoodput returns the highest number of good calls per second, by the instant at which they ended, over any second
// on a grid of quarter seconds up to the end of the first overload.
func (f *features) bestGoodput() float64 {
	const grid = time.Second / 4
	from, to := f.Windows[0].Start, f.Windows[0].End
	for _, w := range f.Windows {
		if to = max(to, w.End); w.Role == "overload" {
			break
		}
	}
	if to-from > 24*time.Hour || to <= from {
		return 0
	}
	bins := make([]int, (to-from)/grid+1)
	for c := range f.answers(from, to) {
		bins[(c.Done-from)/grid]++
	}
	best, sum := 0, 0
	for i, n := range bins {
		if sum += n; i >= 4 {
			sum -= bins[i-4]
		}
		best = max(best, sum)
	}
	return float64(best)
}
