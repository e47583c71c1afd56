package signature

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tare/internal/load"
	"tare/internal/stat"
)

// served returns the calls that a queue before a single server answers in their order, and how long each would have
// taken if the generator had not been late.
func served(
	rng *rand.Rand, n int, gap, service time.Duration, late func(due time.Duration) time.Duration,
) (load.Calls, []float64) {
	calls, punctual := make(load.Calls, n), make([]float64, n)
	var free, ideal time.Duration
	for i := range calls {
		due := time.Duration(i+1) * gap
		need := time.Duration(rng.ExpFloat64() * float64(service))
		ideal = max(ideal, due) + need
		punctual[i] = (ideal - due).Seconds()
		sent := due + late(due)
		free = max(free, sent) + need
		calls[i] = load.Call{Conn: 1, Intended: due, Ready: due, Sent: sent, FirstByte: free, Done: free}
	}
	slices.Sort(punctual)
	return calls, punctual
}

// TestOwnBoundsTheDelay: whatever the load and the stalls, a quantile of the responses less the bound is not above the
// same quantile of the responses to a generator that is never late; and the bound is no larger than what was added by
// much.
func TestOwnBoundsTheDelay(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 3))
	for run := range 300 {
		gap := time.Millisecond * time.Duration(1+rng.IntN(20))
		use := 0.2 + 0.7*rng.Float64()
		var stall stalls
		calls, punctual := served(rng, 2000, gap, time.Duration(use*float64(gap)), stall.of(rng))
		for _, q := range []float64{0.5, 0.9, 0.99, 1} {
			response := secondsOf(calls.All(), (*load.Call).Response)
			slices.Sort(response)
			got, own := stat.SortedQuantile(response, q), Own(calls.All(), q)
			if truth := stat.SortedQuantile(punctual, q); got-own > truth+shortest.Seconds() {
				t.Errorf("run %d, q %v: %.6f less at most %.6f is above %.6f", run, q, got, own, truth)
			}
		}
	}
	calls, _ := served(rng, 500, 10*time.Millisecond, time.Millisecond, func(time.Duration) time.Duration { return 0 })
	if own := Own(calls.All(), 0.99); own != 0 {
		t.Errorf("a generator that is never late owns %v s", own)
	}
}

// stalls are times in which a generator stands still, as one does whose processor is stolen.
type stalls struct{ end time.Duration }

func (s *stalls) of(rng *rand.Rand) func(time.Duration) time.Duration {
	var begin time.Duration
	return func(due time.Duration) time.Duration {
		for s.end <= due {
			begin = s.end + time.Duration(rng.ExpFloat64()*float64(200*time.Millisecond))
			s.end = begin + time.Duration(rng.Float64()*float64(30*time.Millisecond))
		}
		if due >= begin {
			return s.end - due
		}
		return 0
	}
}
