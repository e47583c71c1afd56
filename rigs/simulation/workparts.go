package simulation

import (
	"time"

	"tare/internal/signature"
)

// queueParts are what a server does with calls that wait.
func queueParts() map[PartKind]mechanism {
	policed := func(set func(q *policy, i int, x map[string]float64, says string)) func(*composed, int, Part) {
		return func(s *composed, i int, p Part) {
			says := p.Refusal
			if says == "" {
				says = refuse503
			}
			set(&s.queue.policy, i, p.With, says)
		}
	}
	shedding := func(classes ...signature.Class) func(view, int) []signature.Class {
		return func(v view, _ int) []signature.Class { return v.beside(classes...) }
	}
	falling := func(v view, _ int) []signature.Class { return append(v.waiting(), signature.Collapse) }
	return map[PartKind]mechanism{
		shedByAge: {
			numbers: "age", classes: shedding(signature.Shedding),
			add: policed(func(q *policy, i int, x map[string]float64, says string) {
				q.age, q.agePart, q.ageSays = max(time.Millisecond, instant(x["age"])), i, says
			}),
		},
		shedByLength: {
			numbers: "length", classes: shedding(signature.Shedding, signature.ConcurrencyLimit),
			add: policed(func(q *policy, i int, x map[string]float64, says string) {
				q.length, q.lengthPart, q.lengthSays = max(1, whole(x["length"])), i, says
			}),
		},
		earlyDrop: {
			numbers: "low high", classes: shedding(signature.Shedding, signature.ConcurrencyLimit),
			add: policed(func(q *policy, i int, x map[string]float64, says string) {
				q.low, q.high, q.dropPart, q.dropSays = x["low"], max(x["high"], x["low"]+1), i, says
			}),
		},
		lastInFirstOut: {
			numbers: "length", harmless: true,
			add: func(s *composed, _ int, p Part) { s.queue.policy.lifo = max(1, whole(p.With["length"])) },
		},
		stopsForever: {
			numbers: "length ? refuses", classes: falling,
			add: func(s *composed, i int, p Part) {
				m := &s.memory
				m.stopAt, m.stopPart, m.refusesWhenDead = max(1, whole(p.With["length"])), i, boolean(p.With["refuses"])
				s.queue.policy.watched = true
			},
		},
		crash: {
			numbers: "length down", classes: falling,
			add: func(s *composed, i int, p Part) {
				m := &s.memory
				m.crashAt, m.crashPart, m.down = max(1, whole(p.With["length"])), i, instant(p.With["down"])
				s.queue.policy.watched = true
			},
		},
	}
}

// serviceParts are what decides how long a call takes.
func serviceParts() map[PartKind]mechanism {
	speeding := func(set func(q *speed, x map[string]float64)) func(*composed, int, Part) {
		return func(s *composed, _ int, p Part) { set(s.queue.speed, p.With) }
	}
	return map[PartKind]mechanism{
		service: {
			numbers: "workers mean ? spread abandoned",
			allows:  func(c Composition, x map[string]float64) float64 { return x["workers"] / x["mean"] * c.share() },
			add:     func(*composed, int, Part) {}, // the queue before it is always there: see server
		},
		slower: {numbers: "knee slope worst ? by_concurrency", add: speeding(func(s *speed, x map[string]float64) {
			s.knee, s.slope, s.worst, s.byConcurrency = x["knee"], x["slope"], x["worst"], boolean(x["by_concurrency"])
		})},
		coldCount: {numbers: "calls factor", harmless: true, add: speeding(func(s *speed, x map[string]float64) {
			s.coldCalls, s.coldFactor = x["calls"], x["factor"]
		})},
		coldTime: {numbers: "seconds factor", harmless: true, add: speeding(func(s *speed, x map[string]float64) {
			s.coldSeconds, s.coldFactor = x["seconds"], x["factor"]
		})},
		autoscaling: {numbers: "after factor", harmless: true, add: speeding(func(s *speed, x map[string]float64) {
			s.scale = scale{after: x["after"], factor: x["factor"]}
		})},
		credits: {
			numbers: "seconds factor", share: func(x map[string]float64) float64 { return 1 / x["factor"] },
			add: speeding(func(s *speed, x map[string]float64) {
				s.credit = credit{most: x["seconds"], factor: x["factor"], balance: x["seconds"]}
			}),
		},
		cpuQuota: {
			numbers: "period share", share: func(x map[string]float64) float64 { return x["share"] },
			add: func(s *composed, _ int, p Part) {
				x := p.With
				c := &workClock{period: x["period"], quota: x["share"] * x["period"] * float64(s.queue.workers)}
				c.end, c.left = x["period"]*s.rng.Float64(), c.quota
				s.queue.clock = c
			},
		},
		pauses: {
			numbers: "every length growth",
			share:   func(x map[string]float64) float64 { return x["every"] / (x["every"] + x["length"]) },
			add: func(s *composed, _ int, p Part) {
				x := p.With
				c := &workClock{every: x["every"], length: x["length"], growth: x["growth"]}
				c.vary = func() float64 { return 0.7 + 0.6*s.rng.Float64() }
				c.next = c.every * s.rng.Float64()
				s.queue.clock = c
			},
		},
		dependency: {
			numbers: "rate workers ? spread", allows: perRate,
			add: func(s *composed, _ int, p Part) {
				n := p.With["workers"]
				s.behind = newStation(s, whole(n), s.times(p, n/p.With["rate"]), s.done)
			},
		},
	}
}

// noiseParts are what has nothing to do with the load.
func noiseParts() map[PartKind]mechanism {
	return map[PartKind]mechanism{
		errorShare: {numbers: "share", harmless: true, add: func(s *composed, _ int, p Part) { s.errors = p.With["share"] }},
		jitter:     {numbers: "most", harmless: true, add: func(s *composed, _ int, p Part) { s.jitter = p.With["most"] }},
		neighbours: {
			numbers: "every length factor",
			share: func(x map[string]float64) float64 {
				return 1 / (1 + (x["factor"]-1)*x["length"]/(x["every"]+x["length"]))
			},
			add: func(s *composed, _ int, p Part) {
				x := p.With
				s.queue.speed.near = neighbour{every: x["every"], length: x["length"], factor: x["factor"]}
			},
		},
		drift: {numbers: "period share", add: func(s *composed, _ int, p Part) {
			s.queue.speed.driftPeriod, s.queue.speed.driftShare = p.With["period"], p.With["share"]
		}},
	}
}
