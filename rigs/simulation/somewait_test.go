package simulation

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tare/internal/budget"
	"tare/internal/capacity"
)

// parted lets a share of its calls wait for one worker, and answers the others at once.
type parted struct {
	latency latency
	worker  *line
	share   func() bool
}

func (p *parted) decide(t float64) answer {
	if p.share() {
		return p.worker.decide(t)
	}
	return ok(t + p.latency.draw())
}

// TestSomeCallsThatWait: a target of which each twentieth call waits for a worker of 60 ms takes 333/s. No higher rate
// is said to hold, whatever the highest that may be offered, and where it is far higher, a rate is known to break.
func TestSomeCallsThatWait(t *testing.T) {
	const truth = 1000.0 / 60 * 20
	for _, most := range []float64{300, 450, 600, 700, 1000, 4000} {
		for _, even := range []bool{true, false} {
			t.Run(fmt.Sprintf("at most %v/s, evenly %v", most, even), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(uint64(most), 1))
				n := 0
				p := &parted{
					latency: latency{rng, 0.005},
					worker:  &line{free: make([]float64, 1), service: func(float64) float64 { return 0.06 }},
					share:   func() bool { n++; return even && n%20 == 0 || !even && rng.IntN(20) == 0 },
				}
				o := capacity.Options{MaxRate: most, Timeout: 5 * time.Second, MaxSeconds: 180}.Defaults()
				w := &World{server: open{rule: p}, timeout: o.Timeout, maxConns: o.MaxConns, maxRate: o.MaxRate}
				r := capacity.Assess(searched(t, w, o))
				said := fmt.Sprintf("%.3g/s [%.3g, %.3g], at least %.3g, at most %.3g, stop %s (%s), %.0f s, %q", r.Rate, r.Lo,
					r.Hi, r.AtLeast, r.AtMost, r.Stop, r.Reason, r.Seconds, r.Warnings)
				t.Log(said)
				switch {
				case judge(r, 1.15*truth) == budget.Pass, r.AtMost > 0 && r.AtMost < truth/1.05, r.Lo > truth:
					t.Error(said)
				case most < truth && r.AtLeast < most:
					t.Errorf("it holds the highest rate: %s", said)
				case most > 1.5*truth && (r.AtLeast < truth/1.5 || judge(r, 2*truth) != budget.Fail):
					t.Errorf("more is known: %s", said)
				}
			})
		}
	}
}
