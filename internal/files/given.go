package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Given opens a regular file or a folder that the user names, to read it, where somebody else may have made it, as in a
// checkout of a pull request. A link on the way may lead to what is below its own folder, and nowhere else: otherwise
// the user's private files could be read as policies, shown and published. Of an absolute path this holds for the last
// component: those before it are the host's.
func Given(path string) (*os.File, error) {
	if path == "" || isDescriptor(path) {
		return ForReading(path)
	}
	w, err := begin(path)
	if err != nil {
		return nil, err
	}
	at, err := w.to(path)
	if err != nil {
		return nil, err
	}
	defer at.Close() //nolint:errcheck // it only names the file
	is, err := at.Stat()
	if err == nil && !is.Mode().IsRegular() && !is.IsDir() {
		err = fmt.Errorf("%s: want a regular file or a folder", path)
	}
	if err == nil {
		err = checkEnds(at)
	}
	if err != nil {
		return nil, err
	}
	fd, err := unix.Open(byDescriptor(at.Fd()), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// begin returns a walker that stands where links begin to matter. Those on the way to a folder that is held were
// judged when it was opened.
func begin(path string) (*walker, error) {
	w := &walker{path: ".", rest: split(path), way: anybodys | inside}
	above := max(0, len(w.rest)-1)
	held.Lock()
	defer held.Unlock()
	f, isHeld := held.folders[filepath.Dir(filepath.Clean(path))]
	start := w.path
	switch {
	case isHeld:
		start, w.path, w.rest = byDescriptor(f.dir.Fd()), f.path, w.rest[above:]
	case filepath.IsAbs(path):
		start = "/" + strings.Join(w.rest[:above], "/")
		w.path, w.rest = start, w.rest[above:]
	}
	var err error
	w.at, err = openPath(start)
	return w, err
}

// Root closes an open folder, and returns it as one through which nothing outside of it can be opened.
func Root(dir *os.File) (*os.Root, error) {
	root, err := os.OpenRoot(byDescriptor(dir.Fd()))
	if x, ok := errors.AsType[*fs.PathError](err); ok {
		err = &fs.PathError{Op: "open", Path: dir.Name(), Err: x.Err}
	}
	return root, errors.Join(err, dir.Close())
}

// isDescriptor reports whether a path is that of what has been opened for this process.
func isDescriptor(path string) bool {
	dir := filepath.Dir(path)
	return path == "/dev/stdin" || dir == "/dev/fd" || dir == "/proc/self/fd"
}

// byDescriptor is a path of what is open.
func byDescriptor[T int | uintptr](fd T) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }
