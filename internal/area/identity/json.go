package identity

import (
	"bytes"
	"encoding/binary"
)

// maxDepth bounds the nesting of answers that are accepted.
const maxDepth = 64

// A members walks the members of one JSON object (RFC 8259) without allocating. Keys and values are raw: keys without their quotes,
// values with them. It keeps a position, not a rest: a slice that is stored through a pointer would move its array to the heap.
type members struct {
	src   []byte
	at    int
	state int8 // 0: before the first member, 1: after one, 2: ended well, −1: malformed
}

// walk begins at an object. What follows the object must be white space.
func walk(b []byte) members {
	at := len(b) - len(blank(b))
	if at == len(b) || b[at] != '{' {
		return members{state: -1}
	}
	return members{src: b, at: at + 1}
}

// next returns the next member; ok is false at the end, be it good or bad.
func (m *members) next() (key, value []byte, ok bool) {
	if m.state == 2 || m.state < 0 {
		return nil, nil, false
	}
	b := blank(m.src[m.at:])
	first := m.state == 0
	m.state = -1
	if len(b) == 0 {
		return nil, nil, false
	}
	if b[0] == '}' {
		if len(blank(b[1:])) == 0 {
			m.state = 2
		}
		return nil, nil, false
	}
	if !first {
		if b[0] != ',' {
			return nil, nil, false
		}
		b = blank(b[1:])
	}
	n := str(b)
	if n == 0 {
		return nil, nil, false
	}
	key, b = b[1:n-1], blank(b[n:])
	if len(b) == 0 || b[0] != ':' {
		return nil, nil, false
	}
	b = blank(b[1:])
	if n = valueLen(b, 1); n == 0 {
		return nil, nil, false
	}
	m.state = 1
	m.at = len(m.src) - len(b) + n
	return key, b[:n], true
}

// whole reports whether next has reached the end of a well-formed object.
func (m *members) whole() bool { return m.state == 2 }

func blank(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\n' || b[0] == '\t' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

// valueLen is the length of the value at the beginning of b; 0: malformed, or nested too deeply.
func valueLen(b []byte, depth int) int {
	if len(b) == 0 || depth > maxDepth {
		return 0
	}
	switch b[0] {
	case '"':
		return str(b)
	case '{', '[':
		return nested(b, depth)
	case 't':
		return word(b, "true")
	case 'f':
		return word(b, "false")
	case 'n':
		return word(b, "null")
	}
	return number(b)
}

func word(b []byte, w string) int {
	if len(b) >= len(w) && string(b[:len(w)]) == w {
		return len(w)
	}
	return 0
}

// nested is the length of an object or array.
func nested(b []byte, depth int) int {
	object := b[0] == '{'
	end := byte(']')
	if object {
		end = '}'
	}
	rest := blank(b[1:])
	if len(rest) > 0 && rest[0] == end {
		return len(b) - len(rest) + 1
	}
	for {
		if object {
			n := str(rest)
			if n == 0 {
				return 0
			}
			if rest = blank(rest[n:]); len(rest) == 0 || rest[0] != ':' {
				return 0
			}
			rest = blank(rest[1:])
		}
		n := valueLen(rest, depth+1)
		if n == 0 {
			return 0
		}
		rest = blank(rest[n:])
		switch {
		case len(rest) == 0:
			return 0
		case rest[0] == end:
			return len(b) - len(rest) + 1
		case rest[0] != ',':
			return 0
		}
		rest = blank(rest[1:])
	}
}

// str is the length of the string at the beginning of b, with its quotes.
func str(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return 0
	}
	for i := 1 + plain(b[1:]); i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c < ' ':
			return 0
		case c == '\\':
			n := escape(b[i+1:])
			if n == 0 {
				return 0
			}
			i += n
		}
	}
	return 0
}

// plain is how many bytes at the beginning of b surely mean themselves in a string. It looks at eight at a time: tokens are long, and every
// answer under load is read. The tests for a byte below n and for a byte equal to c are those of Hacker's Delight, section 6-1;
// a false alarm only ends the count early.
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

// escape is the length of an escape after its backslash.
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

// number is the length of the number at the beginning of b.
func number(b []byte) int {
	i := 0
	if i < len(b) && b[i] == '-' {
		i++
	}
	n := digits(b[i:])
	if n == 0 || (b[i] == '0' && n > 1) {
		return 0
	}
	i += n
	if i < len(b) && b[i] == '.' {
		if n = digits(b[i+1:]); n == 0 {
			return 0
		}
		i += 1 + n
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if n = digits(b[i:]); n == 0 {
			return 0
		}
		i += n
	}
	return i
}

func digits(b []byte) int {
	n := 0
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	return n
}

// text is the content of a string value that holds no escapes, nil for anything else; tokens, types and addresses never need any.
func text(value []byte) []byte {
	if len(value) < 2 || value[0] != '"' || bytes.IndexByte(value, '\\') >= 0 {
		return nil
	}
	return value[1 : len(value)-1]
}

// whole64 is the value of a number without fraction or exponent that fits into 18 digits.
func whole64(value []byte) (int64, bool) {
	neg := len(value) > 0 && value[0] == '-'
	d := value
	if neg {
		d = value[1:]
	}
	if n := digits(d); n == 0 || n != len(d) || n > 18 {
		return 0, false
	}
	v := int64(0)
	for _, c := range d {
		v = v*10 + int64(c-'0')
	}
	if neg {
		v = -v
	}
	return v, true
}

// members8 notes which of up to eight members of an object were there, and whether one came twice: readers differ in which of the two they
// take (RFC 8259, section 4), so that such an answer has no meaning.
type members8 struct {
	bits  uint8
	twice bool
}

func (s *members8) add(n int) {
	s.twice = s.twice || s.bits&(1<<n) != 0
	s.bits |= 1 << n
}
