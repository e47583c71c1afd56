package imagepull

import (
	"slices"
	"testing"

	"tare/internal/area"
	"tare/internal/driver"
)

// TestGuardAsksForChecks: other operations have no form that must be refused, and an old tare-plane has none at all.
func TestGuardAsksForChecks(t *testing.T) {
	old := driver.Description{Name: "pull-manager", Operations: []driver.Operation{{Name: opCheck}}}
	recent := old
	recent.Operations = append(recent.Operations[:1:1], driver.Operation{Name: "foreign", Trespass: opCheck})
	for _, c := range []struct {
		name string
		spec Spec
		d    driver.Description
		bad  bool
	}{
		{"check", Spec{}, recent, false},
		{"check by name", Spec{Operations: []string{opCheck}}, recent, false},
		{"prune", Spec{Operations: []string{opCheck, opPrune}}, recent, true},
		{"an old program", Spec{}, old, true},
	} {
		f := c.spec.checkGuarded(c.d)
		if slices.ContainsFunc(f, func(f area.Finding) bool { return f.Severity == area.Error }) != c.bad {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}
