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

// mostLinks bounds the links on the way to a folder, as the kernel does.
const mostLinks = 40

// A NotOursError says why a file or a folder is not trusted.
type NotOursError struct{ Path, Why string }

const othersWrite = "may be written by other users: chmod go-w it once you know that nobody has changed it"

// Error implements error.
func (e *NotOursError) Error() string { return e.Path + " " + e.Why }

// walker goes to a folder one component after another, so that what was checked is what is opened.
type walker struct {
	at   *os.File // the folder reached
	path string   // its path without links
	rest []string // components that are left
	mode int      // what to do about a missing component
}

// What a walk does where a component is missing.
const (
	fails = iota
	makes
)

// walk returns the folder at path. Every folder on the way belongs to root or to this user, and so does every link;
// where others may write a folder, it is sticky, as /tmp is.
func walk(path string, missing int) (*os.File, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	root, err := os.Open("/")
	if err != nil {
		return nil, err
	}
	w := walker{at: root, path: "/", rest: split(abs), mode: missing}
	for links := 0; len(w.rest) > 0; {
		name := w.rest[0]
		w.rest = w.rest[1:]
		isLink, err := w.step(name)
		if isLink {
			if links++; links > mostLinks {
				err = fmt.Errorf("open %s: %w", path, unix.ELOOP)
			}
		}
		if err != nil {
			return nil, errors.Join(err, w.at.Close())
		}
	}
	return w.at, nil
}

func split(path string) []string {
	return strings.FieldsFunc(filepath.Clean(path), func(r rune) bool { return r == '/' })
}

// step enters the component name, or puts the components of a link in its place.
func (w *walker) step(name string) (isLink bool, err error) {
	path := filepath.Join(w.path, name)
	fd, err := unix.Openat(int(w.at.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) && w.mode == makes {
		if err = unix.Mkdirat(int(w.at.Fd()), name, 0o700); err == nil || errors.Is(err, fs.ErrExist) {
			fd, err = unix.Openat(int(w.at.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		}
	}
	if err != nil {
		return false, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd) //nolint:errcheck // nothing to lose
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return false, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Uid != 0 && !mine(&st) {
		return false, &NotOursError{path, "belongs to another user"}
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		to := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(fd, "", to)
		if err != nil {
			return true, &fs.PathError{Op: "readlink", Path: path, Err: err}
		}
		return true, w.follow(string(to[:n]))
	case unix.S_IFDIR:
		return false, w.enter(fd, path, &st)
	}
	return false, &fs.PathError{Op: "open", Path: path, Err: unix.ENOTDIR}
}

// follow goes on with the components of a link: from the root, or from the folder that holds the link.
func (w *walker) follow(to string) error {
	w.rest = append(split(to), w.rest...)
	if !filepath.IsAbs(to) {
		return nil
	}
	root, err := os.Open("/")
	if err != nil {
		return err
	}
	err = w.at.Close()
	w.at, w.path = root, "/"
	return err
}

// enter makes the folder behind an O_PATH descriptor the one that was reached.
func (w *walker) enter(fd int, path string, st *unix.Stat_t) error {
	if othersMayWrite(st) && st.Mode&unix.S_ISVTX == 0 {
		return &NotOursError{path, othersWrite}
	}
	next, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	err = w.at.Close()
	w.at, w.path = os.NewFile(uintptr(next), path), path
	return err
}

// mine reports whether a file belongs to this process's user.
func mine(st *unix.Stat_t) bool { return int(st.Uid) == os.Geteuid() }

// othersMayWrite reports whether other users may write a file. A group that has the number of the file's owner is that
// user's own, as is usual where the umask is 002.
func othersMayWrite(st *unix.Stat_t) bool {
	return st.Mode&0o002 != 0 || st.Mode&0o020 != 0 && st.Gid != st.Uid
}
