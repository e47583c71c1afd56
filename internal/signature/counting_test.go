package signature

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestCountsAreSorted: counts of any spread are sorted, and those of the window before leave no trace.
func TestCountsAreSorted(t *testing.T) {
	rng, c := rand.New(rand.NewPCG(1, 1)), counter{}
	for _, most := range []int{1, 2, 50, 400, 401, 1_000_000} {
		for _, n := range []int{0, 1, 2, 100} {
			counts := make([]int, n)
			for i := range counts {
				counts[i] = rng.IntN(most)
			}
			want := slices.Sorted(slices.Values(counts))
			if c.sort(counts); !slices.Equal(counts, want) {
				t.Errorf("%d counts below %d: %v, want %v", n, most, counts, want)
			}
		}
	}
}
