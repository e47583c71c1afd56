package analyze

import (
	"iter"
	"math"
	"slices"
	"time"

	"tare/internal/budget"
	"tare/internal/capacity"
	"tare/internal/load"
	"tare/internal/report"
	"tare/internal/signature"
	"tare/internal/stat"
	"tare/internal/unit"
)

// z is the normal quantile of two-sided 95 %.
const z = 1.959964

// A stretch is the steps of a trace in which one rate was offered.
type stretch struct {
	trace     *capacity.Trace
	role      capacity.Role
	rate      float64
	steps     []load.Segment
	operation int // −1: calls of every operation belong to it
}

// calls yields the calls that were due in the stretch.
func (s *stretch) calls() iter.Seq[*load.Call] {
	return func(yield func(*load.Call) bool) {
		for _, step := range s.steps {
			for c := range s.trace.Calls.Due(step.Start, step.End) {
				if (s.operation < 0 || int(c.Operation) == s.operation) && !yield(c) {
					return
				}
			}
		}
	}
}

// failed reports whether a call was not answered well, or not before its result was read.
func (s *stretch) failed(c *load.Call) bool { return c.Outstanding(s.trace.Read) || !c.Outcome.Good() }

// count returns how many calls were due in the stretch.
func (s *stretch) count() (n int) {
	for range s.calls() {
		n++
	}
	return n
}

// stretches returns the steps of a trace in which calls were due, without those that the generator spoiled.
func stretches(trace *capacity.Trace) []stretch {
	var out []stretch
	for _, s := range trace.Steps {
		x := stretch{trace: trace, role: s.Role, rate: s.Rate, steps: []load.Segment{s.Segment}, operation: -1}
		if s.Rate > 0 && !s.ClientLimited && x.any() {
			out = append(out, x)
		}
	}
	return out
}

// any reports whether a call was due in the stretch.
func (s *stretch) any() bool {
	for range s.calls() {
		return true
	}
	return false
}

// length is how long the stretch lasted.
func (s *stretch) length() (d time.Duration) {
	for _, step := range s.steps {
		d += step.End - step.Start
	}
	return d
}

// judged decides a budget by its interval x in the stretch. Delays by the generator lengthen responses: a limit that is
// kept is kept without them, too. One that is broken is only broken if it is without them; own says how much they may
// be.
func (s *stretch) judged(b *budget.Budget, x budget.Interval) (v report.Verdict, own string) {
	v = report.Verdict(budget.Decide(*b, x))
	if bad := s.of(&budget.Budget{Metric: "error"}).Value; bad > 0 && raisedByFailures(b) {
		own = "; " + unit.Share(bad) + " of them failed, and a call that failed is not answered in any time"
	}
	if b.Metric != "response" {
		return v, own
	}
	left := signature.WithoutDelays(s.calls())
	y := summary(left, b.Quantile)
	if d := x.Value - y.Value; d >= shownOwn && !math.IsInf(d, 0) {
		own = ", of which at most " + unit.Seconds(d) + " are the generator's own" + own
	}
	if without := report.Verdict(budget.Decide(*b, y)); !math.IsInf(x.Value, 0) && without != v &&
		(b.Op == budget.AtMost && v == report.Fail || b.Op == budget.AtLeast && v == report.Pass) {
		return report.Inconclusive, own
	}
	return v, own
}

// shownOwn is the shortest delay by the generator, in seconds, that is told beside a time.
const shownOwn = 100e-6

// failureWindow is how long the windows are in which failures are told apart: those of neighbours are one event.
const failureWindow = 500 * time.Millisecond

// failing is the share of calls that failed with its interval, which allows for failures that come in bunches.
func (s *stretch) failing(share float64) budget.Interval {
	windows := &course{}
	for _, step := range s.steps {
		for from := step.Start; from < step.End; from += failureWindow {
			x := stretch{trace: s.trace, operation: s.operation}
			x.steps = []load.Segment{{Start: from, End: min(step.End, from+failureWindow)}}
			bad, n := 0.0, 0.0
			for c := range x.calls() {
				if n++; x.failed(c) {
					bad++
				}
			}
			if n > 0 {
				windows.value, windows.weight = append(windows.value, bad/n), append(windows.weight, n)
			}
		}
	}
	x := budget.Interval{Value: share, Lo: share, Hi: share}
	if e, ok := stat.MeanInterval(windows.value, level); ok {
		x.Lo, x.Hi = share-(e.Value-e.Lo), share+e.Hi-e.Value
	}
	return windows.share(x, level)
}

// raisedByFailures reports whether a budget is an upper limit of times in which a call that failed was not answered.
func raisedByFailures(b *budget.Budget) bool {
	return b.Op == budget.AtMost && (b.Metric == "response" || b.Metric == "service")
}

// of returns a metric of the stretch with its 95 % interval, NaN if it is unknown. Times are taken as independent; near
// saturation they are not, and their interval is too narrow. Under an upper limit of times, its upper end takes calls
// that failed as never answered.
func (s *stretch) of(b *budget.Budget) budget.Interval {
	times := make([]float64, 0, s.count())
	var answered []float64
	bad, n, raised := 0.0, 0.0, raisedByFailures(b)
	for c := range s.calls() {
		n++
		failed := s.failed(c)
		if failed {
			bad++
		}
		before := len(times)
		switch {
		case c.Outstanding(s.trace.Read) && b.Metric != "pool_wait":
			times = append(times, math.Inf(1)) // nobody knows how long it would have taken
		case b.Metric == "response":
			times = append(times, c.Response().Seconds())
		case b.Metric == "service" && c.Sent > 0:
			times = append(times, c.Service().Seconds())
		case b.Metric == "pool_wait" && c.Ready > 0:
			times = append(times, c.PoolWait().Seconds())
		}
		switch {
		case !raised:
		case failed:
			answered = append(answered, math.Inf(1))
		default:
			answered = append(answered, times[before:]...)
		}
	}
	if b.Metric == "error" {
		return s.failing(bad / n)
	}
	slices.Sort(times)
	x := summary(times, b.Quantile)
	if bad > 0 && raised {
		slices.Sort(answered)
		x.Hi = max(x.Hi, summary(answered, b.Quantile).Hi)
	}
	return x
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

// quantileInterval is the distribution-free interval between order statistics, whose ranks come from the normal
// approximation of the binomial distribution (H. A. David, Order Statistics, §7.1). Where the values are too few it is
// open.
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
