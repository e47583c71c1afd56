package simulation

import (
	"math"
	"math/rand/v2"

	"tare/internal/capacity"
)

// World is the composed server with its client, cold.
func (c Composition) World() *World {
	return &World{server: c.server(), timeout: c.timeout(), maxConns: c.Options().MaxConns, maxRate: c.MaxRate}
}

// Options are what the search should be called with.
func (c Composition) Options() capacity.Options {
	return capacity.Options{MaxRate: c.MaxRate, Timeout: c.timeout()}.Defaults()
}

// server puts the parts together.
func (c Composition) server() *composed {
	s := &composed{
		composition: c, rng: rand.New(rand.NewPCG(c.Seed, 0x636f6d706f736564)), refused: make([]int, len(c.Parts)+1),
	}
	work := Part{With: map[string]float64{"workers": math.MaxInt32}}
	if p, ok := c.part(service); ok {
		work = p
	}
	s.queue = newStation(s, whole(work.With["workers"]), s.times(work, work.With["mean"]), s.served)
	s.queue.abandoned = boolean(work.With["abandoned"])
	s.queue.speed.rng = s.rng
	for i, p := range c.Parts {
		mechanisms[p.Kind].add(s, i, p)
	}
	return s
}

// times draws service times with that mean.
func (s *composed) times(p Part, mean float64) func() float64 {
	rng, spread := s.rng, p.With["spread"]
	switch p.Distribution {
	case exponentialTime:
		return func() float64 { return mean * rng.ExpFloat64() }
	case logNormalTime:
		if spread == 0 {
			spread = 0.5
		}
		return func() float64 { return mean * math.Exp(spread*rng.NormFloat64()-spread*spread/2) }
	case bimodalTime: // one in ten takes spread times as long as the others
		if spread == 0 {
			spread = 10
		}
		short := mean / (0.9 + 0.1*spread)
		return func() float64 {
			if rng.IntN(10) == 0 {
				return spread * short
			}
			return short
		}
	default:
		return func() float64 { return mean * (1 + 0.02*(2*rng.Float64()-1)) }
	}
}
