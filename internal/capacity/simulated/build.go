package simulated

import (
	"math"
	"math/rand/v2"
	"time"

	"tare/internal/capacity"
	"tare/internal/load"
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
		s.add(i, p)
	}
	return s
}

func (s *composed) add(i int, p Part) {
	x := p.With
	if r := s.rule(p); r != nil {
		s.limiters = append(s.limiters, &limiter{rule: r, part: i, refusal: p.Refusal, perClient: boolean(x["per_client"])})
		return
	}
	switch p.Kind {
	case concurrency:
		s.limits = append(s.limits, &limiter{limit: whole(x["limit"]), part: i, refusal: p.Refusal, perClient: boolean(x["per_client"])})
	case tarpit:
		s.tarpit = x["delay"]
	case errorShare:
		s.errors = x["share"]
	case jitter:
		s.jitter = x["most"]
	case dependency:
		n := x["workers"]
		s.behind = newStation(s, whole(n), s.times(p, n/x["rate"]), s.done)
	case dependencyQuota:
		s.quota = &limiter{rule: &bucket{rate: x["rate"], burst: x["burst"], tokens: x["burst"]}, part: i}
	case acceptLimit, connectionLimit, handshake:
		s.entrance.add(i, p)
	case stopsForGood, crash:
		s.memory.add(i, p)
		s.queue.policy.watched = true
	case cpuQuota, pauses:
		s.queue.clock = s.stalls(p)
	case shedByAge, shedByLength, earlyDrop, lastInFirstOut:
		s.queue.policy.add(i, p)
	default:
		s.queue.speed.add(p)
	}
}

func (e *entrance) add(i int, p Part) {
	x := p.With
	switch p.Kind {
	case acceptLimit:
		e.accept = &acceptQueue{slots: whole(x["slots"]), backlog: whole(x["backlog"]), part: i, waited: map[*conn]struct{}{}}
	case connectionLimit:
		e.limit, e.limitPart = whole(x["limit"]), i
	default:
		e.handshake = x["cost"]
	}
}

func (m *memory) add(i int, p Part) {
	x := p.With
	if p.Kind == stopsForGood {
		m.stopAt, m.stopPart, m.refusesWhenDead = whole(x["length"]), i, boolean(x["refuses"])
		return
	}
	m.crashAt, m.crashPart, m.down = whole(x["length"]), i, instant(x["down"])
}

func (q *policy) add(i int, p Part) {
	x, says := p.With, p.Refusal
	if says == "" {
		says = refuse503
	}
	switch p.Kind {
	case shedByAge:
		q.age, q.agePart, q.ageSays = max(time.Millisecond, instant(x["age"])), i, says
	case shedByLength:
		q.length, q.lengthPart, q.lengthSays = max(1, whole(x["length"])), i, says
	case earlyDrop:
		q.low, q.high, q.dropPart, q.dropSays = x["low"], max(x["high"], x["low"]+1), i, says
	default:
		q.lifo = max(1, whole(x["length"]))
	}
}

func (s *speed) add(p Part) {
	x := p.With
	switch p.Kind {
	case slower:
		s.knee, s.slope, s.worst, s.byConcurrency = x["knee"], x["slope"], x["worst"], boolean(x["by_concurrency"])
	case coldCount:
		s.coldCalls, s.coldFactor = x["calls"], x["factor"]
	case coldTime:
		s.coldSeconds, s.coldFactor = x["seconds"], x["factor"]
	case autoscaling:
		s.scale = scale{after: x["after"], factor: x["factor"]}
	case credits:
		s.credit = credit{most: x["seconds"], factor: x["factor"], balance: x["seconds"]}
	case neighbours:
		s.near = neighbour{every: x["every"], length: x["length"], factor: x["factor"]}
	case drift:
		s.driftPeriod, s.driftShare = x["period"], x["share"]
	default:
	}
}

// rule is what decides each call of a limiter when it arrives; nil for other parts.
func (s *composed) rule(p Part) rule {
	x := p.With
	switch p.Kind {
	case tokenBucket:
		return &bucket{rate: x["rate"], burst: max(1, x["burst"]), tokens: max(1, x["burst"])}
	case cellRate:
		return &gcra{gap: 1 / x["rate"], tolerance: x["tolerance"]}
	case fixedWindow:
		return &lumps{per: x["calls"], burst: x["calls"], period: x["period"], offset: x["period"] * s.rng.Float64()}
	case slidingWindow:
		return &slidingLog{n: whole(x["calls"]), period: x["period"]}
	case slidingEstimate:
		return &slidingCounter{n: x["calls"], period: x["period"], window: -2}
	case penalty:
		return &punished{slidingCounter{n: x["calls"], period: x["period"], window: -2}}
	default:
		return nil
	}
}

// punished is a sliding counter in which refused calls count as well.
type punished struct{ slidingCounter }

func (s *punished) decide(t float64) answer {
	a := s.slidingCounter.decide(t)
	if a.outcome != load.OK {
		s.now++
	}
	return a
}

// stalls is the work clock of a part that makes all workers stand still.
func (s *composed) stalls(p Part) *workClock {
	x := p.With
	if p.Kind == cpuQuota {
		workers := float64(s.queue.workers)
		c := &workClock{period: x["period"], quota: x["share"] * x["period"] * workers}
		c.end, c.left = x["period"]*s.rng.Float64(), c.quota
		return c
	}
	c := &workClock{every: x["every"], length: x["length"], growth: x["growth"], vary: func() float64 { return 0.7 + 0.6*s.rng.Float64() }}
	c.next = c.every * s.rng.Float64()
	return c
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
