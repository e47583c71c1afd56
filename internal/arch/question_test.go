package arch

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// named are the files outside of package question that name a question, with how often and why. Docs: ADR 22.
var named = map[string]int{
	"analyze/pair.go":   1, // makes a record that compares two runs
	"importer/write.go": 1, // makes a record of another tool's results, which can be compared
}

// driven are the files outside of package question that tell drives or answers apart, with how often. A new question
// that has one of these drives and answers changes none of them; a new drive is an entry of each of the two lists.
var driven = map[string]int{
	"analyze/analyze.go": 5, // the list of analyses, 4; a search that found nothing stays inconclusive
	"analyze/compare.go": 1, // no effect stays inconclusive
	"run/drive/drive.go": 4, // the list of drives
}

var (
	questionNames = []string{"Compare", "Scale", "Capacity", "Soak", "Guard"}
	answers       = []string{
		"Blocks", "Search", "Long", "Guarded", "Effects", "Growth", "Rate", "Course", "Breaches",
	}
)

// TestQuestionsAreKnownByTheirProperties counts the places outside of package question that know a question by its
// name, or by its drive or answer. They may become fewer, and the lists with them, but not more.
func TestQuestionsAreKnownByTheirProperties(t *testing.T) {
	gotNamed, gotDriven := map[string]int{}, map[string]int{}
	eachProductFile(t, func(name string, f *ast.File) {
		if n := countNames(f); n > 0 {
			gotNamed[name] = n
		}
		if n := countSelectors(f, "question", answers); n > 0 {
			gotDriven[name] = n
		}
	})
	wantCounts(t, "names of questions", askQuestion, named, gotNamed)
	wantCounts(t, "looks at drives and answers", askQuestion, driven, gotDriven)
}

const askQuestion = "ask package question for a property"

// wantCounts compares counts by file. instead says what to do about one too many.
func wantCounts(t *testing.T, what, instead string, want, got map[string]int) {
	t.Helper()
	both := maps.Clone(want)
	maps.Copy(both, got)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		if want[name] != got[name] {
			t.Errorf("%s: %d %s, the list has %d: %s", name, got[name], what, want[name], instead)
		}
	}
}

// eachProductFile parses every file of the product, but for those that may name questions and for tests.
func eachProductFile(t *testing.T, do func(name string, f *ast.File)) {
	t.Helper()
	eachParsed(t, []string{"internal"}, func(_, file string, f *ast.File) {
		name := strings.TrimPrefix(file, "internal/")
		if !strings.HasPrefix(name, "question/") && !strings.HasPrefix(name, "design/") {
			do(name, f)
		}
	})
}

// countNames counts the constants design.Compare and so on, and equal strings where a question is expected.
func countNames(f *ast.File) int {
	n := countSelectors(f, "design", questionNames) + countSelectors(f, "question", []string{"AddForTest"}) +
		countSelectors(f, "drive", []string{"AddForTest"}) + countSelectors(f, "analyze", []string{"AddForTest"})
	ast.Inspect(f, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.CallExpr: // design.Question("soak")
			if len(x.Args) == 1 && isSelector(x.Fun, "design", []string{"Question"}) && isName(x.Args[0]) {
				n++
			}
		case *ast.BinaryExpr: // r.Question == "soak"
			if isQuestion(x.X) && isName(x.Y) || isQuestion(x.Y) && isName(x.X) {
				n++
			}
		}
		return true
	})
	return n
}

func countSelectors(f *ast.File, pkg string, names []string) (n int) {
	ast.Inspect(f, func(x ast.Node) bool {
		if e, ok := x.(ast.Expr); ok && isSelector(e, pkg, names) {
			n++
		}
		return true
	})
	return n
}

func isSelector(e ast.Expr, pkg string, names []string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || !slices.Contains(names, s.Sel.Name) {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}

func isQuestion(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Question"
}

// isName reports whether e is the name of a question, as a text.
func isName(e ast.Expr) bool {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return false
	}
	text, err := strconv.Unquote(l.Value)
	return err == nil && slices.ContainsFunc(questionNames, func(n string) bool { return strings.EqualFold(n, text) })
}

func TestCountNames(t *testing.T) {
	for code, want := range map[string]int{
		`q == design.Soak`:             1,
		`r.Question == "scale"`:        1,
		`"scale" != r.Header.Question`: 1,
		`q == design.Question("soak")`: 1,
		`question.AddForTest(t, q)`:    1,
		`drive.AddForTest(t, q, d)`:    1,
		`r.Question == other`:          0,
		`design.Question(text)`:        0,
		`metric.Capacity`:              0,
		`name == "capacity"`:           0,
	} {
		if got := countNames(parsed(t, "x.go", "package x\nvar _ = "+code)); got != want {
			t.Errorf("%s: %d names, want %d", code, got, want)
		}
	}
	if countSelectors(parsed(t, "x.go", "package x\nvar _ = a.Drive == question.Blocks"), "question", answers) != 1 {
		t.Error("a look at a drive is not seen")
	}
}
