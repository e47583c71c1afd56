package stat

import (
	"math"
	"math/rand/v2"
	"slices"
)

// mostCorrelation bounds the autocorrelation of residuals: at 1 their variance would have no bound.
const mostCorrelation = 0.98

// half returns half the width of an interval for l, and the autocorrelation and block length used.
func (s *series) half(l *linear, o *DriftOptions) (half, correlation float64, block int) {
	n := float64(len(l.residual))
	lags := s.lags()
	phi, ok := autocorrelation(l.residual, lags, l.parameters)
	if !ok {
		return 0, 0, 1 // the values lie on the line
	}
	u, g := whiten(l.residual, l.c, lags, phi)
	block = int(math.Ceil(BlockLength(u)))
	draws := resample(u, g, block, o)
	p := (1 + o.Level) / 2
	half = (selectQuantile(draws, p) - selectQuantile(draws, 1-p)) / 2
	effective := n
	if phi > 0 {
		effective = n * (1 - phi) / (1 + phi)
	}
	k := float64(l.parameters)
	half *= math.Sqrt(n / (n - k - 1)) // residuals are smaller than the noise
	return half * StudentQuantile(p, max(effective-k, 2)) / NormalQuantile(p), phi, block
}

// lags returns how many steps each value follows the previous one; 0 at the beginning of a stretch.
func (s *series) lags() []int {
	var steps []float64
	for i := 1; i < len(s.t); i++ {
		if s.stretch[i] == s.stretch[i-1] {
			steps = append(steps, s.t[i]-s.t[i-1])
		}
	}
	step, out := Median(steps), make([]int, len(s.t))
	for i := 1; i < len(s.t); i++ {
		if s.stretch[i] == s.stretch[i-1] {
			out[i] = int(min(max(1, math.Round((s.t[i]-s.t[i-1])/step)), math.MaxInt32))
		}
	}
	return out
}

// autocorrelation returns the autocorrelation of neighbouring residuals. The estimate from residuals of a model with k
// parameters is too small by about (k + (k+2)·φ)/n: 1+3φ for a mean (Kendall 1954), 2+4φ for a trend (Andrews 1993,
// table for the linear trend). ok is false if the residuals are all 0.
func autocorrelation(residual []float64, lags []int, k int) (phi float64, ok bool) {
	var sum, squares, pairs float64
	for i, r := range residual {
		squares += r * r
		if lags[i] == 1 {
			sum += r * residual[i-1]
			pairs++
		}
	}
	if !(squares > 0) || math.IsInf(squares, 0) {
		return 0, false
	}
	n := float64(len(residual))
	if pairs == 0 {
		return 0, true
	}
	phi = sum * (n - 1) / pairs / squares
	phi = (n*phi + float64(k)) / (n - float64(k) - 2)
	return max(-mostCorrelation, min(mostCorrelation, phi)), true
}

// whiten removes the autocorrelation phi from the residuals. Noise u restores residuals that move the estimate by Σ
// gᵢ·uᵢ.
func whiten(residual, c []float64, lags []int, phi float64) (u, g []float64) {
	n := len(residual)
	u, g = make([]float64, n), make([]float64, n)
	next := 0.0 // how much a residual moves the estimate through its successors
	for i, r := range slices.Backward(residual) {
		share, scale := 0.0, 1/math.Sqrt(1-phi*phi)
		if lags[i] > 0 {
			share = math.Pow(phi, float64(lags[i]))
			scale *= math.Sqrt(1 - share*share)
			u[i] = (r - share*residual[i-1]) / scale
		} else {
			u[i] = r / scale
		}
		moved := c[i] + next
		g[i] = scale * moved
		next = share * moved
	}
	m := Mean(u)
	for i := range u {
		u[i] -= m
	}
	return u, g
}

// resample draws Σ gᵢ·u*ᵢ with noise u* of circular blocks of u (Politis & Romano 1992).
func resample(u, g []float64, block int, o *DriftOptions) []float64 {
	rng := rand.NewPCG(o.Seed, 0x9e3779b97f4a7c15)
	n := len(u)
	draws, circle := make([]float64, o.Replicates), slices.Concat(u, u)
	for d := range draws {
		sum := 0.0
		for i := 0; i < n; {
			k := int(rng.Uint64() >> 32 * uint64(n) >> 32) // uniform but for n/2³²
			moved := g[i:min(i+block, n)]
			noise := circle[k:][:len(moved)]
			for j, x := range moved {
				sum += x * noise[j]
			}
			i += len(moved)
		}
		draws[d] = sum
	}
	return draws
}

// BlockLength returns the block length, at least 1, with which the circular block bootstrap estimates the variance of
// the mean of u with the least mean squared error: (2·G²/D)^⅓·n^⅓ with G = Σ λ(k/M)·|k|·R(k), D = 4/3·(Σ λ(k/M)·R(k))²,
// R the autocovariances of u and λ the flat-top window of Politis & Romano. M is twice the lag after which 5
// autocorrelations in a row (more from about 10²⁵ values on) are below 2·√(log₁₀n/n). See Politis & White, Automatic
// Block-Length Selection for the Dependent Bootstrap, Econometric Reviews 23 (2004), as corrected by Patton, Politis &
// White, ibid. 28 (2009). It is at most min(3·√n, n/3), as they advise, and never NaN.
func BlockLength(u []float64) float64 {
	n := float64(len(u))
	most := math.Ceil(min(3*math.Sqrt(n), n/3))
	r := autocovariances(u)
	if len(u) < 3 || !(r[0] > 0) {
		return 1
	}
	m := window(r, len(u))
	g, spectrum := 0.0, r[0]
	for k := 1; k <= m && k < len(r); k++ {
		flat := min(1, 2*(1-float64(k)/float64(m)))
		g += 2 * flat * float64(k) * r[k]
		spectrum += 2 * flat * r[k]
	}
	b := math.Cbrt(2 * g * g / (4.0 / 3 * spectrum * spectrum) * n)
	if math.IsNaN(b) {
		return 1
	}
	return max(1, min(b, most))
}

// autocovariances returns the autocovariances of u, about its mean, up to the largest lag of a window.
func autocovariances(u []float64) []float64 {
	n := len(u)
	most := min(n-1, int(math.Ceil(math.Sqrt(float64(n))))+2*runOfSmall(n))
	m := Mean(u)
	out := make([]float64, max(0, most)+1)
	for k := range out {
		for i := k; i < n; i++ {
			out[k] += (u[i] - m) * (u[i-k] - m) / float64(n)
		}
	}
	return out
}

// runOfSmall returns how many autocorrelations in a row must be small.
func runOfSmall(n int) int {
	return max(5, int(math.Ceil(math.Sqrt(math.Log10(float64(max(n, 1)))))))
}

// window returns M, the largest lag that is used.
func window(r []float64, n int) int {
	run := runOfSmall(n)
	reach := int(math.Ceil(math.Sqrt(float64(n)))) + run
	small := 2 * math.Sqrt(math.Log10(float64(n))/float64(n))
	for m := 0; m <= reach; m++ {
		if !slices.ContainsFunc(r[min(m+1, len(r)):min(m+1+run, len(r))],
			func(v float64) bool { return math.Abs(v/r[0]) >= small }) {
			return min(2*max(m, 1), reach)
		}
	}
	return reach
}
