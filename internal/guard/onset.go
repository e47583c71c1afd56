package guard

import (
	"cmp"
	"math"
	"slices"

	"tare/internal/stat"
)

// An Onset is where trespasses begin to be permitted, as the offered rate rises.
type Onset struct {
	// Above is the highest rate, in 1/s, below all rates with a breach; 0: there was a breach at the lowest rate. Below is
	// the lowest rate with one.
	Above, Below float64
	// Clear says that none at Above is no chance: neither of the single trespass, with the share that was permitted from
	// Below on, at least its lower bound; nor of when breaches fell, since they may come in bursts that have nothing to do
	// with the rate. As few would be seen in less than 5 % of the cases.
	Clear bool
	// Sharp says that it is no chance either with the share that was permitted at Below alone: they are not rare there.
	Sharp bool
	// Later says that none at some rate above Below, or a smaller share than at Below, is no chance: breaches do not
	// follow the rate alone.
	Later bool
}

const (
	// narrow is how narrow an onset is made.
	narrow = 1.05
	// leastBursting is how many breaches can be told to have come in bursts.
	leastBursting = 6
)

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
	var from, lowest, at Seen
	for i := range plain {
		switch p := &plain[i]; {
		case p.Rate >= o.Below:
			from.pool(p)
			if p.Rate == o.Below {
				lowest.pool(p)
			}
		case p.Rate > o.Above:
			o.Above, at = p.Rate, *p
		default:
			at.pool(p) // at the same rate
		}
	}
	o.Clear = from.excludes(&at)
	o.Sharp = o.Clear && lowest.excludes(&at)
	higher := slices.DeleteFunc(plain[first:], func(p Seen) bool { return p.Rate <= o.Below })
	o.Later = slices.ContainsFunc(higher, func(p Seen) bool { return from.excludes(&p) || lowest.isAbove(higher, p.Rate) })
	return o, true
}

// isAbove reports whether a larger share was permitted in s than in the points at a rate, both of the trespasses and of
// the slices: their intervals are apart.
func (s *Seen) isAbove(points []Seen, rate float64) bool {
	var there Seen
	for i := range points {
		if points[i].Rate == rate {
			there.pool(&points[i])
		}
	}
	more, known := s.Trespasses.Share()
	less, also := there.Trespasses.Share()
	moreOften, _ := stat.BinomialInterval(uint64(s.Struck), uint64(s.Slices), Level)
	lessOften, _ := stat.BinomialInterval(uint64(there.Struck), uint64(there.Slices), Level)
	return known && also && s.Slices > 0 && there.Slices > 0 && less.Hi < more.Lo && lessOften.Hi < moreOften.Lo
}

// pool adds what another point shows of its trespasses.
func (s *Seen) pool(o *Seen) {
	s.Trespasses.Add(o.Trespasses)
	s.Slices, s.Struck = s.Slices+o.Slices, s.Struck+o.Struck
}

// excludes reports whether none permitted in o is no chance, if it were as s.
func (s *Seen) excludes(o *Seen) bool {
	e, ok := s.Trespasses.Share()
	if !ok || o.Trespasses.Permitted > 0 || o.Slices == 0 {
		return false
	}
	byTrespass := float64(o.Trespasses.Decided()) * math.Log1p(-min(e.Lo, 1-1e-9))
	bySlice := float64(s.Struck) * math.Log(float64(s.Slices)/float64(s.Slices+o.Slices))
	return max(byTrespass, bySlice) < math.Log(1-Level)
}

// InBursts reports whether the breaches of points without conditions came together in time: they fell into fewer than
// half of as many half seconds as if each had come by itself.
func InBursts(points []Seen) bool {
	struck, alone := 0.0, 0.0
	permitted := uint64(0)
	for i := range points {
		p := &points[i]
		if p.Condition != nil || p.Slices == 0 {
			continue
		}
		n := float64(p.Slices)
		permitted += p.Trespasses.Permitted
		struck += float64(p.Struck)
		alone += n * (1 - math.Pow(1-1/n, float64(p.Trespasses.Permitted)))
	}
	return permitted >= leastBursting && 2*struck < alone
}

// Next is the rate at which a point would narrow the onset down; ok is false if it is narrow enough, or breaches do not
// begin at a rate as far as is known.
func (o Onset) Next() (rate float64, ok bool) {
	if o.Above <= 0 || !o.Clear || o.Later || o.Below/o.Above <= narrow {
		return 0, false
	}
	return math.Sqrt(o.Above * o.Below), true
}
