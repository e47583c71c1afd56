package stat

import "math"

// leastBlocks is how many blocks of values there are at least for the variance of their means to be believed.
const leastBlocks = 32

// Inefficiency is how many values of a series tell as much about its mean as one independent value: at least 1. It is
// the largest ratio of the variance of the means of m values that follow one another to what it would be if they were
// independent, for m = 1, 2, 4, … (Flyvbjerg & Petersen, Error estimates on averages of correlated data, J. Chem. Phys.
// 91 (1989)). Memory that lasts longer than a 32nd of the series is not seen whole.
func Inefficiency(x []float64) float64 {
	alone := Variance(x)
	if len(x) < 2*leastBlocks || !(alone > 0) {
		return 1
	}
	worst, means := 1.0, x
	for m := 2.0; len(means) >= 2*leastBlocks; m *= 2 {
		pairs := make([]float64, len(means)/2)
		for i := range pairs {
			pairs[i] = (means[2*i] + means[2*i+1]) / 2
		}
		means = pairs
		worst = math.Max(worst, m*Variance(means)/alone)
	}
	return worst
}
