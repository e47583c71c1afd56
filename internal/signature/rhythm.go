package signature

import (
	"math"

	"tare/internal/stat"
)

// schedulerPeriods are those that the CPU controller is commonly set to, in seconds, the longest first: a burst that
// repeats every 100 ms has a large R at 50 ms too, but one that repeats every 50 ms has none at 100 ms.
var schedulerPeriods = []float64{1, 0.5, 0.25, 0.2, 0.1, 0.05, 0.025, 0.02, 0.01}

// rhythmic is the Rayleigh R above which completions count as periodic.
const rhythmic = 0.25

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
		if x > rhythmic && x > 3/math.Sqrt(float64(len(t))) {
			return p, x
		}
		r = max(r, x)
	}
	return 0, min(r, rhythmic)
}

// Turns finds the instants at which ascending events (in seconds) resume after a long gap: where a window turns, or a
// pause ends. A gap is long from least on, and from 8 median gaps on.
func Turns(t []float64, least float64) []float64 {
	if len(t) < 3 {
		return nil
	}
	gaps := make([]float64, len(t)-1)
	for i := range gaps {
		gaps[i] = t[i+1] - t[i]
	}
	long := max(least, 8*stat.Quantile(gaps, 0.5))
	var turns []float64
	for i := 1; i < len(t); i++ {
		if t[i]-t[i-1] > long {
			turns = append(turns, t[i])
		}
	}
	return turns
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
	gaps := make([]float64, len(turns)-1)
	for i := range gaps {
		gaps[i] = turns[i+1] - turns[i]
	}
	mid := stat.Quantile(gaps, 0.5)
	for _, g := range gaps {
		if math.Abs(g-mid) > 0.06*mid {
			return 0, 0, 0, 0
		}
	}
	from, to = turns[0], turns[len(turns)-1]
	return (to - from) / float64(len(gaps)), from, to, len(gaps)
}
