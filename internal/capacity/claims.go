package capacity

import (
	"math"

	"tare/internal/budget"
)

// A FindingKind names something that was seen beside the class of a failure. Its word is the same in all outputs.
type FindingKind string

// The kinds of findings.
const (
	ColdStart    FindingKind = "cold-start"    // the first calls were slower than later ones at the same rate
	Autoscaling  FindingKind = "autoscaling"   // the capacity rose while the load went on
	SpentCredits FindingKind = "spent-credits" // the capacity fell while the load went on
	StaysDown    FindingKind = "stays-down"    // single calls are not answered after the load has stopped
)

// A Finding is one of them, in a sentence.
type Finding struct {
	Kind     FindingKind `json:"kind"`
	Sentence string      `json:"sentence"`
}

// Interval is what the search licenses to say of the capacity, for budgets: an open side is infinite, a value that is not known is NaN. how says what
// it rests on where that is not a number with an interval.
func (r Result) Interval() (x budget.Interval, how string) {
	switch {
	case r.Rate > 0 && r.Hi > 0:
		return budget.Interval{Value: r.Rate, Lo: r.Lo, Hi: r.Hi}, ""
	case r.Rate > 0:
		return budget.Interval{Value: r.Rate, Lo: 0, Hi: math.Inf(1)}, "the search ended before it had an interval"
	case r.AtLeast > 0:
		return budget.Interval{Value: r.AtLeast, Lo: r.AtLeast, Hi: math.Inf(1)}, "it did not break"
	}
	return budget.Interval{Value: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}, ""
}

// Judge decides the budget "capacity >= limit" (in 1/s) as every report does.
func (r Result) Judge(limit float64) budget.Verdict {
	x, _ := r.Interval()
	return budget.Decide(budget.Budget{Metric: "capacity", Op: budget.AtLeast, Limit: budget.Limit{Value: limit}}, x)
}
