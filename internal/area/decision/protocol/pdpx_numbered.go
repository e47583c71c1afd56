package protocol

import (
	"bytes"
)

const (
	// placeholder is what stands for a call's own number in a request.
	placeholder = "{n}"
	// mark stands for it in rendered requests: as long as the number is, so that the length of a request does not depend on the call.
	mark = "tareCallNumber00"
)

// A numbered wire is one whose requests differ in the call's number.
type numbered struct {
	wire
	holes []int // where a mark stands
}

func newNumbered(raw []byte, j judge) *numbered {
	w := &numbered{wire: wire{bytes: raw, judge: j}}
	for at := 0; ; {
		i := bytes.Index(raw[at:], []byte(mark))
		if i < 0 {
			return w
		}
		w.holes = append(w.holes, at+i)
		at += i + len(mark)
	}
}

// Render implements load.Wire: the number is 16 hexadecimal digits.
func (w *numbered) Render(dst []byte, i uint64) []byte {
	start := len(dst)
	dst = append(dst, w.bytes...)
	for _, at := range w.holes {
		hole := dst[start+at : start+at+len(mark)]
		for k, n := len(hole)-1, i; k >= 0; k, n = k-1, n>>4 {
			hole[k] = "0123456789abcdef"[n&15]
		}
	}
	return dst
}
