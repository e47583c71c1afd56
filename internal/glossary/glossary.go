// Package glossary explains the words of reports, files and pages: questions, metrics, outcomes, verdicts, signatures
// and field names. Areas add their own.
package glossary

import (
	_ "embed"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"tare/area"
	"tare/internal/spelling"
)

//go:embed words.md
var words string

// An Entry explains one word.
type Entry struct {
	Word   string
	Kinds  []string // "question", "metric", "verdict", "signature", "outcome", "report", …
	Also   []string // words that this entry explains with it
	Text   string   // one paragraph
	Source string   // where the idea, the formula or the protocol comes from; "tare" for our own
}

// A Glossary is a list of entries in the order of their words.
type Glossary []Entry

// Core explains the words that do not depend on areas.
var Core = sync.OnceValue(func() Glossary { return Of(nil) })

// Of explains the words of tare and of these areas, which have them in words.md.
func Of(areas []area.Area) Glossary {
	var names []string
	var own []Entry
	for _, a := range areas {
		names = append(names, a.Name())
		if files := a.Parts().Files; files != nil {
			if text, err := fs.ReadFile(files, "words.md"); err == nil {
				own = append(own, parse(string(text))...)
			}
		}
	}
	list := ""
	if len(names) > 0 {
		list = ": " + strings.Join(names, ", ")
	}
	all := append(parse(strings.ReplaceAll(words, "{areas}", list)), own...)
	slices.SortStableFunc(all, func(a, b Entry) int { return strings.Compare(key(a.Word), key(b.Word)) })
	return all
}

// parse reads "## word", then "name: value" lines around one paragraph.
func parse(text string) []Entry {
	var out []Entry
	sections := strings.Split(text, "\n## ")
	for _, s := range sections[1:] {
		word, body, _ := strings.Cut(s, "\n")
		e := Entry{Word: strings.TrimSpace(word)}
		for line := range strings.Lines(body) {
			line = strings.TrimSpace(line)
			switch name, value, _ := strings.Cut(line, ": "); name {
			case "kind":
				e.Kinds = strings.Split(value, ", ")
			case "also":
				e.Also = strings.Split(value, ", ")
			case "source":
				e.Source = value
			default:
				e.Text = strings.TrimSpace(e.Text + " " + line)
			}
		}
		out = append(out, e)
	}
	return out
}

// key makes spellings of a word equal: "Pool wait", "pool-wait" and "pool_wait".
func key(word string) string {
	return strings.NewReplacer("_", " ", "-", " ").Replace(strings.ToLower(strings.TrimSpace(word)))
}

// Lookup finds the entry that explains word, whatever its spelling. If there is none, near are at most three words that
// are alike.
func (g Glossary) Lookup(word string) (e Entry, near []string, ok bool) {
	k := key(word)
	for _, e := range g {
		if key(e.Word) == k {
			return e, nil, true
		}
	}
	for _, e := range g {
		for _, a := range e.Also {
			if key(a) == k {
				return e, nil, true
			}
		}
	}
	return Entry{}, g.alike(k), false
}

// alike are the words closest to k: by their beginning, or with a third of the letters mistyped at most.
func (g Glossary) alike(k string) []string {
	if k == "" || len(k) > spelling.Longest {
		return nil
	}
	type candidate struct {
		word string
		d    int
	}
	var found []candidate
	for _, e := range g {
		for _, w := range append([]string{e.Word}, e.Also...) {
			d := spelling.Distance(k, key(w))
			if len(k) >= 3 && (strings.HasPrefix(key(w), k) || strings.Contains(key(w), k)) {
				d = min(d, 1)
			}
			if d <= max(1, len(k)/3) {
				found = append(found, candidate{w, d})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return a.d - b.d })
	var out []string
	for _, c := range found[:min(3, len(found))] {
		out = append(out, c.word)
	}
	return out
}
