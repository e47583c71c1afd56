package kit

import (
	"errors"
	"fmt"
	"os"

	"tare/internal/files"
)

// OpenText opens a file that the user names, to read it. It must be a regular file: a named pipe would be waited for.
func OpenText(path string) (*os.File, error) {
	f, err := files.ForReading(path)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s: want a regular file", path), err, f.Close())
	}
	return f, nil
}

// ReadText reads a file that the user names, of at most so many bytes.
func ReadText(path string, most int) ([]byte, error) {
	f, err := OpenText(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	return files.ReadAll(f, most)
}
