package guard

import (
	"cmp"
	"slices"
	"time"

	"tare/internal/load"
	"tare/internal/stat"
)

const (
	// fewerServed is how much lower the share of calls that got an answer must be than at lower rates, at 95 % on both
	// sides, for a point to count as degraded. A call that was refused although it must be allowed got one: a control can
	// decide so under any load. So did one that was turned away: a limit before the control does so, whatever the control
	// can do, and then no more reaches it than at lower rates.
	fewerServed = 0.02
	// timesSlower and slowerBy are how much longer the median response must be than at lower rates: both.
	timesSlower = 3
	slowerBy    = 10 * time.Millisecond
	// near is the share of the rate of the overload from which on a rate counts as near to it.
	near = 0.7
	// wellBeyond is the multiple of the rate of the overload up to which the rate is raised.
	wellBeyond = 2.5
)

// An Overload is the rate from which on a target was degraded, at this and at all higher rates that were offered.
type Overload struct {
	Rate float64 // 1/s
	// Below and Served are the shares of the other calls that were served at lower rates, and at Rate. FewerServed says
	// that fewer got an answer, Slower that the medians differ.
	Below, Served       stat.Estimate
	MedianBelow, Median time.Duration
	FewerServed, Slower bool
	// LeftOut are lower rates at which the target was degraded, too, beside other work or for a while: what is said of
	// lower rates is not of these.
	LeftOut                   []float64
	Points                    int    // at Rate and above
	Decided, Answered, Failed uint64 // trespasses at Rate and above, and at near of it
}

// Enough reports whether enough trespasses were answered under the overload and near it.
func (o *Overload) Enough() bool { return o.Answered >= LeastTrespasses }

// OverloadOf finds the overload in points without conditions at which the generator kept up. ok is false if the highest
// of them was not degraded, or there are fewer than two rates. A point that other work on the host may have degraded
// says neither.
func OverloadOf(points []Seen) (o Overload, ok bool) {
	o, ok, _ = degradedFrom(points, false)
	return o, ok
}

// A Crowd is the lowest rate at which a target was degraded while other work kept the processors busy, and for which
// share of their time they were.
type Crowd struct{ Rate, Busy float64 }

// CrowdOf finds the crowd in points; ok is false if there is none.
func CrowdOf(points []Seen) (c Crowd, ok bool) {
	_, _, c = degradedFrom(points, false)
	return c, c.Rate > 0
}

// degradedFrom finds the overload, and the crowd. By whomever, a degraded point is overloaded even in a crowd, or if
// its calls were turned away.
func degradedFrom(points []Seen, byWhomever bool) (o Overload, ok bool, crowd Crowd) {
	kept := keptUp(points)
	var below Legitimate
	var sound []load.Segment
	var degraded []float64
	fastest := time.Duration(0)
	for i := range kept {
		p := &kept[i]
		here := Overload{Rate: p.Rate, MedianBelow: fastest, Median: p.Median}
		if here.degraded(below, p.Legitimate, byWhomever) {
			degraded = append(degraded, p.Rate)
			switch {
			case !byWhomever && p.Segment.InCrowd(p.TargetCPU, sound) && !p.answeredFewer(&below):
				if crowd.Rate == 0 {
					crowd = Crowd{p.Rate, p.Segment.Busy()}
				}
			case !ok:
				o, ok = here, true
			}
			continue
		}
		o, ok, crowd = Overload{}, false, Crowd{}
		sound = append(sound, p.Segment)
		below.add(p.Legitimate)
		if p.Median > 0 && (fastest == 0 || p.Median < fastest) {
			fastest = p.Median
		}
	}
	lower, _ := slices.BinarySearch(degraded, o.Rate)
	o.LeftOut = slices.Compact(degraded[:lower])
	for _, p := range kept {
		if ok && p.Rate >= o.Rate {
			o.Points++
		}
		if ok && p.Rate >= near*o.Rate {
			o.Decided += p.Trespasses.Decided()
			o.Answered += p.Trespasses.Decided() + p.Trespasses.Errors
			o.Failed += p.Trespasses.Undecided + p.Trespasses.Unsent - p.Trespasses.Errors
		}
	}
	return o, ok, crowd
}

// degraded compares a point with those at lower rates. By whomever, a call that was turned away got no answer.
func (o *Overload) degraded(below, here Legitimate, byWhomever bool) bool {
	var known bool
	if o.Below, known = below.Share(); !known {
		return false
	}
	if o.Served, known = here.Share(); !known {
		return false
	}
	if byWhomever {
		below.TurnedAway, here.TurnedAway = 0, 0
	}
	before, _ := below.answered().Share()
	now, _ := here.answered().Share()
	o.FewerServed = now.Hi < before.Lo-fewerServed
	o.Slower = o.MedianBelow > 0 && o.Median >= timesSlower*o.MedianBelow && o.Median-o.MedianBelow >= slowerBy
	return o.FewerServed || o.Slower
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

// A TurnedAway is the lowest rate from which on, at this and at all higher rates, calls that the control must allow
// were turned away, and the most that was not, in 1/s: if a limit before the control did so, no more reached it.
type TurnedAway struct{ Rate, Most float64 }

// TurnedAwayFrom finds that in points without conditions at which the generator kept up; ok is false if none were at
// the highest rate.
func TurnedAwayFrom(points []Seen) (t TurnedAway, ok bool) {
	kept := keptUp(points)
	for _, p := range slices.Backward(kept) {
		n := p.Legitimate
		if e, _ := stat.BinomialInterval(n.TurnedAway, n.Due(), Level); e.Lo <= fewerServed {
			break
		}
		t.Rate, ok = p.Rate, true
	}
	for _, p := range kept {
		n := p.Legitimate
		t.Most = max(t.Most, p.Rate*float64(n.Due()-n.TurnedAway)/float64(n.Due()))
	}
	return t, ok
}

// keptUp returns the points without conditions at which the generator kept up, the slowest first.
func keptUp(points []Seen) []Seen {
	out := slices.DeleteFunc(slices.Clone(points), func(p Seen) bool {
		return p.Condition != nil || p.Late || p.Legitimate.Due() == 0
	})
	slices.SortStableFunc(out, func(a, b Seen) int { return cmp.Compare(a.Rate, b.Rate) })
	return out
}

// Reached is the highest rate of a point without a condition at which the generator kept up, with what became of the
// other calls at it; ok is false if there is none.
func Reached(points []Seen) (rate float64, calls Legitimate, ok bool) {
	kept := keptUp(points)
	if len(kept) == 0 {
		return 0, Legitimate{}, false
	}
	last := &kept[len(kept)-1]
	return last.Rate, last.Legitimate, true
}

// Withstood reports whether a target is known not to have been overloaded at the highest rate of a point without a
// condition: no other work was why it did worse than at lower rates, and it served the calls, or turned them away, but
// for fewerServed of them. One that serves as few at the lowest rate may be overloaded there already.
func Withstood(points []Seen) bool {
	_, calls, ok := Reached(points)
	_, crowded := CrowdOf(points)
	calls.Served, calls.Failed = calls.Served+calls.TurnedAway, calls.Failed-calls.TurnedAway
	served, _ := calls.Share()
	return ok && !crowded && served.Hi >= 1-fewerServed
}

// Missed are those of the rates, in 1/s, that no point without a condition offered: the generator kept up with none.
func Missed(points []Seen, rates []float64) []float64 {
	kept := keptUp(points)
	return slices.DeleteFunc(slices.Clone(rates), func(rate float64) bool {
		return slices.ContainsFunc(kept, func(p Seen) bool { return p.Rate == rate })
	})
}
