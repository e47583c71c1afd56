package montecarlo

import (
	"math"
	"math/rand/v2"
)

// World is a kind of noise under which both arms of a comparison are measured.
type World struct {
	Name string
	// request is the latency of one call; z is a standard normal value, correlated along the block if Correlation says so.
	request     func(r *rand.Rand, z float64) float64
	correlation float64 // of the normal values of neighbouring calls
	drift       float64 // of the logarithm over the whole run, plus a random walk of a tenth of it for each trial
	common, own float64 // standard deviation of the block's logarithmic level: what both arms share, and each arm's own
	bursts      bool    // spells of slow calls, and trials that are slow as a whole
	slow        float64 // share of calls that only the treated arm sends down a slow path
}

func logNormal(sigma float64) func(*rand.Rand, float64) float64 {
	return func(_ *rand.Rand, z float64) float64 { return math.Exp(sigma * z) }
}

func pareto(shape float64) func(*rand.Rand, float64) float64 {
	return func(r *rand.Rand, _ float64) float64 { return math.Pow(1-r.Float64(), -1/shape) }
}

// Worlds are all kinds of noise.
func Worlds() []World {
	return []World{
		{Name: "lognormal σ 0.25", request: logNormal(0.25)},
		{Name: "heavy tail: Pareto 2.1", request: pareto(2.1)},
		{Name: "heavy tail: lognormal σ 1.5", request: logNormal(1.5)},
		{Name: "autocorrelation 0.9 within blocks", request: logNormal(0.25), correlation: 0.9},
		{Name: "drift of 30 % and random walk", request: logNormal(0.25), drift: 0.3},
		{Name: "block effects 10 % common, 2 % own", request: logNormal(0.25), common: 0.1, own: 0.02},
		{Name: "bursts of noise", request: logNormal(0.25), bursts: true},
		{Name: "all of these", request: logNormal(0.5), correlation: 0.9, drift: 0.3, common: 0.1, own: 0.02, bursts: true},
		{Name: "slow path for 2 % of treated calls", request: logNormal(0.25), slow: 0.02},
	}
}

const (
	effect   = 0.05 // the treated arm takes this much longer
	slowPath = 4.0  // times as long on the slow path
)

// run makes the calls of both arms in randomised blocks.
func (w World) run(r *rand.Rand, blocks, calls int) (base, treated [][]float64) {
	walk, trial := 0.0, 0
	for range blocks {
		shared := w.common * r.NormFloat64()
		var block [2][]float64
		first := r.IntN(2)
		for k := range 2 {
			arm := first ^ k
			level := shared + w.own*r.NormFloat64() + walk + w.drift*float64(trial)/float64(2*blocks)
			level += float64(arm) * math.Log1p(effect)
			block[arm] = w.trial(r, level, calls, float64(arm)*w.slow)
			walk += w.drift / 30 * r.NormFloat64()
			trial++
		}
		base, treated = append(base, block[0]), append(treated, block[1])
	}
	return base, treated
}

func (w World) trial(r *rand.Rand, level float64, calls int, slow float64) []float64 {
	if w.bursts && r.Float64() < 0.1 {
		level += 0.4
	}
	x := make([]float64, calls)
	z, on := r.NormFloat64(), false
	scale, fresh := math.Exp(level), math.Sqrt(1-w.correlation*w.correlation)
	for i := range x {
		z = w.correlation*z + fresh*r.NormFloat64()
		v := scale * w.request(r, z)
		if w.bursts {
			// About 2 % of calls are in a burst, three of them in a row.
			if on = r.Float64() < chance(on); on {
				v *= 0.5 + 1.5*math.Pow(1-r.Float64(), -1/2.2)
			}
		}
		if slow > 0 && r.Float64() < slow {
			v *= slowPath
		}
		x[i] = v
	}
	return x
}

// truth is the logarithm of the true ratio of the q-quantiles. Without a slow path both arms have one shape, and it is
// the effect; with one, the treated arm is a mixture of two lognormal distributions, whose quantile is found by
// bisection.
func (w World) truth(q float64) float64 {
	if w.slow == 0 {
		return math.Log1p(effect)
	}
	const sigma = 0.25
	cdf := func(x float64) float64 {
		return (1-w.slow)*normalCDF(x/sigma) + w.slow*normalCDF((x-math.Log(slowPath))/sigma)
	}
	return math.Log1p(effect) + solve(cdf, q) - solve(func(x float64) float64 { return normalCDF(x / sigma) }, q)
}

func normalCDF(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

func solve(rising func(float64) float64, y float64) float64 {
	lo, hi := -20.0, 20.0
	for range 80 {
		if mid := (lo + hi) / 2; rising(mid) < y {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}

// student is a value of Student's t with 3 degrees of freedom, divided by its standard deviation.
func student(r *rand.Rand) float64 {
	const df = 3
	sum := 0.0
	for range df {
		z := r.NormFloat64()
		sum += z * z
	}
	return r.NormFloat64() / math.Sqrt(sum/df) * math.Sqrt((df-2.0)/df)
}

// chance is that of the next call being in a burst.
func chance(on bool) float64 {
	if on {
		return 0.7
	}
	return 0.006
}
