package analyze

import "math"

// manyEvents is the number of events from which on limits of their number are those of a normal distribution.
const manyEvents = 100

// fewest is how small the expected number of events can be where n were seen, as a share of n: the lower limit of a
// Poisson mean at the level of intervals. What happened in one event can be rare, but not arbitrarily so.
func fewest(n int) float64 {
	switch {
	case n <= 0:
		return 0
	case n > manyEvents:
		return max(0, 1-2*z/math.Sqrt(float64(n))) // below the exact limit
	}
	return poissonMean(n-1, (1+level)/2, float64(n)) / float64(n)
}

// most is how large it can be, as a multiple of n.
func most(n int) float64 {
	switch {
	case n <= 0:
		return math.Inf(1)
	case n > manyEvents:
		return 1 + 2*z/math.Sqrt(float64(n)) // above the exact limit
	}
	return poissonMean(n, (1-level)/2, 10*float64(n)+10) / float64(n)
}

// mostOf is most for events that tell as much as so many equal ones, which need be no whole number: on the line between
// its neighbours, which is above the limit.
func mostOf(equal float64) float64 {
	n := max(1, int(equal))
	return most(n) + (most(n+1)-most(n))*max(0, equal-float64(n))
}

// poissonMean is the mean at which at most n events have a probability; it is at most limit.
func poissonMean(n int, probability, limit float64) float64 {
	lo, hi := 0.0, limit
	for range 60 {
		mid := (lo + hi) / 2
		term := math.Exp(-mid)
		sum := term
		for k := 1; k <= n; k++ {
			term *= mid / float64(k)
			sum += term
		}
		if sum > probability {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}
