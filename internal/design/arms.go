package design

import "slices"

// AAArm is the name of the arm that repeats the baseline.
const AAArm = "aa"

// Arms returns the treatments followed by the A/A arm: the baseline again under another name, or the first treatment if
// there is no baseline. Every comparison has one.
func Arms(treatments []Treatment) []Treatment {
	if len(treatments) == 0 {
		return nil
	}
	of := treatments[max(0, slices.IndexFunc(treatments, func(t Treatment) bool { return t.Baseline }))]
	return append(slices.Clone(treatments), Treatment{ID: AAArm, Control: AA, Levels: of.Levels, Of: of.ID})
}

// Beside reports whether a treatment with these levels is compared with the baseline with the levels base: it must have
// the same levels of the crossed factors, those in which baselines differ.
func Beside(base, levels map[string]string, baselines []map[string]string) bool {
	for factor, level := range base {
		crossed := slices.ContainsFunc(baselines, func(x map[string]string) bool { return x[factor] != level })
		if crossed && levels[factor] != level {
			return false
		}
	}
	return true
}
