package stat

import "math"

// BinomialInterval returns the exact interval of Clopper and Pearson (1934) for the share of which x of n were seen. If
// none or all were seen, the interval has one side, which holds at the level alone: 0 of n is below about 3/n at 95 %.
func BinomialInterval(x, n uint64, level float64) (e Estimate, ok bool) {
	if n == 0 || x > n || !(level > 0 && level < 1) {
		return Estimate{}, false
	}
	k, all, tail := float64(x), float64(n), (1-level)/2
	e = Estimate{Value: k / all, Lo: 0, Hi: 1, Level: level}
	switch x {
	case 0:
		e.Hi = -math.Expm1(math.Log(1-level) / all)
	case n:
		e.Lo = math.Exp(math.Log(1-level) / all)
	default:
		e.Lo = betaQuantile(tail, k, all-k+1)
		e.Hi = betaQuantile(1-tail, k+1, all-k)
	}
	return e, true
}

// TrialsToBound returns how many trials without an event show, at the level, that its share is at most p.
func TrialsToBound(p, level float64) uint64 {
	if !(p > 0 && p < 1) {
		return 0
	}
	return uint64(math.Ceil(math.Log(1-level) / math.Log1p(-p)))
}

// betaQuantile inverts Beta in its last argument by bisection, which converges whatever the shape.
func betaQuantile(p, a, b float64) float64 {
	lo, hi := 0.0, 1.0
	for range 200 {
		mid := (lo + hi) / 2
		if Beta(a, b, mid) < p {
			lo = mid
		} else {
			hi = mid
		}
		if hi-lo <= 1e-12*hi {
			break
		}
	}
	return (lo + hi) / 2
}
