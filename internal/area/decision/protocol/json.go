package protocol

import (
	"bytes"
	"unicode/utf8"
)

// Reading JSON (RFC 8259) without allocating: functions over a text and a position in it. A position of −1 is a text that is malformed.

// maxDepth bounds the nesting of answers that are accepted.
const maxDepth = 64

// pick finds members of the object that is the whole of b, by name: value k goes to out[k], raw, and stays nil where there is none. It is false
// when b is no object, is malformed anywhere, or holds one of the names twice: readers differ in which of the two they take (section 4).
func pick(b []byte, out [][]byte, names ...string) bool {
	clear(out)
	w := walk(b, '{')
	for w.next() {
		for k, name := range names {
			if !means(w.key, name) {
				continue
			}
			if out[k] != nil {
				return false
			}
			out[k] = w.value
		}
	}
	return w.whole()
}

// A walker goes through the members of one object, or the elements of one array, that is the whole of a text.
type walker struct {
	src   []byte
	at    int  // where the next thing begins; −1: malformed, or at the end
	close byte // what ends it
	first bool
	ended bool
	// key is the member's name with its quotes, nil in an array. value is raw.
	key, value []byte
}

// walk begins at an object ('{') or array ('[').
func walk(b []byte, open byte) walker {
	w := walker{src: b, at: blank(b, 0), close: open + 2, first: true} // '{'+2 is '}', '['+2 is ']'
	if w.at >= len(b) || b[w.at] != open {
		w.at = -1
		return w
	}
	w.at++
	return w
}

// next goes to the next thing; false at the end, be it good or bad.
func (w *walker) next() bool {
	i := w.at
	w.at = -1
	if i < 0 {
		return false
	}
	i = blank(w.src, i)
	if i < len(w.src) && w.src[i] == w.close {
		w.ended = blank(w.src, i+1) == len(w.src)
		return false
	}
	if !w.first {
		if i >= len(w.src) || w.src[i] != ',' {
			return false
		}
		i = blank(w.src, i+1)
	}
	w.first = false
	if w.close == '}' {
		end := text(w.src, i)
		colon := blank(w.src, end)
		if end < 0 || colon >= len(w.src) || w.src[colon] != ':' {
			return false
		}
		w.key = w.src[i:end]
		i = blank(w.src, colon+1)
	}
	end := value(w.src, i, 2)
	if end < 0 {
		return false
	}
	w.value, w.at = w.src[i:end], end
	return true
}

// whole reports whether next has reached the end of something well-formed.
func (w *walker) whole() bool { return w.ended }

// blank is the first position from i on that is no white space.
func blank(b []byte, i int) int {
	for i >= 0 && i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// value is the end of the value that begins at i; depth is that of an object or array there, from 1 for the outermost.
func value(b []byte, i, depth int) int {
	if i < 0 || i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return text(b, i)
	case '{', '[':
		if depth > maxDepth {
			return -1
		}
		return nested(b, i, depth)
	case 't':
		return word(b, i, "true")
	case 'f':
		return word(b, i, "false")
	case 'n':
		return word(b, i, "null")
	}
	return number(b, i)
}

func word(b []byte, i int, w string) int {
	if len(b)-i >= len(w) && string(b[i:i+len(w)]) == w {
		return i + len(w)
	}
	return -1
}

// nested is the end of the object or array that begins at i.
func nested(b []byte, i, depth int) int {
	object := b[i] == '{'
	end := b[i] + 2
	i = blank(b, i+1)
	if i < len(b) && b[i] == end {
		return i + 1
	}
	for {
		if object {
			i = text(b, i)
			if i = blank(b, i); i < 0 || i >= len(b) || b[i] != ':' {
				return -1
			}
			i = blank(b, i+1)
		}
		i = blank(b, value(b, i, depth+1))
		switch {
		case i < 0 || i >= len(b):
			return -1
		case b[i] == end:
			return i + 1
		case b[i] != ',':
			return -1
		}
		i = blank(b, i+1)
	}
}

// text is the end of the string that begins at i, behind its closing quote.
func text(b []byte, i int) int {
	if i < 0 || i >= len(b) || b[i] != '"' {
		return -1
	}
	for i++; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c < ' ':
			return -1
		case c == '\\':
			n := escape(b[i+1:])
			if n == 0 {
				return -1
			}
			i += n
		}
	}
	return -1
}

// escape is the length of an escape after its backslash; 0: it is none.
func escape(b []byte) int {
	switch {
	case len(b) == 0:
		return 0
	case bytes.IndexByte([]byte(`"\/bfnrt`), b[0]) >= 0:
		return 1
	case b[0] != 'u' || len(b) < 5:
		return 0
	}
	for _, c := range b[1:5] {
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
			return 0
		}
	}
	return 5
}

// number is the end of the number that begins at i.
func number(b []byte, i int) int {
	if i < len(b) && b[i] == '-' {
		i++
	}
	n := digits(b, i)
	if n == 0 || (b[i] == '0' && n > 1) {
		return -1
	}
	i += n
	if i < len(b) && b[i] == '.' {
		if n = digits(b, i+1); n == 0 {
			return -1
		}
		i += 1 + n
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if n = digits(b, i); n == 0 {
			return -1
		}
		i += n
	}
	return i
}

// digits is how many digits there are from i on.
func digits(b []byte, i int) int {
	n := 0
	for i+n < len(b) && b[i+n] >= '0' && b[i+n] <= '9' {
		n++
	}
	return n
}

// means reports whether raw is a string, with its quotes, that says want: "\u0064eny" means deny as well. Want is ASCII.
func means(raw []byte, want string) bool {
	if len(raw) < 2 || raw[0] != '"' {
		return false
	}
	raw = raw[1 : len(raw)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw) == want
	}
	for k := range len(want) {
		c, n := character(raw)
		if n == 0 || c != rune(want[k]) {
			return false
		}
		raw = raw[n:]
	}
	return len(raw) == 0
}

// character is the first character of a string's inside, and how many bytes say it. It is −1 for what is not ASCII; 0 bytes: there is none.
func character(b []byte) (rune, int) {
	switch {
	case len(b) == 0:
		return -1, 0
	case b[0] >= utf8.RuneSelf:
		return -1, 1
	case b[0] != '\\':
		return rune(b[0]), 1
	case len(b) < 2:
		return -1, 0
	case b[1] == 'u' && len(b) >= 6:
		return codePoint(b[2:6]), 6
	}
	const names, chars = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	if i := bytes.IndexByte([]byte(names), b[1]); i >= 0 {
		return rune(chars[i]), 2
	}
	return -1, 0
}

func codePoint(b []byte) rune {
	v := rune(0)
	for _, c := range b {
		v <<= 4
		switch {
		case c <= '9':
			v |= rune(c - '0')
		default:
			v |= rune(c|0x20-'a') + 10
		}
	}
	return v
}

// isTrue reports whether a value is true; known is false when it is neither true nor false.
func isTrue(raw []byte) (yes, known bool) {
	yes = string(raw) == "true"
	return yes, yes || string(raw) == "false"
}

// isNull reports whether a value is null or not there.
func isNull(raw []byte) bool { return raw == nil || string(raw) == "null" }

// notWhole is the verdict on a body that has not the promised form: nothing at all, or no JSON.
func notWhole(body []byte) Verdict {
	if blank(body, 0) == len(body) {
		return NoDecision
	}
	return NotJSON
}
