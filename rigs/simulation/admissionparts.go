package simulation

import (
	"tare/internal/load"
	"tare/internal/signature"
)

// admissionParts are what refuses calls by itself.
func admissionParts() map[PartKind]mechanism {
	bucketed, hangs := []signature.Class{signature.TokenBucket}, []signature.Class{signature.QuotaHang}
	slides := hanging([]signature.Class{signature.TokenBucket, signature.FixedWindow}, hangs)
	punishes := hanging([]signature.Class{signature.Penalty}, []signature.Class{signature.Penalty, signature.QuotaHang})
	limiting := func(ruled func(*composed, map[string]float64) rule) func(*composed, int, Part) {
		return func(s *composed, i int, p Part) {
			s.limiters = append(s.limiters, &limiter{
				rule: ruled(s, p.With), part: i, refusal: p.Refusal, perClient: boolean(p.With["per_client"]),
			})
		}
	}
	return map[PartKind]mechanism{
		tokenBucket: {
			numbers: "rate burst ? per_client", allows: perRate, limits: true, classes: hanging(bucketed, hangs),
			add: limiting(func(_ *composed, x map[string]float64) rule {
				return &bucket{rate: x["rate"], burst: max(1, x["burst"]), tokens: max(1, x["burst"])}
			}),
		},
		cellRate: {
			numbers: "rate tolerance ? per_client", allows: perRate, limits: true, classes: hanging(bucketed, hangs),
			add: limiting(func(_ *composed, x map[string]float64) rule {
				return &gcra{gap: 1 / x["rate"], tolerance: x["tolerance"]}
			}),
		},
		fixedWindow: {
			numbers: "calls period ? per_client", allows: perPeriod, limits: true,
			classes: hanging([]signature.Class{signature.FixedWindow}, hangs),
			add: limiting(func(s *composed, x map[string]float64) rule {
				return &lumps{per: x["calls"], burst: x["calls"], period: x["period"], offset: x["period"] * s.rng.Float64()}
			}),
		},
		slidingWindow: {
			numbers: "calls period ? per_client", allows: perPeriod, limits: true, classes: slides,
			add: limiting(func(_ *composed, x map[string]float64) rule {
				return &slidingLog{n: whole(x["calls"]), period: x["period"]}
			}),
		},
		slidingEstimate: {
			numbers: "calls period ? per_client", allows: perPeriod, limits: true, classes: slides,
			add: limiting(func(_ *composed, x map[string]float64) rule {
				return &slidingCounter{n: x["calls"], period: x["period"], window: -2}
			}),
		},
		penalty: {
			numbers: "calls period ? per_client", allows: perPeriod, limits: true, classes: punishes,
			add: limiting(func(_ *composed, x map[string]float64) rule {
				return &punished{slidingCounter{n: x["calls"], period: x["period"], window: -2}}
			}),
		},
		concurrency: {
			numbers: "limit ? per_client", limits: true, classes: concurrent,
			allows: func(c Composition, x map[string]float64) float64 { return x["limit"] / max(1e-4, c.held()) },
			add: func(s *composed, i int, p Part) {
				s.limits = append(s.limits, &limiter{
					limit: whole(p.With["limit"]), part: i, refusal: p.Refusal, perClient: boolean(p.With["per_client"]),
				})
			},
		},
		dependencyQuota: {
			numbers: "rate burst", allows: perRate, limits: true, classes: fixed(signature.TokenBucket),
			add: func(s *composed, i int, p Part) {
				x := p.With
				s.quota = &limiter{rule: &bucket{rate: x["rate"], burst: max(1, x["burst"]), tokens: max(1, x["burst"])}, part: i}
			},
		},
		tarpit: {numbers: "delay", harmless: true, add: func(s *composed, _ int, p Part) { s.tarpit = p.With["delay"] }},
	}
}

// concurrent are the classes of a limit on calls at once. Where the service is what is too slow, it bounds the queue
// before it.
func concurrent(v view, i int) []signature.Class {
	classes := []signature.Class{signature.ConcurrencyLimit}
	if !v.bindsPart(i) {
		classes = append(classes, signature.Shedding)
	}
	if v.composition.Parts[i].Refusal == refuseSilent {
		classes = append(classes, signature.QuotaHang)
	}
	return classes
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
