package stat

import "math"

// A profile is log(1−θ + θ·f/max f) at each size for many θ between 0 and 1: the shape of cost = c0 + c1·f without its
// scale. The remaining parameter is one factor for all sizes, or one before a step and one after it; either is a mean
// of logarithms. So the search is for one number instead of three, the coefficients cannot become negative, and the
// step need not be guessed first.
type profile struct {
	f      []float64   // divided by its largest value
	most   float64     // that value
	shapes [][]float64 // by position in the range of u = log θ/(1−θ)
}

// The search for θ = 1/(1+exp(−u)): even a quadratic law's largest term at the smallest of 10⁴ sizes lies within this
// range.
const (
	profileFrom = -15
	profileTo   = 30
)

// newProfile computes the shapes of f ≥ 0. ok is false if f is constant.
func newProfile(f []float64) (p profile, ok bool) {
	least := math.Inf(1)
	for _, v := range f {
		p.most, least = max(p.most, v), min(least, v)
	}
	if !(p.most > least) || math.IsInf(p.most, 0) {
		return p, false
	}
	p.f = make([]float64, len(f))
	for i, v := range f {
		p.f[i] = v / p.most
	}
	p.shapes = make([][]float64, profileTo-profileFrom+1)
	room := make([]float64, len(p.shapes)*len(f))
	for k := range p.shapes {
		p.shapes[k] = p.shape(float64(profileFrom+k), room[k*len(f):(k+1)*len(f)])
	}
	return p, true
}

// shape returns the logarithm of the form at u, in into if that is long enough.
func (p *profile) shape(u float64, into []float64) []float64 {
	if cap(into) < len(p.f) {
		into = make([]float64, len(p.f))
	}
	into = into[:len(p.f)]
	rest := 1 / (1 + math.Exp(u)) // 1−θ, to full precision where θ is nearly 1
	share := 1 / (1 + math.Exp(-u))
	for i, v := range p.f {
		into[i] = math.Log(rest + share*v)
	}
	return into
}

// A scaledShape is one fitted profile: cost = exp(left)·shape before the split, exp(right)·shape after it.
type scaledShape struct{ u, left, right, rss float64 }

// coefficients are c0 and c1 of the sizes before the split.
func (p *profile) coefficients(s scaledShape) (c0, c1 float64) {
	scale := math.Exp(s.left)
	return scale / (1 + math.Exp(s.u)), scale / (1 + math.Exp(-s.u)) / p.most
}

// fit finds the θ at which the shape fits the logarithms y best, with one factor for y[:split] and one for the rest; a
// split of 0 means one factor for all.
func (p *profile) fit(y []float64, split int) scaledShape {
	best, at := scaledShape{rss: math.Inf(1)}, 0
	for k, shape := range p.shapes {
		if s := scaleTo(shape, y, split); s.rss < best.rss {
			best, at = s, k
		}
	}
	best.u = float64(profileFrom + at)
	var room []float64
	least(best.u-1, best.u+1, 32, func(u float64) float64 {
		room = p.shape(u, room)
		s := scaleTo(room, y, split)
		if s.rss < best.rss {
			best, best.u = s, u
		}
		return s.rss
	})
	return best
}

// scaleTo finds the factors for one shape: the mean difference of the logarithms on each side of the split.
func scaleTo(shape, y []float64, split int) (s scaledShape) {
	s.left = meanDifference(y[:split], shape[:split])
	s.right = meanDifference(y[split:], shape[split:])
	if split == 0 {
		s.left = s.right
	}
	for i, v := range y {
		r := v - shape[i] - s.right
		if i < split {
			r = v - shape[i] - s.left
		}
		s.rss += r * r
	}
	return s
}

func meanDifference(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += v - b[i]
	}
	return sum / float64(max(1, len(a)))
}

// least finds a minimum of f by golden-section search.
func least(lo, hi float64, steps int, f func(float64) float64) {
	const golden = 0.6180339887498949
	x, z := hi-golden*(hi-lo), lo+golden*(hi-lo)
	left, right := f(x), f(z)
	for range steps {
		if left < right {
			hi, z, right = z, x, left
			x = hi - golden*(hi-lo)
			left = f(x)
		} else {
			lo, x, left = x, z, right
			z = lo + golden*(hi-lo)
			right = f(z)
		}
	}
}
