package stat

import "math"

const (
	kneeSides = 3 // the least number of sizes on either side of a knee
	kneeSteps = 8 // places tried between one size and the next
)

// hinge is cost = c0 + c1·N + c2·(N − at)₊ with c ≥ 0: linear, and steeper from at on.
type hinge struct {
	at, rss float64
	c       [3]float64
}

// At is the cost at size n.
func (h hinge) At(n float64) float64 { return h.c[0] + h.c[1]*n + h.c[2]*max(0, n-h.at) }

// steeper is the slope from the knee on.
func (h hinge) steeper() float64 { return h.c[1] + h.c[2] }

// bestHinge tries positions that are evenly spaced on the scale of log N between the sizes that leave enough on either
// side.
func bestHinge(n, y []float64) (best hinge, ok bool) {
	best.rss = math.Inf(1)
	step := 1.0
	for i := kneeSides - 1; i+kneeSides < len(n); i++ {
		if n[i] == 0 {
			continue
		}
		for k := range kneeSteps {
			if h := fitHinge(n, y, placeAfter(n, i, k)); h.rss < best.rss {
				best, step, ok = h, math.Pow(n[i+1]/n[i], 1.0/kneeSteps), true
			}
		}
	}
	if !ok {
		return best, false
	}
	return refine(n, y, best, step), true
}

// placeAfter returns the k-th position that is tried after size number i: positions are evenly spaced on the scale of
// log N up to the next size.
func placeAfter(n []float64, i, k int) float64 {
	return n[i] * math.Pow(n[i+1]/n[i], float64(k)/kneeSteps)
}

// refine narrows the position down between its neighbours, to a hundredth of the step.
func refine(n, y []float64, best hinge, step float64) hinge {
	least(math.Log(best.at/step), math.Log(best.at*step), 10, func(at float64) float64 {
		h := fitHinge(n, y, math.Exp(at))
		if h.rss < best.rss {
			best = h
		}
		return h.rss
	})
	return best
}

func fitHinge(n, y []float64, at float64) hinge {
	more := make([]float64, len(n))
	for i, v := range n {
		more[i] = max(0, v-at)
	}
	c, rss := fitColumns([][]float64{ones(len(n)), n, more}, y)
	return hinge{at: at, rss: rss, c: [3]float64(c)}
}

// ceiling is cost = c0 + c1·(1 − at/N)₊: constant up to at, then approaching c0 + c1. It is the cost of calls for N
// items, requested uniformly, with a cache of at items: a share at/N of calls are hits.
type ceiling struct{ at, c0, c1, rss float64 }

// At is the cost at size n.
func (c ceiling) At(n float64) float64 { return c.c0 + c.c1*beyond(c.at, n) }

func beyond(at, n float64) float64 {
	if n <= at {
		return 0
	}
	return 1 - at/n
}

// bestCeiling finds the best position with enough sizes on either side.
func bestCeiling(n, y []float64) (c ceiling, ok bool) {
	first := kneeSides - 1
	if n[first] == 0 {
		first++
	}
	last := len(n) - kneeSides
	if first >= last {
		return c, false
	}
	return ceilingWithin(n, y, n[first], n[last], kneeSteps*(last-first))
}

func ceilingWithin(n, y []float64, lo, hi float64, steps int) (c ceiling, ok bool) {
	at, s := family{beyond, lo, hi}.best(n, y, steps)
	if !(at > 0) {
		return c, false
	}
	p, _ := newProfile(along(n, func(v float64) float64 { return beyond(at, v) }))
	c = ceiling{at: at, rss: s.rss}
	c.c0, c.c1 = p.coefficients(s)
	return c, true
}
