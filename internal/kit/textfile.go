package kit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

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

// ExpandHome returns a path of an experiment file with a leading ~ replaced by the user's home folder. ~user is an
// error: tare does not look up other users.
func ExpandHome(path string) (string, error) {
	if !strings.HasPrefix(path, "~") {
		return path, nil
	}
	if path != "~" && !strings.HasPrefix(path, "~/") {
		user, _, _ := strings.Cut(path, "/")
		return "", fmt.Errorf("%s: only ~/ is supported, your own home folder; write the whole path, or ./%[1]s for a file "+
			"of that name", user)
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return "", errors.New("~ needs the environment variable HOME, which is not set; write the whole path")
	}
	return filepath.Join(home, path[1:]), nil
}
