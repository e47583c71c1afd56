package driver

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Scratch creates a file in dir without a name, so that nothing of it remains when this process is killed. On a file
// system without such files it has a name for a moment.
func Scratch(dir string) (*os.File, error) {
	if f, err := os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE, 0o600); err == nil {
		return f, nil
	}
	f, err := os.CreateTemp(dir, "tare-scratch-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// scratchLog is a log that is read only after a failure.
type scratchLog struct{ *os.File }

// path returns where this process can open the log again.
func (l scratchLog) path() string { return fmt.Sprintf("/proc/self/fd/%d", l.Fd()) }

// withoutLog is an error that quotes a scratchLog, without its path, which is of no use to the user.
type withoutLog struct {
	error

	path string
}

// Error returns the error without the path.
func (e withoutLog) Error() string {
	text := strings.ReplaceAll(e.error.Error(), "last lines of "+e.path+":", "it wrote to stderr:")
	return strings.ReplaceAll(text, "nothing in its log "+e.path, "it wrote nothing to stderr")
}

// Unwrap returns the error with the path.
func (e withoutLog) Unwrap() error { return e.error }
