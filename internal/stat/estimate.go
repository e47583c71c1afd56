// Package stat estimates: intervals, slopes, quantiles. It sees numbers only and knows nothing of where they come from.
package stat

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Estimate is a value with its interval at Level (0.95: 95 %). N counts the independent parts it was computed from.
type Estimate struct {
	Value, Lo, Hi float64
	Level         float64
	N             int
}

// Half is the interval's half width relative to the value; +Inf where the value is 0.
func (e Estimate) Half() float64 {
	if e.Value == 0 {
		return math.Inf(1)
	}
	return (e.Hi - e.Lo) / 2 / math.Abs(e.Value)
}

// Mean is the arithmetic mean of x; NaN for none.
func Mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// Variance is the sample variance of x (n − 1); NaN for fewer than two.
func Variance(x []float64) float64 {
	if len(x) < 2 {
		return math.NaN()
	}
	m, sum := Mean(x), 0.0
	for _, v := range x {
		sum += (v - m) * (v - m)
	}
	return sum / float64(len(x)-1)
}

// MeanInterval is the mean of x with Student's interval at level. With the means of consecutive batches for x it is the
// batch-means interval (Law, Simulation Modeling and Analysis, 5th ed., section 9.5.3). ok is false for fewer than two
// values.
func MeanInterval(x []float64, level float64) (e Estimate, ok bool) {
	if len(x) < 2 || !(level > 0 && level < 1) {
		return Estimate{}, false
	}
	m := Mean(x)
	half := StudentQuantile((1+level)/2, float64(len(x)-1)) * math.Sqrt(Variance(x)/float64(len(x)))
	return Estimate{Value: m, Lo: m - half, Hi: m + half, Level: level, N: len(x)}, true
}

// Quantile is the p-quantile of x by the nearest rank: the smallest value that at least p·n values do not exceed. NaN
// for none.
func Quantile(x []float64, p float64) float64 { return selectQuantile(slices.Clone(x), p) }

// selectQuantile is Quantile, and changes the order of x. To select one value (Hoare 1961) takes less time than to
// sort, unless the values were arranged so that it does not.
func selectQuantile(x []float64, p float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	k := NearestRank(len(x), p) - 1
	lo, hi := 0, len(x)-1
	for rounds := 4 * bits.Len(uint(len(x))); lo < hi && rounds > 0; rounds-- {
		i, j, pivot := lo, hi, x[lo+(hi-lo)/2]
		for i <= j {
			for cmp.Less(x[i], pivot) {
				i++
			}
			for cmp.Less(pivot, x[j]) {
				j--
			}
			if i <= j {
				x[i], x[j] = x[j], x[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i:
			lo = i
		default:
			return x[k]
		}
	}
	slices.Sort(x[lo : hi+1])
	return x[k]
}

// SortedQuantile is Quantile of values that are in ascending order already.
func SortedQuantile(s []float64, p float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	return s[NearestRank(len(s), p)-1]
}

// NearestRank is the rank, from 1 to n, of the p-quantile of n values.
func NearestRank(n int, p float64) int {
	// The small constant keeps 0.95·20 = 19.000…04 from becoming rank 20.
	rank := int(math.Ceil(p*float64(n) - 1e-9))
	return min(max(rank, 1), n)
}
