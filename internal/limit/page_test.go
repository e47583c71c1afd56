package limit

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tare/internal/signature"
)

// rowsOf returns the words with which the rows of a section's tables begin.
func rowsOf(t *testing.T, heading string) (out []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/limits-and-failures.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("the page has no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(section, -1) {
		out = append(out, m[1])
	}
	return out
}

// TestPageHasEveryLimit: the reference page has a row for each kind that a rule names, and for no other.
func TestPageHasEveryLimit(t *testing.T) {
	kinds, err := os.ReadFile("limit.go")
	if err != nil {
		t.Fatal(err)
	}
	var rules strings.Builder
	for _, file := range []string{"rules.go", "judge.go"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rules.Write(b)
	}
	var want []string
	for _, m := range regexp.MustCompile(`(?m)^\t(\w+) +Kind = "([a-z-]+)"`).FindAllStringSubmatch(string(kinds), -1) {
		if regexp.MustCompile(`\b` + m[1] + `\b`).MatchString(rules.String()) {
			want = append(want, m[2])
		}
	}
	if got := rowsOf(t, "Limits"); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the page has rows for %q, and the rules name %q", got, want)
	}
}

// TestPageHasEveryFailure: the reference page has the classes in the order in which they are tried.
func TestPageHasEveryFailure(t *testing.T) {
	var want []string
	for _, c := range signature.Classes() {
		want = append(want, string(c))
	}
	if got := rowsOf(t, "Failures"); !slices.Equal(got, want) {
		t.Errorf("the page has rows for %q, and the classes are %q", got, want)
	}
}
