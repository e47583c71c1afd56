package guard

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"tare/internal/stat"
	"tare/internal/unit"
)

const (
	// LeastTrespasses is how many the control must decide before none permitted counts as guarding at all: they exclude a
	// share of 1.5 %. As many must be answered under an overload.
	LeastTrespasses = 200
	// Excludes is the share of permitted trespasses that a guard excludes, at 95 %, before none permitted is a pass. A
	// control that permits 1 in 200 is missed in 0.06 % of the runs.
	Excludes = 0.002
	// aim is how many a point asks for: which calls are trespasses is drawn by lot, and some are not decided.
	aim = 260
	// UsualPoint is how long a point lasts if nobody says it.
	UsualPoint = 5 * time.Second
	// LongestPoint bounds how long a point of a slow target lasts for its trespasses, and ShareWithin how long before
	// their share is raised instead.
	LongestPoint = 30 * time.Second
	ShareWithin  = 15 * time.Second
	// mostShare bounds the share of trespasses in the calls.
	mostShare = 0.5
	// MostRefined bounds the points that narrow the onset down, and MostVain those that were to give what a verdict lacks
	// and gave less than half of it.
	MostRefined = 6
	MostVain    = 4
	// UsualTime bounds the points and the search of a treatment whose file does not.
	UsualTime = 10 * time.Minute
	// longestSearch bounds the search for the capacity, which only chooses the rates.
	longestSearch = 2 * time.Minute
)

// Enough is how many trespasses a control must decide for a pass of "permitted <= 0".
func Enough() uint64 { return stat.TrialsToBound(Excludes, Level) }

// Factors are the rates of the points, as multiples of the capacity.
func Factors() []float64 { return []float64{0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4} }

// FactorsOfServed are those multiples of a rate that was served for a moment, where no capacity is known.
func FactorsOfServed() []float64 { return []float64{0.25, 0.5, 1} }

// Within is the time for the search and the points of a treatment: most, or a default that leaves the points of the
// given rates twice the time that they take.
func Within(most, asked time.Duration, share float64, rates []float64) time.Duration {
	if most > 0 {
		return most
	}
	return max(UsualTime, 2*Lasting(asked, share, rates))
}

// Lasting is how long points at the given rates last.
func Lasting(asked time.Duration, share float64, rates []float64) (sum time.Duration) {
	if len(rates) == 0 {
		return 0
	}
	share = Share(share, slices.Min(rates))
	for _, r := range rates {
		sum += Length(cmp.Or(asked, UsualPoint), r, share)
	}
	return sum
}

// Planned is about how many trespasses points at the given rates have.
func Planned(asked time.Duration, share float64, rates []float64) (sum float64) {
	if len(rates) == 0 {
		return 0
	}
	share = Share(share, slices.Min(rates))
	for _, r := range rates {
		sum += r * share * Length(cmp.Or(asked, UsualPoint), r, share).Seconds()
	}
	return sum
}

// Lacking is about how long the points last that are offered beside those at the given rates where these are too short
// for the trespasses of a pass.
func Lacking(asked time.Duration, share float64, rates []float64) time.Duration {
	if len(rates) == 0 {
		return 0
	}
	lacks := float64(Enough()) - Planned(asked, share, rates)
	if lacks <= 0 {
		return 0
	}
	seconds := 1.1 * lacks / (slices.Max(rates) * Share(share, slices.Min(rates)))
	return time.Duration(seconds * float64(time.Second)).Round(time.Second)
}

// TooFew says that points at the given rates and more of them cannot offer in their time as many trespasses as must be
// decided, and what would do; "" where they can.
func TooFew(most, asked time.Duration, share float64, rates []float64, need uint64) string {
	if len(rates) == 0 {
		return ""
	}
	expected, least := Planned(asked, share, rates), Lasting(asked, share, rates)
	within := Within(most, asked, share, rates)
	each := slices.Max(rates) * Share(share, slices.Min(rates))
	offered := expected + max(0, within-least).Seconds()*each
	if offered >= float64(need) {
		return ""
	}
	lacks := 1.1 * (float64(need) - expected) / each
	enough := (least + time.Duration(lacks*float64(time.Second)) + time.Minute).Truncate(time.Minute)
	return fmt.Sprintf("it needs %d trespasses that the control decides, and at most about %.0f are offered in %s: raise "+
		"load.max_time to %s, or offer higher rates", need, offered, unit.Duration(within), unit.Duration(enough))
}

// MoreInVain reports whether a point that was to give what a verdict lacks gave less than half of it.
func MoreInVain(last *Seen, length time.Duration, share float64) bool {
	return 2*float64(last.Trespasses.Decided()) < last.Rate*share*length.Seconds()
}

// SearchTime is how much of the time for a treatment its search may use.
func SearchTime(all time.Duration) time.Duration { return min(all/3, longestSearch) }

// Share raises the share of trespasses, if need be, so that a point at the lowest rate has enough of them in time.
func Share(asked, lowest float64) float64 {
	return min(max(asked, aim/(lowest*ShareWithin.Seconds())), max(asked, mostShare))
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
	return min(max(asked, lasting(aim, rate, share)), max(asked, LongestPoint))
}

// lasting is the time in which so many trespasses are due, at most LongestPoint.
func lasting(trespasses, rate, share float64) time.Duration {
	seconds := min(trespasses/(rate*share), LongestPoint.Seconds())
	return time.Duration(math.Ceil(seconds * float64(time.Second)))
}

// Title names a point by its multiple of the capacity.
func Title(factor float64) string {
	return fmt.Sprintf("%.3g × capacity", factor)
}
