package own

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"tare/areas/bundle"
)

// mostTested bounds the objects that are taken from the tests of a bundle.
const mostTested = 1000

// A testFile is a file of tests, of Kyverno's command line or of Gatekeeper's: only what they say of objects.
type testFile struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Resources  []string `json:"resources"`
	Tests      []struct {
		Cases []struct {
			Object string `json:"object"`
		} `json:"cases"`
	} `json:"tests"`
}

// objects are the paths of the files with objects that the tests name.
func (f *testFile) objects() (out []string) {
	switch {
	case f.Kind == "Test" && strings.HasPrefix(f.APIVersion, "cli.kyverno.io/"):
		return f.Resources
	case f.Kind == "Suite" && strings.HasPrefix(f.APIVersion, suiteGroup+"/"):
		for _, t := range f.Tests {
			for _, c := range t.Cases {
				out = append(out, c.Object)
			}
		}
	}
	return out
}

// A TestedObject is one that the tests of policies name.
type TestedObject struct {
	*unstructured.Unstructured
	// File is where it stands, in the bundle.
	File string
}

// Tested returns the objects on which the tests of a bundle's policies try them, for Kyverno's command line and for
// Gatekeeper's: some are to be refused, others not. What cannot be read is left out, since these are no policies, and
// so are objects of one kind and one name in a file but the first. more: there are more than mostTested.
func Tested(from string) (out []TestedObject, more bool, err error) {
	texts, wanted := map[string]string{}, []string{}
	err = bundle.Each(from, func(name string, text []byte) error {
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) {
			return nil
		}
		texts[name] = string(text)
		var f testFile
		_ = yaml.Unmarshal(text, &f) // what is no file of tests names no objects
		for _, object := range f.objects() {
			wanted = append(wanted, path.Join(path.Dir(name), object))
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	slices.Sort(wanted)
	for _, name := range slices.Compact(wanted) {
		seen := map[string]bool{}
		for _, d := range documents(name, texts[name]) {
			objects, err := d.objects()
			if err != nil {
				continue
			}
			for _, o := range objects {
				key := o.GetKind() + " " + o.GetName()
				switch {
				case seen[key] || o.GetName() == "":
				case len(out) == mostTested:
					return out, true, nil
				default:
					seen[key] = true
					out = append(out, TestedObject{bare(o.Unstructured), name})
				}
			}
		}
	}
	return out, false, nil
}
