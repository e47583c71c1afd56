// Package jsonscan reads JSON (RFC 8259) in answers under load: it finds members of objects and elements of arrays
// without allocating, and rejects a text that is malformed anywhere.
package jsonscan

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth bounds the nesting of texts that are accepted.
const MaxDepth = 64

// Pick finds members of the object b by name: the raw value of names[k] goes to out[k], which stays nil if b lacks that
// name. It returns false if b is no object, is malformed anywhere, or holds one of the names twice, since readers
// differ in which of the two they take (section 4). It moves b to the heap; for a b on the stack use Object or Member.
func Pick(b []byte, out [][]byte, names ...string) bool {
	clear(out)
	s := Object(b)
	for {
		key, value, more := s.Next()
		if !more {
			return s.Whole()
		}
		for k, name := range names {
			if !Is(key, name) {
				continue
			}
			if out[k] != nil {
				return false
			}
			out[k] = value
		}
	}
}

// Member returns the raw member of that name of the object b, nil if b lacks it. ok is false as with Pick. It leaves b
// on the stack.
func Member(b []byte, name string) (raw []byte, ok bool) {
	s := Object(b)
	for {
		key, value, more := s.Next()
		switch {
		case !more && s.Whole():
			return raw, true
		case !more, Is(key, name) && raw != nil:
			return nil, false
		case Is(key, name):
			raw = value
		}
	}
}

// A Scanner iterates over the members of one object, or the elements of one array. It keeps a position, not slices: a
// slice that is stored through a pointer would move its array to the heap.
type Scanner struct {
	src   []byte
	at    int  // where the next thing begins; −1: malformed, or at the end
	end   byte // what ends it
	first bool
	whole bool
}

// Object returns a Scanner of the object b, which white space may surround.
func Object(b []byte) Scanner { return begin(b, '{') }

// Array returns a Scanner of the array b, which white space may surround.
func Array(b []byte) Scanner { return begin(b, '[') }

func begin(b []byte, open byte) Scanner {
	s := Scanner{src: b, at: blank(b, 0), end: open + 2, first: true} // '{'+2 is '}', '['+2 is ']'
	if s.at >= len(b) || b[s.at] != open {
		s.at = -1
		return s
	}
	s.at++
	return s
}

// Next returns the next member or element: its quoted name, nil in an array, and its raw value. ok is false at the end
// of the text and at an error: Whole distinguishes them.
func (s *Scanner) Next() (key, raw []byte, ok bool) {
	i, b := s.at, s.src
	s.at = -1
	if i < 0 {
		return nil, nil, false
	}
	i = blank(b, i)
	if i < len(b) && b[i] == s.end {
		s.whole = blank(b, i+1) == len(b)
		return nil, nil, false
	}
	if !s.first {
		if i >= len(b) || b[i] != ',' {
			return nil, nil, false
		}
		i = blank(b, i+1)
	}
	s.first = false
	if s.end == '}' {
		end := quoted(b, i)
		colon := blank(b, end)
		if end < 0 || colon >= len(b) || b[colon] != ':' {
			return nil, nil, false
		}
		key = b[i:end]
		i = blank(b, colon+1)
	}
	if s.at = value(b, i, 2); s.at < 0 {
		return nil, nil, false
	}
	return key, b[i:s.at], true
}

// Whole reports whether Next has reached the end of a well-formed object or array, with nothing after it.
func (s *Scanner) Whole() bool { return s.whole }

// Text returns the content of a string without escapes, nil for anything else: tokens, types and addresses need no
// escapes.
func Text(raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' || bytes.IndexByte(raw, '\\') >= 0 {
		return nil
	}
	return raw[1 : len(raw)-1]
}

// Is reports whether raw is a string equal to want, escapes included: "\u0064eny" equals deny. It does not decode
// surrogate pairs.
func Is[T string | []byte](raw []byte, want T) bool {
	if len(raw) < len(want)+2 || raw[0] != '"' { // escapes only make it longer
		return false
	}
	raw = raw[1 : len(raw)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw) == string(want)
	}
	for len(raw) > 0 {
		var buf [utf8.UTFMax]byte
		c, n := character(buf[:0], raw)
		if n == 0 || len(want) < len(c) || string(want[:len(c)]) != string(c) {
			return false
		}
		raw, want = raw[n:], want[len(c):]
	}
	return len(want) == 0
}

// character appends the first byte of b, the inside of a string, or the character of the escape there. n is the number
// of bytes that it takes in b; 0: unsupported escape.
func character(dst, b []byte) (c []byte, n int) {
	switch {
	case b[0] != '\\':
		return append(dst, b[0]), 1
	case len(b) < 2:
		return nil, 0
	case b[1] == 'u' && len(b) >= 6:
		r := codePoint(b[2:6])
		if utf16.IsSurrogate(r) {
			return nil, 0
		}
		return utf8.AppendRune(dst, r), 6
	}
	const names, chars = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	if i := bytes.IndexByte([]byte(names), b[1]); i >= 0 {
		return append(dst, chars[i]), 2
	}
	return nil, 0
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

// Int returns the value of a number without fraction or exponent, of up to 18 digits.
func Int(raw []byte) (int64, bool) {
	minus := len(raw) > 0 && raw[0] == '-'
	d := raw
	if minus {
		d = raw[1:]
	}
	if n := Digits(d); n == 0 || n != len(d) || n > 18 {
		return 0, false
	}
	v := int64(0)
	for _, c := range d {
		v = v*10 + int64(c-'0')
	}
	if minus {
		v = -v
	}
	return v, true
}

// IsNumber reports whether all of b is a number.
func IsNumber(b []byte) bool { return len(b) > 0 && number(b, 0) == len(b) }

// IsValue reports whether b is exactly one value, with nothing around it.
func IsValue(b []byte) bool { return len(b) > 0 && value(b, 0, 1) == len(b) }

// Digits returns the number of digits at the start of b.
func Digits(b []byte) int {
	n := 0
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	return n
}

// IsBlank reports whether b is nothing but white space.
func IsBlank(b []byte) bool { return blank(b, 0) == len(b) }

// The functions below take a text and a position in it, and return a position, or −1 if the text is malformed.

// blank returns the first position from i on without white space.
func blank(b []byte, i int) int {
	for i >= 0 && i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// value returns the end of the value that begins at i; depth is the nesting of an object or array there, from 1.
func value(b []byte, i, depth int) int {
	if i < 0 || i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return quoted(b, i)
	case '{', '[':
		if depth > MaxDepth {
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

// nested returns the end of the object or array that begins at i.
func nested(b []byte, i, depth int) int {
	object := b[i] == '{'
	end := b[i] + 2
	i = blank(b, i+1)
	if i < len(b) && b[i] == end {
		return i + 1
	}
	for {
		if object {
			i = quoted(b, i)
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

// quoted returns the end of the string that begins at i, after its closing quote.
func quoted(b []byte, i int) int {
	if i < 0 || i >= len(b) || b[i] != '"' {
		return -1
	}
	for i += 1 + plain(b[i+1:]); i < len(b); i++ {
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

// plain returns a number of bytes at the start of b that are plain characters of a string. It tests eight at a time:
// tokens are long, and every answer under load is read. The tests for a byte below n and for a byte equal to c are
// those of Hacker's Delight, section 6-1; a false positive only ends the count early.
func plain(b []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^(ones*'"'), x^(ones*'\\')
		if ((x-ones*' ')&^x|(quote-ones)&^quote|(slash-ones)&^slash)&highs != 0 {
			break
		}
	}
	return i
}

// escape returns the length of an escape without its backslash; 0: invalid.
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

// number returns the end of the number that begins at i.
func number(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	n := Digits(b[i:])
	if n == 0 || (b[i] == '0' && n > 1) {
		return -1
	}
	i += n
	if i < len(b) && b[i] == '.' {
		if n = Digits(b[i+1:]); n == 0 {
			return -1
		}
		i += 1 + n
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if n = Digits(b[i:]); n == 0 {
			return -1
		}
		i += n
	}
	return i
}
