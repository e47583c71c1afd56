package arch

import (
	"go/ast"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const builtPage = "../../docs/explanation/how-tare-is-built.md"

// TestBuiltPageNamesAllPackages: the table of packages has every package of the core, and no other.
func TestBuiltPageNamesAllPackages(t *testing.T) {
	_, table, _ := strings.Cut(read(t, builtPage), "## The packages\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var listed []string
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) == 4 {
			for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
				listed = append(listed, m[1])
			}
		}
	}
	var exist []string
	for _, root := range []string{"area", "internal"} {
		eachFile(t, "../../"+root, func(file string, _ []string) {
			pkg := nameOf(filepath.ToSlash(filepath.Dir(file))[len("../../"):])
			if pkg != "arch" && !slices.Contains(exist, pkg) && !strings.HasSuffix(file, "_test.go") {
				exist = append(exist, pkg)
			}
		})
	}
	for _, pkg := range exist {
		if !slices.Contains(listed, pkg) {
			t.Errorf("%s does not say what package %s is for", builtPage, pkg)
		}
	}
	for _, pkg := range listed {
		if !slices.Contains(exist, pkg) {
			t.Errorf("%s lists package %s, which does not exist", builtPage, pkg)
		}
	}
}

// TestBuiltPageNamesExist: every function, type and method that the page names, such as `run.Stage.Measure`, exists.
func TestBuiltPageNamesExist(t *testing.T) {
	declared := map[string]bool{}
	eachParsed(t, []string{"area", "internal", "tare.go"}, func(_, _ string, f *ast.File) {
		for _, name := range namesIn(f) {
			declared[f.Name.Name+"."+name] = true
		}
	})
	names := regexp.MustCompile("`([a-z]+\\.[A-Za-z]+(\\.[A-Za-z]+)?)`").FindAllStringSubmatch(read(t, builtPage), -1)
	checked := 0
	for _, m := range names {
		if slices.Contains([]string{".go", ".md", ".yaml", ".svg"}, path.Ext(m[1])) {
			continue
		}
		if checked++; !declared[m[1]] {
			t.Errorf("%s names %s, which does not exist", builtPage, m[1])
		}
	}
	if checked < 30 {
		t.Errorf("only %d names were found on %s", checked, builtPage)
	}
}

// namesIn returns what a file declares: functions and types, and methods and fields below their type.
func namesIn(f *ast.File) (names []string) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, nameOfDecl(d))
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					names = append(append(names, s.Name.Name), membersOf(s)...)
				}
			}
		}
	}
	return names
}

// membersOf returns the fields of a struct, or the methods of an interface, below the type's name.
func membersOf(s *ast.TypeSpec) (names []string) {
	var fields *ast.FieldList
	switch x := s.Type.(type) {
	case *ast.StructType:
		fields = x.Fields
	case *ast.InterfaceType:
		fields = x.Methods
	default:
		return nil
	}
	for _, field := range fields.List {
		for _, id := range field.Names {
			names = append(names, s.Name.Name+"."+id.Name)
		}
	}
	return names
}
