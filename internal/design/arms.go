package design

import "slices"

// AAArm is the name of the arm that repeats the baseline.
const AAArm = "aa"

// Arms are the treatments with the A/A arm behind them: the baseline again under another name, or the first treatment
// where nothing is a baseline. No experiment that compares goes without it.
func Arms(treatments []Treatment) []Treatment {
	if len(treatments) == 0 {
		return nil
	}
	of := treatments[max(0, slices.IndexFunc(treatments, func(t Treatment) bool { return t.Baseline }))]
	return append(slices.Clone(treatments), Treatment{ID: AAArm, Control: AA, Levels: of.Levels, Of: of.ID})
}

// Beside reports whether a treatment with these levels is compared with the baseline with the levels base: it has them
// in all factors in which the baselines differ from each other, for those are the crossed ones.
func Beside(base, levels map[string]string, baselines []map[string]string) bool {
	for factor, level := range base {
		crossed := slices.ContainsFunc(baselines, func(x map[string]string) bool { return x[factor] != level })
		if crossed && levels[factor] != level {
			return false
		}
	}
	return true
}
