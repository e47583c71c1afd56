package stat

import (
	"errors"
	"math"
)

var errNoMean = errors.New("the interval of a mean needs two values, and a level between 0 and 1")

// MeanTest is Student's test of one sample: the mean of d with its interval at level, and the p-value of a true mean of
// 0, which is at most 1 − level exactly when the interval excludes 0. It fails for fewer than two values and for a
// level that is not between 0 and 1.
func MeanTest(d []float64, level float64) (Test, error) {
	e, ok := MeanInterval(d, level)
	if !ok {
		return Test{}, errNoMean
	}
	return Test{Estimate: e, P: MeanP(d)}, nil
}

// MeanShift is the difference of the means of two samples whose values are no pairs, treated − base, with Student's t
// of the smaller one, as MeanRatioApart has it, and the p-value of a true difference of 0. It fails as MeanTest does.
func MeanShift(base, treated []float64, level float64) (Test, error) {
	n := min(len(base), len(treated))
	if n < 2 || !(level > 0 && level < 1) {
		return Test{}, errNoMean
	}
	d, se := Mean(treated)-Mean(base), math.Sqrt(meanVariance(base)+meanVariance(treated))
	half := StudentQuantile((1+level)/2, float64(n-1)) * se
	return Test{
		Estimate: Estimate{Value: d, Lo: d - half, Hi: d + half, Level: level, N: n}, P: studentP(d, se, n),
	}, nil
}

// meanVariance is the variance of the mean of x.
func meanVariance(x []float64) float64 { return Variance(x) / float64(len(x)) }

// MeanP is the two-sided p-value of Student's test that the true mean of d is 0; NaN for fewer than two values.
func MeanP(d []float64) float64 { return studentP(Mean(d), math.Sqrt(meanVariance(d)), len(d)) }

// studentP is the two-sided p-value of a mean of n values and its standard error.
func studentP(mean, se float64, n int) float64 {
	switch {
	case math.IsNaN(se):
		return math.NaN()
	case se > 0:
		return 2 * StudentCDF(-math.Abs(mean/se), float64(n-1))
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
	if len(base) != len(treated) {
		return Estimate{}, false
	}
	n, x, y, covariance := float64(len(base)), Mean(base), Mean(treated), 0.0
	for i := range base {
		covariance += (base[i] - x) * (treated[i] - y) / (n - 1) / n
	}
	return fieller(base, treated, covariance, level)
}

// MeanRatioApart is MeanRatio of samples whose values are no pairs: the means do not depend on each other.
func MeanRatioApart(base, treated []float64, level float64) (e Estimate, ok bool) {
	return fieller(base, treated, 0, level)
}

// fieller is the interval for the ratio of means with a covariance. Of samples of two sizes, it takes Student's t of
// the smaller one, which is cautious.
func fieller(base, treated []float64, covariance, level float64) (e Estimate, ok bool) {
	x, y, n := Mean(base), Mean(treated), min(len(base), len(treated))
	if n < 2 || !(x > 0) || !(level > 0 && level < 1) {
		return Estimate{}, false
	}
	t := StudentQuantile((1+level)/2, float64(n-1))
	a, b, c := x*x-t*t*meanVariance(base), x*y-t*t*covariance, y*y-t*t*meanVariance(treated)
	root := math.Sqrt(max(0, b*b-a*c))
	e = Estimate{Value: y / x, Lo: 0, Hi: math.Inf(1), Level: level, N: n}
	if c > 0 {
		e.Lo = min(e.Value, c/(b+root))
	}
	if a > 0 {
		e.Hi = max(e.Value, (b+root)/a)
	}
	return e, true
}
