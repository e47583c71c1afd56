package area

import "tare/internal/design"

// Fault returns a finding that stops a run.
func Fault(path string, err error, hint string) Finding {
	return Finding{Path: path, Severity: Error, Message: err.Error(), Hint: hint}
}

// JudgeEach returns what judge finds about the treatments, or about one without levels where there are none. The same
// finding about several treatments comes once.
func JudgeEach(treatments []design.Treatment, judge func(t design.Treatment) []Finding) (out []Finding) {
	if len(treatments) == 0 {
		treatments = []design.Treatment{{ID: design.ID(nil)}}
	}
	seen := map[string]bool{}
	for _, t := range treatments {
		for _, f := range judge(t) {
			if key := f.Path + f.Message; !seen[key] {
				seen[key] = true
				out = append(out, f)
			}
		}
	}
	return out
}
