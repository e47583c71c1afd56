package decision

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"tare/area"
	"tare/areas/bundle"
	"tare/areas/decision/engine"
	"tare/areas/decision/fga"
	"tare/internal/kit"
	"tare/internal/shell"
)

// comparePolicies is area.Parts.ComparePolicies: it compares stores of OpenFGA, which say themselves what is to be
// asked of them, and says of Rego, Cedar and XACML, whose cost depends on what they are asked, that it does not. Such
// files may stand beside policies of another area, such as the Rego of which Gatekeeper's templates are made.
func comparePolicies(bundles []string) (area.Composed, bool, error) {
	found, in, store := "", "", false
	for _, at := range bundles {
		err := bundle.Each(at, func(name string, text []byte) error {
			ext := path.Ext(name)
			is := ext == ".rego" || ext == ".cedar" || ext == ".xml" && engine.IsXACML(text)
			store = store || fga.IsStore(name)
			if is || fga.IsStore(name) && found == "" {
				found, in = name, at
			}
			return nil
		})
		if err != nil {
			return area.Composed{}, false, err
		}
	}
	switch {
	case found == "":
		return area.Composed{}, false, nil
	case fga.IsStore(found):
		out, err := compareStores(bundles)
		return out, true, err
	}
	what := "Rego and Cedar are"
	if path.Ext(found) == ".xml" {
		what = "policies of XACML are"
	}
	if filepath.Base(in) != found { // it is a folder
		in = filepath.Join(in, found)
	}
	return area.Composed{}, store, area.Usage("%s: %s compared by the questions that they are asked, with their right "+
		"answers: write an experiment file, as areas/decision/docs/policies-in-ci.md shows", in, what)
}

// compareStores composes the comparison of stores with the first of them, by the checks of that.
func compareStores(stores []string) (area.Composed, error) {
	if len(stores) == 1 {
		return area.Composed{}, area.Usage("%s: name two stores of OpenFGA, the first of which says what both are asked; an "+
			"experiment file can measure one, as areas/decision/docs/policies-in-ci.md shows", stores[0])
	}
	first, err := fga.Find(stores[0])
	if err != nil {
		return area.Composed{}, err
	}
	var treatments strings.Builder
	for i, at := range stores {
		treatments.WriteString(kit.Treatment(i, "bundle", at))
	}
	return area.Composed{
		Label: "compares",
		What: fmt.Sprintf("the decisions of %s with those of %s, by the checks of the latter's tests",
			strings.Join(shell.Words(stores[1:]), ", "), stores[0]),
		Text: fmt.Sprintf(`# What does a decision by these stores cost, and do they decide as the tests of the first one say?
name: %s
area: decision
question: compare
target:
  embedded: {engine: openfga}
  request_files: %s
%sload:
  closed: {workers: 1}
  duration: 1s
  max_rate: 2000/s
`, kit.NameOf("stores", stores[len(stores)-1]), kit.Quote(first), treatments.String()),
	}, nil
}
