// Package all is the only list of areas.
package all

import (
	"tare/internal/area"
	"tare/internal/area/admission"
	"tare/internal/area/decision"
	"tare/internal/area/exec"
	"tare/internal/area/identity"
	"tare/internal/area/imagepull"
	"tare/internal/area/sandbox"
)

// Areas lists the areas in the order in which they are shown.
func Areas() []area.Area {
	return []area.Area{identity.Area{}, decision.Area{}, sandbox.Area{}, admission.Area{}, imagepull.Area{}, exec.Area{}}
}

// List is the list as a value, for those who take it as an interface.
type List struct{}

// Find returns the area of that name.
func (List) Find(name string) (area.Area, bool) {
	for _, a := range Areas() {
		if a.Name() == name {
			return a, true
		}
	}
	return nil, false
}

// Names lists the areas' names in their order.
func (List) Names() []string {
	var names []string
	for _, a := range Areas() {
		names = append(names, a.Name())
	}
	return names
}
