package decision

import (
	"path"

	"tare/area"
	"tare/areas/bundle"
)

// comparePolicies is area.Parts.ComparePolicies: it recognizes Rego and Cedar, whose cost depends on what they are
// asked.
func comparePolicies(bundles []string) (area.Composed, bool, error) {
	found := ""
	for _, at := range bundles {
		err := bundle.Each(at, func(name string, _ []byte) error {
			if ext := path.Ext(name); ext == ".rego" || ext == ".cedar" {
				found = name
			}
			return nil
		})
		if err != nil {
			return area.Composed{}, true, err
		}
	}
	if found == "" {
		return area.Composed{}, false, nil
	}
	return area.Composed{}, true, area.Usage("%s: Rego and Cedar are compared by the questions that they are asked, with "+
		"their right answers: write an experiment file, as areas/decision/docs/policies-in-ci.md shows", found)
}
