package analyze

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tare/internal/design"
	"tare/internal/report"
	"tare/rigs/hosttest"
)

// successors is a comparison of six treatments of which each makes two operations several times as slow, with few calls
// a block, so that no time gates, and a generator that is late in some blocks.
func successors(blocks int, late ...int) experiment {
	x := experiment{
		blocks: blocks, calls: 120, seed: 5, arm: 0.05, margin: 0.05, operations: []string{"create-pod", "pod-startup"},
		treatments: []design.Treatment{
			{ID: "mechanism=none", Baseline: true, Levels: map[string]string{"mechanism": "none"}},
		},
		spoil: func(treatment string, block int) bool {
			return treatment == "mechanism=m2" && slices.Contains(late, block)
		},
	}
	times := map[string]float64{}
	for i := range 6 {
		level := fmt.Sprintf("m%d", i)
		x.treatments = append(x.treatments, design.Treatment{
			ID: "mechanism=" + level, Levels: map[string]string{"mechanism": level},
		})
		times["mechanism="+level] = 4 + float64(i)/2 // +300 … +650 %
	}
	x.cost = func(treatment, _ string, _ int) float64 { return 200e-6 * max(1, times[treatment]) }
	return x
}

// TestEffectsOfFewBlocksAreDecided: what is several times as slow in each of 8 blocks is decided, though nobody asked
// for it.
func TestEffectsOfFewBlocksAreDecided(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]experiment{
		"8 of 10 have times": successors(10, 3, 7), "3 of 15 were replaced": successors(15, 0, 3, 7),
	} {
		rep := analyzed(t, x.write(t, t.TempDir()))
		if rep.Verdict == report.Invalid || len(rep.Design.Undecidable) > 0 {
			t.Fatalf("%s: %s: %s, %q", name, rep.Verdict, rep.Reason, rep.Design.Undecidable)
		}
		n, level := 0, 0.0
		for i := range rep.Effects {
			e := &rep.Effects[i]
			if e.Gating || e.Metric != "response" || e.Quantile != "p50" {
				continue
			}
			n++
			if e.Verdict != report.Regressed || e.Lo < 2 || e.Hi > 9 || e.Blocks != x.blocks-rep.Design.Late {
				t.Errorf("%s: %s of %s is %s [%v, %v] in %d blocks", name, nameOf(e), e.Treatment, e.Verdict, e.Lo, e.Hi, e.Blocks)
			}
			if level = e.Level; !strings.Contains(e.Change(), "(×") {
				t.Errorf("%s: no factor in %s", name, e.Change())
			}
		}
		if n < 6 || level < 0.987 || level >= 1 {
			t.Errorf("%s: %d effects at a level of %v", name, n, level)
		}
	}
}

// TestLostBlocksAreCounted: how many blocks are to be measured in place of those without times.
func TestLostBlocksAreCounted(t *testing.T) {
	t.Parallel()
	hosttest.SkipIfShort(t)
	for _, c := range []struct {
		blocks     int
		late       []int
		look, most int
		lost, more int
	}{
		{10, nil, 10, 10, 0, 0},
		{10, []int{3, 7}, 10, 10, 2, 2},
		{12, []int{3, 7}, 10, 10, 2, 0},
		{10, []int{0, 3, 7}, 10, 20, 3, 3},
		{10, []int{0, 3, 7}, 10, 10, 3, 5}, // 3 of 13 would be more than a fifth
		{15, []int{0, 3, 7}, 10, 10, 3, 0},
		{10, []int{0, 1, 2, 3}, 10, 10, 4, 0}, // more than the spare blocks make up for
	} {
		rep := reportOf(t, opened(t, successors(c.blocks, c.late...).write(t, t.TempDir())))
		if lost, more := LostBlocks(rep, c.look, c.most); lost != c.lost || more != c.more {
			t.Errorf("%+v: %d lost, %d more", c, lost, more)
		}
	}
	if lost, more := LostBlocks(&report.Report{}, 10, 10); lost != 0 || more != 0 {
		t.Error("blocks of a report without any are lost")
	}
}
