package analyze

import (
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
	per := trialsByBlock(a.rec.Trials)
	for _, arm := range c.arms {
		if arm.Control == design.AA || arm.Baseline {
			continue
		}
		var logs []float64
		for k, number := range c.blocks {
			if log, ok := c.carriedBy(arm.ID, k, per[number]); ok {
				logs = append(logs, log)
			}
		}
		if len(logs) < fewestFor(stat.LookAlpha) {
			continue
		}
		got, err := stat.HodgesLehmann(logs, 1-stat.LookAlpha)
		if err != nil || got.Lo <= c.margin/2 && got.Hi >= -c.margin/2 {
			continue
		}
		a.warn("", "turns that follow those of %s take %+.1f %% [%.1f, %.1f] longer than others: about a third of that is "+
			"missing from its own effect; load: {turns: off} compares without", arm.ID, 100*got.Value, 100*got.Lo, 100*got.Hi)
	}
}

// carriedBy estimates the effect of an arm's turns on those that follow, from the first two other arms of a block.
func (c *comparison) carriedBy(id string, block int, trials map[string]*record.Trial) (log float64, ok bool) {
	var others []*measure
	var turns [][]record.Turn
	for _, arm := range c.arms {
		t := trials[arm.ID]
		if t == nil || t.Window == nil || len(t.Window.Turns) == 0 {
			return 0, false
		}
		if arm.ID == id || len(others) == 2 {
			continue
		}
		m := c.wholeResponse(arm.ID)
		if m == nil || block >= len(m.rounds) {
			return 0, false
		}
		others, turns = append(others, m), append(turns, t.Window.Turns)
	}
	if len(others) < 2 {
		return 0, false
	}
	before := predecessors(trials)
	var a, b []float64
	var after []int
	for r := range min(len(others[0].rounds[block]), len(others[1].rounds[block]), len(turns[0]), len(turns[1])) {
		a = append(a, stat.TurnMedian(others[0].rounds[block][r]))
		b = append(b, stat.TurnMedian(others[1].rounds[block][r]))
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

// predecessors names the arm that had the turn before each turn, by the turn's start.
func predecessors(trials map[string]*record.Trial) map[time.Duration]string {
	type turn struct {
		at  time.Duration
		arm string
	}
	var all []turn
	for id, t := range trials {
		for _, x := range t.Window.Turns {
			all = append(all, turn{x.Start, id})
		}
	}
	slices.SortFunc(all, func(x, y turn) int { return int(x.at - y.at) })
	out := map[time.Duration]string{}
	for i := 1; i < len(all); i++ {
		out[all[i].at] = all[i-1].arm
	}
	return out
}
