package stat

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrLevel says that a confidence level is not between 0 and 1.
var ErrLevel = errors.New("the confidence level must lie between 0 and 1")

// ErrNotFinite says that a value is NaN or infinite.
var ErrNotFinite = errors.New("a value is not a finite number")

// sample checks x and returns it in ascending order, in new storage.
func sample(x []float64, least int) ([]float64, error) {
	if len(x) < least {
		return nil, fmt.Errorf("%d values where at least %d are needed", len(x), least)
	}
	for _, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, ErrNotFinite
		}
	}
	s := slices.Clone(x)
	slices.Sort(s)
	return s, nil
}

func checkLevel(level float64) error {
	if !(level > 0 && level < 1) {
		return ErrLevel
	}
	return nil
}

// selectBy is the k-th smallest (from 1) of a multiset of floats that is known only by how many of its members are at
// most v. It bisects the ordered bit patterns of float64, so the answer is a member, exactly, after 64 counts: no need
// to make and sort the n² Walsh averages or pairwise differences.
func selectBy(k int, atMost func(v float64) int) float64 {
	lo, hi := uint64(0), ^uint64(0)
	for lo < hi {
		mid := lo + (hi-lo)/2
		if v := floatAt(mid); !math.IsNaN(v) && atMost(v) >= k || math.IsNaN(v) && mid > 1<<63 {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return floatAt(lo)
}

// floatAt is the float64 whose rank is u in the order of all bit patterns from −NaN over −Inf, 0 and +Inf to +NaN.
func floatAt(u uint64) float64 {
	if u>>63 == 1 {
		return math.Float64frombits(u &^ (1 << 63))
	}
	return math.Float64frombits(^u)
}

// middle is the median of a multiset of m members under selectBy.
func middle(m int, atMost func(v float64) int) float64 {
	low := selectBy((m+1)/2, atMost)
	if m%2 == 1 {
		return low
	}
	return low/2 + selectBy(m/2+1, atMost)/2
}

// tails gives the interval [lowest+c, highest−c] of a multiset of m members: c members on each side are left out. No
// interval of finite length exists for c < 0.
func tails(m, c int, atMost func(v float64) int) (lo, hi float64) {
	if c < 0 {
		return math.Inf(-1), math.Inf(1)
	}
	return selectBy(c+1, atMost), selectBy(m-c, atMost)
}

// Median is the middle of x, the mean of the middle two where their number is even, as other tools print it. NaN for
// none.
func Median(x []float64) float64 { return SortedMedian(slices.Sorted(slices.Values(x))) }

// SortedMedian is Median of values that are in ascending order already.
func SortedMedian(s []float64) float64 {
	n := len(s)
	switch {
	case n == 0:
		return math.NaN()
	case n%2 == 1:
		return s[n/2]
	}
	return s[n/2-1]/2 + s[n/2]/2
}

// MedianInterval is the median of x (the mean of the two middle values when their number is even) with the interval
// between two order statistics whose coverage, by the binomial distribution, is at least level (Hollander, Wolfe &
// Chicken, section 3.6; Conover, Practical Nonparametric Statistics, section 3.2). Lo and Hi are ∓Inf where so few
// values cannot have the level (0.95 needs 6). It is an error if x is empty or has a value that is not finite, or if
// level is not between 0 and 1.
func MedianInterval(x []float64, level float64) (Estimate, error) {
	if err := checkLevel(level); err != nil {
		return Estimate{}, err
	}
	s, err := sample(x, 1)
	if err != nil {
		return Estimate{}, err
	}
	n := len(s)
	e := Estimate{Value: SortedMedian(s), Level: level, N: n}
	c := critical(n, 1-level, func(c int) float64 { return Beta(float64(n-c), float64(c+1), 0.5) })
	e.Lo, e.Hi = tails(n, c, Values(s).AtMost)
	return e, nil
}
