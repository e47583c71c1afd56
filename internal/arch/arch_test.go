package arch

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// layers lists packages from the bottom up. A package imports only lower rows. "x/..." is x and all below it.
var layers = []string{
	"clock",
	"metric stat hist spelling unit chart term ratelimit memtest",
	"design load probe proc glossary",
	"build",
	"area signature budget plane",
	"driver",
	"record capacity",
	"run report config importer doctor",
	"analyze fleet",
	"area/identity/... area/decision/... area/sandbox/... area/admission/... area/imagepull/... area/exec/...",
	"area/all",
	"cli",
}

// areaSees is how far up an area may import: layers 1 to 6.
const areaSees = 6

const module = "tare/internal/"

func TestImportsPointDown(t *testing.T) {
	// Files are opened here, not by "go list": the test cache sees what we open.
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.Contains(file, "testdata") {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(file))[len("../"):]
		src, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, src, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imp := range f.Imports {
			if to, ok := strings.CutPrefix(strings.Trim(imp.Path.Value, `"`), module); ok {
				if why := forbidden(pkg, to); why != "" {
					t.Errorf("%s: %s imports %s: %s", file, pkg, to, why)
				}
			}
		}
		if pkg != "arch" && level(pkg) == 0 {
			t.Errorf("%s is in no layer: add it above", pkg)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// forbidden says why pkg may not import to, or nothing. The packages of one area, and a package and its own sub-packages, may import one
// another: the compiler already refuses circles among them.
func forbidden(pkg, to string) string {
	from, at := level(pkg), level(to)
	switch {
	case pkg == to || below(pkg, to) || below(to, pkg) || (familyOf(pkg) != "" && familyOf(pkg) == familyOf(to)):
		return ""
	case from == level("area/identity") && at > areaSees:
		return "an area may import layers 1 to 6 only"
	case at >= from:
		return "imports must point down"
	}
	return ""
}

// familyOf is the area that pkg belongs to: "identity"; empty for the list of all areas and for what is no area.
func familyOf(pkg string) string {
	rest, ok := strings.CutPrefix(pkg, "area/")
	name, _, _ := strings.Cut(rest, "/")
	if !ok || name == "all" {
		return ""
	}
	return name
}

func below(pkg, parent string) bool {
	return strings.HasPrefix(pkg, parent+"/") && parent != "area"
}

func level(pkg string) int {
	for p := pkg; p != "." && p != "area"; p = path.Dir(p) {
		for i, row := range layers {
			for name := range strings.FieldsSeq(row) {
				if name == p || (strings.TrimSuffix(name, "/...") == p && strings.HasSuffix(name, "/...")) {
					return i + 1
				}
			}
		}
	}
	for i, row := range layers {
		if pkg == "area" && strings.Contains(" "+row+" ", " area ") {
			return i + 1
		}
	}
	return 0
}

func TestForbiddenSeesViolations(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{"load", "area"},
		{"load", "design"},
		{"area/identity", "run"},
		{"area/identity/reference", "record"},
		{"area/identity", "area/all"},
		{"area/identity", "area/decision/model"},
		{"run", "analyze"},
		{"stat", "cli"},
	} {
		if forbidden(c.from, c.to) == "" {
			t.Errorf("%s may import %s, and should not", c.from, c.to)
		}
	}
	if why := forbidden("area/identity", "load"); why != "" {
		t.Errorf("area/identity may not import load: %s", why)
	}
}
