package analyze

import (
	"math"

	"tare/internal/budget"
	"tare/internal/stat"
)

// manyEvents is the number of events from which on limits of their number are those of a normal distribution.
const manyEvents = 100

// fewest is how small the expected number of events can be where n were seen, as a share of n: the lower limit of a
// Poisson mean at a level. What happened in one event can be rare, but not arbitrarily so.
func fewest(n int) float64 { return fewestAt(n, level) }

func fewestAt(n int, level float64) float64 {
	switch {
	case n <= 0:
		return 0
	case n > manyEvents:
		return max(0, 1-2*zOf(level)/math.Sqrt(float64(n))) // below the exact limit
	}
	return poissonMean(n-1, (1+level)/2, float64(n)) / float64(n)
}

// most is how large it can be, as a multiple of n.
func most(n int) float64 { return mostAt(n, level) }

func mostAt(n int, level float64) float64 {
	switch {
	case n <= 0:
		return math.Inf(1)
	case n > manyEvents:
		return 1 + 2*zOf(level)/math.Sqrt(float64(n)) // above the exact limit
	}
	return poissonMean(n, (1-level)/2, 10*float64(n)+10) / float64(n)
}

// mostOf is most for events that tell as much as so many equal ones, which need be no whole number: on the line between
// its neighbours, which is above the limit.
func mostOf(equal, level float64) float64 {
	n := max(1, int(equal))
	least := mostAt(n, level)
	return least + (mostAt(n+1, level)-least)*max(0, equal-float64(n))
}

// zOf is the normal quantile of a two-sided level.
func zOf(level float64) float64 { return stat.NormalQuantile((1 + level) / 2) }

// share widens the interval x of a share, whose windows or blocks c has: to what so many calls can tell, since windows
// in which no call failed do not vary, and, where few windows have failures, to what so many events can.
func (c *course) share(x budget.Interval, level float64) budget.Interval {
	k, n := c.counted()
	if w := wilsonAt(k, n, zOf(level)); isFinite(w.Lo) {
		x.Lo, x.Hi = max(0, min(x.Lo, w.Lo)), max(x.Hi, w.Hi)
	}
	if events, equal, rare := c.events(); rare {
		x.Lo, x.Hi = min(x.Lo, x.Value*fewestAt(events, level)), max(x.Hi, min(1, x.Value*mostOf(equal, level)))
	}
	return x
}

// counted is how many of how many calls the shares of c are of.
func (c *course) counted() (k, n float64) {
	for i, v := range c.value {
		k, n = k+v*c.weight[i], n+c.weight[i]
	}
	return k, n
}

// goodput widens the interval x of a goodput to what the share of failed calls allows: the rate at which calls end is
// what both have in common.
func goodput(x, failed budget.Interval) budget.Interval {
	if ended := x.Value / (1 - failed.Value); isFinite(ended) {
		x.Lo, x.Hi = max(0, min(x.Lo, ended*(1-failed.Hi))), max(x.Hi, ended*(1-failed.Lo))
	}
	return x
}

// missedOutages is said where no call failed: what did not happen in a run is in no interval.
const missedOutages = "outages that are rarer than a few in such a run may have been missed"

// poissonMean is the mean at which at most n events have a probability; it is at most limit.
func poissonMean(n int, probability, limit float64) float64 {
	lo, hi := 0.0, limit
	for range 60 {
		mid := (lo + hi) / 2
		term := math.Exp(-mid)
		sum := term
		for k := 1; k <= n; k++ {
			term *= mid / float64(k)
			sum += term
		}
		if sum > probability {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}
