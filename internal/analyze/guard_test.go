package analyze

import (
	"strings"
	"testing"

	"tare/internal/guard"
	"tare/internal/report"
)

// TestTrespassesAreJudged: an answer that is neither yes nor no keeps no budget that it could break, and answers that
// are somebody else's break every budget that they exceed.
func TestTrespassesAreJudged(t *testing.T) {
	for name, x := range map[string]struct {
		n       guard.Trespasses
		foreign uint64
		limit   float64
		want    report.Verdict
		why     string
	}{
		"none of enough": {n: guard.Trespasses{Refused: 400}, want: report.Pass, why: "below"},
		"too few":        {n: guard.Trespasses{Refused: 100}, want: report.Inconclusive, why: "needs 200"},
		"one":            {n: guard.Trespasses{Refused: 400, Permitted: 1}, want: report.Fail},
		"errors decide nothing": {
			n: guard.Trespasses{Refused: 400, Undecided: 300}, want: report.Pass, why: "below",
		},
		"one unclear": {
			n: guard.Trespasses{Refused: 400, Undecided: 9, Unclear: 1}, want: report.Inconclusive, why: "; 1 more got",
		},
		"unclear beyond a limit": {
			n: guard.Trespasses{Refused: 400, Undecided: 9, Unclear: 9}, limit: 0.01, want: report.Inconclusive, why: "; 9 more",
		},
		"unclear within a limit": {n: guard.Trespasses{Refused: 4000, Undecided: 9, Unclear: 9}, limit: 0.01},
		"far beyond a small limit": {
			n: guard.Trespasses{Refused: 475, Permitted: 266, Undecided: 9, Unclear: 9}, limit: 0.0001, want: report.Fail,
		},
		"too few for a small limit": {
			n: guard.Trespasses{Refused: 400}, limit: 0.0001, want: report.Inconclusive, why: "needs 29956",
		},
		"mixed up":                     {n: guard.Trespasses{Refused: 400}, foreign: 1, want: report.Fail},
		"mixed up beyond a limit":      {n: guard.Trespasses{Refused: 4000}, foreign: 30, limit: 0.01, want: report.Fail},
		"mixed up, perhaps within one": {n: guard.Trespasses{Refused: 4000}, foreign: 11, limit: 0.01},
	} {
		g := &report.Guard{
			Trespasses: trespasses(x.n), Foreign: x.foreign, Points: []report.GuardPoint{{Served: 1000}},
		}
		if v, why := judgedTrespasses(g, x.limit, guard.LeastTrespasses); v != x.want || !strings.Contains(why, x.why) {
			t.Errorf("%s: %q%s, want %q", name, v, why, x.want)
		}
	}
}
