package stat

import "math"

const (
	kneeSides = 3 // the least sizes on either side of a knee
	kneeSteps = 8 // places tried between one size and the next
)

// hinge is cost = c0 + c1·N + c2·(N − at)₊ with c ≥ 0: linear, and steeper from at on.
type hinge struct{ at, rss float64 }

// findKnee looks for the size from which the cost grows faster. Two segments must beat the best law's BIC by 6 with five
// parameters (three coefficients, the place, the variance). without holds the logarithms of the costs without each block in turn,
// for the interval, on the scale of log N.
func findKnee(n, y []float64, without [][]float64, level, best float64) *Estimate {
	h, ok := bestHinge(n, y)
	if !ok || best-bic(h.rss, len(n), 5) < kneeBIC {
		return nil
	}
	deleted := make([]float64, 0, len(without))
	for _, part := range without {
		if p, ok := bestHinge(n, part); ok {
			deleted = append(deleted, math.Log(p.at))
		}
	}
	e := exponential(spread(math.Log(h.at), deleted, level))
	return &e
}

// bestHinge tries places that are evenly spaced on the scale of log N between the sizes that leave enough on either side.
func bestHinge(n, y []float64) (best hinge, ok bool) {
	best.rss = math.Inf(1)
	step := 1.0
	for i := kneeSides - 1; i+kneeSides < len(n); i++ {
		if n[i] == 0 {
			continue
		}
		for k := range kneeSteps {
			at := n[i] * math.Pow(n[i+1]/n[i], float64(k)/kneeSteps)
			if h := fitHinge(n, y, at); h.rss < best.rss {
				best, step, ok = h, math.Pow(n[i+1]/n[i], 1.0/kneeSteps), true
			}
		}
	}
	if !ok {
		return best, false
	}
	return refine(n, y, best, step), true
}

// refine narrows the place down between its neighbours by golden sections, to a hundredth of the step.
func refine(n, y []float64, best hinge, step float64) hinge {
	const golden = 0.6180339887498949
	lo, hi := math.Log(best.at/step), math.Log(best.at*step)
	left, right := fitHinge(n, y, math.Exp(hi-golden*(hi-lo))), fitHinge(n, y, math.Exp(lo+golden*(hi-lo)))
	for range 10 {
		if left.rss < right.rss {
			hi, right = math.Log(right.at), left
			left = fitHinge(n, y, math.Exp(hi-golden*(hi-lo)))
		} else {
			lo, left = math.Log(left.at), right
			right = fitHinge(n, y, math.Exp(lo+golden*(hi-lo)))
		}
		if left.rss < best.rss {
			best = left
		}
		if right.rss < best.rss {
			best = right
		}
	}
	return best
}

func fitHinge(n, y []float64, at float64) hinge {
	more := make([]float64, len(n))
	for i, v := range n {
		more[i] = max(0, v-at)
	}
	_, rss := fitColumns([][]float64{ones(len(n)), n, more}, y)
	return hinge{at: at, rss: rss}
}
