package arch

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// passes lists what tare can say in favour of a target, a control or a host, where, and what has been seen then.
const passes = "../../docs/reference/passes.md"

var (
	// favourable are the constants that stand for such a statement. Decide turns an interval into one of them.
	favourable = []string{"Pass", "ExitPass", "Equivalent", "Decide"}
	// claims are the words of texts that are one.
	claims = regexp.MustCompile(`✓|%s kept|^kept so far|It holds|it holds at least|^ *holds( up| its|$| $)|^held |, held$|` +
		`which held|rate that held|/s held|held after all|equivalent within|is quiet|controls quiet|^quiet$|^[Rr]ecovers|` +
		`no drift of|refused all|none was permitted|no trespass was permitted|^not the generator$|was not the limit$|` +
		`within 0\.2%|can run tare$`)
	// neutral only name, read, sort or colour the word, say that something is doubtful, or mean something else by it.
	neutral = []string{
		"report.Verdicts", "report.EffectVerdicts", "budget.Verdict.UnmarshalText", "cli.wordColors", "cli.ExitPass",
		"chart.looks", "report.levelLegend", "capacity.Result.doubtInConfirmations", "analyze.analysis.design",
		"vm.Options.arguments",
	}
)

// TestPassesAreListed: every function that can state a pass is in the table, and every function of the table exists and
// states one.
func TestPassesAreListed(t *testing.T) {
	listed := map[string]bool{}
	for line := range strings.Lines(read(t, passes)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[2], -1) {
			listed[m[1]] = true
		}
	}
	made, compares := map[string][]string{}, map[string]bool{}
	eachParsed(t, []string{"internal", "areas", "area", "cmd"}, func(dir, _ string, f *ast.File) {
		for _, d := range f.Decls {
			name := path.Base(dir) + "." + nameOfDecl(d)
			compares[name] = compares[name] || comparesPass(d)
			if what := statedIn(d); len(what) > 0 {
				made[name] = append(made[name], what...)
			}
		}
	})
	for name, what := range made {
		if !listed[name] && !slices.Contains(neutral, name) {
			t.Errorf("%s states a pass, and is not in %s: %q", name, passes, what)
		}
	}
	for name := range listed {
		if made[name] == nil && !compares[name] {
			t.Errorf("%s lists %s, which states no pass", passes, name)
		}
	}
}

// statedIn returns what a declaration states: the favourable constants that it uses as values, and the texts that claim
// something. A comparison with a constant, and a case of a switch, state nothing, and neither does the declaration of a
// constant.
func statedIn(d ast.Node) (out []string) {
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				out = append(out, statedIn(n.Body)...)
			}
			return false
		case *ast.ValueSpec:
			for _, v := range n.Values {
				out = append(out, statedIn(v)...)
			}
			return false
		case *ast.Field:
			return false // its tag, and the names of types
		case *ast.BinaryExpr:
			return n.Op != token.EQL && n.Op != token.NEQ
		case *ast.CaseClause:
			for _, s := range n.Body {
				out = append(out, statedIn(s)...)
			}
			return false
		case *ast.SelectorExpr:
			x, _ := n.X.(*ast.Ident)
			if slices.Contains(favourable, n.Sel.Name) && (n.Sel.Name != "Decide" || x != nil && x.Name == "budget") {
				out = append(out, n.Sel.Name)
			}
			return false
		case *ast.Ident:
			if slices.Contains(favourable, n.Name) && n.Name != "Decide" {
				out = append(out, n.Name)
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && claims.MatchString(text) {
				out = append(out, text)
			}
		}
		return true
	})
	return out
}

// comparesPass reports whether a declaration compares a verdict with Pass: a format that is silent about what passed.
func comparesPass(d ast.Node) (found bool) {
	ast.Inspect(d, func(n ast.Node) bool {
		x, ok := n.(*ast.BinaryExpr)
		if ok && (x.Op == token.EQL || x.Op == token.NEQ) {
			y, isIdent := x.Y.(*ast.Ident)
			found = found || isIdent && y.Name == "Pass"
		}
		return !found
	})
	return found
}

// nameOfDecl returns the name of a function, "Type.Method" of a method, or the first name of another declaration.
func nameOfDecl(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil {
			if of := typeName(d.Recv.List[0].Type, "", nil); of != "" {
				return strings.TrimPrefix(of, ".") + "." + d.Name.Name
			}
		}
		return d.Name.Name
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				return s.Names[0].Name
			case *ast.TypeSpec:
				return s.Name.Name
			}
		}
	}
	return "?"
}
