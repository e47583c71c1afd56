package stat

import (
	"cmp"
	"math"
	"slices"
)

// Holm adjusts the p-values of a family so that calling those below α significant errs anywhere in the family with at
// most α (Holm, Scand. J. Stat. 6 (1979) 65). The adjusted values are in the order given. A p-value that is NaN counts
// as 1.
func Holm(p []float64) []float64 {
	order, out := ascending(p), make([]float64, len(p))
	worst := 0.0
	for rank, i := range order {
		worst = max(worst, min(1, certain(p[i])*float64(len(p)-rank)))
		out[i] = worst
	}
	return out
}

// BenjaminiHochberg adjusts the p-values of a family so that among those called significant at α the expected share of
// false ones is at most α (Benjamini & Hochberg, J. R. Stat. Soc. B 57 (1995) 289; the tests independent or positively
// dependent). The adjusted values are in the order given. A p-value that is NaN counts as 1.
func BenjaminiHochberg(p []float64) []float64 {
	order, out := ascending(p), make([]float64, len(p))
	least := 1.0
	for rank, i := range slices.Backward(order) {
		least = min(least, certain(p[i])*float64(len(p))/float64(rank+1))
		out[i] = least
	}
	return out
}

// HolmLevels is, for each hypothesis, the α at which Holm's step-down at alpha tests it, in the order given: α/m for
// the smallest of m p-values, α/(m−1) for the next, and so on; where the procedure stops, all that are left keep the α
// of the one that stopped it. An interval at level 1 − that α excludes 0 exactly when Holm rejects, so it is the
// interval to show.
func HolmLevels(p []float64, alpha float64) []float64 {
	out, stopped := make([]float64, len(p)), 0.0
	for rank, i := range ascending(p) {
		a := alpha / float64(len(p)-rank)
		if stopped == 0 && certain(p[i]) > a {
			stopped = a
		}
		if stopped > 0 {
			a = stopped
		}
		out[i] = a
	}
	return out
}

// ascending is the order of p from the smallest; equal values keep their order.
func ascending(p []float64) []int {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(certain(p[a]), certain(p[b])) })
	return order
}

// certain reads a missing p-value as no evidence at all.
func certain(p float64) float64 {
	if math.IsNaN(p) {
		return 1
	}
	return p
}

// FalseCoverageLevel is the α at which Benjamini and Hochberg's procedure at alpha comes to its end: R·alpha/m, where R
// of m hypotheses are rejected, and alpha/m where none is. An interval at level 1 − that α excludes 0 exactly when the
// procedure rejects, and of the intervals of the rejected ones the expected share that misses the truth is at most
// alpha (Benjamini & Yekutieli, J. Amer. Stat. Assoc. 100 (2005) 71): it is the one level to show all of them at.
func FalseCoverageLevel(p []float64, alpha float64) float64 {
	rejected := 0
	for _, adjusted := range BenjaminiHochberg(p) {
		if adjusted <= alpha {
			rejected++
		}
	}
	return alpha * float64(max(1, rejected)) / float64(max(1, len(p)))
}
