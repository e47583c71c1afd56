package simulation

import (
	"math/rand/v2"
	"strings"
	"testing"

	"tare/internal/capacity"
)

// mixed answers every call, a share of them slowly.
type mixed struct {
	rng   *rand.Rand
	share float64
	cold  int // so many calls are slow at first
}

func (s *mixed) decide(t float64) answer {
	took := 0.002
	if s.cold--; s.cold >= 0 || s.rng.Float64() < s.share {
		took = 0.06
	}
	return ok(t + took*(0.98+0.04*s.rng.Float64()))
}

// TestColdStartIsNoChance: calls of two kinds, as hits and misses of a cache, that come by chance are no cold start,
// and nothing is said of higher rates; a target whose first calls are all slow is cold.
func TestColdStartIsNoChance(t *testing.T) {
	for name, c := range map[string]struct {
		share      float64
		cold       int
		least, all int // how often it may be said, of 100 searches
	}{
		"3 of 10 calls are slow":             {0.3, 0, 0, 2},
		"about half of the calls are slow":   {0.48, 0, 0, 2},
		"a little more than half are":        {0.55, 0, 0, 2},
		"the first 30 are":                   {0, 30, 100, 100},
		"the first 30 are, and 2 of 10 then": {0.2, 30, 95, 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := 0
			for seed := range uint64(100) {
				o := capacity.Options{MaxRate: 200}.Defaults()
				rule := &mixed{rng: rand.New(rand.NewPCG(seed, 5)), share: c.share, cold: c.cold}
				w := &World{server: open{rule: rule}, timeout: o.Timeout, maxConns: o.MaxConns, maxRate: o.MaxRate}
				r := capacity.Assess(searched(t, w, o))
				cold := len(r.Findings) > 0 && r.Findings[0].Kind == capacity.ColdStart
				if cold || strings.Contains(strings.Join(r.Warnings, "; "), "see what is answered there") {
					said++
				}
			}
			if said < c.least || said > c.all {
				t.Errorf("said %d times of 100, want %d to %d", said, c.least, c.all)
			}
		})
	}
}
