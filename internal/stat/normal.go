package stat

import "math"

// NormalCDF is the probability that a standard normal variable is at most z.
func NormalCDF(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// NormalQuantile is the p-quantile of the standard normal distribution, 0 < p < 1; NaN outside.
func NormalQuantile(p float64) float64 {
	if !(p > 0 && p < 1) {
		return math.NaN()
	}
	// The lower tail is the one that floating point resolves.
	if p > 0.5 {
		return -NormalQuantile(1 - p)
	}
	return -math.Sqrt2 * math.Erfcinv(2*p)
}
