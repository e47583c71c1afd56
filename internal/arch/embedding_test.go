package arch

import (
	"go/ast"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bound are the methods of the contract whose results hold functions of their receiver, or the receiver itself, by the
// interface that has them. A type that embeds a target inherits its Can with the inner target's functions in it:
// methods that the outer type declares instead are never called, and the compiler accepts that.
var bound = []struct{ method, of, result string }{
	{"Can", "tare/area.Target", "tare/area.Can"},
	{"Says", "tare/area.Spec", "tare/area.Says"},
	{"Under", "tare/area.Spec", ""}, // the inner section itself
}

// A declared is what the files of one package declare of a type.
type declared struct {
	isInterface bool
	methods     []string
	fields      []string
	embeds      []string // types, as "tare/area.Target"
}

// TestEmbeddingTypesDeclareBoundMethods: a type that embeds a target or a section, and declares methods that the inner
// one's Can, Says or Under would pass over, declares these as well. Fakes of tests are no exception.
func TestEmbeddingTypesDeclareBoundMethods(t *testing.T) {
	types := map[string]*declared{}
	files := 0
	for _, root := range []string{"area", "areas", "internal", "rigs", "cmd", "examples"} {
		eachFile(t, "../../"+root, func(file string, _ []string) {
			files++
			declaredIn(parsed(t, file, nil), module+strings.TrimPrefix(path.Dir(filepath.ToSlash(file)), "../../"), types)
		})
	}
	if files < 500 || !slices.Contains(types["tare/area.Target"].methods, "Can") ||
		!slices.Contains(types["tare/area.Can"].fields, "Enter") {
		t.Fatalf("%d files were read; area.Target is %+v, and area.Can %+v", files, types["tare/area.Target"],
			types["tare/area.Can"])
	}
	for _, v := range inheriting(types) {
		t.Error(v)
	}
}

// declaredIn adds the types of a file to types, by their package's path and name.
func declaredIn(f *ast.File, pkg string, types map[string]*declared) {
	imports := map[string]string{}
	for _, i := range f.Imports {
		to := strings.Trim(i.Path.Value, `"`)
		name := path.Base(to)
		if i.Name != nil {
			name = i.Name.Name
		}
		imports[name] = to
	}
	of := func(name string) *declared {
		key := pkg + "." + name
		if types[key] == nil {
			types[key] = &declared{}
		}
		return types[key]
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
			if name := typeName(fn.Recv.List[0].Type, pkg, nil); name != "" {
				of(strings.TrimPrefix(name, pkg+".")).methods = append(of(strings.TrimPrefix(name, pkg+".")).methods, fn.Name.Name)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool { // types are declared in functions of tests, too
		s, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		x := of(s.Name.Name)
		switch u := s.Type.(type) {
		case *ast.StructType:
			x.fields = append(x.fields, namesOf(u.Fields)...)
			x.embeds = append(x.embeds, embedded(u.Fields, pkg, imports)...)
		case *ast.InterfaceType:
			x.isInterface = true
			x.methods = append(x.methods, namesOf(u.Methods)...)
			x.embeds = append(x.embeds, embedded(u.Methods, pkg, imports)...)
		default:
			if s.Assign != 0 {
				x.embeds = append(x.embeds, typeName(u, pkg, imports))
			}
		}
		return true
	})
}

func namesOf(fields *ast.FieldList) (out []string) {
	for _, f := range fields.List {
		for _, name := range f.Names {
			out = append(out, name.Name)
		}
	}
	return out
}

func embedded(fields *ast.FieldList, pkg string, imports map[string]string) (out []string) {
	for _, f := range fields.List {
		if len(f.Names) == 0 {
			out = append(out, typeName(f.Type, pkg, imports))
		}
	}
	return out
}

// typeName returns a type's package and name; "" for what is no named type.
func typeName(x ast.Expr, pkg string, imports map[string]string) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return typeName(x.X, pkg, imports)
	case *ast.IndexExpr:
		return typeName(x.X, pkg, imports)
	case *ast.Ident:
		return pkg + "." + x.Name
	case *ast.SelectorExpr:
		if p, ok := x.X.(*ast.Ident); ok {
			return imports[p.Name] + "." + x.Sel.Name
		}
	}
	return ""
}

// inheriting returns a sentence for each type that inherits a bound method which passes over its own methods.
func inheriting(types map[string]*declared) (out []string) {
	for name, x := range types {
		for _, b := range bound {
			for _, e := range x.embeds {
				if x.isInterface || slices.Contains(x.methods, b.method) || !has(types, e, b.method, 0) {
					continue
				}
				for _, m := range x.methods {
					if passedOver(types, e, m, b.of, b.result) {
						out = append(out, name+" declares "+m+" and inherits "+b.method+" of "+e+
							", which knows nothing of it: declare "+b.method+" as well")
					}
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// passedOver reports whether a method of a type that embeds inner is one that a bound method of inner may hold: by its
// name in the result, or as a method that inner has and the interface has not. Without a result type every method of
// the interface is one.
func passedOver(types map[string]*declared, inner, method, of, result string) bool {
	isOwn := slices.Contains(types[of].methods, method)
	if result == "" {
		return isOwn
	}
	isField := func(field string) bool { return strings.HasPrefix(method, field) } // Trespasses for Trespass
	return slices.ContainsFunc(types[result].fields, isField) ||
		ast.IsExported(method) && !isOwn && has(types, inner, method, 0)
}

// has reports whether a type has a method, of its own or by embedding.
func has(types map[string]*declared, name, method string, depth int) bool {
	x := types[name]
	return x != nil && depth < 10 && (slices.Contains(x.methods, method) ||
		slices.ContainsFunc(x.embeds, func(e string) bool { return has(types, e, method, depth+1) }))
}

func TestInheritingFindsViolations(t *testing.T) {
	const contract = `package area
type Target interface { Verify(); Can() Can }
type Can struct { Enter func() }
type Spec interface { Validate(); Says() Says; Under() Spec }
type Says struct { Forecast func() }
type Full struct { Target }
func (Full) Trespasses() {}
`
	for _, c := range []struct {
		name, text string
		want       int
	}{
		{"a field of Can", "type w struct { area.Target }\nfunc (w) Enter() {}", 1},
		{"nearly a field of Can", "type w struct { area.Target }\nfunc (w) Entering() {}", 1},
		{"a method of the inner target", "type w struct { area.Full }\nfunc (w) Trespasses() {}", 1},
		{"through another type", "type w struct { *mid }\nfunc (w) Enter() {}\ntype mid struct { area.Target }", 1},
		{"by an alias", "type w struct { own }\nfunc (w) Enter() {}\ntype own = area.Target", 1},
		{"in a function", "func f() { type w struct { area.Target } }\nfunc (w) Enter() {}", 1},
		{"a section", "type w struct { area.Spec }\nfunc (w) Validate() {}", 1},
		{"a section's function", "type w struct { area.Spec }\nfunc (w) Forecast() {}\nfunc (w) Under() {}", 1},
		{
			"declares Can",
			"type w struct { area.Target }\nfunc (w) Enter() {}\nfunc (w) Can() area.Can { return area.Can{} }", 0,
		},
		{"a method of the interface", "type w struct { area.Target }\nfunc (w) Verify() {}", 0},
		{"a method of its own", "type w struct { area.Target }\nfunc (w) Count() {}", 0},
		{"without methods", "type w struct { area.Target }", 0},
		{"an interface", "type w interface { area.Target; Enter() }", 0},
		{"a field with a name", "type w struct { inner area.Target }\nfunc (w) Enter() {}", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			types := map[string]*declared{}
			for pkg, text := range map[string]string{
				"tare/area": contract, "tare/areas/x": "package x\nimport \"tare/area\"\n" + c.text,
			} {
				declaredIn(parsed(t, "x.go", text), pkg, types)
			}
			if got := inheriting(types); len(got) != c.want {
				t.Errorf("found %q, want %d", got, c.want)
			}
		})
	}
}
