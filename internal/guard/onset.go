package guard

import (
	"cmp"
	"math"
	"slices"
)

// An Onset is where trespasses begin to be permitted, as the offered rate rises.
type Onset struct {
	// Above is the highest rate, in 1/s, below all rates with a breach; 0: there was a breach at the lowest rate. Below is
	// the lowest rate with one.
	Above, Below float64
	// Clear says that none at Above is no chance: with the share that was permitted from Below on, at least its lower
	// bound, as few would be seen in less than 5 % of the cases.
	Clear bool
	// Later says the same of some rate above Below: breaches do not follow the rate alone.
	Later bool
}

// narrow is how narrow an onset is made.
const narrow = 1.05

// OnsetOf finds the onset in points without conditions. ok is false if no trespass was permitted.
func OnsetOf(points []Seen) (o Onset, ok bool) {
	plain := slices.DeleteFunc(slices.Clone(points), func(p Seen) bool {
		return p.Condition != nil || p.Trespasses.Decided() == 0
	})
	slices.SortStableFunc(plain, func(a, b Seen) int { return cmp.Compare(a.Rate, b.Rate) })
	first := slices.IndexFunc(plain, func(p Seen) bool { return p.Trespasses.Permitted > 0 })
	if first < 0 {
		return Onset{}, false
	}
	o.Below = plain[first].Rate
	var from, at Trespasses
	for _, p := range plain {
		switch {
		case p.Rate >= o.Below:
			from.Add(p.Trespasses)
		case p.Rate > o.Above:
			o.Above, at = p.Rate, p.Trespasses
		default:
			at.Add(p.Trespasses) // at the same rate
		}
	}
	o.Clear = from.excludes(at)
	o.Later = slices.ContainsFunc(plain[first:], func(p Seen) bool {
		return p.Rate > o.Below && from.excludes(p.Trespasses)
	})
	return o, true
}

// excludes reports whether none permitted among others is no chance, if they had at least the share of t.
func (t Trespasses) excludes(others Trespasses) bool {
	e, ok := t.Share()
	return ok && others.Permitted == 0 && float64(others.Decided())*math.Log1p(-min(e.Lo, 1-1e-9)) < math.Log(1-Level)
}

// Next is the rate at which a point would narrow the onset down; ok is false if it is narrow enough, or breaches do not
// begin at a rate as far as is known.
func (o Onset) Next() (rate float64, ok bool) {
	if o.Above <= 0 || !o.Clear || o.Later || o.Below/o.Above <= narrow {
		return 0, false
	}
	return math.Sqrt(o.Above * o.Below), true
}
