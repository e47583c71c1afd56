package own

import (
	"slices"
	"strings"
	"testing"
)

// TestListing: policies that ask for other objects of the cluster are named, and others are not.
func TestListing(t *testing.T) {
	asking := strings.NewReplacer("name: patterns", "name: asking", "    - name: pods\n",
		"    - name: pods\n      context: [{name: all, apiCall: {urlPath: /api/v1/pods}}]\n").Replace(clusterPolicy)
	s := read(t, map[string]string{"a.yaml": clusterPolicy + "---\n" + asking + "---\n" + policy("p", isTrue)})
	if got := s.Listing(); !slices.Equal(got, []string{"asking"}) {
		t.Errorf("%q ask for other objects, want asking", got)
	}
	seen := strings.Replace(guarding, "\n  targets", "\n  # data.inventory.cluster\n  targets", 1)
	if got := read(t, map[string]string{"a.yaml": guarding}).Listing(); len(got) > 0 || seen == guarding {
		t.Errorf("%q ask for other objects, want none", got)
	}
	if got := read(t, map[string]string{"a.yaml": seen}).Listing(); !slices.Equal(got, []string{"ban"}) {
		t.Errorf("%q ask for other objects, want ban", got)
	}
}
