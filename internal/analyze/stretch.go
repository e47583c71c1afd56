package analyze

import (
	"math"
	"slices"
	"time"

	"tare/internal/budget"
	"tare/internal/capacity"
	"tare/internal/load"
)

// z is the normal quantile of two-sided 95 %.
const z = 1.959964

// A stretch is the calls that were due while one rate was offered.
type stretch struct {
	rate  float64
	calls []load.Call
	read  time.Duration
}

// stretches cuts a trace's calls, which are in order of their intended instants, into its steps. Steps that the generator spoiled are
// left out.
func stretches(trace *capacity.Trace) []stretch {
	var out []stretch
	for _, s := range trace.Steps {
		if s.Rate <= 0 || s.ClientLimited {
			continue
		}
		lo, hi := at(trace.Calls, s.Segment.Start), at(trace.Calls, s.Segment.End)
		if lo < hi {
			out = append(out, stretch{rate: s.Rate, calls: trace.Calls[lo:hi], read: trace.Read})
		}
	}
	return out
}

// at is the index of the first call due at or after t.
func at(calls []load.Call, t time.Duration) int {
	i, _ := slices.BinarySearchFunc(calls, t, func(c load.Call, t time.Duration) int {
		if c.Intended < t {
			return -1
		}
		return 1
	})
	return i
}

// of returns a metric of the stretch with its 95 % interval, NaN if it cannot be told. operation −1 is all of them. Calls are taken as
// independent; near saturation they are not, and the interval is too narrow.
func (s *stretch) of(b *budget.Budget, operation int) budget.Interval {
	var times []float64
	bad, n := 0.0, 0.0
	for i := range s.calls {
		c := &s.calls[i]
		if operation >= 0 && int(c.Operation) != operation {
			continue
		}
		n++
		open := c.Outstanding(s.read)
		if open || !c.Outcome.Good() {
			bad++
		}
		switch {
		case open && b.Metric != "pool_wait":
			times = append(times, math.Inf(1)) // nobody knows how long it would have taken
		case b.Metric == "response":
			times = append(times, c.Response().Seconds())
		case b.Metric == "service" && c.Sent > 0:
			times = append(times, c.Service().Seconds())
		case b.Metric == "pool_wait" && c.Ready > 0:
			times = append(times, c.PoolWait().Seconds())
		}
	}
	if b.Metric == "error" {
		return wilson(bad, n)
	}
	slices.Sort(times)
	return summary(times, b.Quantile)
}

var notMeasured = budget.Interval{Value: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}

// wilson is the score interval of a proportion (E. B. Wilson, JASA 22, 1927).
func wilson(k, n float64) budget.Interval { return wilsonAt(k, n, z) }

func wilsonAt(k, n, z float64) budget.Interval {
	if n == 0 {
		return notMeasured
	}
	p := k / n
	mid := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return budget.Interval{Value: p, Lo: min(p, max(0, mid-half)), Hi: max(p, min(1, mid+half))}
}

// summary is a quantile (the median when none is named), the mean, or an extreme of sorted values.
func summary(v []float64, name string) budget.Interval {
	if len(v) == 0 {
		return notMeasured
	}
	if name == "" {
		name = "p50"
	}
	if q, ok := budget.Fraction(name); ok {
		return quantileInterval(v, q)
	}
	switch name {
	case "min": // of these calls, so it is exact
		return budget.Interval{Value: v[0], Lo: v[0], Hi: v[0]}
	case "max":
		m := v[len(v)-1]
		return budget.Interval{Value: m, Lo: m, Hi: m}
	case "mean":
		return meanInterval(v)
	}
	return notMeasured
}

// quantileInterval is the distribution-free interval between order statistics, whose ranks come from the normal approximation of the
// binomial distribution (H. A. David, Order Statistics, §7.1). Where the values are too few it is open.
func quantileInterval(v []float64, q float64) budget.Interval {
	n := float64(len(v))
	half := z * math.Sqrt(n*q*(1-q))
	rank := int(math.Ceil(n*q - 1e-9))
	x := budget.Interval{Value: v[max(rank, 1)-1], Lo: 0, Hi: math.Inf(1)}
	if l := int(math.Floor(n*q - half)); l >= 1 {
		x.Lo = v[l-1]
	}
	if u := int(math.Ceil(n*q+half)) + 1; u <= len(v) {
		x.Hi = v[u-1]
	}
	return x
}

func meanInterval(v []float64) budget.Interval {
	d := distributionOf(costs{v})
	if d.Stddev == nil || math.IsInf(d.Mean, 0) {
		return budget.Interval{Value: d.Mean, Lo: 0, Hi: math.Inf(1)}
	}
	half := z * *d.Stddev / math.Sqrt(float64(len(v)))
	return budget.Interval{Value: d.Mean, Lo: max(0, d.Mean-half), Hi: d.Mean + half}
}
