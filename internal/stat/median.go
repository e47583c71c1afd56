package stat

// MedianInterval is the median of x (the mean of the two middle values when their number is even) with the interval between
// two order statistics whose coverage, by the binomial distribution, is at least level (Hollander, Wolfe & Chicken, section 3.6;
// Conover, Practical Nonparametric Statistics, section 3.2). Lo and Hi are ∓Inf where so few values cannot have the level
// (0.95 needs 6). It is an error if x is empty or has a value that is not finite, or if level is not between 0 and 1.
func MedianInterval(x []float64, level float64) (Estimate, error) {
	if err := checkLevel(level); err != nil {
		return Estimate{}, err
	}
	s, err := sample(x, 1)
	if err != nil {
		return Estimate{}, err
	}
	n := len(s)
	e := Estimate{Value: s[n/2], Level: level, N: n}
	if n%2 == 0 {
		e.Value = s[n/2-1]/2 + s[n/2]/2
	}
	c := critical(n, 1-level, func(c int) float64 { return Beta(float64(n-c), float64(c+1), 0.5) })
	e.Lo, e.Hi = tails(n, c, func(v float64) int { return sortedAtMost(s, v) })
	return e, nil
}
