package imagepull

import (
	"fmt"
	"slices"
	"strings"

	"tare/area"
	"tare/internal/driver"
)

// The conditions that the pull manager's process brings about itself.
const (
	conditionEvict    = "evict"     // the records' cache is emptied by other images
	conditionFullDisk = "full-disk" // no record can be written
)

func offeredConditions() []string { return []string{conditionEvict, conditionFullDisk} }

// Conditions is area.Says.Conditions. evict needs a treatment with a cache.
func (*Spec) Conditions() []string {
	return append([]string{area.Restart, area.Starved}, offeredConditions()...)
}

// guarded are the operations that guard asks for: those that have a form that must be refused.
func guarded() []string { return []string{opCheck, opPull} }

// asked returns the operations that a run asks the program for.
func (s *Spec) asked(env area.Env) []string {
	switch {
	case !env.Trespasses:
		return s.operations()
	case len(s.Operations) > 0:
		return s.Operations
	}
	return guarded()
}

// checkGuarded reports what guard cannot ask.
func (s *Spec) checkGuarded(d driver.Description) []area.Finding {
	for _, name := range s.Operations {
		if !slices.Contains(guarded(), name) {
			return []area.Finding{area.Fault("operations", fmt.Errorf("guard does not ask for %s: it has no form that must be "+
				"refused", name), "name some of "+strings.Join(guarded(), ", ")+", or leave operations out")}
		}
	}
	return d.CheckGuard(s.asked(area.Env{Trespasses: true}))
}
