package identity

import (
	"bytes"
	"strings"
)

// maxElements bounds the nesting of answers in XML that are accepted.
const maxElements = 16

// pickXML finds texts in the document that is the whole of b, whose outermost element is root: that of the element
// "Parent/Name" k goes to out[k], without blanks around it, and stays nil where there is none. It is false when b is
// malformed, holds one of them twice, or holds what answers in XML need not: comments, CDATA, a DOCTYPE, entities in
// such a text. It does not allocate.
func pickXML(b []byte, root string, out [][]byte, paths ...string) bool {
	clear(out)
	var open [maxElements][]byte
	depth, leaf := 0, false
	x := tags{src: withoutDeclaration(b)}
	for {
		tag, before, ok := x.next()
		if !ok {
			return false
		}
		name, closes, empty := tag.name, tag.closes, tag.empty
		switch {
		case !leaf && len(before) > 0: // text beside elements
			return false
		case closes && (depth == 0 || !bytes.Equal(open[depth-1], name)):
			return false
		case !closes && (depth == maxElements || leaf && len(before) > 0):
			return false
		case depth == 0 && string(name) != root:
			return false
		}
		if closes {
			depth--
		}
		if (closes && leaf || empty) && depth > 0 && !put(out, paths, open[depth-1], name, before) {
			return false
		}
		if !closes && !empty {
			open[depth] = name
			depth++
		}
		if leaf = !closes && !empty; depth == 0 {
			return x.at == len(x.src)
		}
	}
}

// put stores the text of an element in out, if it is one of paths and the first.
func put(out [][]byte, paths []string, parent, name, text []byte) bool {
	for k, path := range paths {
		p, n, _ := strings.Cut(path, "/")
		if p != string(parent) || n != string(name) {
			continue
		}
		if out[k] != nil || bytes.IndexByte(text, '&') >= 0 {
			return false
		}
		if out[k] = text; text == nil {
			out[k] = name[:0] // it is there, and empty
		}
	}
	return true
}

// withoutDeclaration returns b without white space around it and without <?xml …?>.
func withoutDeclaration(b []byte) []byte {
	b = bytes.TrimSpace(b)
	if rest, ok := bytes.CutPrefix(b, []byte("<?xml ")); ok {
		if _, rest, ok = bytes.Cut(rest, []byte("?>")); ok {
			return bytes.TrimSpace(rest)
		}
	}
	return b
}

// tags goes through the tags of a document.
type tags struct {
	src []byte
	at  int
}

// A tag is one: <name>, </name> or <name/>.
type tag struct {
	name          []byte
	closes, empty bool
}

// next returns the next tag, and the text before it without blanks around it.
func (x *tags) next() (t tag, before []byte, ok bool) {
	rest := x.src[x.at:]
	from := bytes.IndexByte(rest, '<')
	if from < 0 {
		return t, nil, false
	}
	to := bytes.IndexByte(rest[from:], '>')
	if to < 0 {
		return t, nil, false
	}
	inner := rest[from+1 : from+to]
	x.at += from + to + 1
	if inner, t.closes = bytes.CutPrefix(inner, []byte("/")); !t.closes {
		inner, t.empty = bytes.CutSuffix(inner, []byte("/"))
	}
	end := bytes.IndexAny(inner, " \t\r\n")
	if end < 0 {
		end = len(inner)
	}
	t.name = inner[:end]
	ok = isXMLName(t.name) && (!t.closes && areAttributes(inner[end:]) || len(bytes.TrimSpace(inner[end:])) == 0)
	return t, bytes.TrimSpace(rest[:from]), ok
}

// areAttributes reports whether b is any number of name="value", with blanks before each.
func areAttributes(b []byte) bool {
	for {
		rest := bytes.TrimLeft(b, " \t\r\n")
		if len(rest) == 0 || len(rest) == len(b) {
			return len(rest) == 0
		}
		name, value, ok := bytes.Cut(rest, []byte("="))
		if !ok || !isXMLName(name) || len(value) == 0 || value[0] != '"' && value[0] != '\'' {
			return false
		}
		end := bytes.IndexByte(value[1:], value[0])
		if end < 0 || bytes.IndexByte(value[:end+1], '<') >= 0 {
			return false
		}
		b = value[end+2:]
	}
}

// isXMLName reports whether b can be the name of an element or attribute in ASCII.
func isXMLName(b []byte) bool {
	for i, c := range b {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '-' && c != '.' && c != ':') {
			return false
		}
	}
	return len(b) > 0
}
