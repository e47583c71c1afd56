package simulation

import (
	"math"
	"slices"

	"tare/internal/capacity"
	"tare/internal/signature"
)

func variantKinds() []Kind {
	kinds := slices.Concat(limiterVariants(), queueVariants(), oddities())
	for i := range kinds {
		kinds[i].Extra = true
	}
	return kinds
}

func limiterVariants() []Kind {
	return []Kind{
		{Name: "gcra", make: func(r *recipe) {
			gap := 1 / r.capacity
			r.is(open{rule: &gcra{latency: r.latency, gap: gap, tolerance: gap * r.uniform(0, 100), rejectionStatus: 429}},
				signature.TokenBucket)
		}},
		{Name: "leaky-queue", make: func(r *recipe) { // nginx limit_req with burst and delay
			gap := 1 / r.capacity
			r.is(open{rule: &gcra{
				latency: r.latency, gap: gap, tolerance: gap * (5 + r.uniform(0, 0.5)*r.capacity), delay: true,
				rejectionStatus: 503,
			}},
				signature.Shedding, signature.TokenBucket)
		}},
		{Name: "sliding-log", make: func(r *recipe) {
			p := []float64{0.5, 1, 2}[r.rng.IntN(3)]
			n := int(math.Round(r.capacity * p))
			r.truth.Capacity = float64(n) / p
			r.is(open{rule: &slidingLog{latency: r.latency, n: n, period: p}}, signature.TokenBucket, signature.FixedWindow)
		}},
		{Name: "sliding-counter", make: func(r *recipe) {
			p := []float64{1, 2, 5}[r.rng.IntN(3)]
			n := math.Round(r.capacity * p)
			r.truth.Capacity = n / p
			r.is(open{rule: &slidingCounter{latency: r.latency, n: n, period: p, window: -2}}, signature.TokenBucket,
				signature.FixedWindow)
		}},
		{Name: "envoy-local", make: func(r *recipe) { // a bucket filled once a second
			n := math.Round(r.capacity)
			r.truth.Capacity = n
			r.is(open{rule: &lumps{
				latency: r.latency, per: n, burst: math.Round(n * r.uniform(1, 3)), period: 1,
				offset: r.uniform(0, 1),
			}},
				signature.FixedWindow, signature.TokenBucket)
		}},
		{Name: "two-level-bucket", make: func(r *recipe) {
			fast := bucket{rate: 1.5 * r.capacity, burst: 0.3 * r.capacity, tokens: 0.3 * r.capacity}
			n := r.capacity * r.uniform(1, 5)
			r.is(open{rule: &both{latency: r.latency, a: fast, b: bucket{rate: r.capacity, burst: n, tokens: n}}},
				signature.TokenBucket)
		}},
		{Name: "long-window", make: func(r *recipe) { // a quota per 20 s
			r.capacity = between(r.rng, 20, 100)
			n := math.Round(r.capacity * 20)
			r.truth.Capacity = n / 20
			r.is(open{rule: &lumps{latency: r.latency, per: n, burst: n, period: 20, offset: r.uniform(0, 20)}},
				signature.FixedWindow)
		}},
	}
}

func queueVariants() []Kind {
	return []Kind{
		{Name: "bounded-queue", make: func(r *recipe) { // M/M/c/K
			c := 1 + r.rng.IntN(8)
			l := r.line(c, 0.3)
			l.room = c + 10 + r.rng.IntN(100)
			r.is(open{rule: l}, signature.Shedding, signature.ConcurrencyLimit)
		}},
		{Name: "in-flight-503", make: func(r *recipe) {
			n := 10 + r.rng.IntN(90)
			d, rng := float64(n)/r.capacity, r.latency.rng
			r.is(open{rule: &inFlight{n: n, service: func() float64 { return d * (0.9 + 0.2*rng.Float64()) }}},
				signature.ConcurrencyLimit)
		}},
		{Name: "processor-sharing", make: func(r *recipe) {
			rng := r.latency.rng
			r.is(&sharing{rate: r.capacity, work: func() float64 { return 0.5 + rng.Float64() }}, signature.Queue,
				signature.Collapse, signature.Unknown)
		}},
		{Name: "shaper", make: func(r *recipe) { // a token bucket whose excess waits instead of being rejected
			b := r.capacity * r.uniform(0.05, 1.5)
			r.is(open{rule: &shaper{latency: r.latency, rate: r.capacity, burst: b, tokens: b}}, signature.Queue)
		}},
		{Name: "mmc", make: func(r *recipe) { r.is(open{rule: r.line(2+r.rng.IntN(15), 1)}, signature.Queue) }},
		{Name: "short-timeout", make: func(r *recipe) {
			r.options.Timeout = 2e9
			r.is(open{rule: r.line(1+r.rng.IntN(8), 0.1)}, signature.Queue, signature.Collapse)
		}},
	}
}

func oddities() []Kind {
	return []Kind{
		{Name: "errors-1%-bucket", make: func(r *recipe) {
			r.is(open{rule: faulty{next: r.bucket(1+r.capacity*r.rng.Float64(), false), rng: r.latency.rng, share: 0.01}},
				signature.TokenBucket)
		}},
		{Name: "errors-1%-queue", make: func(r *recipe) {
			r.is(open{rule: faulty{next: r.line(1+r.rng.IntN(8), 0.02), rng: r.latency.rng, share: 0.01}}, signature.Queue)
		}},
		{Name: "errors-20%-queue", make: func(r *recipe) {
			r.is(open{rule: faulty{next: r.line(1+r.rng.IntN(8), 0.02), rng: r.latency.rng, share: 0.2}}, signature.Queue)
		}},
		{Name: "cold-start", make: func(r *recipe) {
			l := r.line(1+r.rng.IntN(4), 0.02)
			warm, until := l.service, r.uniform(1, 5)
			l.service = func(t float64) float64 {
				if t < until {
					return max(warm(t), until-t)
				}
				return warm(t)
			}
			r.is(open{rule: l}, signature.Queue)
		}},
		{Name: "slow", make: func(r *recipe) {
			r.capacity = between(r.rng, 1.5, 8)
			r.truth.Capacity = r.capacity
			r.is(open{rule: r.line(1+r.rng.IntN(3), 0.02)}, signature.Queue)
		}},
		{Name: "slow-bucket", make: func(r *recipe) {
			r.capacity = between(r.rng, 1.5, 8)
			r.truth.Capacity = r.capacity
			r.is(open{rule: r.bucket(1+r.rng.Float64()*5, false)}, signature.TokenBucket)
		}},
		{Name: "long-latency", make: func(r *recipe) { // three seconds for each call, and no limit
			r.options.MaxRate = 500
			r.truth.Capacity, r.truth.Stop = 0, capacity.StopMaxRate
			r.latency.median = 2.5
			r.is(open{rule: instantly{r.latency}})
		}},
		{Name: "fast-queue", make: func(r *recipe) {
			r.capacity = between(r.rng, 20_000, 40_000)
			r.truth.Capacity, r.options.MaxRate = r.capacity, 100_000
			r.latency.median = 0.0003
			r.is(open{rule: r.line(4, 0.1)}, signature.Queue)
		}},
		{Name: "dead", make: func(r *recipe) {
			r.truth.Capacity, r.truth.Stop = 0, capacity.StopNoAnswer
			if r.rng.IntN(2) == 0 {
				r.is(open{rule: never{}})
				return
			}
			r.is(open{rule: faulty{next: instantly{r.latency}, rng: r.latency.rng, share: 1}})
		}},
		{Name: "mostly-failing", make: func(r *recipe) {
			r.truth.Capacity, r.truth.Stop = 0, capacity.StopFailing
			r.is(open{rule: faulty{next: instantly{r.latency}, rng: r.latency.rng, share: 0.8, free: true}})
		}},
	}
}
