package own

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

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
		if d := (document{text: one.text}); errors.Join(d.checkAliases(), d.checkCounted()) != nil {
			continue // the file itself is refused, or named
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

// Tested returns the objects on which the tests of bundles' policies try them, for Kyverno's command line, for
// Gatekeeper's and for Chainsaw: some are to be refused, others not. Of those that are the same, in one bundle or in
// several, it returns the first. more: there are more than mostTested.
func Tested(bundles ...string) (out []Sample, more bool, err error) {
	seen := map[string]bool{}
	for _, from := range bundles {
		all, err := testedOf(from)
		if err != nil {
			return nil, false, fmt.Errorf("read the tests of %s: %w", from, err)
		}
		for _, s := range all {
			text, err := s.MarshalJSON()
			switch {
			case err != nil || seen[string(text)]:
			case len(out) == mostTested:
				return out, true, nil
			default:
				seen[string(text)] = true
				out = append(out, s)
			}
		}
	}
	return out, false, nil
}

// testedOf returns the objects that the tests of a bundle name. What cannot be read is left out, since these are no
// policies, and so are policies, which Chainsaw applies as well.
func testedOf(from string) (out []Sample, err error) {
	all, err := readSources(from)
	if err != nil {
		return nil, err
	}
	tried, _ := namedByTests(all)
	for _, one := range all {
		if !slices.Contains(tried, one.name) {
			continue
		}
		for _, d := range documents(one.in(from), one.text) {
			objects, _ := d.objects()
			for _, o := range objects {
				if o.GetName() != "" && !decides(o.GroupVersionKind()) {
					out = append(out, Sample{bare(o.Unstructured), o.at.String()})
				}
			}
		}
	}
	return out, nil
}
