package proc

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"tare/internal/files"
	"tare/internal/mask"
)

const (
	tailLines = 8
	tailBytes = 4 << 10
	// mostLog bounds what a child may write before its log is cut, and keptLog what is kept then at both ends, in bytes:
	// whoever may send requests to a server could fill the disk.
	mostLog  = 16 << 20
	keptLog  = 1 << 20
	cutEvery = time.Second
)

// childLog is the file that holds the child's stderr.
type childLog struct {
	path    string
	file    *os.File
	start   int64 // where this child's lines begin
	secrets mask.Mask
	mu      sync.Mutex // held while its lines are moved or masked
}

func (l *childLog) open(path string) error {
	if path == "" {
		return nil
	}
	f, err := files.Append(path)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	if l.start, err = f.Seek(0, io.SeekEnd); err != nil {
		_ = f.Close()
		return fmt.Errorf("open log: %w", err)
	}
	l.path, l.file = path, f
	return nil
}

func (l *childLog) close() { closeAll(l.file) }

// bound keeps the log short until the function that it returns is called.
func (l *childLog) bound() (end func()) {
	if l.file == nil {
		return func() {}
	}
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(cutEvery)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				l.cut()
			case <-ended:
				return
			}
		}
	}()
	return func() { close(ended); <-done }
}

// cut leaves out the middle of a long log. What the child writes meanwhile may be lost, too.
func (l *childLog) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	info, err := l.file.Stat()
	if err != nil || info.Size()-l.start <= mostLog {
		return
	}
	f, err := files.Edit(fmt.Sprintf("/proc/self/fd/%d", l.file.Fd())) // the file, whatever has its path meanwhile
	if err != nil {
		return
	}
	defer f.Close() //nolint:errcheck // nothing is buffered
	l.maskHeld()    // or a part of a secret would stay before the cut
	text, err := l.end(f, keptLog)
	if err != nil || f.Truncate(l.start+keptLog) != nil {
		return
	}
	_, _ = fmt.Fprintf(l.file, "\n(tare has left out %d bytes)\n%s", info.Size()-l.start-keptLog-int64(len(text)), text)
}

// tail returns the end of an error message: the last lines of the log, indented.
func (l *childLog) tail() string {
	if l.path == "" {
		return " (no log was kept)"
	}
	lines, err := l.last()
	switch {
	case err != nil:
		return fmt.Sprintf(" (log %s: %v)", l.path, err)
	case len(lines) == 0:
		return fmt.Sprintf(" (nothing in its log %s)", l.path)
	}
	return fmt.Sprintf("\nlast lines of %s:\n  %s", l.path, strings.Join(lines, "\n  "))
}

func (l *childLog) last() ([]string, error) {
	f, err := files.Edit(l.path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	l.mask()
	b, err := l.end(f, tailBytes)
	if err != nil {
		return nil, err
	}
	text := strings.TrimSpace(string(b))
	if text == "" {
		return nil, nil
	}
	lines := strings.Split(text, "\n")
	return lines[max(0, len(lines)-tailLines):], nil
}

// end returns the last lines of the child in its log, of at most so many bytes.
func (l *childLog) end(f *os.File, most int64) ([]byte, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	start := l.start
	if start > size { // the log was cut for another child that writes it, too
		start = 0
	}
	from := max(start, size-most)
	b, err := io.ReadAll(io.NewSectionReader(f, from, size-from))
	if from > start { // the first line is a fragment
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
	return b, err
}

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
