package signature

import (
	"fmt"
	"math"

	"tare/internal/stat"
)

// cpuThrottling is about a service whose CPU time is limited, which only sets the rate.
var cpuThrottling = definition{
	class: CPUThrottling, least: 0.7, traits: Traits{OnlyRate: true, Waits: true, Periodic: true, Served: true},
	score: func(f *features) classScore {
		x := classScore{
			score: f.beat / rhythmic * wins,
			evidence: fmt.Sprintf("answers come in bursts every %s (Rayleigh R = %.2f), as under a CPU quota with that period, "+
				"or by a timer", short(f.period), f.beat),
		}
		if f.period == 0 {
			x.score = min(x.score, 0.45)
			if t := f.Local.Throttled; t != nil && *t > 0.5 {
				x.score, x.evidence = 0.8, throttledText(*t)
			}
		}
		if !(x.score >= wins) { // otherwise they do, and something else explains more
			x.against = fmt.Sprintf("answers do not cluster in any period of the scheduler (R = %.2f)", f.beat)
		}
		return x
	},
	seen: func(l Local) string {
		if l.Throttled == nil {
			return ""
		}
		return throttledText(*l.Throttled)
	},
}

// throttledText describes a CPU limit that acts, whether the kernel's or one inside the target.
func throttledText(share float64) string {
	return fmt.Sprintf("the target's CPU limit throttled it in %.0f %% of its periods", 100*share)
}

// schedulerPeriods are those that the CPU controller is commonly set to, in seconds, the longest first: a burst that
// repeats every 100 ms has a large R at 50 ms too, but one that repeats every 50 ms has none at 100 ms.
var schedulerPeriods = []float64{1, 0.5, 0.25, 0.2, 0.1, 0.05, 0.025, 0.02, 0.01}

// rhythmic is the Rayleigh R above which completions count as periodic.
const rhythmic = 0.25

// mostPeriods is the share of the periods in which answers come at least: a slower clock has some in each second period
// or fewer, and its answers cluster in the periods that divide its own as well.
const mostPeriods = 0.7

// occupied is the share of the periods between the first and the last of ascending instants in which there are any.
func occupied(t []float64, period float64) float64 {
	n, last := 0, math.Inf(-1)
	for _, x := range t {
		// an event just before the end of a period is one of those at its beginning
		if k := math.Floor((x-t[0])/period + 0.5); k > last {
			n, last = n+1, k
		}
	}
	return float64(n) / (1 + (t[len(t)-1]-t[0])/period)
}

// Beat finds the scheduler period in which ascending instants (in seconds) cluster, and its Rayleigh R. Without one
// above 0.25 it returns the largest R that it met, and period 0.
func Beat(t []float64) (period, r float64) {
	if len(t) < 20 {
		return 0, 0
	}
	span := t[len(t)-1] - t[0]
	gap := span / float64(len(t)-1)
	for _, p := range schedulerPeriods {
		// Fewer than two events a period always cluster; fewer than six periods prove nothing.
		if p < 2*gap || p > span/6 {
			continue
		}
		x := stat.Rayleigh(t, p)
		if x > rhythmic && x > 3/math.Sqrt(float64(len(t))) && occupied(t, p) >= mostPeriods {
			return p, x
		}
		r = max(r, x)
	}
	return 0, min(r, rhythmic)
}
