package decision

import (
	"slices"
	"strings"

	"tare/areas/bundle"
)

// A test in a file of tests decides nothing, unless a rule reads it: OPA loads such files, too. It may be read by its
// name, or with the whole document in which it stands.

// regoTests are the tests of a bundle, and what its rules read.
type regoTests struct {
	files     []regoFile
	names     map[string]bool // words and strings
	documents map[sum]bool    // of data, by the names on the way to them
	within    map[sum]bool    // what is read in documents of any name: the way to these, and a name behind it
	unknown   bool            // there are files that are not taken apart
	parts     int             // of all files
	// Files with annotations, in comments, and whether a rule may read those of its own or of another file.
	annotated   []part
	annotations bool
	// All files with their places, and whether their versions of Rego may depend on these.
	placed   []part
	versions bool
}

// A regoFile is one with tests: their package, what imports stand for, and their names and statements.
type regoFile struct {
	of       []string
	imported map[string][]string
	tests    []regoTest
}

type regoTest struct {
	part
	head, says string
}

func newRegoTests() *regoTests {
	return &regoTests{names: map[string]bool{}, documents: map[sum]bool{}, within: map[sum]bool{}}
}

// whole are the files that decide as a whole, whatever their rules say.
func (r *regoTests) whole() (out []part) {
	if r.annotations {
		out = r.annotated
	}
	if r.versions {
		out = append(out, r.placed...)
	}
	return out
}

// inForce are the tests that rules read. If there is one, those that any test reads are taken for it, too.
func (r *regoTests) inForce() []part {
	if len(r.read()) == 0 {
		return nil
	}
	for _, f := range r.files {
		for _, t := range f.tests {
			r.reads(strings.TrimPrefix(strings.TrimSpace(t.says), t.head), f.imported)
		}
	}
	return r.read()
}

func (r *regoTests) read() (out []part) {
	for _, f := range r.files {
		all := r.unknown || r.isRead(f.of)
		for _, t := range f.tests {
			if all || r.names[t.head] {
				out = append(out, t.part)
			}
		}
	}
	return out
}

// isRead reports a document that is read as a whole.
func (r *regoTests) isRead(path []string) bool {
	for i := range len(path) + 1 {
		if r.documents[sumOf(path[:i]...)] {
			return true
		}
		for _, name := range path[i:] {
			if r.within[sumOf(append(path[:i:i], name)...)] {
				return true
			}
		}
	}
	return false
}

// imports adds what an import stands for, and which names it has.
func (r *regoTests) imports(words []string, imported map[string][]string) {
	for _, word := range words {
		r.names[strings.Trim(word, "\"`")] = true
	}
	if len(words) < 2 || words[1] != "data" {
		return
	}
	path, as := pathOf(words[2:]), words[len(words)-1]
	if len(path) > 0 && words[len(words)-2] != "as" {
		as = path[len(path)-1]
	}
	imported[as] = path
}

// reads adds what a statement reads, with the names that imports stand for.
func (r *regoTests) reads(says string, imported map[string][]string) {
	var words []string // and white space before what would else go on with the word before it
	all := append(bundle.RegoWords(says), "")
	for i, word := range all[:len(all)-1] {
		if strings.TrimSpace(word) != "" || slices.Contains(joining, all[i+1]) {
			words = append(words, word)
		}
	}
	for i, word := range words {
		r.names[strings.Trim(word, "\"`")] = true
		from, ok := imported[word]
		if !ok || i > 0 && words[i-1] == "." {
			continue
		}
		path := slices.Concat(from, pathOf(words[i+1:]))
		end, first := len(path)-1, slices.Index(path, "")
		switch {
		case first < 0:
			r.documents[sumOf(path...)] = true
		case path[end] == "":
			r.documents[sumOf(path[:first]...)] = true
		default:
			r.within[sumOf(append(path[:first:first], path[end])...)] = true
		}
	}
}

// mostOfPath bounds the words of a path that are looked at: brackets in brackets would be, again and again.
const mostOfPath = 100

// pathOf are the names of a path into a document, with which words begin; "" stands for any, and for what is not looked
// at.
func pathOf(words []string) (out []string) {
	cut := len(words) > mostOfPath
	words = words[:min(len(words), mostOfPath)]
	for len(words) > 0 {
		name, n := "", 2
		switch {
		case words[0] == "." && len(words) > 1:
			name = words[1]
		case words[0] != "[":
			return out
		case len(words) > 2 && isName(words[1]) && words[2] == "]":
			name, n = words[1][1:len(words[1])-1], 3
		default:
			n = closed(words)
		}
		out, words = append(out, short(name)), words[n:]
	}
	if cut {
		out = append(out, "")
	}
	return out
}

func isName(word string) bool {
	return len(word) > 1 && (word[0] == '`' || word[0] == '"' && !strings.Contains(word, `\`))
}

// closed counts the words up to the end of the bracket that they begin with.
func closed(words []string) int {
	deep := 0
	for i, word := range words {
		switch {
		case slices.Contains(opening, word):
			deep++
		case slices.Contains(closing, word):
			deep--
		}
		if deep == 0 {
			return i + 1
		}
	}
	return len(words)
}
