package kit

import (
	"errors"
	"fmt"
	"os"

	"tare/internal/files"
)

// OpenText opens a file that the user names and somebody else may have made (files.Given), to read it. It must be a
// regular file: a named pipe would be waited for.
func OpenText(path string) (*os.File, error) { return regular(files.Given(path)) }

// ErrFolder says that a folder stands where a file is wanted.
var ErrFolder = errors.New("want a regular file, and this is a folder")

// regular takes what has been opened, and refuses what is no regular file.
func regular(f *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, err
	}
	switch info, err := f.Stat(); {
	case err == nil && info.IsDir():
		return nil, errors.Join(fmt.Errorf("%s: %w", f.Name(), ErrFolder), f.Close())
	case err != nil || !info.Mode().IsRegular():
		return nil, errors.Join(fmt.Errorf("%s: want a regular file", f.Name()), err, f.Close())
	}
	return f, nil
}

// ReadText reads a file that OpenText opens, of at most so many bytes.
func ReadText(path string, most int) ([]byte, error) {
	f, err := OpenText(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	return files.ReadAll(f, most)
}
