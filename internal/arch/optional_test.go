package arch

import (
	"go/ast"
	"slices"
	"testing"
)

// asked are the interfaces that the core may ask a value for, by file. Those of package area belong to types of fields,
// as encoding.TextUnmarshaler does; what an area or a target may be able to do is a field of Parts, Says or Can.
var asked = []string{
	"internal/config/rules.go area.Worded",
	"internal/config/secret.go area.Guarded",
	"internal/config/walk.go config.nodeDecoder", // types of package config itself
}

// TestCoreAsksForNoInterfaces: the contract has no optional interfaces that are found by an assertion.
func TestCoreAsksForNoInterfaces(t *testing.T) {
	interfaces := map[string]bool{} // by "package.Name", as files of other packages write it
	files := map[string]*ast.File{}
	eachParsed(t, []string{"area", "internal"}, func(_, file string, f *ast.File) {
		files[file] = f
		interfacesIn(f, interfaces)
	})
	var got []string
	for file, f := range files {
		for _, name := range assertedIn(f, interfaces) {
			got = append(got, file+" "+name)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, asked) {
		t.Errorf("the core asks values for the interfaces %q, want %q: make it a field of the contract", got, asked)
	}
}

// interfacesIn adds the interfaces that a file declares.
func interfacesIn(f *ast.File, to map[string]bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.TypeSpec); ok {
			if _, ok := s.Type.(*ast.InterfaceType); ok {
				to[f.Name.Name+"."+s.Name.Name] = true
			}
		}
		return true
	})
}

// assertedIn returns the interfaces of tare that a file asserts a value to have, in assertions, type switches and
// reflect.TypeAssert.
func assertedIn(f *ast.File, interfaces map[string]bool) (out []string) {
	check := func(x ast.Expr) {
		name := ""
		switch x := x.(type) {
		case *ast.Ident:
			name = f.Name.Name + "." + x.Name
		case *ast.SelectorExpr:
			if p, ok := x.X.(*ast.Ident); ok {
				name = p.Name + "." + x.Sel.Name
			}
		}
		if interfaces[name] {
			out = append(out, name)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeAssertExpr:
			if n.Type != nil {
				check(n.Type)
			}
		case *ast.TypeSwitchStmt:
			for _, c := range n.Body.List {
				for _, x := range c.(*ast.CaseClause).List {
					check(x)
				}
			}
		case *ast.IndexExpr:
			if isSelector(n.X, "reflect", []string{"TypeAssert"}) {
				check(n.Index)
			}
		}
		return true
	})
	return out
}

func TestAssertedInFindsThem(t *testing.T) {
	for text, want := range map[string]int{
		"func f(a any) { _ = a.(lister) }\ntype lister interface { List() }":                        1,
		"func f(a any) { _, _ = a.(area.Trimmer) }":                                                 1,
		"func f(a any) { switch a.(type) { case lister: } }\ntype lister interface { List() }":      1,
		"func f(a reflect.Value) { reflect.TypeAssert[area.Trimmer](a) }":                           1,
		"func f(a any) { _ = a.(lister) }\ntype lister struct {}":                                   0,
		"func f(a any) { _ = a.(interface { Fd() uintptr }) }":                                      0,
		"func f(a any) { g[lister](a) }\ntype lister interface { List() }\nfunc g[T any](a any) {}": 0,
	} {
		f, interfaces := parsed(t, "x.go", "package x\n"+text), map[string]bool{"area.Trimmer": true}
		interfacesIn(f, interfaces)
		if got := assertedIn(f, interfaces); len(got) != want {
			t.Errorf("%s: found %q, want %d", text, got, want)
		}
	}
}
