package load

import (
	"math"
	"math/rand/v2"
	"time"
)

// Arrivals is an arrival process in progress. Next returns the next intended instant as an offset from the segment's
// start, never decreasing; ok is false after the last one.
type Arrivals interface {
	Next() (at time.Duration, ok bool)
}

// A Process describes an arrival process. Start may be called repeatedly and returns the same instants every time.
type Process interface {
	Start() Arrivals
	// Peak is the highest rate, in 1/s, that the process offers on average over any second.
	Peak() float64
	// Length is how long the process lasts.
	Length() time.Duration
}

// Constant offers Rate calls a second, evenly spaced, for Duration.
type Constant struct {
	Rate     float64
	Duration time.Duration
}

// Start implements Process.
func (c Constant) Start() Arrivals { return &constant{gap: 1e9 / c.Rate, n: count(c.Rate, c.Duration)} }

// Peak implements Process.
func (c Constant) Peak() float64 { return c.Rate }

// Length implements Process.
func (c Constant) Length() time.Duration { return c.Duration }

func count(rate float64, d time.Duration) int {
	return int(math.Ceil(rate*d.Seconds() - 1e-9))
}

type constant struct {
	gap  float64
	i, n int
}

func (c *constant) Next() (time.Duration, bool) {
	if c.i >= c.n {
		return 0, false
	}
	at := time.Duration(float64(c.i) * c.gap)
	c.i++
	return at, true
}

// Poisson offers calls at exponentially distributed intervals with mean 1/Rate, drawn from Seed.
type Poisson struct {
	Rate     float64
	Duration time.Duration
	Seed     uint64
}

// Start implements Process.
func (p Poisson) Start() Arrivals {
	return &poisson{p: p, rng: rand.New(rand.NewPCG(p.Seed, 0x9e3779b97f4a7c15))}
}

// Peak implements Process.
func (p Poisson) Peak() float64 { return p.Rate }

// Length implements Process.
func (p Poisson) Length() time.Duration { return p.Duration }

type poisson struct {
	p   Poisson
	rng *rand.Rand
	at  float64
}

func (p *poisson) Next() (time.Duration, bool) {
	p.at += p.rng.ExpFloat64() / p.p.Rate
	at := time.Duration(p.at * 1e9)
	return at, at < p.p.Duration
}

// Ramp offers a rate that changes linearly from From to To over Duration.
type Ramp struct {
	From, To float64
	Duration time.Duration
}

// Start implements Process.
func (r Ramp) Start() Arrivals { return &ramp{r: r} }

// Peak implements Process.
func (r Ramp) Peak() float64 { return max(r.From, r.To) }

// Length implements Process.
func (r Ramp) Length() time.Duration { return r.Duration }

type ramp struct {
	r Ramp
	i int
}

// Next solves i = From·t + (To−From)·t²/(2D) for t, in the form that stays exact when From = To.
func (r *ramp) Next() (time.Duration, bool) {
	d := r.r.Duration.Seconds()
	n := (r.r.From + r.r.To) / 2 * d
	if float64(r.i) >= n-1e-9 {
		return 0, false
	}
	slope := (r.r.To - r.r.From) / d
	i := float64(r.i)
	t := 0.0
	if root := r.r.From + math.Sqrt(max(0, r.r.From*r.r.From+2*slope*i)); root > 0 {
		t = 2 * i / root
	}
	r.i++
	return time.Duration(t * 1e9), true
}

// Alone offers Process from one of several callers that otherwise take turns: its calls have numbers that are multiples
// of Callers.
type Alone struct {
	Process

	Callers int
}

// Steps offers one process after another.
type Steps []Process

// Start implements Process.
func (s Steps) Start() Arrivals { return &steps{rest: s} }

// Peak implements Process.
func (s Steps) Peak() float64 {
	p := 0.0
	for _, x := range s {
		p = max(p, x.Peak())
	}
	return p
}

// Length implements Process.
func (s Steps) Length() time.Duration {
	var d time.Duration
	for _, x := range s {
		d += x.Length()
	}
	return d
}

type steps struct {
	rest  Steps
	now   Arrivals
	start time.Duration
}

func (s *steps) Next() (time.Duration, bool) {
	for len(s.rest) > 0 {
		if s.now == nil {
			s.now = s.rest[0].Start()
		}
		if at, ok := s.now.Next(); ok {
			return s.start + at, true
		}
		s.start += s.rest[0].Length()
		s.rest, s.now = s.rest[1:], nil
	}
	return 0, false
}

// Burst offers Calls calls evenly over Over, all at its first instant if Over is 0, and then nothing until Duration has
// passed since that instant: a thundering herd of pods, a node that restarts, caches that expire together.
type Burst struct {
	Calls    int
	Over     time.Duration
	Duration time.Duration // less than Over counts as Over
}

// Start implements Process.
func (b Burst) Start() Arrivals { return &burst{b: b} }

// Peak implements Process. Unlike for a steady process, it is the rate within the burst, however short, since that is
// the rate at the target: Calls/Over, +Inf if Over is 0.
func (b Burst) Peak() float64 {
	switch {
	case b.Calls <= 0:
		return 0
	case b.Over <= 0:
		return math.Inf(1)
	}
	return float64(b.Calls) / b.Over.Seconds()
}

// Length implements Process.
func (b Burst) Length() time.Duration { return max(0, b.Over, b.Duration) }

type burst struct {
	b Burst
	i int
}

func (b *burst) Next() (time.Duration, bool) {
	if b.i >= b.b.Calls {
		return 0, false
	}
	at := time.Duration(float64(b.i) / float64(b.b.Calls) * float64(max(0, b.b.Over)))
	b.i++
	return at, true
}

// mix draws operations by weight. The draw depends only on the seed and the call's number, so it is the same whatever
// the shards do.
type mix struct {
	seed  uint64
	upTo  []uint64 // cumulative weights
	total uint64
}

func newMix(ops []Operation, seed uint64) mix {
	m := mix{seed: seed}
	for _, o := range ops {
		m.total += uint64(o.Weight)
		m.upTo = append(m.upTo, m.total)
	}
	return m
}

func (m *mix) pick(i uint64) uint8 {
	if len(m.upTo) == 1 {
		return 0
	}
	x := splitmix(m.seed+i*0x9e3779b97f4a7c15) % m.total
	for k, u := range m.upTo {
		if x < u {
			return uint8(k)
		}
	}
	return 0
}

// splitmix is the finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
func splitmix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
