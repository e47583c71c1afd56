package simulation

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"tare/internal/capacity"
	"tare/rigs/hosttest"
)

// perCaller decides the calls of each caller by a rule of its own.
type perCaller []open

func (s perCaller) dial(w *World, c *conn)            { s[0].dial(w, c) }
func (s perCaller) request(w *World, j *job, c *conn) { s[j.caller].request(w, j, c) }
func (s perCaller) hangup(*World, *conn)              {}
func each(callers int, rule func() rule) (out perCaller) {
	for range callers {
		out = append(out, open{rule: rule()})
	}
	return out
}

// TestLimitOwnerIsNamed: the same limits, of each caller or of all together. No sentence may be false; most must be
// printed.
func TestLimitOwnerIsNamed(t *testing.T) {
	hosttest.SkipIfShort(t)
	limits := map[string]func(rng *rand.Rand, rate float64) rule{
		"token-bucket": func(rng *rand.Rand, rate float64) rule {
			burst := 1 + rate*2*rng.Float64()
			return &bucket{rate: rate, burst: burst, tokens: burst, latency: latency{rng: rng, median: 0.003}}
		},
		"gcra": func(rng *rand.Rand, rate float64) rule {
			return &gcra{gap: 1 / rate, tolerance: 10 / rate, rejectionStatus: 429, latency: latency{rng: rng, median: 0.003}}
		},
		"fixed-window": func(rng *rand.Rand, rate float64) rule {
			return &lumps{per: rate, burst: rate, period: 1, offset: rng.Float64(), latency: latency{rng: rng, median: 0.003}}
		},
		"sliding-log": func(rng *rand.Rand, rate float64) rule {
			return &slidingLog{n: int(rate), period: 1, latency: latency{rng: rng, median: 0.003}}
		},
	}
	const seeds = 6
	for name, limit := range limits {
		for _, callers := range []int{2, 4, 20} {
			for kind, groups := range map[capacity.FindingKind]int{capacity.LimitPerCaller: callers, capacity.LimitShared: 1} {
				t.Run(fmt.Sprintf("%s/%d/%s", name, callers, kind), func(t *testing.T) {
					t.Parallel()
					said := 0
					for seed := range seeds {
						rng := rand.New(rand.NewPCG(uint64(seed), 11))
						share := float64(int(between(rng, 10, 100)))
						o := capacity.Options{MaxRate: 20_000, Callers: callers}.Defaults()
						servers := each(groups, func() rule { return limit(rng, share*float64(callers/groups)) })
						w := &World{server: servers, callers: groups, timeout: o.Timeout, maxConns: o.MaxConns, maxRate: o.MaxRate}
						trace, err := capacity.Search(t.Context(), w, o, nil)
						if err != nil {
							t.Fatal(err)
						}
						for _, f := range capacity.Assess(trace).Findings {
							whose := f.Kind == capacity.LimitPerCaller || f.Kind == capacity.LimitShared
							if whose && f.Kind != kind {
								t.Errorf("seed %d: %s", seed, f.Sentence)
							} else if whose {
								said++
							}
						}
					}
					if said < seeds*2/3 {
						t.Errorf("said of %d of %d", said, seeds)
					}
				})
			}
		}
	}
}
