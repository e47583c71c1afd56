package guard

import (
	"math"
	"slices"

	"tare/internal/load"
)

const (
	// full is the share of their time from which on processors count as busy. Where less than one of them is idle on
	// average, or half of a single one, there may have been none for a while.
	full = 0.9
	// mostly is the share of the processors' time that a target must leave to others for them to matter, and certainly
	// that which others have surely taken where what the target used is not known.
	mostly, certainly = 0.5, 0.25
)

// host is what the processors did in the point; nil where that is not known.
func (p *Point) host() *load.Processors {
	if e := p.Segment.Effort; e != nil && e.Host != nil && e.Host.All > 0 && e.Seconds > 0 {
		return e.Host
	}
	return nil
}

// busy is the share of the processors' time in which they were busy or stolen.
func (p *Point) busy() float64 { return (p.host().Busy + p.host().Stolen) / p.host().All }

// isFull reports whether hardly any of the processors' time was left.
func (p *Point) isFull() bool {
	h := p.host()
	if h == nil {
		return false
	}
	count := h.All / p.Segment.Effort.Seconds
	return p.busy() >= full || count*(1-p.busy()) < min(1, count/2)
}

// besides is the processors' time, in seconds, that the generator did not use.
func (p *Point) besides() float64 { return max(0, p.busy()*p.host().All-p.Segment.Effort.CPU) }

// inCrowd reports whether other work on the host may have degraded the target at a point: hardly any of the processors'
// time was left, the target is not known to have used it, and the rates below, at which the target was sound, show that
// others did. The processors were full at each of them, too, or fuller than the target can have made them: a call of it
// costs at most what it can have cost at the cheapest of these rates.
func (s *Seen) inCrowd(sound []*Seen) bool {
	if !s.isFull() || s.TargetCPU != nil && s.besides()-*s.TargetCPU < mostly*s.host().All {
		return false
	}
	sound = slices.DeleteFunc(slices.Clone(sound), func(p *Seen) bool { return p.host() == nil || p.Segment.Offered <= 0 })
	if len(sound) == 0 {
		return false
	}
	each := math.Inf(1)
	for _, p := range sound {
		each = min(each, p.besides()/float64(p.Segment.Offered))
	}
	crowded := func(p *Seen) bool {
		return p.isFull() && p.besides()-each*float64(p.Segment.Offered) >= certainly*p.host().All
	}
	return !slices.ContainsFunc(sound, func(p *Seen) bool { return !p.isFull() }) ||
		slices.ContainsFunc(append(sound, s), crowded)
}

// answeredFewer reports whether fewer calls than at lower rates got an answer other than an error, even if those that
// got none count as answered: a call that waits for a processor times out, and an error is the target's own.
func (s *Seen) answeredFewer(below *Legitimate) bool {
	n := s.Legitimate
	n.Served, n.Failed, n.Unsent = n.Served+s.Unanswered+n.Unsent, n.Failed-min(n.Failed, s.Unanswered), 0
	now, known := n.answered().Share()
	before, also := below.answered().Share()
	return known && also && now.Hi < before.Lo-fewerServed
}
