package decision

import (
	"regexp"
	"slices"
	"strings"
)

// regoWord is a comment, a string, a word, white space, or one other character of Rego.
var regoWord = regexp.MustCompile("(?s)#[^\n]*|\"(?:\\\\.|[^\"\\\\])*\"|`[^`]*`|[\\pL\\pN_]+|\\s+|.")

var (
	// goesOn are words behind which, and continues those before which, the end of a line ends nothing.
	goesOn = []string{
		"if", "in", "some", "every", "not", "with", "as", "contains", "default", "package", "import", "else",
	}
	continues = []string{"else", "with", "in", "if", "contains", "as"}
	opening   = []string{"(", "[", "{"}
	closing   = []string{")", "]", "}"}
	joining   = []string{"(", "[", "."} // without white space they are parts of what is before them
)

// mostRego bounds a file that is taken apart.
const mostRego = 4 << 20

// A statement is one of a file of Rego: its words, and these in one form, whatever their lines.
type statement struct {
	words []string
	says  strings.Builder
}

// regoParts are the rules of a file of Rego, each with the imports that it uses. The tests of a file of tests are added
// to tests.
func regoParts(file, text string, tests *regoTests) (out []part) {
	if strings.Contains(text, `$"`) || strings.Contains(text, "$`") || len(text) > mostRego {
		tests.unknown = true
		return []part{{file, text}} // it has strings with expressions in them, or its words would fill the memory
	}
	all := regoStatements(text)
	of, imports := "", map[string][]string{} // by the word that stands for what is imported; "": by none
	in := regoFile{imported: map[string][]string{"data": nil}}
	for _, s := range all {
		switch s.words[0] {
		case "package":
			of = strings.Join(s.words[1:], "")
			in.of = pathOf(append([]string{"."}, s.words[1:]...))
		case "import":
			name := s.words[len(s.words)-1]
			if from := s.words[min(1, len(s.words)-1)]; from == "rego" || from == "future" {
				name = ""
			}
			if says := s.says.String(); !slices.Contains(imports[name], says) {
				imports[name] = append(imports[name], says)
			}
			tests.imports(s.words, in.imported)
		}
	}
	for _, s := range all {
		head := s.words[0]
		if head == "package" || head == "import" {
			continue
		}
		if head == "default" && len(s.words) > 1 {
			head = s.words[1]
		}
		uses := slices.Clone(imports[""])
		for _, word := range s.words {
			uses = append(uses, imports[word]...)
		}
		slices.Sort(uses)
		says := append(slices.Compact(uses), s.says.String())
		one := part{of + "." + head, of + "\n" + strings.Join(says, "\n")}
		if strings.HasSuffix(file, "_test.rego") && strings.HasPrefix(s.words[0], "test_") {
			in.tests = append(in.tests, regoTest{one, head, s.says.String()})
			continue
		}
		tests.reads(s.says.String(), in.imported)
		out = append(out, one)
	}
	tests.files = append(tests.files, in)
	return out
}

// regoStatements are those of a file: what stands between ends of lines outside of brackets.
func regoStatements(text string) (out []*statement) {
	last, deep := "", 0
	gap, ended, divided := true, true, false // what stood before a word: anything, the end of a line, a semicolon
	for _, word := range regoWord.FindAllString(text, -1) {
		switch {
		case word[0] == '#':
			continue
		case strings.TrimSpace(word) == "":
			gap, ended = true, ended || strings.Contains(word, "\n")
			continue
		case word == ";":
			gap, divided = true, true
			continue
		}
		closes := slices.Contains(closing, word)
		apart := !closes && (divided || ended && endsTerm(last) && beginsTerm(word))
		switch {
		case len(out) == 0 || apart && deep <= 0:
			out = append(out, &statement{})
		case apart:
			out[len(out)-1].says.WriteString(" ;")
		}
		is := out[len(out)-1]
		if gap || !slices.Contains(joining, word) || !endsTerm(last) {
			is.says.WriteString(" ")
		}
		is.says.WriteString(word)
		is.words = append(is.words, word)
		switch {
		case closes:
			deep--
		case slices.Contains(opening, word):
			deep++
		}
		last, gap, ended, divided = word, false, false, false
	}
	return out
}

var oneLetter = regexp.MustCompile(`^[\pL\pN_]$`)

// isTerm reports a word or a string.
func isTerm(word string) bool { return len(word) > 1 || oneLetter.MatchString(word) }

func endsTerm(word string) bool {
	return word != "" && (slices.Contains(closing, word) || isTerm(word) && !slices.Contains(goesOn, word))
}

func beginsTerm(word string) bool {
	return slices.Contains(opening, word) || isTerm(word) && !slices.Contains(continues, word)
}
