package files

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// mostOfKernel bounds what is read of a file that the kernel shows, in bytes.
const mostOfKernel = 64 << 20

// ForReading opens a file that the user names. It waits for nobody: a named pipe without a writer reads as empty.
func ForReading(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
}

// Read returns the content of a file of at most so many bytes, opened as by ForReading.
func Read(path string, most int) ([]byte, error) {
	f, err := ForReading(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	return ReadAll(f, most)
}

// ReadAll returns the rest of an open file, of at most so many bytes.
func ReadAll(f *os.File, most int) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(text) > most {
		err = fmt.Errorf("%s: longer than %d bytes", f.Name(), most)
	}
	return text, err
}

// Kernel returns the content of a file that the kernel shows in one of its file systems.
func Kernel(path string) ([]byte, error) { return Read(path, mostOfKernel) }

// Leads says where a link leads. It may lead elsewhere by the time when the answer is used.
func Leads(path string) (string, error) { return os.Readlink(path) }

// Resolved is a path without its links. They may lead elsewhere by the time when it is used.
func Resolved(path string) (string, error) { return filepath.EvalSymlinks(path) }
