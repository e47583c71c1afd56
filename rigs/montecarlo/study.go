// Package montecarlo runs the estimators of package stat against data whose truth is known, and counts how often they
// are right.
package montecarlo

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// Study is how a simulation is run: N repetitions of every case from Seed, on Workers goroutines. The results depend on
// Seed and N alone.
type Study struct {
	Seed    uint64
	N       int
	Workers int
}

// repeat runs one case of a study and returns its outcomes in order. Every repetition has a generator of its own,
// seeded by the study, the case's name and the repetition's number, so that neither the schedule nor another case can
// change it.
func repeat[T any](ctx context.Context, s Study, name string, one func(r *rand.Rand) T) ([]T, error) {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %s", s.Seed, name)
	stream := h.Sum64()
	out := make([]T, s.N)
	var next atomic.Int64
	var wait sync.WaitGroup
	for range max(1, s.Workers) {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(s.N) && ctx.Err() == nil; i = next.Add(1) - 1 {
				out[i] = one(rand.New(rand.NewPCG(stream, uint64(i))))
			}
		})
	}
	wait.Wait()
	return out, ctx.Err()
}

// share is the part of the outcomes for which is holds; 0 of none.
func share[T any](outcomes []T, is func(T) bool) float64 {
	n := 0
	for _, o := range outcomes {
		if is(o) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(outcomes)))
}
