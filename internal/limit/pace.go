package limit

import (
	"math"
	"slices"

	"tare/internal/stat"
)

const (
	// leastEnds is how many calls must have ended for what their times show.
	leastEnds = 8
	// tolerance is by what share of the mean a gap between two ends may differ from it, and be even.
	tolerance = 0.25
)

// Observe fills in what the times show that good calls took, and at which they ended, in seconds. It sorts both.
func (x *Experiment) Observe(service, ends []float64) {
	if len(ends) < leastEnds || len(service) < leastEnds {
		return
	}
	slices.Sort(service)
	slices.Sort(ends)
	x.Spread = new(stat.SortedQuantile(service, 0.75) - stat.SortedQuantile(service, 0.25))
	mean := (ends[len(ends)-1] - ends[0]) / float64(len(ends)-1)
	even := 0
	for i := range len(ends) - 1 {
		if math.Abs(ends[i+1]-ends[i]-mean) <= tolerance*mean {
			even++
		}
	}
	x.Even = new(float64(even) / float64(len(ends)-1))
}

// independent reports whether calls end as those of independent workers do, and not at intervals, as where one after
// another passes a lock or a limit on the rate. A host that lets answers wait blurs the difference.
func (f *facts) independent() bool {
	one := f.single()
	if one == nil {
		return false
	}
	steady := one.Spread != nil && *one.Spread <= tolerance/f.most.rate
	var full int
	var uneven, squares, degrees, part float64
	for _, x := range f.all {
		if float64(x.InFlight) < f.atOnce() || len(x.Counts) < 2 {
			continue
		}
		if full++; x.Even != nil && *x.Even <= 0.4 {
			uneven++
		}
		mean := float64(total(x.Counts)) / float64(len(x.Counts))
		for _, n := range x.Counts {
			squares += (float64(n) - mean) * (float64(n) - mean) / mean
		}
		degrees, part = degrees+float64(len(x.Counts)-1), x.Seconds/float64(len(x.Counts))
	}
	if steady && full > 1 && uneven > 0.6*float64(full) {
		return true
	}
	// Calls of varied length end at random times. What lets them pass at intervals keeps their number even over longer
	// times than a call takes.
	quiet := f.host >= 0 && !f.crowded()
	return quiet && one.Service < 0.4*part && degrees > 0 && squares/degrees >= 0.6 && squares/degrees <= 2.5
}
