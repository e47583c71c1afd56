package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tare/rigs/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

// layers lists packages from the bottom up, without "internal/". A package imports only lower rows. "x/..." is x and
// all below it.
var layers = []string{
	"clock files mask",
	"ratelimit secretfile",
	"area", // the contract: it is public, and imports nothing else of tare
	"metric stat hist spelling shell unit chart term",
	"design load probe proc glossary jsonscan",
	"build guard",
	"signature budget kit",
	"driver kit/oneshot kit/remote question",
	controlPlanes + " " + policyFolders,
	"areas/...",
	"record capacity",
	"limit",
	"run report config importer doctor",
	"analyze",
	"cli",
}

// The packages below areas/ that are no areas: all areas may import them.
const (
	controlPlanes = "areas/plane"
	policyFolders = "areas/bundle"
)

// isShared reports whether a package below areas/ is no area.
func isShared(pkg string) bool { return pkg == controlPlanes || pkg == policyFolders }

const module = "tare/"

// nameOf is a package's name in layers.
func nameOf(pkg string) string { return strings.TrimPrefix(pkg, "internal/") }

func TestImportsPointDown(t *testing.T) {
	for _, root := range []string{"area", "areas", "internal"} {
		eachFile(t, "../../"+root, func(file string, imports []string) {
			pkg := nameOf(filepath.ToSlash(filepath.Dir(file))[len("../../"):])
			for _, imp := range imports {
				to, ok := strings.CutPrefix(imp, module)
				if !ok || strings.HasPrefix(to, "rigs/") || to == "schema" || foreignArea(pkg, nameOf(to)) {
					continue
				}
				if why := whyForbidden(pkg, nameOf(to)); why != "" {
					t.Errorf("%s: %s imports %s: %s", file, pkg, to, why)
				}
			}
			if pkg != "arch" && level(pkg) == 0 {
				t.Errorf("%s is in no layer: add it above", pkg)
			}
		})
	}
}

// TestOnlyMainImportsAreas keeps every other file of the module, tests and rigs too, from importing a package of an
// area, unless it is of the same area.
func TestOnlyMainImportsAreas(t *testing.T) {
	eachFile(t, "../..", func(file string, imports []string) {
		file = strings.TrimPrefix(file, "../../")
		for _, imp := range imports {
			to, ok := strings.CutPrefix(imp, module)
			if ok && foreignArea(nameOf(path.Dir(file)), to) && !isUnmoved(file) {
				t.Errorf("%s imports %s: only cmd/tare imports areas", file, imp)
			}
		}
	})
}

// programs are the packages that make a program of areas. The second is an example, and a module of its own.
var programs = []string{"cmd/tare", "examples/outside"}

// foreignArea reports whether to is a package of an area that pkg may not import.
func foreignArea(pkg, to string) bool {
	if isShared(to) && familyOf(pkg) != "" {
		return false
	}
	return familyOf(to) != "" && familyOf(to) != familyOf(pkg) && !slices.Contains(programs, pkg)
}

// TestProductImportsNoRig keeps the packages of tare/rigs out of the binary: only tests and rigs itself import them.
func TestProductImportsNoRig(t *testing.T) {
	files := 0
	eachFile(t, "../..", func(file string, imports []string) {
		files++
		for _, imp := range imports {
			if rigInProduct(file, imp) {
				t.Errorf("%s imports %s: only tests may import packages of rigs", file, imp)
			}
		}
	})
	if files < 500 {
		t.Errorf("%d files were read: this is not the whole module", files)
	}
}

// rigInProduct reports whether a file that is neither a test nor part of rigs imports a package of rigs.
func rigInProduct(file, imp string) bool {
	isRig := imp == "tare/rigs" || strings.HasPrefix(imp, "tare/rigs/")
	return isRig && !strings.HasSuffix(file, "_test.go") && !strings.HasPrefix(file, "../../rigs/")
}

// eachFile calls do with every Go file below root and its imports. It opens the files itself, without "go list", so
// that the test cache knows them.
func eachFile(t *testing.T, root string, do func(file string, imports []string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipData(d.Name())
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		var imports []string
		for _, imp := range f.Imports {
			imports = append(imports, strings.Trim(imp.Path.Value, `"`))
		}
		do(filepath.ToSlash(file), imports)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// eachParsed calls do with every Go file below the roots that is no test, parsed, and the folder it is in, from the
// module's root.
func eachParsed(t *testing.T, roots []string, do func(dir, file string, f *ast.File)) {
	t.Helper()
	for _, root := range roots {
		eachFile(t, "../../"+root, func(file string, _ []string) {
			if strings.HasSuffix(file, "_test.go") {
				return
			}
			do(strings.TrimPrefix(path.Dir(file), "../../"), strings.TrimPrefix(file, "../../"), parsed(t, file, nil))
		})
	}
}

// parsed parses a Go file, or text in place of it.
func parsed(t *testing.T, file string, text any) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// skipData returns fs.SkipDir for folders without packages of this module; those that begin with _ hold other modules.
func skipData(folder string) error {
	if slices.Contains([]string{"testdata", "bin", "results", ".git"}, folder) || strings.HasPrefix(folder, "_") {
		return fs.SkipDir
	}
	return nil
}

// whyForbidden returns why pkg may not import to, or nothing. The packages of one area, and a package and its
// sub-packages, may import each other: the compiler rejects cycles among them.
func whyForbidden(pkg, to string) string {
	from, at := level(pkg), level(to)
	switch {
	case pkg == to || below(pkg, to) || below(to, pkg) || (familyOf(pkg) != "" && familyOf(pkg) == familyOf(to)):
		return ""
	case foreignArea(pkg, to):
		return "only cmd/tare imports areas"
	case at >= from:
		return "imports must point down"
	}
	return ""
}

// familyOf is the name of the area that pkg belongs to; empty for what is no area.
func familyOf(pkg string) string {
	rest, ok := strings.CutPrefix(pkg, "areas/")
	name, _, _ := strings.Cut(rest, "/")
	if !ok {
		return ""
	}
	return name
}

func below(pkg, parent string) bool { return strings.HasPrefix(pkg, parent+"/") }

func level(pkg string) int {
	for p := pkg; p != "."; p = path.Dir(p) {
		for i, row := range layers {
			for name := range strings.FieldsSeq(row) {
				if name == p || (strings.TrimSuffix(name, "/...") == p && strings.HasSuffix(name, "/...")) {
					return i + 1
				}
			}
		}
	}
	return 0
}

func TestForbiddenFindsViolations(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{"load", "design"},
		{"areas/turnpike", "run"},
		{"areas/turnpike/reference", "record"},
		{"areas/turnpike", "areas/tribunal/model"},
		{"cli", "areas/turnpike"},
		{"rigs/areatest", "areas/turnpike"},
		{"cmd/tare-dist", "areas/turnpike"},
		{"schema", "areas/turnpike/reference"},
		{"cli", "areas/plane"},
		{"areas/plane", "areas/turnpike"},
		{"area", "load"},
		{"run", "analyze"},
		{"stat", "cli"},
	} {
		if whyForbidden(c.from, c.to) == "" {
			t.Errorf("%s may import %s, and should not", c.from, c.to)
		}
	}
	for _, c := range []struct{ from, to string }{
		{"areas/turnpike", "load"},
		{"areas/turnpike", "areas/plane"},
		{"areas/turnpike/reference", "areas/turnpike/model"},
	} {
		if why := whyForbidden(c.from, c.to); why != "" {
			t.Errorf("%s may not import %s: %s", c.from, c.to, why)
		}
	}
	if foreignArea("cmd/tare", "areas/turnpike") {
		t.Error("cmd/tare may not import areas")
	}
}

func TestRigInProductFindsViolations(t *testing.T) {
	for _, c := range []struct {
		file, imp string
		want      bool
	}{
		{"../../cmd/tare/main.go", "tare/rigs/servers", true},
		{"../../internal/load/dial.go", "tare/rigs/hostile", true},
		{"../../areas/tool/area.go", "tare/rigs/areatest", true},
		{"../../internal/load/dial_test.go", "tare/rigs/hostile", false},
		{"../../rigs/cmd/tare-bench/main.go", "tare/rigs/bench", false},
		{"../../internal/cli/run.go", "tare/internal/run", false},
	} {
		if got := rigInProduct(c.file, c.imp); got != c.want {
			t.Errorf("%s imports %s: violation %t, want %t", c.file, c.imp, got, c.want)
		}
	}
}
