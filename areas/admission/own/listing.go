package own

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tare/areas/bundle"
)

// asks reports whether a policy of an engine's, or a template, may ask for some other object of the cluster, and
// whether for lists of them, or for what grows with their number.
func asks(o *unstructured.Unstructured) (some, lists bool) {
	inside(o.Object["spec"], func(key string, value any) {
		text, _ := value.(string)
		switch {
		case isTemplate(o.GroupVersionKind()):
			libs, _ := value.([]any)
			if key == "libs" {
				text = strings.Join(words(libs), "\n")
			}
			lists = lists || (key == "rego" || key == "libs") && readsData(text)
		case !IsCEL(o):
			lists = lists || key == "apiCall" || key == "globalReference"
			some = some || key == "clone" || key == "cloneList"
		case strings.HasSuffix(strings.ToLower(key), "expression"):
			identifiers(text, func(name, _ string) {
				some = some || name == "resource"
				lists = lists || name == "globalContext" || name == ".List"
			})
		}
	})
	return some || lists, lists
}

// readsData reports whether Rego reads more of data, in which Gatekeeper has the objects of the cluster, than its
// libraries.
func readsData(rego string) bool {
	said := slices.DeleteFunc(bundle.RegoWords(rego), func(word string) bool {
		return word[0] == '#' || strings.TrimSpace(word) == ""
	})
	for i, word := range said {
		isMember := i > 0 && said[i-1] == "."
		isLibrary := i+2 < len(said) && said[i+1] == "." && said[i+2] == "lib"
		if word == "data" && !isMember && !isLibrary {
			return true
		}
	}
	return false
}

// Listing are the names of the policies in force, and of templates, that ask for other objects of the cluster while a
// request waits: what they cost grows with what is there.
func (s *Set) Listing() (out []string) {
	for i := range s.Policies {
		if p := &s.Policies[i]; p.engine != nil {
			if _, lists := asks(p.engine); lists {
				out = append(out, p.Name)
			}
		}
	}
	for _, t := range s.templates {
		if _, lists := asks(t.Unstructured); lists {
			out = append(out, t.GetName())
		}
	}
	return out
}
