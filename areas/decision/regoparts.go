package decision

import (
	"regexp"
	"slices"
	"strings"

	"tare/areas/bundle"
)

var (
	// goesOn are words behind which, and continues those before which, the end of a line ends nothing.
	goesOn = []string{
		"if", "in", "some", "every", "not", "with", "as", "contains", "default", "package", "import", "else", "and", "or",
	}
	continues = []string{"else", "with", "in", "if", "contains", "as", "and", "or"}
	// noHeads are words besides continues with which no statement begins.
	noHeads = []string{"some", "every", "not", "true", "false", "null"}
	opening = []string{"(", "[", "{"}
	closing = []string{")", "]", "}"}
	joining = []string{"(", "[", "."} // without white space they are parts of what is before them
)

// annotations is the word by which rules read what stands in comments: rego.metadata.rule().
const annotations = "rego"

// mostRego bounds a file that is taken apart.
const mostRego = 4 << 20

// A statement is one of a file of Rego, or some that cannot be told apart: its words, and these in one form, whatever
// their lines.
type statement struct {
	words   []string
	says    strings.Builder
	several bool // it may be more than one, if it begins as a test does
	in      bool // it is one only where "in" is no name
}

// is reports whether a statement consists of what begins with the word, and has a form.
func (s *statement) is(word string, form *regexp.Regexp) bool {
	return s.words[0] == word && form.MatchString(strings.Join(s.words, " "))
}

var packageForm = regexp.MustCompile(`^package [\pL\pN_]+(?: \. [\pL\pN_]+| \[ "[^"\\]*" \])*$`)

// importForm is that of imports whose last word stands for what they import.
var importForm = regexp.MustCompile(
	`^import (?:data|input|rego|future)(?: \. [\pL\pN_]+)*(?: as [\pL\pN_]+)?$`)

// ofOneKeyword reports an import that leaves other keywords names.
func ofOneKeyword(says string) bool {
	return strings.HasPrefix(says, " import future. keywords.") && !strings.HasSuffix(says, " in")
}

// regoParts are the rules of a file of Rego, each with the imports that it uses, or the file as a whole where it may
// mean something else than its words say here. The tests of a file of tests are added to tests.
func regoParts(file, text string, tests *regoTests) []part {
	tests.placed = append(tests.placed, partOf(file, file, text))
	if strings.Contains(text, "METADATA") {
		tests.annotated = append(tests.annotated, partOf(file, text))
	}
	if out, ok := regoRules(file, text, tests); ok {
		return out
	}
	tests.unknown = true
	tests.annotations = tests.annotations || strings.Contains(text, annotations)
	return []part{partOf(file, text)}
}

// regoRules are the parts of a file that is surely understood.
func regoRules(file, text string, tests *regoTests) (out []part, ok bool) {
	if strings.Contains(text, `$"`) || strings.Contains(text, "$`") || len(text) > mostRego {
		return nil, false // it has strings with expressions in them, or its words would fill the memory
	}
	all, ok := regoStatements(text)
	tests.parts += len(all)
	if !ok || tests.parts > mostParts || len(all) == 0 || !all[0].is("package", packageForm) {
		return nil, false
	}
	path := all[0].words[1:]
	of, imports := strings.Join(path, ""), map[string]sum{} // by the word that stands for what is imported
	var versions []string                                   // imports for which no word stands
	in := regoFile{of: pathOf(append([]string{"."}, path...)), imported: map[string][]string{"data": nil}}
	all = all[1:]
	for i, s := range all {
		switch s.words[0] {
		case "package":
			return nil, false
		case "import":
			if !s.is("import", importForm) || i > 0 && all[i-1].words[0] != "import" {
				return nil, false // behind a rule, it makes words keywords from there on
			}
			name, says := s.words[len(s.words)-1], sumOf(s.says.String())
			switch was, there := imports[name]; {
			case slices.Contains([]string{"rego", "future"}, s.words[1]):
				versions = append(versions, s.says.String())
			case there && was != says:
				return nil, false // the order of the two decides
			default:
				imports[name] = says
			}
			tests.imports(s.words, in.imported)
		}
	}
	slices.Sort(versions)
	versions = slices.Compact(versions)
	name, common, inIsName := clipped(of), sumOf(append(versions, of)...), slices.ContainsFunc(versions, ofOneKeyword)
	for _, s := range all {
		head := s.words[0]
		if head == "package" || head == "import" {
			continue
		}
		if head == "default" && len(s.words) > 1 {
			head = s.words[1]
		}
		tests.annotations = tests.annotations || slices.Contains(s.words, annotations)
		uses := []string{string(common[:])}
		for _, word := range s.words {
			if says, ok := imports[word]; ok {
				uses = append(uses, string(says[:]))
			}
		}
		slices.Sort(uses[1:])
		one := partOf(name+"."+head, append(slices.Compact(uses), s.says.String())...)
		if strings.HasSuffix(file, "_test.rego") && strings.HasPrefix(s.words[0], "test_") {
			if s.several || s.in && inIsName {
				return nil, false // with the test a rule may be there
			}
			in.tests = append(in.tests, regoTest{one, head, s.says.String()})
			continue
		}
		tests.reads(s.says.String(), in.imported)
		out = append(out, one)
	}
	if len(out)+len(in.tests) == 0 {
		out = []part{partOf(of, "package", of)} // a rule can ask whether it is there
	}
	tests.files = append(tests.files, in)
	return out, true
}

// regoStatements are those of a file. One begins on a line of its own, outside of brackets, with the name of a rule or
// with a word that nothing else has there; all else goes on with what is before it, as a body after the first one does.
func regoStatements(text string) (out []*statement, ok bool) {
	last, ends, deep := "", false, 0         // a word, and whether a term ends with it
	gap, ended, divided := true, true, false // what stood before a word: anything, the end of a line, a semicolon
	for _, word := range bundle.RegoWords(text) {
		switch {
		case word[0] == '#':
			continue
		case strings.TrimSpace(word) == "":
			gap, ended = true, ended || strings.Contains(word, "\n")
			continue
		case word == ";" && deep == 0:
			return nil, false
		case word == ";":
			gap, divided = true, true
			continue
		}
		closes := slices.Contains(closing, word)
		apart := !closes && (divided || ended && ends && beginsTerm(word))
		switch {
		case len(out) > mostParts:
			return nil, false
		case len(out) == 0 || apart && deep == 0 && beginsStatement(word):
			out = append(out, &statement{})
		case deep == 0 && word == "{": // a body, on whichever line
		case apart:
			out[len(out)-1].says.WriteString(" ;")
		}
		is := out[len(out)-1]
		is.several = is.several || deep == 0 && is.goesOnOddly(last, word, ends, gap, ended)
		if gap || !slices.Contains(joining, word) || !isTerm(last) && !slices.Contains(closing, last) {
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
		if deep < 0 {
			return nil, false
		}
		ends = closes || isTerm(word) && (last == "." || !slices.Contains(goesOn, word))
		last, gap, ended, divided = word, false, false, false
	}
	return out, deep == 0
}

// goesOnOddly reports a word outside of brackets with which, behind a test, something else could begin.
func (s *statement) goesOnOddly(last, word string, ends, gap, ended bool) bool {
	switch {
	case len(s.words) == 0:
		return false
	case len(s.words) == 1:
		return word != "{" && word != "if"
	case slices.Contains(joining, word):
		return ends && (gap || last == "}") || !ends && !gap && isTerm(last) && word != "("
	case !ends:
		return isTerm(last) && (ended || last != "else" && (word == ":" || word == "="))
	case word == "in":
		s.in = true
		return ended || last == "}" || s.words[1] != "if"
	}
	return isTerm(word) && !slices.Contains([]string{"else", "with", "as"}, word)
}

var regoName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// beginsStatement reports a word that, after the end of a line, surely begins one.
func beginsStatement(word string) bool {
	return regoName.MatchString(word) && !slices.Contains(continues, word) && !slices.Contains(noHeads, word)
}

var oneLetter = regexp.MustCompile(`^[\pL\pN_]$`)

// isTerm reports a word or a string.
func isTerm(word string) bool { return len(word) > 1 || oneLetter.MatchString(word) }

func beginsTerm(word string) bool {
	return slices.Contains(opening, word) || isTerm(word) && !slices.Contains(continues, word)
}
