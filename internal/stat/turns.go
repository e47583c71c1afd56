package stat

import (
	"math"
	"slices"
)

const (
	// FewestTurnCalls is the least number of calls of which a turn has a value.
	FewestTurnCalls = 3
	// FewestRounds is the least number of rounds of which a block has a value.
	FewestRounds = 5
	// FewestCarryRounds is the least number of rounds of either kind of which Carryover gives an estimate.
	FewestCarryRounds = 3
)

// TurnMedian is the median of the calls of one turn, without those of them that are not finite. It is NaN for fewer
// than FewestTurnCalls.
func TurnMedian(calls []float64) float64 {
	s := make([]float64, 0, len(calls))
	for _, v := range calls {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			s = append(s, v)
		}
	}
	if len(s) < FewestTurnCalls {
		return math.NaN()
	}
	slices.Sort(s)
	return SortedMedian(s)
}

// RoundRatio compares two arms that took turns within one block: base[r] and treated[r] are the values of their turns
// in round r (TurnMedian), NaN where a turn has none. It returns the median over rounds of the logarithm of
// treated/base. What slows the host for longer than a round cancels within the round; what is shorter disturbs a few
// rounds, which the median ignores. Swapping the arms changes the sign only, so equal arms in random order give values
// that are symmetric around 0, as HodgesLehmann over blocks requires.
//
// A round without two finite positive values is left out, and so is one that only one arm has. ok is false if fewer
// than FewestRounds remain.
func RoundRatio(base, treated []float64) (log float64, ok bool) {
	logs := roundLogs(base, treated)
	if len(logs) < FewestRounds {
		return math.NaN(), false
	}
	slices.Sort(logs)
	return SortedMedian(logs), true
}

// roundLogs is the logarithm of treated/base in each round that both arms have.
func roundLogs(base, treated []float64) []float64 {
	logs := make([]float64, 0, min(len(base), len(treated)))
	for r := range min(len(base), len(treated)) {
		if d, ok := logRatio(base[r], treated[r]); ok {
			logs = append(logs, d)
		}
	}
	return logs
}

// logRatio is the logarithm of y/x; not ok unless both are finite and positive.
func logRatio(x, y float64) (log float64, ok bool) {
	positive := func(v float64) bool { return v > 0 && !math.IsInf(v, 1) }
	if !positive(x) || !positive(y) {
		return math.NaN(), false
	}
	return math.Log(y) - math.Log(x), true
}

// Carryover estimates, from one block, by how much a turn is slower after a turn of some third arm than after another:
// the logarithm of that factor. a[r] and b[r] are the turn values of two arms other than that one. after[r] is 1 if a's
// turn followed the third arm's directly, −1 if b's did, and 0 if neither or both did. The estimate is half the
// difference between the median log ratios of the rounds with 1 and with −1, so a lasting difference between a and b
// cancels. ok is false if either kind has fewer than FewestCarryRounds.
//
// Random order does not remove this effect from RoundRatio: an arm hardly ever follows itself, so a treated arm that
// slows its successor slows the base more often than itself.
func Carryover(a, b []float64, after []int) (log float64, ok bool) {
	var first, second []float64
	for r := range min(len(a), len(b), len(after)) {
		d, measured := logRatio(b[r], a[r])
		switch {
		case !measured:
		case after[r] > 0:
			first = append(first, d)
		case after[r] < 0:
			second = append(second, d)
		}
	}
	if min(len(first), len(second)) < FewestCarryRounds {
		return math.NaN(), false
	}
	return (Median(first) - Median(second)) / 2, true
}
