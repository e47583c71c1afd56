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
	// Later says that no trespass was permitted at some higher rate: breaches do not follow the rate alone.
	Later bool
}

// fine is how narrow an onset is made.
const fine = 1.05

// OnsetOf finds the onset in points without conditions. ok is false if no trespass was permitted.
func OnsetOf(points []Seen) (o Onset, ok bool) {
	plain := slices.DeleteFunc(slices.Clone(points), func(p Seen) bool {
		return p.Condition != nil || p.Trespasses.Decided() == 0
	})
	slices.SortStableFunc(plain, func(a, b Seen) int { return cmp.Compare(a.Rate, b.Rate) })
	i := slices.IndexFunc(plain, func(p Seen) bool { return p.Trespasses.Permitted > 0 })
	if i < 0 {
		return Onset{}, false
	}
	o.Below = plain[i].Rate
	for _, p := range plain[:i] {
		if p.Rate < o.Below {
			o.Above = p.Rate
		}
	}
	for _, p := range plain[i:] {
		o.Later = o.Later || p.Rate > o.Below && p.Trespasses.Permitted == 0
	}
	return o, true
}

// Next is the rate at which a point would narrow the onset down; ok is false if it is narrow enough, or has no lower
// side.
func (o Onset) Next() (rate float64, ok bool) {
	if o.Above <= 0 || o.Below/o.Above <= fine {
		return 0, false
	}
	return math.Sqrt(o.Above * o.Below), true
}
