package signature

import (
	"fmt"
	"math"
	"slices"

	"tare/internal/stat"
)

// tokenBucket is about steady limits on the rate that refuse at once. One that holds calls back first is a queue from
// outside, so calls that waited do not exclude a limit on the rate.
var tokenBucket = definition{
	class: TokenBucket, phrase: "a steady limit on the rate that lets no call wait", least: 0.75, refuses: true,
	byTimes: true, traits: Traits{Steady: true, Saves: true, Limiter: true},
	score: (*features).bucketScore,
	doubt: (*features).doubtBucket,
	shown: func(f *features) bool {
		asPlaces := f.Capacity*f.BaseMean.Seconds() > 1.5 && !f.clockwork() // which may let as many pass
		return f.found[TokenBucket].score >= certain && f.Sharp.Failed != 0 && !asPlaces && f.nothingLike(TokenBucket)
	},
}

func (f *features) bucketScore() classScore {
	waits, constant := f.waits(), 1-0.6*clamp((f.dispersion-0.05)/0.1)
	switch {
	case f.good < 5: // nothing is accepted, at no constant rate
		constant = 0
	case f.Repeats, f.countsCalls():
		constant = 1
	}
	if f.behindService || f.countsCalls() {
		waits = 0
	}
	x := classScore{
		score: f.enough() * constant * (1 - 0.8*waits),
		evidence: fmt.Sprintf("%.1f %% of the calls were refused %s, and the rate of accepted ones stayed at %s/s "+
			"(variation %.1f %%)", 100*f.share(f.rejected), f.delayed(), rate(f.Capacity), 100*f.acceptVariation),
	}
	if f.countsCalls() && f.acceptVariation > 0.05 { // else the rate says more
		x.evidence = fmt.Sprintf("calls are refused when about %.0f were accepted in the last %s, and accepted below "+
			"(separation %.2f)", f.countWindow*f.late, short(f.countWindow), f.counted)
	}
	if f.bursts[0] > 0 && f.placesTaken() >= wins {
		x.score *= 0.4
	}
	switch {
	case f.good < 5:
		x.against = "hardly any call was accepted"
	case constant < 0.7:
		x.against = fmt.Sprintf("the rate of accepted calls varied by %.1f %%", 100*f.acceptVariation)
	case waits >= wins:
		x.against = fmt.Sprintf("calls that were accepted took %s, and %s well below the limit: they had waited",
			short(f.acceptance.p50), short(f.BaseP50.Seconds()))
	}
	return x
}

// doubtBucket says why a limit on the rate is withheld: calls that were accepted have waited, or come in bursts.
func (f *features) doubtBucket() string {
	waited, held := f.refusedAfterWait(), f.Sharp.HeldP50.Seconds()
	switch {
	case held > 0 && f.acceptance.p50 > 1.25*max(held, f.BaseP50.Seconds())+0.002 && !f.countsCalls() && !f.behindService:
		return fmt.Sprintf("calls that were accepted took %s under overload and %s just below the limit: they waited",
			short(f.acceptance.p50), short(held))
	case waited != "":
		return waited
	case f.countsCalls() && f.seconds() < 3*f.countWindow:
		return "" // so few windows do not tell what passes on average
	case f.late < 0.5*f.Sharp.Held:
		return fmt.Sprintf("%s/s were held, and under overload only %s/s passed", rate(f.Sharp.Held), rate(f.late))
	case f.countsCalls():
		return ""
	case f.inGroups:
		return "calls are accepted in groups, as soon as those before have been answered"
	case f.bursty():
		return "calls are refused when hardly any is in flight, and accepted while many are: they are accepted in bursts"
	}
	return ""
}

// regularity measures how evenly calls are accepted over the last two thirds of the window, and over its last third: by
// then a limiter's saved allowance is used up, and a queue that the ramp has left is gone.
func (f *features) regularity() {
	from, to := f.window.Start.Seconds(), f.window.End.Seconds()
	behind := f.behindService
	f.dispersion = -1
	for _, share := range []float64{2. / 3, 1. / 3} {
		begin := to - share*(to-from)
		var t []float64
		for c := range f.until(f.window.End) {
			at := c.Intended
			if behind {
				at = c.Done // what refuses sees a call when its service ends
			}
			if x := at.Seconds(); x >= begin && x < to && c.Done != 0 && c.Outcome.Good() {
				t = append(t, x)
			}
		}
		slices.Sort(t)
		if len(t) < 30 {
			return
		}
		dispersion := math.Inf(1)
		// a sliding window accepts the same number in each of its periods, but not in parts of it
		for parts := 6; parts <= 16; parts++ {
			dispersion = min(dispersion, dispersionOf(t, begin, to, parts))
		}
		if f.dispersion < 0 || dispersion < f.dispersion {
			f.acceptVariation = math.Sqrt(stat.Variance(counted(t, begin, to, 8))) / (float64(len(t)) / 8)
			f.dispersion = dispersion
		}
	}
}
