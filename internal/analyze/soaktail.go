package analyze

import (
	"fmt"
	"math"

	"tare/internal/budget"
	"tare/internal/hist"
	"tare/internal/metric"
	"tare/internal/record"
	"tare/internal/stat"
	"tare/internal/unit"
)

// tailFrom is the quantile from which on an interval is found by the share of calls beyond a time: the mean of
// windows' own quantiles, each of a call or two, is ruled by the slowest call of all.
const tailFrom = 0.96

// tailWindows bounds how many windows the interval of a share is of: neighbours of more are joined.
const tailWindows = 300

// tailFinding is a quantile in the tail. Its interval has all times x for which the share of calls beyond x may be 1
// − q: by the interval of that share's mean over windows, which allows for slow calls that come in bunches, and is
// never narrower than so many calls can tell.
func (s *soak) tailFinding(b *budget.Budget, h *hist.Histogram, q float64) (f finding, own float64) {
	v := h.Quantile(q) / 1e9
	n := len(s.beyond(b.Operation, v).value)
	if n < fewestWindows {
		return withoutInterval(v, fmt.Sprintf("%s are too few: it takes %d", unit.Count(n, "window"), fewestWindows)), 0
	}
	f = finding{
		Interval: budget.Interval{Value: v, Lo: 0, Hi: math.Inf(1)},
		how: fmt.Sprintf("%d calls in %s, interval at %s", h.Count(), unit.Count(len(s.measured()), "window"),
			percent(level)),
	}
	above := func(x float64) bool { return s.shareOver(b.Operation, h, x).Hi > 1-q }
	below := func(x float64) bool { return s.shareOver(b.Operation, h, x).Lo > 1-q }
	if longest := float64(h.Max()) / 1e9; above(longest) {
		f.how += unbounded
	} else {
		f.Hi = turn(v, longest, above)
	}
	if least := float64(h.Min()) / 1e9; below(least) {
		f.Lo = turn(least, v, below)
		own = s.own(b.Operation).atMost(h, 1-shareAbove(h, f.Lo))
	}
	f.half = 1 - shareAbove(h, f.Hi) - q
	return f, own
}

// turn finds the time between lo and hi, to a hundredth, at which a statement ceases to hold.
func turn(lo, hi float64, holds func(float64) bool) float64 {
	if lo = max(lo, 1e-9); !holds(lo) {
		return lo
	}
	for hi > 1.01*lo {
		if mid := math.Sqrt(lo * hi); holds(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// shareAbove is the share of times above x, in seconds.
func shareAbove(h *hist.Histogram, x float64) float64 {
	n := 0.0
	h.Each(func(value int64, count uint64) {
		if float64(value)/1e9 > x {
			n += float64(count)
		}
	})
	return n / float64(h.Count())
}

// shareOver is the share of calls that took longer than x, with its interval.
func (s *soak) shareOver(operation string, h *hist.Histogram, x float64) budget.Interval {
	n := float64(h.Count())
	out := wilson(shareAbove(h, x)*n, n)
	if responses := s.histogramsOf(operation)[record.Response]; responses != h && responses != nil {
		x = responses.Quantile(1-out.Value) / 1e9 // windows keep response times only
	}
	c := s.beyond(operation, x).joined(tailWindows)
	e, err := stat.SeriesMean(
		c.hours, c.value, stat.DriftOptions{Level: level, Stretch: c.stretch, Weight: c.weight, Seed: driftSeed},
	)
	if err != nil {
		return budget.Interval{Value: out.Value, Lo: 0, Hi: 1}
	}
	out.Lo = max(0, min(out.Lo, out.Value-(e.Value-e.Lo)))
	out.Hi = min(1, max(out.Hi, out.Value+e.Hi-e.Value))
	if n, _, rare := c.events(); rare {
		out.Lo, out.Hi = min(out.Lo, out.Value*fewest(n)), min(1, max(out.Hi, out.Value*most(n)))
	}
	return out
}

// events counts the stretches of neighbouring windows with a value above 0. Their sum tells as much as that of so many
// equal ones does (Kish's effective number). They are rare if they are in less than half of the windows, so that few of
// them run together; then their number tells as little as that of events does.
func (c *course) events() (n int, equal float64, rare bool) {
	windows, sum, squares, size := 0, 0.0, 0.0, 0.0
	for i, v := range c.value {
		if v <= 0 {
			continue
		}
		windows++
		if i == 0 || c.value[i-1] <= 0 {
			n, size = n+1, 0
		}
		x := v * c.weight[i]
		sum, squares, size = sum+x, squares+x*(2*size+x), size+x
	}
	return n, sum * sum / squares, windows > 0 && 2*windows < len(c.value)
}

// beyond is the course of the share of calls that took longer than x.
func (s *soak) beyond(operation string, x float64) *course {
	return s.course(metric.Response, everyWindow, func(w *record.Slice, _ *usage) (share, weight float64) {
		n, ended := beyondIn(w, operation, x)
		return n / ended, ended
	})
}

// joined is the course with at most so many values: means of neighbours within a stretch.
func (c *course) joined(most int) *course {
	each := (len(c.value) + most - 1) / most
	if each < 2 {
		return c
	}
	out := &course{metric: c.metric}
	for i := 0; i < len(c.value); {
		end := i
		var hours, value, weight float64
		for end < len(c.value) && end-i < each && c.stretch[end] == c.stretch[i] {
			w := c.weight[end]
			hours, value, weight = hours+w*c.hours[end], value+w*c.value[end], weight+w
			end++
		}
		out.hours, out.value = append(out.hours, hours/weight), append(out.value, value/weight)
		out.weight, out.stretch = append(out.weight, weight), append(out.stretch, c.stretch[i])
		i = end
	}
	return out
}

// beyondIn estimates how many calls of an operation, or of all, took longer than v in a slice, and counts all that
// ended.
func beyondIn(x *record.Slice, operation string, v float64) (beyond, ended float64) {
	for i := range x.Operations {
		o := &x.Operations[i]
		if operation == "" || o.Operation == operation {
			n := float64(o.Ended())
			beyond, ended = beyond+n*shareBeyond(o, n, v), ended+n
		}
	}
	return beyond, ended
}

// shareBeyond estimates which share of n calls took longer than v, from the quantiles that a slice keeps: between two
// of them as if the tail were exponential.
func shareBeyond(o *record.SliceOperation, n, v float64) float64 {
	if v >= o.Max {
		return 0
	}
	type point struct{ at, share float64 }
	low := point{0, 1}
	for _, next := range []point{{o.P50, 0.5}, {o.P90, 0.1}, {o.P99, 0.01}, {o.Max, 1 / n}} {
		switch {
		case next.at <= low.at: // absent, or the same value
			if next.at > 0 {
				low.share = min(low.share, next.share)
			}
		case v < next.at:
			return low.share * math.Pow(min(1, next.share/low.share), (v-low.at)/(next.at-low.at))
		default:
			low = next
		}
	}
	return 1 / n
}
