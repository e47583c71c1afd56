package guard

import (
	"fmt"
	"math"
	"time"
)

const (
	// LeastTrespasses is how many the control must decide before none permitted counts as guarding.
	LeastTrespasses = 200
	// aim is how many a point asks for: which calls are trespasses is drawn by lot, and some are not decided.
	aim = 260
	// UsualPoint is how long a point lasts if nobody says it.
	UsualPoint = 5 * time.Second
	// LongestPoint bounds how long a point of a slow target lasts for that.
	LongestPoint = 30 * time.Second
	// mostShare bounds the share of trespasses in the calls.
	mostShare = 0.5
	// MostRefined bounds the points that narrow the onset down.
	MostRefined = 6
)

// Factors are the rates of the points, as multiples of the capacity.
func Factors() []float64 { return []float64{0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4} }

// Share raises the share of trespasses, if need be, so that a point at the lowest rate has enough of them in time.
func Share(asked, lowest float64) float64 {
	return min(max(asked, aim/(lowest*LongestPoint.Seconds())), max(asked, mostShare))
}

// SoakShare is the share of trespasses in a soak of so many calls (0: not known) whose file gives none.
func SoakShare(calls float64) float64 {
	const least, most = 0.01, 0.1
	if calls <= 0 {
		return least
	}
	return min(max(least, aim/calls), most)
}

// Length is how long a point at a rate lasts: as long as asked, or longer for enough trespasses.
func Length(asked time.Duration, rate, share float64) time.Duration {
	need := time.Duration(math.Ceil(aim / (rate * share) * float64(time.Second)))
	return min(max(asked, need), max(asked, LongestPoint))
}

// Title names a point by its multiple of the capacity.
func Title(factor float64) string {
	return fmt.Sprintf("%.3g × capacity", factor)
}
