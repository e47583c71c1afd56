package own

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// mostTested bounds the objects that are taken from the tests of a bundle.
const mostTested = 1000

// The API groups of tests: those of Kyverno's command line, and of Chainsaw, which tries policies in a cluster.
const (
	kyvernoTestGroup = "cli.kyverno.io"
	chainsawGroup    = "chainsaw.kyverno.io"
)

// testGroups are those whose objects are tests.
var testGroups = []string{suiteGroup, kyvernoTestGroup, chainsawGroup}

// A testFile is a file of tests, of Kyverno's command line, of Gatekeeper's or of Chainsaw: only what they say of
// objects.
type testFile struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Resources  []string `json:"resources"`
	Tests      []struct {
		Cases []struct {
			Object string `json:"object"`
		} `json:"cases"`
	} `json:"tests"`
	Spec struct {
		Steps []struct {
			Try, Catch, Finally, Cleanup []testStep
		} `json:"steps"`
	} `json:"spec"`
}

// A testStep is what Chainsaw does with the objects of a file.
type testStep struct {
	Apply, Create, Update, Patch, Assert, Error struct {
		File string `json:"file"`
	}
}

// objects are the paths of the files with objects that the tests name.
func (f *testFile) objects() (out []string) {
	switch {
	case f.Kind == "Test" && strings.HasPrefix(f.APIVersion, kyvernoTestGroup+"/"):
		return f.Resources
	case f.Kind == "Suite" && strings.HasPrefix(f.APIVersion, suiteGroup+"/"):
		for _, t := range f.Tests {
			for _, c := range t.Cases {
				out = append(out, c.Object)
			}
		}
	}
	for _, step := range f.chainsaw() {
		out = append(out, step.Apply.File, step.Create.File)
	}
	return slices.DeleteFunc(out, func(file string) bool { return file == "" })
}

// compared are the paths, or patterns of them, of the files with what Chainsaw compares objects with, and with what it
// changes them to: parts of objects.
func (f *testFile) compared() (out []string) {
	for _, step := range f.chainsaw() {
		out = append(out, step.Assert.File, step.Error.File, step.Patch.File, step.Update.File)
	}
	return slices.DeleteFunc(out, func(file string) bool { return file == "" })
}

// chainsaw are the steps of a test of Chainsaw's.
func (f *testFile) chainsaw() (out []testStep) {
	if f.Kind == "Test" && strings.HasPrefix(f.APIVersion, chainsawGroup+"/") {
		for _, s := range f.Spec.Steps {
			out = slices.Concat(out, s.Try, s.Catch, s.Finally, s.Cleanup)
		}
	}
	return out
}

// kuttl matches the names of the files with what KUTTL compares objects with.
var kuttl = regexp.MustCompile(`^[0-9]+-(assert|errors)\b`)

// namedByTests returns the files that tests among the sources try policies on, and those, or patterns of them, with
// which they compare objects.
func namedByTests(all []source) (tried, compared []string) {
	for _, one := range all {
		if !slices.ContainsFunc(testGroups, func(g string) bool { return strings.Contains(one.text, g) }) {
			continue
		}
		var f testFile
		_ = yaml.Unmarshal([]byte(one.text), &f) // what is no file of tests names no objects
		at := func(file string) string { return path.Join(path.Dir(one.name), file) }
		for _, file := range f.objects() {
			tried = append(tried, at(file))
		}
		for _, file := range f.compared() {
			compared = append(compared, at(file))
		}
	}
	return tried, compared
}

// comparedOf returns which of the sources hold what tests compare objects with, and no policies. A file that tests try
// policies on as well holds what it says.
func comparedOf(all []source) (is func(name string) bool) {
	tried, compared := namedByTests(all)
	matches := func(patterns []string, name string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			ok, err := path.Match(p, name)
			return ok || err != nil && p == name
		})
	}
	return func(name string) bool {
		return kuttl.MatchString(path.Base(name)) || matches(compared, name) && !matches(tried, name)
	}
}

// A TestedObject is one that the tests of policies name.
type TestedObject struct {
	*unstructured.Unstructured
	// File is where it stands, in the bundle.
	File string
}

// Tested returns the objects on which the tests of a bundle's policies try them, for Kyverno's command line, for
// Gatekeeper's and for Chainsaw: some are to be refused, others not. What cannot be read is left out, since these are
// no policies, and so are policies, which Chainsaw applies as well, and objects of one kind and one name in a file but
// the first. more: there are more than mostTested.
func Tested(from string) (out []TestedObject, more bool, err error) {
	all, err := readSources(from)
	if err != nil {
		return nil, false, err
	}
	texts := map[string]string{}
	for _, one := range all {
		texts[one.name] = one.text
	}
	tried, _ := namedByTests(all)
	slices.Sort(tried)
	for _, name := range slices.Compact(tried) {
		seen := map[string]bool{}
		for _, d := range documents(name, texts[name]) {
			objects, err := d.objects()
			if err != nil {
				continue
			}
			for _, o := range objects {
				key := o.GetKind() + " " + o.GetName()
				switch {
				case seen[key] || o.GetName() == "" || decides(o.GroupVersionKind()):
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
