package stat

import "math"

// A curve is a smooth form other than the laws, fitted.
type curve struct {
	at  func(n float64) float64
	bic float64
}

// At is the cost at size n.
func (c curve) At(n float64) float64 { return c.at(n) }

// curves fits smooth forms other than the laws, without step or bend: two laws at once, a power of N, and a cost that
// approaches a ceiling or a floor as N/(N+h) and h/(N+h) do. They are never named.
func curves(n, y []float64) []curve {
	var out []curve
	laws := Laws()[1:]
	columns := make([][]float64, len(laws))
	for k, l := range laws {
		columns[k] = along(n, l.F)
	}
	for i, x := range laws {
		for j, z := range laws[:i] {
			c, rss := fitColumns([][]float64{ones(len(n)), columns[j], columns[i]}, y)
			out = append(out, curve{func(n float64) float64 { return c[0] + c[1]*z.F(n) + c[2]*x.F(n) }, bic(rss, len(n), 4)})
		}
	}
	for _, f := range []family{
		{func(p, v float64) float64 { return math.Pow(v, p) }, 0.05, 3},
		{func(h, v float64) float64 { return v / (v + h) }, firstPositive(n) / 10, 10 * n[len(n)-1]},
		{func(h, v float64) float64 { return h / (v + h) }, firstPositive(n) / 10, 10 * n[len(n)-1]},
	} {
		h, s := f.best(n, y, familySteps)
		p, ok := newProfile(along(n, func(v float64) float64 { return f.f(h, v) }))
		if !ok {
			continue
		}
		c0, c1 := p.coefficients(s)
		out = append(out, curve{func(n float64) float64 { return c0 + c1*f.f(h, n) }, bic(s.rss, len(n), 4)})
	}
	return out
}

// smoothest returns the lowest BIC among the curves. A step must be better than they are, so that a smooth curve is not
// reported as a step, and a law that they fit better is not named.
func smoothest(n, y []float64) float64 {
	out := math.Inf(1)
	for _, c := range curves(n, y) {
		out = min(out, c.bic)
	}
	return out
}

// A family is the set of forms f(h, N) with a parameter h between lo and hi.
type family struct {
	f      func(h, n float64) float64
	lo, hi float64
}

const familySteps = 24 // parameters tried, evenly spaced by their logarithm

// best returns the parameter with which c0 + c1·f fits best: the best of a grid, refined between its neighbours.
func (f family) best(n, y []float64, steps int) (h float64, s scaledShape) {
	s.rss = math.Inf(1)
	lo, hi := math.Log(f.lo), math.Log(f.hi)
	try := func(at float64) float64 {
		v := math.Exp(at)
		p, ok := newProfile(along(n, func(x float64) float64 { return f.f(v, x) }))
		if !ok {
			return math.Inf(1)
		}
		t := p.fit(y, 0)
		if t.rss < s.rss {
			h, s = v, t
		}
		return t.rss
	}
	width := (hi - lo) / float64(steps)
	for k := range steps + 1 {
		try(lo + width*float64(k))
	}
	if h > 0 {
		least(max(lo, math.Log(h)-width), min(hi, math.Log(h)+width), 20, try)
	}
	return h, s
}

func along(n []float64, f func(n float64) float64) []float64 {
	out := make([]float64, len(n))
	for i, v := range n {
		out[i] = f(v)
	}
	return out
}

// firstPositive is the smallest size above 0; the sizes are ascending, and at most one of them is 0.
func firstPositive(n []float64) float64 {
	if n[0] == 0 {
		return n[1]
	}
	return n[0]
}
