package stat

import (
	"math"
	"slices"
)

// placed returns the interval of a chosen bend's position: all positions at which a bend, of either kind, fits worse
// than the best only by what noise explains (the profile of the sum of squares: Bates and Watts 1988, section 6.1, with
// Student's t). A jackknife would not do: it shows how far the position moves with the blocks, not where else the fit
// would be as good.
func (d costs) placed(full course, y []float64, level float64) Estimate {
	at, rss, parameters := placeOf(full)
	e := Estimate{Value: at, Lo: math.Inf(-1), Hi: math.Inf(1), Level: level, N: d.blocks()}
	if d.blocks() < 2 {
		return e
	}
	df := float64(len(y) - parameters)
	t := StudentQuantile((1+level)/2, df)
	most := rss + t*t*max(rss/df, d.noise(y))
	fits := func(at float64) bool { return d.bendAt(at, y) <= most }
	places := d.places()
	first := slices.IndexFunc(places, fits)
	if first < 0 { // none but the best itself, between two of them
		first, _ = slices.BinarySearch(places, at)
	}
	last := len(places) - 1
	for last >= first && !fits(places[last]) {
		last--
	}
	e.Lo = min(at, edge(places, first, -1, at, fits))
	e.Hi = max(at, edge(places, max(last, first-1), +1, at, fits))
	return e
}

// placeOf returns the position of a bend, the residual sum of squares of its fit, and its number of parameters.
func placeOf(c course) (at, rss float64, parameters int) {
	if h, ok := c.(hinge); ok {
		return h.at, h.rss, 4
	}
	top := c.(ceiling)
	return top.at, top.rss, 3
}

// bendAt returns the residual sum of squares of the better kind of bend at a position.
func (d costs) bendAt(at float64, y []float64) float64 {
	out := fitHinge(d.n, y, at).rss
	if p, ok := newProfile(along(d.n, func(v float64) float64 { return beyond(at, v) })); ok {
		out = min(out, p.fit(y, 0).rss)
	}
	return out
}

// noise estimates the variance of a size's centre from its blocks. An effect on an entire block does not move a bend.
func (d costs) noise(y []float64) float64 {
	shared := make([]float64, d.blocks())
	for i, x := range d.log {
		for b, v := range x {
			shared[b] += (v - y[i]) / float64(len(y))
		}
	}
	sum := 0.0
	for i, x := range d.log {
		for b, v := range x {
			sum += (v - y[i] - shared[b]) * (v - y[i] - shared[b])
		}
	}
	blocks := float64(d.blocks())
	return sum / float64(len(y)-1) / (blocks - 1) / blocks
}

// places returns the positions that are tried, between every size and the next.
func (d costs) places() []float64 {
	var out []float64
	for i, v := range d.n[:len(d.n)-1] {
		if v == 0 {
			continue
		}
		for k := range kneeSteps {
			out = append(out, placeAfter(d.n, i, k))
		}
	}
	return append(out, d.n[len(d.n)-1])
}

// edge returns the end of an interval of positions that reaches as far as places[i]: between it and the next one in the
// direction, or at places[i] if it is the last.
func edge(places []float64, i, direction int, best float64, fits func(float64) bool) float64 {
	next := i + direction
	if next < 0 || next >= len(places) {
		return places[min(max(i, 0), len(places)-1)]
	}
	in, out := best, places[next]
	if i >= 0 && i < len(places) && fits(places[i]) {
		in = places[i]
	}
	in, out = math.Log(in), math.Log(out)
	for range 20 {
		if mid := (in + out) / 2; fits(math.Exp(mid)) {
			in = mid
		} else {
			out = mid
		}
	}
	return math.Exp(out)
}
