package design

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func treatments(n int) []Treatment {
	var ts []Treatment
	for i := range n {
		ts = append(ts, Treatment{ID: fmt.Sprint(i)})
	}
	return ts
}

func TestEveryBlockHoldsEveryTreatmentOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Experiment{
			Treatments: treatments(rapid.IntRange(1, 9).Draw(t, "treatments")),
			Blocks:     rapid.IntRange(1, 30).Draw(t, "blocks"),
			Seed:       rapid.Uint64().Draw(t, "seed"),
		}
		plan := Plan(e)
		if len(plan) != e.Blocks*len(e.Treatments) {
			t.Fatalf("%d trials, want %d", len(plan), e.Blocks*len(e.Treatments))
		}
		seen := map[string]bool{}
		for i, trial := range plan {
			if trial.Index != i || trial.Block != i/len(e.Treatments) {
				t.Fatalf("trial %d has index %d and block %d", i, trial.Index, trial.Block)
			}
			key := fmt.Sprint(trial.Block, " ", trial.Treatment)
			if seen[key] {
				t.Fatalf("block %d holds %s twice", trial.Block, trial.Treatment)
			}
			seen[key] = true
		}
	})
}

// TestLongerPlansBeginAlike, so that blocks can be added to a finished run.
func TestLongerPlansBeginAlike(t *testing.T) {
	short := Plan(Experiment{Treatments: treatments(5), Blocks: 4, Seed: 7})
	long := Plan(Experiment{Treatments: treatments(5), Blocks: 9, Seed: 7})
	if diff := cmp.Diff(short, long[:len(short)]); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(short, Plan(Experiment{Treatments: treatments(5), Blocks: 4, Seed: 8})) {
		t.Error("another seed gives the same plan")
	}
}

// TestPositionsAreFair: over many blocks each treatment is first about equally often. With 4,000 blocks of 4 the
// standard deviation of a count is 27.
func TestPositionsAreFair(t *testing.T) {
	first := map[string]int{}
	for _, trial := range Plan(Experiment{Treatments: treatments(4), Blocks: 4000, Seed: 1}) {
		if trial.Index%4 == 0 {
			first[trial.Treatment]++
		}
	}
	for id, n := range first {
		if n < 1000-5*27 || n > 1000+5*27 {
			t.Errorf("treatment %s stands first in %d of 4000 blocks", id, n)
		}
	}
}

func TestID(t *testing.T) {
	for want, levels := range map[string]map[string]string{
		"default":                  nil,
		"mode=enforce policies=10": {"policies": "10", "mode": "enforce"},
	} {
		if got := ID(levels); got != want {
			t.Errorf("ID(%v) = %q, want %q", levels, got, want)
		}
	}
	ids := []string{ID(map[string]string{"a": "1"}), ID(map[string]string{"a": "2"}), ID(map[string]string{"b": "1"})}
	if slices.Sort(ids); len(slices.Compact(ids)) != 3 {
		t.Errorf("different levels share a name: %v", ids)
	}
}
