package analyze

import (
	"math"

	"tare/internal/budget"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
)

// A course is how one value developed over a soak: one value a window, at its middle, in hours since what is measured
// began.
type course struct {
	metric  metric.Metric
	hours   []float64
	value   []float64
	weight  []float64
	stretch []int
}

// Which windows a course is of.
type windows uint8

const (
	everyWindow  windows = iota // what was measured, outages included
	quietWindows                // without outages and their neighbours, and without those in which the target was replaced
)

// valueOf gives the value of a window, with how many calls it is of (1: of none).
type valueOf func(x *record.Slice, u *usage) (value, weight float64)

// course collects a value over the windows of which it is known.
func (s *soak) course(m metric.Metric, which windows, value valueOf) *course {
	c := &course{metric: m}
	if len(s.measured()) == 0 {
		return c
	}
	begin, stretch, rest := s.slices[s.first].Start, 0, s.restAfter()
	resumes := s.origin
	for i := s.first; i < len(s.slices); i++ {
		x, u := &s.slices[i], &s.used[i]
		if u.restarted {
			stretch++
			resumes = x.End + rest
		}
		if which == quietWindows && (u.restarted || s.disturbed(i) || x.Start < resumes) {
			continue
		}
		v, w := value(x, u)
		if !isFinite(v) || !(w > 0) {
			continue
		}
		c.hours, c.value = append(c.hours, (x.Start+(x.End-x.Start)/2-begin).Hours()), append(c.value, v)
		c.weight, c.stretch = append(c.weight, w), append(c.stretch, stretch)
	}
	return c
}

// disturbed reports whether a slice lies in an outage or beside one, or is the rest of one.
func (s *soak) disturbed(i int) bool {
	beside := func(k int) bool { return k >= 0 && k < len(s.out) && s.out[k] }
	return beside(i-1) || beside(i) || beside(i+1) || 2*(s.slices[i].End-s.slices[i].Start) < s.length
}

// oneStretch takes the values for one line throughout.
func (c *course) oneStretch() *course {
	clear(c.stretch)
	return c
}

// withoutShort drops stretches of less than three values: they only add an intercept.
func (c *course) withoutShort() *course {
	const least = 3
	n := map[int]int{}
	for _, k := range c.stretch {
		n[k]++
	}
	out := &course{metric: c.metric}
	for i, k := range c.stretch {
		if n[k] >= least {
			out.hours, out.value = append(out.hours, c.hours[i]), append(out.value, c.value[i])
			out.weight, out.stretch = append(out.weight, c.weight[i]), append(out.stretch, k)
		}
	}
	return out
}

// find chooses how a metric is taken from a window; nil: it is not known window by window. An empty operation is all of
// them.
func (s *soak) find(operation, name, quantile string) (m metric.Metric, of valueOf) {
	if found, ok := probe.Known(name); ok {
		m = found
	}
	switch name {
	case metric.Response.Name:
		return m, s.responseOf(operation, quantile)
	case metric.Service.Name:
		if quantile != "" && quantile != "mean" {
			return m, nil
		}
		return m, weighted(operation, func(o *record.SliceOperation) (float64, bool) { return o.Service, o.Service > 0 })
	case metric.Error.Name:
		return m, func(x *record.Slice, _ *usage) (v, w float64) { return errorsIn(x, operation) }
	case metric.Goodput.Name:
		return m, func(x *record.Slice, _ *usage) (v, w float64) {
			ended, bad := endedIn(x, operation)
			long := (x.End - x.Start).Seconds()
			return (ended - bad) / long, long
		}
	}
	if operation != "" {
		return m, nil
	}
	return m, s.usedOf(name)
}

// usedOf takes what the target used from a window.
func (s *soak) usedOf(name string) valueOf {
	switch name {
	case metric.CPU.Name:
		return func(x *record.Slice, u *usage) (v, w float64) {
			good, _ := goodIn(x)
			return u.cpu / float64(good), float64(good)
		}
	case probe.RSS.Name:
		return func(_ *record.Slice, u *usage) (v, w float64) { return u.rss, 1 }
	case probe.HeapUsed.Name:
		return func(_ *record.Slice, u *usage) (v, w float64) { return u.heap, 1 }
	}
	if q, ok := quantityOf(name); ok && q.Kind == probe.Gauge && shown(name) {
		return func(_ *record.Slice, u *usage) (v, w float64) {
			if v, ok := u.other[name]; ok {
				return v, 1
			}
			return math.NaN(), 0
		}
	}
	return nil
}

// responseOf takes response times from a window. For all operations together a quantile is the mean of theirs by their
// calls: that tells of a trend, not of a level.
func (s *soak) responseOf(operation, quantile string) valueOf {
	var get func(o *record.SliceOperation) float64
	switch quantile {
	case "", "mean":
		return weighted(operation, func(o *record.SliceOperation) (float64, bool) { return o.Mean, o.Mean > 0 })
	case "p50":
		get = func(o *record.SliceOperation) float64 { return o.P50 }
	case "p90":
		get = func(o *record.SliceOperation) float64 { return o.P90 }
	case "p99":
		get = func(o *record.SliceOperation) float64 { return o.P99 }
	default:
		return nil
	}
	if operation != "" {
		return weighted(operation, func(o *record.SliceOperation) (float64, bool) { return get(o), get(o) > 0 })
	}
	usual := s.operationsWithQuantile(get)
	return func(x *record.Slice, _ *usage) (v, w float64) {
		for i := range x.Operations {
			o := &x.Operations[i]
			if usual[o.Operation] && get(o) > 0 {
				n := float64(o.Ended())
				v, w = v+get(o)*n, w+n
			}
		}
		if !hasAll(x, usual, get) {
			return math.NaN(), 0
		}
		return v / w, w
	}
}

// operationsWithQuantile are the operations of which most windows have a quantile.
func (s *soak) operationsWithQuantile(get func(*record.SliceOperation) float64) map[string]bool {
	const most = 0.8
	n := map[string]int{}
	for i := range s.measured() {
		x := &s.measured()[i]
		for k := range x.Operations {
			if get(&x.Operations[k]) > 0 {
				n[x.Operations[k].Operation]++
			}
		}
	}
	out := map[string]bool{}
	for name, k := range n {
		if float64(k) >= most*float64(len(s.measured())) {
			out[name] = true
		}
	}
	return out
}

// hasAll reports whether a window has the quantile of all those operations: a mean over others would be of another mix.
func hasAll(x *record.Slice, of map[string]bool, get func(*record.SliceOperation) float64) bool {
	n := 0
	for i := range x.Operations {
		if of[x.Operations[i].Operation] && get(&x.Operations[i]) > 0 {
			n++
		}
	}
	return n == len(of) && n > 0
}

// weighted is the mean of a value over the calls of an operation, or of all.
func weighted(operation string, get func(o *record.SliceOperation) (float64, bool)) valueOf {
	return func(x *record.Slice, _ *usage) (v, w float64) {
		for i := range x.Operations {
			o := &x.Operations[i]
			if operation != "" && o.Operation != operation {
				continue
			}
			if y, ok := get(o); ok {
				n := float64(o.Ended())
				v, w = v+y*n, w+n
			}
		}
		return v / w, w
	}
}

// endedIn counts the calls of an operation, or of all, that ended in a slice, and those of them that ended badly.
func endedIn(x *record.Slice, operation string) (ended, bad float64) {
	for i := range x.Operations {
		o := &x.Operations[i]
		if operation != "" && o.Operation != operation {
			continue
		}
		for _, y := range o.Outcomes {
			ended += float64(y.Count)
			if !y.Outcome.Good() {
				bad += float64(y.Count)
			}
		}
	}
	return ended, bad
}

func errorsIn(x *record.Slice, operation string) (share, weight float64) {
	ended, bad := endedIn(x, operation)
	return bad / ended, ended
}

// fraction is a quantile's share, NaN if it is none.
func fraction(quantile string) float64 {
	q, ok := budget.Fraction(quantile)
	if !ok {
		return math.NaN()
	}
	return q
}
