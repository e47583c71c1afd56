package cedarset

import (
	"bytes"
	"fmt"
	"unicode"

	"tare/areas/bundle"
)

// mostNested bounds what may be nested in one policy. Cedar's parser and what walks its trees call themselves for each
// bracket and each operator, and a Go program ends when its stack is full.
const mostNested = 20_000

// nests are the characters of brackets and operators, but for commas and colons.
var nests = [256]bool{
	'(': true, '[': true, '{': true, '<': true, '.': true, '!': true, '-': true, '+': true, '*': true, '&': true,
	'|': true,
}

// checkNested refuses a policy, or a declaration of a schema, in which too much is nested.
func (f file) checkNested() error {
	text, begin, count := f.text, 0, 0
	path := 0 // how many names the path after a "has" holds so far: Cedar makes of it a chain of tests of each beginning
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			i = afterString(text, i)
		case c == '/' && i+1 < len(text) && text[i+1] == '/':
			if end := bytes.IndexByte(text[i:], '\n'); end >= 0 {
				i += end
			} else {
				i = len(text)
			}
		case c == ';':
			begin, count, path = i+1, 0, 0
		case c == 'h' && isWord(text, i, "has"):
			path = 1
		case c == '.' && path > 0:
			path++
			count += path
		case nests[c], c == 'i' && isWord(text, i, "if"):
			count++
			path = 0
		}
		if count > mostNested {
			begin += len(text[begin:]) - len(bytes.TrimLeftFunc(text[begin:], unicode.IsSpace))
			at := bundle.Place{File: f.path, Line: 1 + bytes.Count(text[:begin], []byte("\n"))}
			return fmt.Errorf("%s: more than %d brackets and operators before the next semicolon: divide it", at, mostNested)
		}
	}
	return nil
}

// afterString is where the string ends that begins at i: at its quotation mark, or at the end of the text.
func afterString(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}

func isWord(text []byte, i int, word string) bool {
	before := i > 0 && isLetter(text[i-1])
	end := i + len(word)
	return !before && bytes.HasPrefix(text[i:], []byte(word)) && (end == len(text) || !isLetter(text[end]))
}

func isLetter(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
