package cedarset

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cedar-policy/cedar-go"
)

// The slots of a template.
const (
	principalSlot = "?principal"
	resourceSlot  = "?resource"
)

// idAnnotation names a policy or a template.
const idAnnotation = "id"

// A template is a policy with slots, a part of its file.
type template struct {
	file
	statement
	title  string // its annotation id, the name of its file if it stands there alone, or its number in that
	linked bool   // a link makes a policy of it
}

// A slot is a place of a text.
type slot struct {
	name     string
	from, to int
	late     bool // it stands in a condition
}

// split takes the templates out of a file of policies: cedar-go reads none. It returns the other policies with blanks
// in place of templates.
func (f file) split(into map[string]*template) ([]byte, error) {
	rest := bytes.Clone(f.text)
	all := statements(f.text)
	end, lines, characters := 0, 0, 0
	for n, one := range all {
		between := f.text[end:one.from]
		if more := bytes.Count(between, []byte("\n")); more > 0 {
			lines, characters = lines+more, 0
		}
		characters += utf8.RuneCount(between[bytes.LastIndexByte(between, '\n')+1:])
		end = one.from
		if len(one.slots) == 0 {
			continue
		}
		t := &template{file: file{f.path, f.text, lines, characters}, statement: one}
		id, err := t.id()
		if err != nil {
			return nil, err
		}
		numbered := "policy" + strconv.Itoa(n)
		switch {
		case id != "":
			t.title = id
		case len(all) == 1:
			t.title = strings.TrimSuffix(filepath.Base(f.path), policyEnd)
			if was, known := into[numbered]; !known {
				into[numbered] = t
			} else if was != nil && was.title != numbered {
				into[numbered] = nil // which of several files is meant is not known
			}
		default:
			t.title = numbered
		}
		if was := into[t.title]; was != nil && was != t && was.title == t.title {
			return nil, fmt.Errorf("%s: there is a template %q in %s already", f.path, t.title, was.path)
		}
		into[t.title] = t
		blank(rest[one.from:one.to])
	}
	return rest, nil
}

// unlinked are the templates of which no link makes a policy.
func unlinked(templates map[string]*template) (out []*template) {
	for name, t := range templates {
		if t != nil && name == t.title && !t.linked {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *template) int { return cmp.Compare(a.title, b.title) })
	return out
}

// blank leaves of a text only the ends of lines.
func blank(text []byte) {
	for i, c := range text {
		if c != '\n' {
			text[i] = ' '
		}
	}
}

// A statement is one policy or template of a text.
type statement struct {
	from, to  int
	slots     []slot
	condition bool // one has begun
}

// statements are the policies and templates of a text, as far as they end.
func statements(text []byte) (out []statement) {
	var is statement
	for i := 0; i < len(text); {
		n := lexeme(text[i:])
		switch word := string(text[i : i+n]); word {
		case principalSlot, resourceSlot:
			is.slots = append(is.slots, slot{name: word, from: i, to: i + n, late: is.condition})
		case "{":
			is.condition = true
		case ";":
			is.to = i + n
			out = append(out, is)
			is = statement{from: i + n}
		}
		i += n
	}
	return out
}

// lexeme is the length of what a text begins with: a comment, a string, a slot, or else one byte.
func lexeme(text []byte) int {
	switch {
	case bytes.HasPrefix(text, []byte("//")):
		return upTo(text, '\n')
	case text[0] == '"':
		return quoted(text)
	case bytes.HasPrefix(text, []byte(principalSlot)):
		return len(principalSlot)
	case bytes.HasPrefix(text, []byte(resourceSlot)):
		return len(resourceSlot)
	}
	return 1
}

// upTo is the length of a text up to a byte, or of all of it.
func upTo(text []byte, end byte) int {
	if i := bytes.IndexByte(text, end); i >= 0 {
		return i
	}
	return len(text)
}

// quoted is the length of the string that a text begins with.
func quoted(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// joined is a text in which each string stands on one line, as cedar-go wants it: its ends of lines are escaped, and
// stand after it, so that what follows has its line.
func joined(text []byte) (out []byte) {
	end := []byte("\n")
	for i := 0; i < len(text); {
		n := lexeme(text[i:])
		word, lines := text[i:i+n], 0
		if word[0] == '"' {
			lines = bytes.Count(word, end)
			word = bytes.ReplaceAll(word, end, []byte(`\n`))
		}
		out = append(append(out, word...), bytes.Repeat(end, lines)...)
		i += n
	}
	return out
}

// id is the annotation of a template, empty if it has none.
func (t template) id() (string, error) {
	policy, err := t.example()
	if err != nil {
		return "", err
	}
	return string(policy.Annotations()[idAnnotation]), nil
}

// example is the policy with some entity in each slot.
func (t template) example() (*cedar.Policy, error) {
	some := cedar.NewEntityUID("Example", "")
	return t.with(map[string]cedar.EntityUID{principalSlot: some, resourceSlot: some})
}

// with is the policy with entities in its slots.
func (t template) with(entities map[string]cedar.EntityUID) (*cedar.Policy, error) {
	var out []byte
	at := t.from
	for _, s := range t.slots {
		if s.late {
			return nil, fmt.Errorf("%s: %s in a condition: a slot can only stand in the scope of a policy", t.path, s.name)
		}
		out = append(out, t.text[at:s.from]...)
		out = append(out, entities[s.name].MarshalCedar()...)
		at = s.to
	}
	all, err := t.parse(append(out, t.text[at:t.to]...))
	if err != nil {
		return nil, err
	}
	policy := all.Get("policy0")
	if policy == nil {
		return nil, fmt.Errorf("%s: the template is no policy", t.path)
	}
	return policy, nil
}

// mostLinked bounds the text of the policies that links make of templates. In memory it is a hundred times as long.
const mostLinked = 4 << 20

// A link makes a policy of a template.
type link struct {
	Template string            `json:"template_id"`
	ID       string            `json:"link_id"`
	Args     map[string]string `json:"args"`
}

// readLinks adds the policies that a file of links makes of templates, in the form that Cedar's command line reads.
func (s *Set) readLinks(from file, templates map[string]*template) error {
	var links []link
	if err := decode(from.text, &links); err != nil {
		return fmt.Errorf("%s: links of templates are a list of {template_id, link_id, args}: %w", from.path, err)
	}
	for _, l := range links {
		at := fmt.Sprintf("%s: link %q", from.path, l.ID)
		t := templates[l.Template]
		if t == nil {
			return fmt.Errorf("%s: there is no template %q; there are %s", at, l.Template, names(templates))
		}
		entities, err := t.entities(l.Args)
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		if s.linked += t.to - t.from; s.linked > mostLinked {
			return fmt.Errorf("%s: links make more than %d MiB of policies", at, mostLinked>>20)
		}
		policy, err := t.with(entities)
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		id := cedar.PolicyID(from.path + "#" + l.ID)
		if !s.Policies.Add(id, policy) {
			return fmt.Errorf("%s is there twice", at)
		}
		t.linked = true
		s.links[id] = l.ID
	}
	return nil
}

func names(templates map[string]*template) string {
	var out []string
	for name, t := range templates {
		if t != nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return cmp.Or(strings.Join(out, ", "), "none")
}

// entities are what a link puts into the slots: each of them, and nothing else.
func (t template) entities(args map[string]string) (map[string]cedar.EntityUID, error) {
	out := map[string]cedar.EntityUID{}
	for name, text := range args {
		var uid cedar.EntityUID
		if err := uid.UnmarshalCedar([]byte(text)); err != nil {
			return nil, fmt.Errorf("%s: %q is no entity: %w", name, text, err)
		}
		out[name] = uid
	}
	wanted := map[string]bool{}
	for _, s := range t.slots {
		wanted[s.name] = true
		if _, ok := out[s.name]; !ok {
			return nil, fmt.Errorf("args: %s is missing", s.name)
		}
	}
	for name := range out {
		if !wanted[name] {
			return nil, fmt.Errorf("args: the template has no %s", name)
		}
	}
	return out, nil
}
