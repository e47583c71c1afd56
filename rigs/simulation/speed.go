package simulation

import (
	"math"
	"math/rand/v2"
)

// speed is what makes a call take longer than usual.
type speed struct {
	rng *rand.Rand
	// knee, slope and worst are those of a service that slows down with the calls inside, or with those in service.
	knee, slope, worst float64
	byConcurrency      bool
	// coldCalls and coldUntil are how long it is slower by coldFactor.
	coldCalls, coldSeconds, coldFactor float64
	served                             float64
	first                              float64
	begun                              bool
	scale                              scale
	credit                             credit
	near                               neighbour
	driftPeriod, driftShare            float64
}

// scale is a server that gets faster by factor once it was busy for after seconds.
type scale struct {
	after, factor      float64
	hot, busy, at, end float64
	scaled             bool
}

// credit is a balance of work: without any, the server is slower by factor.
type credit struct{ most, factor, balance, at float64 }

// neighbour takes time away in bouts.
type neighbour struct{ every, length, factor, begin, end float64 }

// factor is how many times the usual a call takes that begins at t.
func (s *speed) factor(t float64, q *station) float64 {
	f := 1.0
	if s.worst > 0 {
		n := float64(q.busy)
		if !s.byConcurrency {
			n += float64(q.live)
		}
		f *= min(s.worst, 1+s.slope*max(0, n-s.knee))
	}
	if s.coldFactor > 0 {
		f *= s.cold(t)
	}
	if s.scale.factor > 0 {
		s.watch(t, q)
		if !s.scale.scaled {
			f *= s.scale.factor
		}
	}
	if c := &s.credit; c.factor > 0 {
		c.balance = min(c.most, c.balance+(t-c.at)*float64(q.workers)/c.factor)
		c.at = t
		if c.balance <= 0 {
			f *= c.factor
		}
	}
	if s.near.factor > 0 {
		f *= s.near.at(t, s.rng)
	}
	if s.driftPeriod > 0 {
		f *= 1 + s.driftShare*math.Sin(2*math.Pi*t/s.driftPeriod)
	}
	return f
}

func (s *speed) cold(t float64) float64 {
	if !s.begun {
		s.begun, s.first = true, t
	}
	s.served++
	if s.served <= s.coldCalls || t-s.first < s.coldSeconds {
		return s.coldFactor
	}
	return 1
}

// spent takes work from the credits: as much as it is at full speed.
func (s *speed) spent(need float64) {
	if c := &s.credit; c.factor > 0 {
		if c.balance <= 0 {
			need /= c.factor
		}
		c.balance -= need
	}
}

// watch adds up the time in which more than half of the workers are busy.
func (s *speed) watch(t float64, q *station) {
	x := &s.scale
	if x.factor <= 0 || x.scaled {
		return
	}
	if x.end == 0 {
		x.at, x.end = t, t+1
	}
	for t >= x.end {
		x.busy += (x.end - x.at) * float64(q.busy)
		if x.busy > 0.5*float64(q.workers) {
			x.hot++
		} else {
			x.hot = max(0, x.hot-1)
		}
		x.busy, x.at, x.end = 0, x.end, x.end+1
	}
	x.busy += (t - x.at) * float64(q.busy)
	x.at = t
	x.scaled = x.hot >= x.after
}

func (n *neighbour) at(t float64, rng *rand.Rand) float64 {
	for t >= n.end {
		n.begin = n.end + n.every*rng.ExpFloat64()
		n.end = n.begin + n.length*(0.5+rng.Float64())
	}
	if t >= n.begin {
		return n.factor
	}
	return 1
}

// warm is after long load.
func (s *speed) warm() {
	s.served, s.begun, s.first = s.coldCalls, true, -s.coldSeconds
	s.scale.scaled = true
	s.credit.balance = 0
}
