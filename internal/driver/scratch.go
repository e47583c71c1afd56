package driver

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Scratch makes a file in dir that has no name, so that nothing of it is left when this process is killed. A file system without such files gives it a
// name for a moment.
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

// scratchLog is a log that only the one who fails reads.
type scratchLog struct{ *os.File }

// path is how this process opens the log anew.
func (l scratchLog) path() string { return fmt.Sprintf("/proc/self/fd/%d", l.Fd()) }

// withoutLog is an error that quotes a scratchLog, whose path is of no use to anyone.
type withoutLog struct {
	error

	path string
}

// Error is the error without the path.
func (e withoutLog) Error() string {
	text := strings.ReplaceAll(e.error.Error(), "last lines of "+e.path+":", "it wrote to stderr:")
	return strings.ReplaceAll(text, "nothing in its log "+e.path, "it wrote nothing to stderr")
}

// Unwrap is the error with it.
func (e withoutLog) Unwrap() error { return e.error }
