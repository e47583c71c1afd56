package proc

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"tare/internal/files"
)

const (
	tailLines = 8
	tailBytes = 4 << 10
)

// childLog is the file that holds the child's stderr.
type childLog struct {
	path    string
	file    *os.File
	start   int64 // where this child's lines begin
	secrets secretMask
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
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	l.mask()
	from := max(l.start, end-tailBytes)
	b, err := io.ReadAll(io.NewSectionReader(f, from, end-from))
	if err != nil {
		return nil, err
	}
	if from > l.start { // the first line is a fragment
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
	text := strings.TrimSpace(string(b))
	if text == "" {
		return nil, nil
	}
	lines := strings.Split(text, "\n")
	return lines[max(0, len(lines)-tailLines):], nil
}
