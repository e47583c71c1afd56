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
	// Never stands for the time of a call that was never answered, in seconds: longer than any run, and finite, so that
	// logarithms and means can be taken of it. It sets no level of a round.
	Never = 1e9
	// FewestCarryRounds is the least number of rounds of either kind of which Carryover gives an estimate.
	FewestCarryRounds = 3
)

// TurnMedian is the median of the calls of one turn, without those that are not finite, which Carryover takes. It is
// NaN for fewer than FewestTurnCalls.
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

// RoundRatio compares the medians of two arms that took turns within one block: base[r] and treated[r] are the times of
// their calls in round r. It returns the logarithm of treated/base. Each call is divided by the level of its round, the
// lower of the two turn medians; the value is the ratio of the medians of all calls of the block. So what slows the
// host for longer than a round cancels, a stall that hits one of two turns does not move the level, and the value
// estimates the ratio of medians, also where a treatment slows only some of the calls. Swapping the arms changes the
// sign only, so equal arms in random order give values that are symmetric around 0, as HodgesLehmann over blocks
// requires.
//
// Where the calls around a turn's median spread by more than mostSpread they are not divided: such a median says little
// of the host, and of two kinds of calls of which each is about half, by chance either, so that levels would jump
// between the two, and the ratio with them.
//
// Times that are not finite and positive are ignored. A round in which either arm has fewer than FewestTurnCalls is
// left out. ok is false if fewer than FewestRounds remain.
func RoundRatio(base, treated [][]float64) (log float64, ok bool) {
	var x, y []float64
	var levels, wideX, wideY []float64
	var ends [][2]int
	for r := range min(len(base), len(treated)) {
		from, to := len(x), len(y)
		x, y = appendLogs(x, base[r]), appendLogs(y, treated[r])
		if min(len(x)-from, len(y)-to) < FewestTurnCalls {
			x, y = x[:from], y[:to]
			continue
		}
		slices.Sort(x[from:])
		slices.Sort(y[to:])
		levels = append(levels, min(answeredMedian(x[from:]), answeredMedian(y[to:])))
		wideX, wideY = append(wideX, middleThird(x[from:])), append(wideY, middleThird(y[to:]))
		ends = append(ends, [2]int{len(x), len(y)})
	}
	if len(levels) < FewestRounds {
		return math.NaN(), false
	}
	if max(Quantile(wideX, 0.5), Quantile(wideY, 0.5)) <= mostSpread {
		from := [2]int{}
		for r, level := range levels {
			subtract(x[from[0]:ends[r][0]], level)
			subtract(y[from[1]:ends[r][1]], level)
			from = ends[r]
		}
	}
	slices.Sort(x)
	slices.Sort(y)
	return SortedMedian(y) - SortedMedian(x), true
}

// appendLogs appends the logarithms of the values that are finite and positive.
func appendLogs(logs, values []float64) []float64 {
	for _, v := range values {
		if v > 0 && !math.IsInf(v, 1) {
			logs = append(logs, math.Log(v))
		}
	}
	return logs
}

// mostSpread is the logarithm of the factor by which calls around a turn's median may spread for this to be a level:
// wider calls are compared as exactly without one.
const mostSpread = 0.3

// middleThird is how far the middle third of ascending logarithms reaches.
func middleThird(x []float64) float64 {
	at := func(q float64) float64 {
		i, part := math.Modf(q * float64(len(x)-1))
		return x[int(i)]*(1-part) + x[min(int(i)+1, len(x)-1)]*part
	}
	return at(2./3) - at(1./3)
}

// subtract subtracts a level, if there is one: no call of a round may have been answered.
func subtract(x []float64, level float64) {
	if math.IsInf(level, 1) {
		return
	}
	for i := range x {
		x[i] -= level
	}
}

// answeredMedian is the median of ascending logarithms without those of Never; +Inf if there are no others.
func answeredMedian(x []float64) float64 {
	n, never := slices.BinarySearch(x, math.Log(Never))
	switch {
	case !never:
		return SortedMedian(x)
	case n == 0:
		return math.Inf(1)
	}
	return SortedMedian(x[:n])
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
