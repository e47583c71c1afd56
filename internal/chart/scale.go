package chart

import "math"

// limit is the largest magnitude that can be placed: beyond it, differences overflow. On a log axis its inverse is the
// least.
const limit = 1e300

// scale maps values of an axis to [0, 1].
type scale struct {
	axis   Axis
	lo, hi float64 // in the axis' unit, lo < hi
}

// placeable reports whether the axis has a position for v.
func (a Axis) placeable(v float64) bool {
	switch {
	case math.IsNaN(v) || math.Abs(v) > limit:
		return false
	case a.tail:
		return v >= 0 && v < 1
	case a.Log:
		return v >= 1/limit
	}
	return true
}

// warp returns the axis' transformation: the scale is linear in it.
func (a Axis) warp(v float64) float64 {
	switch {
	case a.tail:
		return -math.Log10(1 - v)
	case a.Log:
		return math.Log10(v)
	}
	return v
}

// pos returns where v lies, 0 at the axis' lower end and 1 at its upper one; it may lie outside. v must be placeable.
func (s scale) pos(v float64) float64 {
	lo, hi := s.axis.warp(s.lo), s.axis.warp(s.hi)
	return (s.axis.warp(v) - lo) / (hi - lo)
}

// held returns pos, held within the frame.
func (s scale) held(v float64) float64 { return min(max(s.pos(v), 0), 1) }

// bound returns where the end of an interval lies: infinite and unplaceable ends reach the edge they point to.
func (s scale) bound(v float64, upper bool) float64 {
	switch {
	case s.axis.placeable(v):
		return s.held(v)
	case upper:
		return 1
	}
	return 0
}

// extent collects the range of what an axis has to show.
type extent struct {
	axis   Axis
	lo, hi float64
	any    bool
}

func (e *extent) add(v float64) {
	if !e.axis.placeable(v) {
		return
	}
	if !e.any {
		e.lo, e.hi, e.any = v, v, true
	}
	e.lo, e.hi = min(e.lo, v), max(e.hi, v)
}

// widen adds v if the range at most doubles by it: a distant budget would flatten the data.
func (e *extent) widen(v float64) {
	if !e.axis.placeable(v) || !e.any {
		return
	}
	lo, hi := e.axis.warp(e.lo), e.axis.warp(e.hi)
	t := e.axis.warp(v)
	if width := hi - lo; width == 0 || max(hi, t)-min(lo, t) <= 2*width {
		e.add(v)
	}
}

// scale closes the range: zero if it is near, some room if it has none, ends that fall on one of n ticks if n is not 0,
// and last the ends that the axis fixes. It reports whether there is anything to show.
func (e *extent) scale(n int) (scale, bool) {
	s := scale{axis: e.axis, lo: e.lo, hi: e.hi}
	if !e.any {
		s.lo, s.hi = 0, 1
		if e.axis.Log {
			s.lo, s.hi = 1, 10
		}
		if e.axis.tail {
			s.hi = 0.99
		}
	}
	lo, hi := e.fixed()
	s.open(lo == nil && hi == nil)
	if n > 0 {
		s.round(n)
	}
	if lo != nil && s.apart(*lo, s.hi) {
		s.lo = *lo
	}
	if hi != nil && s.apart(s.lo, *hi) {
		s.hi = *hi
	}
	return s, e.any
}

// apart reports whether two ends leave a range that the arithmetic can divide.
func (s scale) apart(lo, hi float64) bool {
	a, b := s.axis.warp(lo), s.axis.warp(hi)
	return b-a > max(1e-290, 1e-9*max(math.Abs(a), math.Abs(b)))
}

// fixed returns the axis' own ends, without those that cannot be.
func (e *extent) fixed() (lo, hi *float64) {
	lo, hi = e.axis.Min, e.axis.Max
	if lo != nil && !e.axis.placeable(*lo) {
		lo = nil
	}
	if hi != nil && !e.axis.placeable(*hi) {
		hi = nil
	}
	if lo != nil && hi != nil && *lo >= *hi {
		return nil, nil
	}
	return lo, hi
}

// open gives the range a width, and takes zero into a linear one that comes near to it.
func (s *scale) open(free bool) {
	switch {
	case s.axis.tail:
		s.lo = min(s.lo, 0.5)
		s.hi = max(s.hi, 0.99)
		return
	case s.axis.Log:
		if s.hi/s.lo < 1.02 {
			s.lo, s.hi = max(s.lo/2, 1/limit), min(s.hi*2, limit)
		}
		return
	}
	if free && !s.axis.Time {
		if s.lo > 0 && s.lo < 0.6*s.hi {
			s.lo = 0
		}
		if s.hi < 0 && s.hi > 0.6*s.lo {
			s.hi = 0
		}
	}
	if least := max(math.Abs(s.lo), math.Abs(s.hi)) * 1e-9; s.hi-s.lo <= max(least, 1e-290) {
		room := max(math.Abs(s.lo)*0.1, 1e-280)
		if s.lo == 0 && s.hi == 0 {
			s.hi = 1
			return
		}
		s.lo, s.hi = s.lo-room, s.hi+room
	}
}

// round moves the ends out to the next of n ticks.
func (s *scale) round(n int) {
	if s.axis.tail {
		return
	}
	if s.axis.Log {
		s.lo, s.hi = roundLog(s.lo, false), roundLog(s.hi, true)
		return
	}
	step := s.step(n)
	s.lo, s.hi = math.Floor(s.lo/step+1e-9)*step, math.Ceil(s.hi/step-1e-9)*step
}

// roundLog returns the next of 1, 2 and 5 times a power of ten, below or above v.
func roundLog(v float64, up bool) float64 {
	decade := math.Pow(10, math.Floor(math.Log10(v)))
	const slack = 1e-9
	if up {
		for _, m := range []float64{1, 2, 5} {
			if m*decade >= v*(1-slack) {
				return m * decade
			}
		}
		return 10 * decade
	}
	for _, m := range []float64{5, 2, 1} {
		if m*decade <= v*(1+slack) {
			return m * decade
		}
	}
	return v
}
