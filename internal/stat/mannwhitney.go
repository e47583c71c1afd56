package stat

import "math"

// exactRuns is the most values on either side for which the exact Mann–Whitney distribution is computed.
const exactRuns = 50

// HodgesLehmannShift estimates by how much y lies above x when the two have no blocks in common: the median of the
// differences y_j − x_i with the distribution-free interval of the Mann–Whitney test (Hollander, Wolfe & Chicken,
// sections 4.1–4.3), exact for up to 50 values on each side, beyond that normal with continuity correction. Ties are
// treated as in HodgesLehmann: a difference of exactly 0 counts for both signs, so that P ≤ 1−Level exactly when the
// closed interval excludes 0. N is the smaller of the two counts. The errors are those of HodgesLehmann.
func HodgesLehmannShift(x, y []float64, level float64) (Test, error) {
	if err := checkLevel(level); err != nil {
		return Test{}, err
	}
	sx, err := sample(x, 2)
	if err != nil {
		return Test{}, err
	}
	sy, err := sample(y, 2)
	if err != nil {
		return Test{}, err
	}
	m := len(sx) * len(sy)
	atMost := func(v float64) int { return differencesAtMost(sx, sy, v) }
	cdf := mannWhitney(len(sx), len(sy))
	lo, hi := tails(m, critical(m, 1-level, cdf), atMost)
	e := Estimate{Value: middle(m, atMost), Lo: lo, Hi: hi, Level: level, N: min(len(sx), len(sy))}
	notAbove, below := atMost(0), atMost(math.Nextafter(0, -1))
	return Test{Estimate: e, P: twoSided(m, min(notAbove, m-below), cdf)}, nil
}

// LeastShiftP is the smallest p-value that the Mann–Whitney test of n and m values can have: all of one side are above
// those of the other.
func LeastShiftP(n, m int) float64 { return twoSided(n*m, 0, mannWhitney(n, m)) }

// differencesAtMost counts the pairs of the ascending x and y with y−x ≤ v.
func differencesAtMost(x, y []float64, v float64) int {
	count, j := 0, 0
	for _, a := range x { // y[j]−a falls as a rises: j only goes up
		for j < len(y) && y[j]-a <= v {
			j++
		}
		count += j
	}
	return count
}

// mannWhitney is the distribution function of the Mann–Whitney statistic, for c up to half its range.
func mannWhitney(n, m int) func(c int) float64 {
	if max(n, m) <= exactRuns {
		p := mannWhitneyTable(n, m)
		return func(c int) float64 { return p[c] }
	}
	a, b := float64(n), float64(m)
	mean, sd := a*b/2, math.Sqrt(a*b*(a+b+1)/12)
	return func(c int) float64 { return NormalCDF((float64(c) + 0.5 - mean) / sd) }
}

// mannWhitneyTable is P(U ≤ c) for c = 0 … nm, by the recurrence of Mann & Whitney (Ann. Math. Stat. 18 (1947) 50): the
// largest of all values is an x with probability n/(n+m) and then exceeds all m of y.
func mannWhitneyTable(n, m int) []float64 {
	row := make([][]float64, m+1) // row[j] is the distribution for i values of x and j of y
	for j := range row {
		row[j] = []float64{1}
	}
	for i := 1; i <= n; i++ {
		row[0] = []float64{1}
		for j := 1; j <= m; j++ {
			a := float64(i) / float64(i+j)
			p := make([]float64, i*j+1)
			for u, v := range row[j] { // i−1 values of x
				p[u+j] += a * v
			}
			for u, v := range row[j-1] { // i values of x, j−1 of y
				p[u] += (1 - a) * v
			}
			row[j] = p
		}
	}
	p := row[m]
	for c := 1; c < len(p); c++ {
		p[c] += p[c-1]
	}
	return p
}
