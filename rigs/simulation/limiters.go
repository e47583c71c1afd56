package simulation

import (
	"math"

	"tare/internal/load"
)

// bucket takes calls while it has tokens: rate a second flow in, up to burst. Other calls are rejected, or never
// answered.
type bucket struct {
	latency             latency
	rate, burst, tokens float64
	last                float64
	hang                bool
}

func (s *bucket) decide(t float64) answer {
	s.tokens = math.Min(s.burst, s.tokens+(t-s.last)*s.rate)
	s.last = t
	switch {
	case s.tokens >= 1:
		s.tokens--
		return ok(t + s.latency.draw())
	case s.hang:
		return answer{done: math.Inf(1)}
	}
	return rejected(t + 0.3*s.latency.draw())
}

// lumps is a token bucket that is filled in lumps: per every period, up to burst. With burst = per it is a fixed
// window.
type lumps struct {
	latency     latency
	per, burst  float64
	period      float64
	offset      float64
	tokens      float64
	window      float64
	initialized bool
}

func (s *lumps) decide(t float64) answer {
	k := math.Floor((t + s.offset) / s.period)
	if !s.initialized {
		s.initialized, s.window, s.tokens = true, k, s.burst
	}
	s.tokens = math.Min(s.burst, s.tokens+(k-s.window)*s.per)
	s.window = k
	if s.tokens >= 1 {
		s.tokens--
		return ok(t + s.latency.draw())
	}
	return rejected(t + 0.3*s.latency.draw())
}

// slidingLog takes at most n calls in any period.
type slidingLog struct {
	latency latency
	n       int
	period  float64
	taken   []float64
}

func (s *slidingLog) decide(t float64) answer {
	for len(s.taken) > 0 && s.taken[0] <= t-s.period {
		s.taken = s.taken[1:]
	}
	if len(s.taken) < s.n {
		s.taken = append(s.taken, t)
		return ok(t + s.latency.draw())
	}
	return rejected(t + 0.3*s.latency.draw())
}

// slidingCounter estimates the calls in the last period from two fixed windows, as large gateways do.
type slidingCounter struct {
	latency   latency
	n, period float64
	window    float64
	now, past float64
}

func (s *slidingCounter) decide(t float64) answer {
	k := math.Floor(t / s.period)
	switch {
	case k == s.window+1:
		s.past, s.now = s.now, 0
	case k > s.window+1:
		s.past, s.now = 0, 0
	}
	s.window = k
	if s.now+s.past*(1-(t/s.period-k)) < s.n {
		s.now++
		return ok(t + s.latency.draw())
	}
	return rejected(t + 0.3*s.latency.draw())
}

// gcra is the generic cell rate algorithm: the theoretical arrival time may be up to tolerance ahead.
type gcra struct {
	latency        latency
	gap, tolerance float64
	theoretical    float64
	// wait until the theoretical time instead of answering at once, as nginx limit_req does without nodelay
	delay           bool
	rejectionStatus uint16
}

func (s *gcra) decide(t float64) answer {
	tat := math.Max(t, s.theoretical)
	if tat-t > s.tolerance {
		return answer{done: t + 0.3*s.latency.draw(), outcome: load.Refused, status: s.rejectionStatus}
	}
	s.theoretical = tat + s.gap
	if s.delay {
		return ok(tat + s.latency.draw())
	}
	return ok(t + s.latency.draw())
}

// both takes a call only when two buckets have a token for it: a fast one with a small burst and a slow one with a
// large one.
type both struct {
	latency latency
	a, b    bucket
}

func (s *both) decide(t float64) answer {
	for _, x := range []*bucket{&s.a, &s.b} {
		x.tokens = math.Min(x.burst, x.tokens+(t-x.last)*x.rate)
		x.last = t
	}
	if s.a.tokens >= 1 && s.b.tokens >= 1 {
		s.a.tokens--
		s.b.tokens--
		return ok(t + s.latency.draw())
	}
	return rejected(t + 0.3*s.latency.draw())
}

// inFlight rejects calls while n are being served, each for a time that service draws.
type inFlight struct {
	n       int
	service func() float64
	busy    instants
}

func (s *inFlight) decide(t float64) answer {
	if s.busy.until(t) >= s.n {
		return answer{done: t + 0.0003, outcome: load.Refused, status: 503}
	}
	done := t + s.service()
	s.busy.add(done)
	return ok(done)
}

// shaper is a token bucket in which a call that finds no token reserves the next and waits for it.
type shaper struct {
	latency             latency
	rate, burst, tokens float64
	last                float64
}

func (s *shaper) decide(t float64) answer {
	s.tokens = math.Min(s.burst, s.tokens+(t-s.last)*s.rate) - 1
	s.last = t
	return ok(t + math.Max(0, -s.tokens/s.rate) + s.latency.draw())
}
