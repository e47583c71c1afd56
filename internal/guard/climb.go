package guard

import (
	"math"
	"time"
)

// A Stop is why a guard offered no higher rate.
type Stop string

// The reasons.
const (
	StopRates     Stop = "rates"     // the file says which rates are enough
	StopOverload  Stop = "overload"  // the target was overloaded, well beyond the rate at which it began
	StopMaxRate   Stop = "max-rate"  // load.max_rate
	StopMaxTime   Stop = "max-time"  // load.max_time, or its default
	StopGenerator Stop = "generator" // the generator could not keep up
)

// An End is how the points of a treatment ended.
type End struct {
	Stop Stop `json:"stop"`
	// Rate is the rate that was not offered, or at which the generator could not keep up; 0: there is none.
	Rate float64 `json:"rate,omitempty"`
	// Given says that load.rates lists the rates.
	Given bool `json:"given,omitempty"`
}

const (
	// HighestRate bounds a target that nothing else bounds, in 1/s.
	HighestRate = 100_000
	// backStep is how close to a rate at which the generator could not keep up the rates come from below.
	backStep = 1.5
)

// Higher returns the next rate to offer to a target that is not overloaded yet, or not well beyond; 0: none, because of
// stop. most is never exceeded.
func Higher(points []Seen, most float64) (rate float64, end End) {
	if most <= 0 {
		most = HighestRate
	}
	highest := 0.0
	for i := range points {
		if p := &points[i]; p.Condition == nil && !p.Late {
			highest = max(highest, p.Rate)
		}
	}
	over, found, _ := degradedFrom(points, true)
	next := min(2*highest, most)
	late, times := lateAbove(points, highest)
	switch {
	case found && over.Points == 1 && times == 0 && highest >= most:
		return most, End{} // a stall at one point is no overload
	case found && (highest >= min(wellBeyond*over.Rate, most) || times > 0):
		return 0, End{Stop: StopOverload}
	case times == 1:
		return late, End{} // a host that stalled once is no limit
	case times > 0 && highest > 0 && late <= next && late > highest*backStep:
		return math.Sqrt(highest * late), End{}
	case times > 0 && late <= next || highest == 0:
		return 0, End{Stop: StopGenerator, Rate: late}
	case highest >= most:
		return 0, End{Stop: StopMaxRate}
	default:
		return next, End{}
	}
}

// lateAbove returns the lowest rate above highest at which the generator could not keep up, and how often it was
// offered.
func lateAbove(points []Seen, highest float64) (rate float64, times int) {
	for i := range points {
		switch p := &points[i]; {
		case p.Condition != nil || !p.Late || p.Rate <= highest:
		case times == 0 || p.Rate < rate:
			rate, times = p.Rate, 1
		case p.Rate == rate:
			times++
		}
	}
	return rate, times
}

// More returns a rate, and a time, that give the trespasses that a verdict still lacks; ok is false if it lacks none,
// or no rate could give them. share is that of trespasses in the calls, and need how many must be decided.
func More(points []Seen, share float64, need uint64) (rate float64, length time.Duration, ok bool) {
	decided, best := uint64(0), 0.0
	over, found, _ := degradedFrom(points, true)
	for i := range points {
		p := &points[i]
		if p.Trespasses.Permitted > 0 || p.Legitimate.Foreign > 0 {
			return 0, 0, false
		}
		decided += p.Trespasses.Decided()
		if p.Condition == nil && !p.Late && p.Trespasses.Decided() > 0 && (!found || p.Rate < over.Rate) {
			best = max(best, p.Rate)
		}
	}
	switch {
	case found && !over.Enough():
		return over.Rate, 2 * UsualPoint, true
	case decided >= need || best == 0:
		return 0, 0, false
	}
	return best, lasting(1.1*float64(need-decided), best, share), true
}
