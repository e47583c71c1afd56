package stat

import "math"

// A Jump is a change of a series from one level to another at once.
type Jump struct {
	At            float64 // an instant between the last value of the one level and the first of the other
	Before, After float64 // the levels
	Error         float64 // standard error of their difference, which allows for values that hang together
}

const (
	// leastOfLevel is the part of a series that each of two levels has at least.
	leastOfLevel = 0.1
	// jumpEvidence is by how much the logarithm of the likelihood has to be greater with a jump than with a line, twice,
	// where neighbouring values hang together as they do beside the jump.
	jumpEvidence = 16
	// restOfJump is how much of the jump a line beside it may make up over the whole series.
	restOfJump = 0.5
)

// FindJump looks for the jump that describes a series of one stretch; ok is false unless it does so far better than a
// line, and hardly a trend remains beside it. weight is as in DriftOptions.
func FindJump(t, y, weight []float64) (j Jump, ok bool) {
	s, err := newSeries(t, y, &DriftOptions{Weight: weight})
	if err != nil || s.stretches != 1 {
		return j, false
	}
	line, ok := s.line()
	if !ok {
		return j, false
	}
	at := s.twoLevels()
	if at == 0 {
		return j, false
	}
	n := len(s.y)
	rest := s.levels(at)
	least := dot(rest, rest)
	j = Jump{
		At:     (s.t[at-1] + s.t[at]) / 2,
		Before: weightedMean(s.y[:at], s.w[:at]), After: weightedMean(s.y[at:], s.w[at:]),
	}
	hangs, ok := autocorrelation(rest, s.lags(), 2)
	if !ok {
		return j, j.Before != j.After
	}
	together := (1 + max(0, hangs)) / (1 - max(0, hangs)) // so many values say as much as one alone
	var weights [2]float64
	for i, w := range s.w {
		weights[min(1, i/at)] += w
	}
	j.Error = math.Sqrt(least / float64(n-2) * together * (1/weights[0] + 1/weights[1]))
	better := float64(n) / together * math.Log(dot(line.residual, line.residual)/least)
	return j, better > jumpEvidence && math.Abs(s.besides(at))*(s.t[n-1]-s.t[0]) <= restOfJump*math.Abs(j.After-j.Before)
}

// twoLevels returns from which value on the values have a level of their own where two levels describe them best; 0 if
// nowhere. What two levels leave is least where the squares between them are greatest.
func (s *series) twoLevels() (at int) {
	n := len(s.y)
	edge := max(fewestValues/2, int(math.Ceil(leastOfLevel*float64(n))))
	mean, all := weightedMean(s.y, s.w), 0.0
	for _, w := range s.w {
		all += w
	}
	most, sum, before := -1.0, 0.0, 0.0
	for i := range n - edge {
		before += s.w[i]
		sum += s.w[i] * (s.y[i] - mean)
		between := sum * (sum / before) * (all / (all - before))
		if i+1 >= edge && between > most && !math.IsInf(between, 1) {
			most, at = between, i+1
		}
	}
	return at
}

// levels are the weighted residuals where the values from i on have a level of their own.
func (s *series) levels(i int) []float64 {
	out := make([]float64, 0, len(s.y))
	for _, part := range [][2]int{{0, i}, {i, len(s.y)}} {
		mean := weightedMean(s.y[part[0]:part[1]], s.w[part[0]:part[1]])
		for k := part[0]; k < part[1]; k++ {
			out = append(out, math.Sqrt(s.w[k])*(s.y[k]-mean))
		}
	}
	return out
}

// besides is the slope that both sides of a jump share.
func (s *series) besides(i int) float64 {
	sides := *s
	sides.stretch, sides.stretches = make([]int, len(s.y)), 2
	for k := i; k < len(s.y); k++ {
		sides.stretch[k] = 1
	}
	l, _ := sides.line()
	return l.value
}
