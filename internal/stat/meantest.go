package stat

import (
	"errors"
	"math"
)

// MeanTest is Student's test of one sample: the mean of d with its interval at level, and the p-value of a true mean of
// 0, which is at most 1 − level exactly when the interval excludes 0. It fails for fewer than two values and for a
// level that is not between 0 and 1.
func MeanTest(d []float64, level float64) (Test, error) {
	e, ok := MeanInterval(d, level)
	if !ok {
		return Test{}, errors.New("the interval of a mean needs two values, and a level between 0 and 1")
	}
	return Test{Estimate: e, P: MeanP(d)}, nil
}

// MeanP is the two-sided p-value of Student's test that the true mean of d is 0; NaN for fewer than two values.
func MeanP(d []float64) float64 {
	mean, se := Mean(d), math.Sqrt(Variance(d)/float64(len(d)))
	switch {
	case math.IsNaN(se):
		return math.NaN()
	case se > 0:
		return 2 * StudentCDF(-math.Abs(mean/se), float64(len(d)-1))
	case mean != 0:
		return 0
	}
	return 1
}

// MeanRatio is the ratio of the mean of treated to that of base, whose values are pairs and never negative, with the
// interval of Fieller (Journal of the Royal Statistical Society B 16 (1954) 175): all ratios r for which Student's test
// of treated − r·base does not exclude a mean of 0. It has no upper end where base's own mean may be 0. ok is false for
// fewer than two pairs, where that mean is 0, and for a level that is not between 0 and 1.
func MeanRatio(base, treated []float64, level float64) (e Estimate, ok bool) {
	n, x := float64(len(base)), Mean(base)
	if len(base) < 2 || len(base) != len(treated) || !(x > 0) || !(level > 0 && level < 1) {
		return Estimate{}, false
	}
	y, covariance := Mean(treated), 0.0
	for i := range base {
		covariance += (base[i] - x) * (treated[i] - y) / (n - 1)
	}
	t := StudentQuantile((1+level)/2, n-1)
	k := t * t / n
	a, b, c := x*x-k*Variance(base), x*y-k*covariance, y*y-k*Variance(treated)
	root := math.Sqrt(max(0, b*b-a*c))
	e = Estimate{Value: y / x, Lo: 0, Hi: math.Inf(1), Level: level, N: len(base)}
	if c > 0 {
		e.Lo = min(e.Value, c/(b+root))
	}
	if a > 0 {
		e.Hi = max(e.Value, (b+root)/a)
	}
	return e, true
}
