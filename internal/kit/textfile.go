package kit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// ReadText reads a file that an experiment names: a regular file of at most so many bytes. It does not hang at a named
// pipe.
func ReadText(path string, most int) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // the experiment names the file
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s: want a regular file", path), err)
	}
	text, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(text) > most {
		return nil, fmt.Errorf("%s: longer than %d bytes", path, most)
	}
	return text, nil
}
