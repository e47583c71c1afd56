package stat

import (
	"math"
	"sort"
)

// A Sample is the values of one block. It may keep them in any way that can count them.
type Sample interface {
	Len() int
	// AtMost returns how many values are at most v.
	AtMost(v float64) int
	// Within calls f with every value from lo to hi, in any order.
	Within(lo, hi float64, f func(v float64))
}

// Values are a Sample in ascending order.
type Values []float64

// Len implements Sample.
func (s Values) Len() int { return len(s) }

// AtMost implements Sample.
func (s Values) AtMost(v float64) int {
	return sort.Search(len(s), func(i int) bool { return s[i] > v })
}

// Within implements Sample.
func (s Values) Within(lo, hi float64, f func(v float64)) {
	for _, v := range s[sort.SearchFloat64s(s, lo):s.AtMost(hi)] {
		f(v)
	}
}

// Ranked is the k-th smallest, from 1, of the values of all samples together.
func Ranked(k int, samples ...Sample) float64 {
	v := selectBy(k, func(v float64) (n int) {
		for _, s := range samples {
			n += s.AtMost(v)
		}
		return n
	})
	return v + 0 // which makes 0 of −0
}

// SampleQuantile is Quantile of the values of all samples together.
func SampleQuantile(p float64, samples ...Sample) float64 {
	n := 0
	for _, s := range samples {
		n += s.Len()
	}
	if n == 0 {
		return math.NaN()
	}
	return Ranked(NearestRank(n, p), samples...)
}
