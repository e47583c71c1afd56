package admission

import (
	"errors"
	"fmt"
	"strings"

	"tare/area"
	"tare/areas/admission/mechanism"
	"tare/areas/admission/own"
	"tare/internal/kit"
	"tare/internal/shell"
)

// comparePolicies is area.Parts.ComparePolicies.
func comparePolicies(bundles []string) (area.Composed, bool, error) {
	var why error // the first bundle that holds none has none
	none := 0
	for _, at := range bundles {
		set, err := own.Read(at, true)
		if err == nil {
			err = set.Compile()
		}
		switch {
		case errors.Is(err, own.ErrNone):
			none++
			if why == nil && set.HoldsObjects() {
				why = area.Usage("%w", err)
			}
		case err != nil:
			return area.Composed{}, true, area.Usage("%w", err)
		}
	}
	if none == len(bundles) {
		return area.Composed{}, false, why
	}
	what := fmt.Sprintf("the policies of %s with those of %s", strings.Join(shell.Words(bundles[1:]), ", "), bundles[0])
	if len(bundles) == 1 {
		what = "the policies of " + bundles[0] + " with none"
		bundles = []string{string(mechanism.None), bundles[0]}
	}
	var treatments strings.Builder
	for i, at := range bundles {
		treatments.WriteString(kit.Treatment(i, "bundle", at))
	}
	return area.Composed{
		Label: "compares",
		What:  what + ": what they permit, and what they add to the creation of a pod",
		Text: fmt.Sprintf(`# What do these policies cost, and do they permit what the first ones refuse?
name: %s
area: admission
question: compare
target: {}   # measured: FILE names the pod that is created; bind_all: true binds what no binding names
%sload:
  rate: %d/s
`, kit.NameOf("policies", bundles[len(bundles)-1]), treatments.String(), comparedRate),
	}, true, nil
}

// comparedRate is the rate of calls within a turn: enough for the CPU time of a call to stand out from what a control
// plane uses by itself.
const comparedRate = 100
