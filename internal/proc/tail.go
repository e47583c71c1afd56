package proc

import (
	"bytes"
	"io"
)

// A Tail keeps the end of what a program writes, and its beginning.
type Tail struct{ head, buf []byte }

var _ io.Writer = (*Tail)(nil)

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	const most = 4096
	t.head = append(t.head, p[:min(len(p), most-len(t.head))]...)
	t.buf = append(t.buf, p[max(0, len(p)-most):]...)
	if extra := len(t.buf) - most; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
	}
	return len(p), nil
}

// RanOutOfMemory reports whether a program in Go ended since it was refused memory: it says so before its stack.
func (t *Tail) RanOutOfMemory() bool {
	return bytes.Contains(t.head, []byte("out of memory")) || bytes.Contains(t.head, []byte("cannot allocate memory"))
}

// LastLine returns the last line that is not empty.
func (t *Tail) LastLine() string {
	text := bytes.TrimSpace(t.buf)
	return string(text[bytes.LastIndexByte(text, '\n')+1:])
}
