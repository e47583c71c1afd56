package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTimedTestsAreOfMixedPackages: make skips the tests that TIMED names where it tests several packages at once, and
// runs them in packages of MIXED only. A name of another package's test would be a test that is never run.
func TestTimedTestsAreOfMixedPackages(t *testing.T) {
	mixed := strings.Fields(makeVariable(t, "MIXED"))
	homes := testsByName(t)
	seen := map[string]bool{}
	for name := range strings.SplitSeq(makeVariable(t, "TIMED"), "|") {
		home := homes[name]
		if len(home) != 1 || !slices.Contains(mixed, "./"+home[0]) {
			t.Errorf("TIMED names %q, which is a test of %v; want one of %v", name, home, mixed)
			continue
		}
		seen["./"+home[0]] = true
	}
	if len(seen) != len(mixed) {
		t.Errorf("TIMED names tests of %v, MIXED has %v", seen, mixed)
	}
}

// makeVariable returns what the Makefile assigns to a variable, with continued lines joined.
func makeVariable(t *testing.T, name string) string {
	t.Helper()
	src, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`\$?\\\n *`).ReplaceAllString(string(src), "")
	m := regexp.MustCompile(`(?m)^` + name + ` *:= *(.*)$`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("the Makefile has no variable %s", name)
	}
	return m[1]
}

// testsByName returns the folders of the tests of each name, relative to the module's root.
func testsByName(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	err := filepath.WalkDir("../..", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipData(d.Name())
		}
		if !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		home := path.Dir(strings.TrimPrefix(filepath.ToSlash(file), "../../"))
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				out[fn.Name.Name] = append(out[fn.Name.Name], home)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
