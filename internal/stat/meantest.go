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
