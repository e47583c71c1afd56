package capacity

import (
	"math"
	"slices"
	"time"
)

// trial is what a confirmation showed: that a rate held for a while, or that it broke within it.
type trial struct {
	rate   float64
	held   bool
	length time.Duration
}

// bracket is the highest rate that holds and the lowest that breaks, by confirmations that do not contradict each
// other.
type bracket struct {
	trials      []trial
	lo, hi      float64 // 0: not known
	held, broke int     // trials that showed it
}

// add takes what a confirmation showed. It makes void what was shown before and contradicts it, for a target changes;
// but that a rate held says nothing against another that was no higher and broke only after a longer time: then add
// returns false.
func (b *bracket) add(x trial) bool {
	contradicts := func(y trial) bool {
		return x.held && !y.held && y.rate <= x.rate || !x.held && y.held && y.rate >= x.rate
	}
	for _, y := range b.trials {
		if x.held && contradicts(y) && y.length > x.length+x.length/10 {
			return false
		}
	}
	b.trials = append(slices.DeleteFunc(b.trials, contradicts), x)
	b.lo, b.hi, b.held, b.broke = 0, 0, 0, 0
	for _, y := range b.trials {
		switch {
		case y.held && y.rate > b.lo:
			b.lo, b.held = y.rate, 1
		case y.held && y.rate == b.lo:
			b.held++
		case !y.held && (b.hi == 0 || y.rate < b.hi):
			b.hi, b.broke = y.rate, 1
		case !y.held && y.rate == b.hi:
			b.broke++
		}
	}
	return true
}

// aim is a bracket in the making.
type aim struct {
	bracket
	center, width float64
	fine          float64 // the first width
	shift         float64 // of the next surprise
	enough        int     // trials that have to show that a rate holds
	again         int     // and that one breaks
}

func (a aim) narrow() bool { return a.lo > 0 && a.hi > 0 && a.hi/a.lo < 1+2.6*max(a.fine, 0.02) }

func (a aim) done() bool { return a.narrow() && a.held >= a.enough && a.broke >= a.again }

// next is the step to take: high first, then low, then the middle of a wide bracket, then both sides again.
func (a aim) next(most float64) (Role, float64) {
	switch {
	case a.hi == 0 && a.center < most*0.999:
		return RoleConfirmHigh, min(a.center*(1+a.width), most)
	case a.lo == 0:
		return RoleConfirmLow, a.center * (1 - a.width)
	case a.hi == 0:
		return "", 0
	case !a.narrow():
		return RoleConfirmLow, math.Sqrt(a.lo * a.hi)
	case a.broke <= a.held:
		return RoleConfirmHigh, a.hi
	}
	return RoleConfirmLow, a.lo
}

// widen moves the higher rate further away, where noise left open whether it breaks; false where it is far away
// already.
func (a *aim) widen() bool {
	if a.hi > 0 || a.width >= 0.15 {
		return false
	}
	a.width *= 2
	return true
}

// learn takes what a confirmation showed, and moves the center beyond it where that was not expected. It returns false
// where the stretch was too short to say anything against another.
func (a *aim) learn(x trial) bool {
	expected := x.held == (x.rate < a.center)
	if !a.add(x) {
		return false
	}
	if expected || a.lo > 0 && a.hi > 0 {
		return true
	}
	// The other side is to be looked for beyond the rate that surprised.
	if x.held {
		a.center = x.rate * (1 + a.shift)
	} else {
		a.center = x.rate / (1 + a.shift)
	}
	a.shift = min(0.5, 3*a.shift)
	a.width = min(0.3, 1.5*a.width)
	return true
}
