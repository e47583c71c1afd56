package proc

import (
	"bytes"
	"io"
)

// A Tail keeps the end of what a program writes.
type Tail struct{ buf []byte }

var _ io.Writer = (*Tail)(nil)

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	const most = 4096
	t.buf = append(t.buf, p[max(0, len(p)-most):]...)
	if extra := len(t.buf) - most; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
	}
	return len(p), nil
}

// LastLine returns the last line that is not empty.
func (t *Tail) LastLine() string {
	text := bytes.TrimSpace(t.buf)
	return string(text[bytes.LastIndexByte(text, '\n')+1:])
}
