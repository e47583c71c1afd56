package simulation

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"tare/internal/capacity"
	"tare/internal/load"
	"tare/rigs/hosttest"
)

// TestObjectiveHoldsForGood: of targets whose calls share their fate, the rate at which a search says that its
// objective holds is offered to a fresh one for ten minutes. It holds there, too, and it misses it where it is said to.
func TestObjectiveHoldsForGood(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	const searches, share = 8, 0.01
	stated := 0
	for name, made := range map[string]func(rng *rand.Rand) *line{
		"one worker of 8 ms on average": func(rng *rand.Rand) *line {
			return &line{free: make([]float64, 1), service: func(float64) float64 { return 0.008 * rng.ExpFloat64() }}
		},
		"two workers that 2 of 100 calls keep for 80 ms": func(rng *rand.Rand) *line {
			return &line{free: make([]float64, 2), service: func(float64) float64 {
				if rng.Float64() < 0.02 {
					return 0.08
				}
				return 0.003
			}}
		},
		"four workers that stand still for 150 ms every 5 s": func(rng *rand.Rand) *line {
			at := 5 * rng.Float64()
			return &line{free: make([]float64, 4), service: func(now float64) float64 {
				return 0.02 + max(0, 0.15-math.Mod(now+at, 5))
			}}
		},
	} {
		wrong := 0
		for seed := range uint64(searches) {
			o := capacity.Options{
				MaxRate: 2000, MaxSeconds: 180, Timeout: 5 * time.Second, SLO: 100 * time.Millisecond, SLOShare: share,
			}.Defaults()
			world := func(seed uint64) *World {
				q := made(rand.New(rand.NewPCG(seed, 9)))
				return &World{server: open{rule: q}, timeout: o.Timeout, maxConns: o.MaxConns, maxRate: o.MaxRate}
			}
			r := capacity.Assess(searched(t, world(seed), o))
			missed := func(rate float64) float64 {
				w, tenMinutes := world(seed+100), load.Constant{Rate: rate, Duration: 10 * time.Minute}
				if _, err := w.Offer(t.Context(), tenMinutes, time.Second, nil); err != nil {
					t.Fatal(err)
				}
				n, over := 0, 0
				for _, c := range w.Calls(0) {
					if n++; c.Done == 0 || c.Response() > o.SLO {
						over++
					}
				}
				return float64(over) / float64(n)
			}
			said := fmt.Sprintf("%s: holds up to %.3g/s, and not at %.3g/s; %q", name, r.SLORate, r.SLOFails, r.SLOUnknown)
			if r.SLORate > 0 {
				stated++
				if of := missed(r.SLORate); of > share {
					wrong++
					t.Logf("%s: %.1f %% miss it where it is said to hold", said, 100*of)
				}
			}
			if r.SLOFails > 0 {
				if of := missed(r.SLOFails); of < share {
					wrong++
					t.Logf("%s: %.1f %% miss it where it is said not to hold", said, 100*of)
				}
			}
		}
		if wrong > 1 {
			t.Errorf("%s: %d of %d searches say what is not so", name, wrong, searches)
		}
	}
	if stated < searches {
		t.Errorf("only %d of %d searches say where the objective holds", stated, 3*searches)
	}
}
