package signature

import (
	"fmt"
	"math"
	"slices"

	"tare/internal/stat"
)

// mostWindows is how many windows' calls a limit may have saved up.
const mostWindows = 4

// fixedWindow is about limits per window of time: calls are accepted until the window's number is used up, and then
// refused until it turns.
var fixedWindow = definition{
	class: FixedWindow, phrase: "a limit per window of time", refuses: true,
	traits: Traits{Steady: true, Saves: true, Windowed: true, Limiter: true},
	score:  (*features).windowScore,
	doubt: func(f *features) string {
		if f.refusesEarly() {
			return fmt.Sprintf("calls were refused though at most %.0f %% of what %s/s allow had been accepted before",
				100*f.allowed, rate(f.Sharp.Held))
		}
		if each := f.turn * f.Capacity; f.turn >= 1 && f.best > mostWindows*each+10 {
			return fmt.Sprintf("%.0f calls were accepted in one second, and %.0f in each period of %s", f.best, each,
				short(f.turn))
		}
		return ""
	},
	shown: func(f *features) bool {
		// a steady limit does not accept in bursts
		return f.turns >= 3 && f.found[FixedWindow].score >= certain && f.nothingLike(FixedWindow, TokenBucket)
	},
}

func (f *features) windowScore() classScore {
	switch {
	case f.turns >= 1 && f.turn > 0:
		own := 1.0
		scheduled := f.period > 0 && f.turn <= 0.27 && (whole(f.turn/f.period) || whole(f.period/f.turn))
		waited := f.acceptance.p50-f.BaseP50.Seconds() > f.turn // for the service, past the next turn
		if f.inGroups || scheduled || waited {
			own = 0.3
		}
		return classScore{
			score: f.enough() * own,
			evidence: fmt.Sprintf("calls are accepted in bursts that begin every %s, about %.0f calls each, and refused "+
				"until the next", short(f.turn), f.turn*f.Capacity),
		}
	case f.turns < 1 && f.bursty() && f.waits() == 0 && !f.newestFirst && f.refusesAsSet():
		return classScore{
			score: f.enough() * wins,
			evidence: "calls are refused when hardly any is in flight, and accepted while many are: they are accepted in " +
				"bursts, whose period was not seen",
		}
	case len(Turns(f.done, BurstGap)) == 0 && f.longest > 0:
		return classScore{against: fmt.Sprintf("calls were accepted all the time: the longest gap was %s", short(f.longest))}
	}
	return classScore{}
}

// bursty reports whether calls are refused when hardly any is in flight, and accepted while many are.
func (f *features) bursty() bool { return f.separation < -0.8 }

// findTurns finds the instants at which windows turn: by when good calls ended, or where these take so unequally long
// that bursts of them run into each other, by when the accepted ones were sent.
func (f *features) findTurns() {
	steady := float64(f.n) > 0.9*f.window.Rate*f.seconds() // else less is offered while calls are refused
	if f.turn, _, _, f.turns = Cycle(f.done); f.turns == 0 && f.rejected > 0 && steady {
		f.turn, _, _, f.turns = Cycle(f.acceptances())
		f.inGroups = f.turns > 0 && math.Abs(f.turn/f.acceptance.p50-1) < 0.1 && f.acceptance.p90 < 1.1*f.acceptance.p10
	}
}

// acceptances are when the good calls of the window were sent, ascending, s.
func (f *features) acceptances() (sent []float64) {
	for c := range f.due() {
		if !c.Outstanding(f.Now) && c.Sent != 0 && c.Outcome.Good() {
			sent = append(sent, c.Sent.Seconds())
		}
	}
	slices.Sort(sent)
	return sent
}

// whole reports whether x is about a whole number.
func whole(x float64) bool { return x > 0.9 && math.Abs(x-math.Round(x)) < 0.1 }

// Turns finds the instants at which ascending events (in seconds) resume after a long gap: where a window turns, or a
// pause ends. A gap is long from least on, and from 8 median gaps on.
func Turns(t []float64, least float64) []float64 {
	if len(t) < 3 {
		return nil
	}
	gaps := gapsOf(t)
	if slices.Max(gaps) <= least { // as of most streams: the median need not be found
		return nil
	}
	long := max(least, 8*stat.Quantile(gaps, 0.5))
	var turns []float64
	for i, gap := range gaps {
		if gap > long {
			turns = append(turns, t[i+1])
		}
	}
	return turns
}

// gapsOf returns the gaps between at least one instants.
func gapsOf(t []float64) []float64 {
	gaps := make([]float64, len(t)-1)
	for i := range gaps {
		gaps[i] = t[i+1] - t[i]
	}
	return gaps
}

// BurstGap is the shortest gap between the bursts of a limiter's windows, in seconds.
const BurstGap = 0.05

// Cycle finds the period of a limiter's window: events come in bursts whose beginnings are evenly spaced. from and to
// are the first and the last beginning of a burst; cycles is how many periods lie between them, 0 when there is no such
// rhythm. Chance makes long gaps, too: less than three periods count only when the gaps are longer than a second.
func Cycle(t []float64) (period, from, to float64, cycles int) {
	turns := Turns(t, BurstGap)
	if n := len(turns); n < 2 || n < 4 && len(Turns(t, 1)) < n {
		return 0, 0, 0, 0
	}
	gaps := gapsOf(turns)
	mid := stat.Quantile(gaps, 0.5)
	if slices.ContainsFunc(gaps, func(gap float64) bool { return math.Abs(gap-mid) > 0.06*mid }) {
		return 0, 0, 0, 0
	}
	from, to = turns[0], turns[len(turns)-1]
	return (to - from) / float64(len(gaps)), from, to, len(gaps)
}
