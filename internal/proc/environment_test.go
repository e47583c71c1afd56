package proc

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSecurityPageNamesTheEnvironment: SECURITY.md lists the variables that a child gets.
func TestSecurityPageNamesTheEnvironment(t *testing.T) {
	page, err := os.ReadFile("../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(page), "A child gets these variables of the environment and no others:")
	list, _, _ = strings.Cut(list, ".")
	var names []string
	for _, m := range regexp.MustCompile("`([A-Z_]+)`").FindAllStringSubmatch(list, -1) {
		names = append(names, m[1])
	}
	if !found || !slices.Equal(names, plainNames) {
		t.Errorf("the page lists %q, and a child gets %q", names, plainNames)
	}
}
