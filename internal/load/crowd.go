package load

import (
	"math"
	"slices"
)

const (
	// full is the share of their time from which on processors count as busy. Where less than one of them is idle on
	// average, or half of a single one, there may have been none for a while.
	full = 0.9
	// mostly is the share of the processors' time that a target must leave to others for them to matter, and certainly
	// that which others have surely taken where what the target used is not known.
	mostly, certainly = 0.5, 0.25
)

// host is what the processors did in the segment; nil where that is not known.
func (s *Segment) host() *Processors {
	if e := s.Effort; e != nil && e.Host != nil && e.Host.All > 0 && e.Seconds > 0 {
		return e.Host
	}
	return nil
}

// Busy is the share of the processors' time in which they were busy or stolen; 0 where that is not known.
func (s *Segment) Busy() float64 {
	h := s.host()
	if h == nil {
		return 0
	}
	return (h.Busy + h.Stolen) / h.All
}

// isFull reports whether hardly any of the processors' time was left.
func (s *Segment) isFull() bool {
	h := s.host()
	if h == nil {
		return false
	}
	count := h.All / s.Effort.Seconds
	return s.Busy() >= full || count*(1-s.Busy()) < min(1, count/2)
}

// besides is the processors' time, in seconds, that the generator did not use.
func (s *Segment) besides() float64 { return max(0, s.Busy()*s.host().All-s.Effort.CPU) }

// InCrowd reports whether other work on the host may have kept the target from its processors in the segment: hardly
// any of their time was left, the target is not known to have used it (nil: what it used is not known, in seconds), and
// the segments at lower rates, in which it did well, show that others did. The processors were full in each of them,
// too, or fuller than the target can have made them: a call of it costs at most what it can have cost in the cheapest.
func (s *Segment) InCrowd(target *float64, lower []Segment) bool {
	if !s.isFull() || target != nil && s.besides()-*target < mostly*s.host().All {
		return false
	}
	known := slices.DeleteFunc(slices.Clone(lower), func(x Segment) bool { return x.host() == nil || x.Offered <= 0 })
	each := math.Inf(1)
	for i := range known {
		each = min(each, known[i].besides()/float64(known[i].Offered))
	}
	isFree := func(x Segment) bool { return !x.isFull() }
	byOthers := func(x Segment) bool {
		return x.isFull() && x.besides()-each*float64(x.Offered) >= certainly*x.host().All
	}
	return len(known) > 0 && (!slices.ContainsFunc(known, isFree) || slices.ContainsFunc(append(known, *s), byOthers))
}
