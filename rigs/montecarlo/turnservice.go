package montecarlo

import (
	"math"
	"math/rand/v2"
)

// TurnService is how long a call takes on a host that does nothing else, in seconds.
type TurnService struct {
	Name string
	draw func(r *rand.Rand) float64
}

// TurnServices are servers whose medians are compared.
func TurnServices() []TurnService {
	return []TurnService{
		{"77 µs", func(r *rand.Rand) float64 { return 77e-6 * math.Exp(0.15*r.NormFloat64()) }},
		{"2 ms", func(r *rand.Rand) float64 { return 2e-3 * math.Exp(0.3*r.NormFloat64()) }},
		{"1 or 2 ms", func(r *rand.Rand) float64 {
			return 1e-3 * float64(1+r.IntN(2)) * math.Exp(0.05*r.NormFloat64())
		}},
		{"heavy tail", func(r *rand.Rand) float64 { return 0.3e-3 * math.Exp(r.NormFloat64()) }},
	}
}

// slowPathService takes the slow path, of about 5 ms, with 3 % of its calls, so that its p99 lies on it.
func slowPathService() TurnService {
	return TurnService{"0.8 ms, 3 % of calls 5 ms", func(r *rand.Rand) float64 {
		if r.Float64() < 0.03 {
			return 5e-3 * math.Exp(0.1*r.NormFloat64())
		}
		return 0.8e-3 * math.Exp(0.3*r.NormFloat64())
	}}
}

// A change is what a treatment does to the time of a call.
type change func(r *rand.Rand, v float64) float64

func unchanged(_ *rand.Rand, v float64) float64 { return v }

// times makes every call longer by a factor.
func times(factor float64) change {
	return func(_ *rand.Rand, v float64) float64 { return factor * v }
}

// beyond makes the calls longer by a factor that take longer than a limit.
func beyond(limit, factor float64) change {
	return func(_ *rand.Rand, v float64) float64 {
		if v > limit {
			return factor * v
		}
		return v
	}
}

// sometimes makes a share of the calls longer by a factor.
func sometimes(part, factor float64) change {
	return func(r *rand.Rand, v float64) float64 {
		if r.Float64() < part {
			return factor * v
		}
		return v
	}
}
