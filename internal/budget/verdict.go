package budget

import (
	"fmt"
	"math"
	"slices"
)

// Verdict answers whether a budget is kept. Its words are the same in all outputs.
type Verdict string

// The verdicts. A budget has one of the first four; a whole run also knows the last two, and never NotMeasured.
const (
	Pass         Verdict = "pass"
	Fail         Verdict = "fail"
	Inconclusive Verdict = "inconclusive"
	NotMeasured  Verdict = "not-measured"
	Invalid      Verdict = "invalid" // the run cannot be trusted
	None         Verdict = "none"    // no budget was given
)

// UnmarshalText implements encoding.TextUnmarshaler. Unknown words are errors.
func (v *Verdict) UnmarshalText(text []byte) error {
	word := Verdict(text)
	if !slices.Contains([]Verdict{Pass, Fail, Inconclusive, NotMeasured, Invalid, None}, word) {
		return fmt.Errorf("unknown verdict %q", text)
	}
	*v = word
	return nil
}

// An Interval is an estimate with its confidence bounds, on the scale of the limit that it is compared with: the
// metric's value for an absolute limit, the change treated ÷ baseline − 1 for Ratio, treated − baseline for Difference,
// and the change per hour for a drift. An unbounded side is an infinity: "at least 2000/s" is {2000, 2000, +Inf}. An
// exact value is its own interval.
type Interval struct {
	Value, Lo, Hi float64
}

// Decide compares by statistics.md: the upper bound keeps the limit: pass; the lower one breaks it: fail; the limit
// lies within: inconclusive. For ">=" the sides are exchanged. An interval with a NaN or in the wrong order was not
// measured.
func Decide(b Budget, x Interval) Verdict {
	lo, hi, limit := x.Lo, x.Hi, b.Limit.Value
	if b.Op == AtLeast {
		lo, hi, limit = -x.Hi, -x.Lo, -limit
	}
	switch {
	case math.IsNaN(x.Value) || math.IsNaN(lo) || math.IsNaN(hi) || lo > hi:
		return NotMeasured
	case hi <= limit:
		return Pass
	case lo > limit:
		return Fail
	default:
		return Inconclusive
	}
}

// Overall is the verdict of a run: fail if any budget fails, else inconclusive if any is undecided or was not measured,
// else pass; none without budgets.
func Overall(verdicts []Verdict) Verdict {
	out := None
	for _, v := range verdicts {
		switch v {
		case Fail:
			return Fail
		case Pass:
			if out == None {
				out = Pass
			}
		case Inconclusive, NotMeasured, Invalid, None:
			out = Inconclusive
		}
	}
	return out
}
