package own

import (
	"slices"
	"strings"
)

// listing are words of policies that ask for other objects of the cluster, in small letters.
var listing = []string{"apicall", "globalreference", "globalcontext.", "resource.list(", "data.inventory"}

// Listing are the names of the policies in force, and of templates, that ask for other objects of the cluster while a
// request waits: what they cost grows with what is there.
func (s *Set) Listing() (out []string) {
	asks := func(d document) bool {
		text := strings.ToLower(d.text)
		return slices.ContainsFunc(listing, func(word string) bool { return strings.Contains(text, word) })
	}
	for i := range s.Policies {
		if p := &s.Policies[i]; p.engine != nil && asks(p.at) {
			out = append(out, p.Name)
		}
	}
	for _, t := range s.templates {
		if asks(t.at) {
			out = append(out, t.GetName())
		}
	}
	return out
}
