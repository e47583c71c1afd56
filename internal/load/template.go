package load

import "bytes"

// CallMark stands for the number of a call in rendered texts. It is as long as the number, and no escaping changes it.
const CallMark = "tareCallNumber00"

// A Template is a request with places for a call's number, so that all calls differ and have equal length.
type Template struct {
	bytes []byte
	holes []int // where a mark stands
}

// NewTemplate finds the marks in b, which must not be changed afterwards.
func NewTemplate(b []byte) *Template {
	t := &Template{bytes: b}
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte(CallMark))
		if i < 0 {
			return t
		}
		t.holes = append(t.holes, at+i)
		at += i + len(CallMark)
	}
}

// Fixed returns the bytes if there is no place for a number, so that all calls are equal.
func (t *Template) Fixed() (b []byte, ok bool) { return t.bytes, len(t.holes) == 0 }

// AppendTo appends the bytes with call i's number, 16 hexadecimal digits. It does not allocate if dst has room.
func (t *Template) AppendTo(dst []byte, i uint64) []byte {
	const digits = "0123456789abcdef"
	start := len(dst)
	dst = append(dst, t.bytes...)
	for _, at := range t.holes {
		hole := dst[start+at : start+at+len(CallMark)]
		for k, n := len(hole)-1, i; k >= 0; k, n = k-1, n>>4 {
			hole[k] = digits[n&15]
		}
	}
	return dst
}
