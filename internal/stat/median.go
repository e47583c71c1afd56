package stat

import (
	"math"
	"slices"
)

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
