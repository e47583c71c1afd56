package kit

import (
	"fmt"
	"strings"

	"tare/area"
	"tare/internal/design"
)

// FaultVaried returns a finding about a field that the file gives although the treatments vary it.
func FaultVaried(path, factor string) area.Finding {
	return area.Fault(path, fmt.Errorf("%s is varied by the treatments already", factor), "leave it out here")
}

// FaultIn returns a finding about an error in the field at path, which begins with the field's name. Where that is a
// level of t, or path is empty, the finding names the treatment instead.
func FaultIn(t design.Treatment, path string, err error) area.Finding {
	f := area.Fault(path, err, "")
	if name, _, _ := strings.Cut(err.Error(), ":"); t.Levels[name] != "" || f.Path == "" {
		return f.In(t)
	}
	return f
}

// AtLeastOne returns treatments or, if there are none, a single one without levels.
func AtLeastOne(treatments []design.Treatment) []design.Treatment {
	if len(treatments) == 0 {
		return []design.Treatment{{ID: design.ID(nil)}}
	}
	return treatments
}

// JudgeEach returns what judge finds about each treatment. Without treatments it judges a single one that has no
// levels. The same finding about several treatments comes once.
func JudgeEach(treatments []design.Treatment, judge func(t design.Treatment) []area.Finding) (out []area.Finding) {
	seen := map[string]bool{}
	for _, t := range AtLeastOne(treatments) {
		for _, f := range judge(t) {
			if key := f.Path + f.Message; !seen[key] {
				seen[key] = true
				out = append(out, f)
			}
		}
	}
	return out
}
