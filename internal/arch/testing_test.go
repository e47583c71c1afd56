package arch

import (
	"go/ast"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTestsShareTheHost: each package with tests has a TestMain that shares the host, so that a test which measures can
// have it alone; and what a test could not try is a row of the one table.
func TestTestsShareTheHost(t *testing.T) {
	shares := map[string]bool{}
	err := filepath.WalkDir("../..", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return skipData(d.Name())
		case !strings.HasSuffix(file, "_test.go") || filepath.Base(filepath.Dir(file)) == "hosttest":
			return nil
		}
		called := hostCalls(parsed(t, file, nil))
		for _, name := range []string{"Skip", "Skipf", "SkipNow"} {
			if slices.Contains(called, "t."+name) {
				t.Errorf("%s calls t.%s: hosttest.Missing says what was not tried, why, and how to have it tried", file, name)
			}
		}
		dir := filepath.Dir(file)
		shares[dir] = shares[dir] || slices.Contains(called, "hosttest.Main") || slices.Contains(called, "hosttest.Sharing")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, ok := range shares {
		if !ok {
			t.Errorf("no TestMain of %s calls hosttest.Main", dir)
		}
	}
}

// hostCalls returns the functions of a package or a variable that a file calls, as "package.Function".
func hostCalls(f *ast.File) (out []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if s, ok := call.Fun.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok {
					out = append(out, x.Name+"."+s.Sel.Name)
				}
			}
		}
		return true
	})
	return out
}

// TestMakefileNamesNoTests: make test is go test ./..., and what has to be known of a test stands in the test.
func TestMakefileNamesNoTests(t *testing.T) {
	makefile := read(t, "../../Makefile")
	if n := strings.Count(makefile, "\n"); n > 80 {
		t.Errorf("the Makefile has %d lines, want 80 at most: a screen", n)
	}
	rule := regexp.MustCompile(`(?m)^test:.*\n(\t.*\n)+`).FindString(makefile)
	all := strings.Contains(rule, " -- -p $$(($$(getconf _NPROCESSORS_ONLN)+1)) -timeout 25m -vet=off -ldflags=-w ./...;")
	if !all || strings.Contains(rule, "-run") || strings.Contains(rule, "-skip") {
		t.Errorf("make test does not run all tests of all packages:\n%s", rule)
	}
	if ci := read(t, "../../.ci/run"); !slices.Contains(strings.Split(ci, "\n"), "make test") {
		t.Error(".ci/run does not call make test")
	}
}
