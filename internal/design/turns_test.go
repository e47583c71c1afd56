package design

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestLayTurns(t *testing.T) {
	for name, c := range map[string]struct {
		load   TurnLoad
		length time.Duration
		rounds int
	}{
		"usual":         {TurnLoad{Rate: 200, Arms: 3}, 50 * time.Millisecond, 18},
		"slow calls":    {TurnLoad{Rate: 20, Arms: 3}, 450 * time.Millisecond, 5},
		"many arms":     {TurnLoad{Rate: 1000, Arms: 21}, 50 * time.Millisecond, 5},
		"one worker":    {TurnLoad{Workers: 1, Arms: 3}, 50 * time.Millisecond, 18},
		"slow starts":   {TurnLoad{Rate: 200, Arms: 3, Afresh: 6 * time.Second}, 50 * time.Millisecond, 80},
		"slower starts": {TurnLoad{Rate: 200, Arms: 12, Afresh: 24 * time.Second}, 50 * time.Millisecond, 34},
		"slow starts for a given duration": {
			TurnLoad{Rate: 200, Arms: 3, Afresh: 6 * time.Second, Time: time.Second}, 50 * time.Millisecond, 20,
		},
		"a given duration": {TurnLoad{Rate: 200, Arms: 3, Time: 5 * time.Second}, 50 * time.Millisecond, 100},
	} {
		got, why := LayTurns(c.load)
		if why != "" || got.Length != c.length || got.Rounds != c.rounds {
			t.Errorf("%s: %+v, %q; want turns of %v, %d rounds", name, got, why, c.length, c.rounds)
		}
	}
	for name, l := range map[string]TurnLoad{
		"one arm": {Rate: 200, Arms: 1}, "workers": {Workers: 50, Arms: 3}, "a ramp": {Rate: 200, Ramp: true, Arms: 3},
		"a call a second": {Rate: 1, Arms: 3},
	} {
		if _, why := LayTurns(l); why == "" {
			t.Errorf("%s takes turns", name)
		}
	}
}

// TestTurnsHoldCallsAndRounds: a turn has calls enough for a median, and is at most a fifth of what its arm has in a
// block.
func TestTurnsHoldCallsAndRounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := TurnLoad{
			Rate: rapid.Float64Range(callsPerTurn, 1e5).Draw(t, "rate"), Arms: rapid.IntRange(2, 30).Draw(t, "arms"),
			Time: time.Duration(rapid.IntRange(0, 20000).Draw(t, "time")) * time.Millisecond,
		}
		got, why := LayTurns(l)
		if why != "" {
			t.Fatal(why)
		}
		if calls := l.Rate * got.Length.Seconds(); calls < callsPerTurn-1e-6 {
			t.Errorf("%v calls in %+v", calls, got)
		}
		if got.Rounds < leastRounds || got.Length > longestTurn || got.Block(1) < l.Time {
			t.Errorf("%+v of %+v", got, l)
		}
	})
}
