package cedarset

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cedar-policy/cedar-go"
)

// TestNestedPoliciesEnd: a stranger's policy neither fills the stack nor is refused for being long.
func TestNestedPoliciesEnd(t *testing.T) {
	const often = 200_000
	repeat := strings.Repeat
	for name, of := range map[string]func(n int) string{
		"brackets": func(n int) string { return repeat("(", n) + "true" + repeat(")", n) },
		"sets":     func(n int) string { return repeat("[", n) + repeat("]", n) + " == []" },
		"records":  func(n int) string { return repeat("{a: ", n) + "1" + repeat("}", n) + " == {}" },
		"not":      func(n int) string { return repeat("!", n) + "true" },
		"minus":    func(n int) string { return repeat("-", n) + "1 == 1" },
		"and":      func(n int) string { return "true" + repeat(" && true", n/2) },
		"or":       func(n int) string { return "true" + repeat(" || true", n/2) },
		"plus":     func(n int) string { return "1" + repeat("+1", n) + " == 1" },
		"members":  func(n int) string { return "principal" + repeat(".a", n) },
		"has": func(n int) string { // what is made of a path is the square of its length
			return "principal has a" + repeat(".a", int(math.Sqrt(2*float64(n)))-2)
		},
		"indices": func(n int) string { return "principal" + repeat(`["a"]`, n) },
		"if":      func(n int) string { return repeat("if true then true else ", n) + "true" },
		"quoted":  func(n int) string { return `"\"" == "a" && ` + repeat("(", n) + "true" + repeat(")", n) },
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "a.cedar")
			text := func(n int) []byte {
				return []byte("// ((\nforbid (principal, action, resource);\n\n" +
					"permit (principal, action, resource) when { " + of(n) + " };\n")
			}
			if err := os.WriteFile(file, text(often), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Read(file); err == nil || !strings.Contains(err.Error(), "a.cedar:4: more than 20000 brackets") {
				t.Errorf("%v", err)
			}
			if err := os.WriteFile(file, text(mostNested-10), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Read(file); err != nil && strings.Contains(err.Error(), "more than") { // or Cedar refuses it
				t.Errorf("what is nested less: %v", err)
			}
		})
	}
	file := filepath.Join(t.TempDir(), "a.cedar")
	long := "permit (principal, action, resource) when { [" + repeat(`User::"a;((", User::"\"((", `, 50_000) +
		repeat("resource.hash.iffy, resource.has_a.b.xif, ", 3_500) + `User::"b"].contains(principal) };`
	if err := os.WriteFile(file, []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Read(file); err != nil || s.Policies.Get(cedar.PolicyID(file+"#policy0")) == nil {
		t.Errorf("a long list: %v", err)
	}
}

// TestNestedSchemasEnd: nor does a schema.
func TestNestedSchemasEnd(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.cedar": "permit (principal, action, resource);",
		"a.cedarschema": "entity User = {a: " + strings.Repeat("Set<", 200_000) + "Long" +
			strings.Repeat(">", 200_000) + "};\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "a.cedarschema:1: more than 20000 brackets") {
		t.Error(err)
	}
}
