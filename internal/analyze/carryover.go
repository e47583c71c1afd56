package analyze

import (
	"cmp"
	"math"
	"slices"
	"time"

	"tare/internal/design"
	"tare/internal/record"
	"tare/internal/stat"
)

// carryover warns of arms that change the time of the turn after theirs, as through a cache that all share. Random
// order does not remove that from their own effect: an arm seldom follows itself. It is estimated for each arm from
// how two others compare in rounds in which the one or the other followed it, block by block.
func (a *analysis) carryover(c *comparison) {
	logs := map[string][]float64{} // by arm
	per := trialsByBlock(a.rec.Trials)
	for k, number := range c.blocks {
		before := c.predecessors(per[number])
		for _, arm := range c.arms {
			if arm.Control == design.AA || arm.Baseline || before == nil {
				continue
			}
			if log, ok := c.carriedBy(arm.ID, k, per[number], before); ok {
				logs[arm.ID] = append(logs[arm.ID], log)
			}
		}
	}
	for _, arm := range c.arms {
		if len(logs[arm.ID]) < fewestFor(stat.LookAlpha) {
			continue
		}
		got, err := stat.HodgesLehmann(logs[arm.ID], 1-stat.LookAlpha)
		if err != nil || got.Lo <= c.margin/2 && got.Hi >= -c.margin/2 {
			continue
		}
		percent := func(log float64) float64 { return 100 * math.Expm1(log) }
		a.warn("", "turns that follow those of %s take %+.1f %% [%.1f, %.1f] longer than others: about a third of that is "+
			"missing from its own effect; load: {turns: off} compares without", arm.ID, percent(got.Value), percent(got.Lo),
			percent(got.Hi))
	}
}

// carriedBy estimates the effect of an arm's turns on those that follow, from the first two other arms of a block.
// before names the arm that had the turn before each.
func (c *comparison) carriedBy(
	id string, block int, trials map[string]*record.Trial, before map[time.Duration]string,
) (log float64, ok bool) {
	var rounds []rounds
	var turns [][]record.Turn
	for _, arm := range c.arms {
		if arm.ID == id || len(rounds) == 2 {
			continue
		}
		m := c.wholeResponse(arm.ID)
		if m == nil || block >= len(m.rounds) {
			return 0, false
		}
		rounds, turns = append(rounds, m.rounds[block]), append(turns, trials[arm.ID].Window.Turns)
	}
	if len(rounds) < 2 {
		return 0, false
	}
	var a, b []float64
	var after []int
	for r := range min(len(rounds[0]), len(rounds[1]), len(turns[0]), len(turns[1])) {
		a, b = append(a, stat.TurnMedian(rounds[0][r])), append(b, stat.TurnMedian(rounds[1][r]))
		which := 0
		if before[turns[0][r].Start] == id {
			which++
		}
		if before[turns[1][r].Start] == id {
			which--
		}
		after = append(after, which)
	}
	return stat.Carryover(a, b, after)
}

// wholeResponse is the response time of all calls under an arm together.
func (c *comparison) wholeResponse(id string) *measure {
	for _, m := range c.ofMetric["response"] {
		if m.treatment == id && c.wholeMix(m.operation) {
			return m
		}
	}
	return nil
}

// predecessors names the arm that had the turn before each turn of a block, by the turn's start; nil unless all arms
// took turns in it.
func (c *comparison) predecessors(trials map[string]*record.Trial) map[time.Duration]string {
	type turn struct {
		at  time.Duration
		arm string
	}
	var all []turn
	for _, arm := range c.arms {
		t := trials[arm.ID]
		if t == nil || t.Window == nil || len(t.Window.Turns) == 0 {
			return nil
		}
		for _, x := range t.Window.Turns {
			all = append(all, turn{x.Start, arm.ID})
		}
	}
	slices.SortFunc(all, func(x, y turn) int { return cmp.Compare(x.at, y.at) })
	out := map[time.Duration]string{}
	for i := 1; i < len(all); i++ {
		out[all[i].at] = all[i-1].arm
	}
	return out
}
