package stat

import "math"

// A Jump is a change of a series from one level to another, at once or within a part of its time.
type Jump struct {
	At float64 // an instant between the last value of the one level and the first of the other, were it at once
	// From and To bound the change: every even course from the one level to the other that fits about as well as the best
	// lies between them. AtOnce says that they are hardly further apart than neighbouring values.
	From, To      float64
	AtOnce        bool
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
	// mostOfChange is the part of a series that a change takes at most: what may have taken longer is a trend.
	mostOfChange = 1. / 3
	// changeDoubt is by how much the logarithm of the likelihood of a course, twice, may be less than that of the best.
	changeDoubt = 5
	// hardlyApart is how many steps from one value to the next a change at once takes at most.
	hardlyApart = 3
	// mostPlaces is how many values the places of a change are looked for among: of more, means are taken.
	mostPlaces = 500
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
	at, edge := s.twoLevels()
	if at == 0 {
		return j, false
	}
	n := len(s.y)
	length := s.t[n-1] - s.t[0]
	levels := s.levels(at)
	least := dot(levels, levels)
	j = Jump{At: (s.t[at-1] + s.t[at]) / 2, From: s.t[at-1], To: s.t[at], AtOnce: true}
	hangs, rest := autocorrelation(levels, s.lags(), 2)
	together := alike(hangs)
	if rest {
		if better := float64(n) / together * math.Log(dot(line.residual, line.residual)/least); better <= jumpEvidence {
			return j, false
		}
		j.From, j.To, j.AtOnce = s.change()
	}
	var means, weights [2]float64
	var values [2]int
	for i, v := range s.y {
		k := 0
		switch {
		case s.t[i] >= j.To:
			k = 1
		case s.t[i] > j.From:
			continue
		}
		means[k], weights[k], values[k] = means[k]+s.w[i]*v, weights[k]+s.w[i], values[k]+1
	}
	j.Before, j.After = means[0]/weights[0], means[1]/weights[1]
	j.Error = math.Sqrt(least / float64(n-2) * together * (1/weights[0] + 1/weights[1]))
	return j, min(values[0], values[1]) >= edge && j.To-j.From <= mostOfChange*length && j.Before != j.After &&
		math.Abs(s.besides(at))*length <= restOfJump*math.Abs(j.After-j.Before)
}

// alike is how many values that hang together so say as much as one alone.
func alike(hangs float64) float64 { return (1 + max(0, hangs)) / (1 - max(0, hangs)) }

// change bounds the change of a series from one level to another: where the earliest begins of all even courses that
// fit about as well as the best, and where the latest ends.
func (s *series) change() (from, to float64, atOnce bool) {
	if k := (len(s.y) + mostPlaces - 1) / mostPlaces; k > 1 {
		s = s.join(k)
	}
	c := s.courses()
	n := len(s.y)
	least, i, k := math.Inf(1), 0, 1
	for a := range n {
		for b := a + 1; b < n; b++ {
			if _, _, rest := c.fit(a, b); rest < least {
				least, i, k = rest, a, b
			}
		}
	}
	hangs, _ := autocorrelation(c.beside(i, k), s.lags(), 3)
	most := max(least, 1e-12*c.upTo[n].yy) * math.Exp(changeDoubt*alike(hangs)/float64(n))
	first, last := i, k
	for a := range n {
		for b := a + 1; b < n; b++ {
			if a >= first && b <= last {
				continue
			}
			if _, _, rest := c.fit(a, b); rest <= most {
				first, last = min(first, a), max(last, b)
			}
		}
	}
	return s.t[first], s.t[last], last-first <= hardlyApart
}

// courses fits even changes from one level to another to a series.
type courses struct {
	*series
	t, y []float64 // parts of the whole time, and from the mean
	upTo []moments // of the values before each
}

// moments are weighted sums over values.
type moments struct{ w, t, tt, y, ty, yy float64 }

func (m moments) less(o moments) moments {
	return moments{m.w - o.w, m.t - o.t, m.tt - o.tt, m.y - o.y, m.ty - o.ty, m.yy - o.yy}
}

func (s *series) courses() *courses {
	n, mean := len(s.y), weightedMean(s.y, s.w)
	c := &courses{series: s, upTo: make([]moments, n+1)}
	for i, w := range s.w {
		t, y := (s.t[i]-s.t[0])/(s.t[n-1]-s.t[0]), s.y[i]-mean
		m := c.upTo[i]
		c.upTo[i+1] = moments{m.w + w, m.t + w*t, m.tt + w*t*t, m.y + w*y, m.ty + w*t*y, m.yy + w*y*y}
		c.t, c.y = append(c.t, t), append(c.y, y)
	}
	return c
}

// fit fits the two levels where the one ends with value i and the other begins with value k, and gives the sum of the
// squared residuals.
func (c *courses) fit(i, k int) (before, after, rest float64) {
	all := c.upTo[len(c.y)]
	a, m, z := c.upTo[i+1], c.upTo[k].less(c.upTo[i+1]), all.less(c.upTo[k])
	at, d := c.t[i], c.t[k]-c.t[i]
	// Sums of the part of the change that is over: of itself, its square, and its product with the values.
	r, rr, ry := (m.t-at*m.w)/d, (m.tt-2*at*m.t+at*at*m.w)/(d*d), (m.ty-at*m.y)/d
	p, pq, q := a.w+m.w-2*r+rr, r-rr, z.w+rr
	py, qy := a.y+m.y-ry, z.y+ry
	before, after = (q*py-pq*qy)/(p*q-pq*pq), (p*qy-pq*py)/(p*q-pq*pq)
	return before, after, all.yy - before*py - after*qy
}

// beside are the weighted residuals of a fit.
func (c *courses) beside(i, k int) []float64 {
	before, after, _ := c.fit(i, k)
	out := make([]float64, len(c.y))
	for v, y := range c.y {
		over := min(1, max(0, (c.t[v]-c.t[i])/(c.t[k]-c.t[i])))
		out[v] = math.Sqrt(c.w[v]) * (y - before - over*(after-before))
	}
	return out
}

// twoLevels returns from which value on the values have a level of their own where two levels describe them best; 0 if
// nowhere. What two levels leave is least where the squares between them are greatest. Each level has as many values as
// edge at least.
func (s *series) twoLevels() (at, edge int) {
	n := len(s.y)
	edge = max(fewestValues/2, int(math.Ceil(leastOfLevel*float64(n))))
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
	return at, edge
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
