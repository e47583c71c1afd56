package stat

import "math"

// StudentCDF is the probability that Student's t with df degrees of freedom is at most t, by the incomplete beta
// function (Abramowitz & Stegun, 26.7.1).
func StudentCDF(t, df float64) float64 {
	if math.IsInf(t, 0) {
		return (1 + math.Copysign(1, t)) / 2
	}
	tail := Beta(df/2, 0.5, df/(df+t*t)) / 2
	if t > 0 {
		return 1 - tail
	}
	return tail
}

// StudentQuantile is the p-quantile of Student's t with df ≥ 1 degrees of freedom, 0 < p < 1, found by Newton's method,
// which bisection keeps inside its bracket.
func StudentQuantile(p, df float64) float64 {
	if !(p > 0 && p < 1) || !(df > 0) {
		return math.NaN()
	}
	if p < 0.5 {
		return -StudentQuantile(1-p, df)
	}
	lo, hi := 0.0, 2.0
	for StudentCDF(hi, df) < p && hi < 1e12 {
		lo, hi = hi, 2*hi
	}
	t := (lo + hi) / 2
	for range 100 {
		miss := StudentCDF(t, df) - p
		if miss < 0 {
			lo = t
		} else {
			hi = t
		}
		next := t - miss/studentDensity(t, df)
		if !(next > lo && next < hi) {
			next = (lo + hi) / 2
		}
		if math.Abs(next-t) <= 1e-15*t {
			return next
		}
		t = next
	}
	return t
}

// studentDensity is the density of Student's t with df degrees of freedom.
func studentDensity(t, df float64) float64 {
	a, _ := math.Lgamma((df + 1) / 2)
	b, _ := math.Lgamma(df / 2)
	return math.Exp(a-b-(df+1)/2*math.Log1p(t*t/df)) / math.Sqrt(df*math.Pi)
}

// Beta is the regularized incomplete beta function I_x(a, b), by its continued fraction (DLMF 8.17.22) with the
// modified method of Lentz.
func Beta(a, b, x float64) float64 {
	switch {
	case !(x > 0):
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2):
		return 1 - Beta(b, a, 1-x)
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(lab-la-lb+a*math.Log(x)+b*math.Log1p(-x)) / a
	return front * betaFraction(a, b, x)
}

func betaFraction(a, b, x float64) float64 {
	const tiny, eps = 1e-300, 1e-15
	f, c, d := 1.0, 1.0, 0.0
	for i := range 20_000 {
		m := float64(i / 2)
		num := 1.0
		switch {
		case i == 0:
		case i%2 == 0:
			num = m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		default:
			num = -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		}
		if d = 1 + num*d; math.Abs(d) < tiny {
			d = tiny
		}
		d = 1 / d
		if c = 1 + num/c; math.Abs(c) < tiny {
			c = tiny
		}
		f *= c * d
		if i > 0 && math.Abs(1-c*d) < eps {
			break
		}
	}
	// Lentz starts from 1 + 1/(1 + …); the fraction wanted is 1/(1 + …).
	return f - 1
}

// NormalCDF is the probability that a standard normal variable is at most z.
func NormalCDF(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// NormalQuantile is the p-quantile of the standard normal distribution, 0 < p < 1; NaN outside.
func NormalQuantile(p float64) float64 {
	if !(p > 0 && p < 1) {
		return math.NaN()
	}
	// The lower tail is the one that floating point resolves.
	if p > 0.5 {
		return -NormalQuantile(1 - p)
	}
	return -math.Sqrt2 * math.Erfcinv(2*p)
}
