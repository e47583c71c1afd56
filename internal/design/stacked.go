package design

import (
	"maps"
	"slices"
	"strings"
)

// LevelMark joins the controls of a level that has several: "apparmor+seccomp".
const LevelMark = "+"

// Fewer returns the treatments that differ from t only in that one control is missing from a level: what t adds to each
// is what that control costs in the presence of the others.
func Fewer(t Treatment, all []Treatment) []Treatment {
	var out []Treatment
	for factor, level := range t.Levels {
		if !strings.Contains(level, LevelMark) {
			continue
		}
		parts := controls(level)
		for _, x := range all {
			if x.Control == None && lacksOne(parts, controls(x.Levels[factor])) &&
				maps.Equal(without(x.Levels, factor), without(t.Levels, factor)) {
				out = append(out, x)
			}
		}
	}
	return out
}

// controls returns the controls of a level, sorted.
func controls(level string) []string { return slices.Sorted(strings.SplitSeq(level, LevelMark)) }

// lacksOne reports whether some are all but one of the controls.
func lacksOne(all, some []string) bool {
	for i := range all {
		if slices.Equal(some, slices.Concat(all[:i], all[i+1:])) {
			return true
		}
	}
	return false
}

func without(levels map[string]string, factor string) map[string]string {
	levels = maps.Clone(levels)
	delete(levels, factor)
	return levels
}
