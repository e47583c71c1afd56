package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// mostLinks bounds the links on the way to a folder, as the kernel does.
const mostLinks = 40

// A NotOursError says why a file or a folder is not trusted.
type NotOursError struct{ Path, Why string }

// Error implements error.
func (e *NotOursError) Error() string { return e.Path + " " + e.Why }

// A way says how a walker goes to a folder.
type way uint8

const (
	makes    way = 1 << iota // makes what is missing, for this user alone
	anybodys                 // through folders of anybody's
	forAll                   // what it makes is for all users to read
	inside                   // links of anybody's, but only to what is below their own folder; the last may be a file
)

// walker goes to a folder one component after another, so that what was checked is what is opened.
type walker struct {
	at   *os.File // the folder reached, by O_PATH
	path string   // its path without links
	rest []string // components that are left
	way  way
}

// walk returns the folder at path, opened by O_PATH. Every link on the way belongs to root or to this user, and so does
// every folder but for anybodys; where others may write a folder, it is sticky, as /tmp is.
func walk(path string, how way) (*os.File, error) {
	from, rest := "/", path
	switch {
	case filepath.IsAbs(path):
	case how&anybodys != 0:
		from = "."
	default:
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		rest = abs
	}
	start, err := openPath(from)
	if err != nil {
		return nil, err
	}
	w := walker{at: start, path: from, rest: split(rest), way: how}
	return w.to(path)
}

// to goes to what has been asked for as path.
func (w *walker) to(path string) (*os.File, error) {
	for links := 0; len(w.rest) > 0; {
		name := w.rest[0]
		w.rest = w.rest[1:]
		isLink, err := w.step(name)
		if isLink {
			if links++; links > mostLinks {
				err = fmt.Errorf("open %s: %w", path, unix.ELOOP)
			}
		}
		if x, ok := errors.AsType[*fs.PathError](err); ok {
			err = &fs.PathError{Op: x.Op, Path: path, Err: x.Err}
		}
		if err != nil {
			return nil, errors.Join(err, w.at.Close())
		}
	}
	return w.at, nil
}

func split(path string) []string {
	all := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	return slices.DeleteFunc(all, func(component string) bool { return component == "." })
}

func openPath(path string) (*os.File, error) {
	return os.OpenFile(path, unix.O_PATH|unix.O_DIRECTORY, 0)
}

// step enters the component name, or puts the components of a link in its place.
func (w *walker) step(name string) (isLink bool, err error) {
	path := filepath.Join(w.path, name)
	fd, err := unix.Openat(int(w.at.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) && w.way&makes != 0 {
		if err = unix.Mkdirat(int(w.at.Fd()), name, w.way.mode()); err == nil || errors.Is(err, fs.ErrExist) {
			fd, err = unix.Openat(int(w.at.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		}
	}
	if err != nil {
		return false, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	next := os.NewFile(uintptr(fd), path)
	isLink, err = w.enter(next, path)
	if w.at != next {
		err = errors.Join(err, next.Close())
	}
	return isLink, err
}

// enter makes a folder behind an O_PATH descriptor the one that was reached, and puts the components of a link in its
// place.
func (w *walker) enter(next *os.File, path string) (isLink bool, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(next.Fd()), &st); err != nil {
		return false, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	isTrusted := st.Uid == 0 || mine(&st)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		if !isTrusted && w.way&inside == 0 {
			return true, &NotOursError{path, "is a link of another user's, which is not followed"}
		}
		to := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(int(next.Fd()), "", to)
		if err != nil {
			return true, &fs.PathError{Op: "readlink", Path: path, Err: err}
		}
		return true, w.follow(path, string(to[:n]))
	case unix.S_IFDIR:
	default:
		if w.way&inside == 0 || len(w.rest) > 0 {
			return false, &fs.PathError{Op: "open", Path: path, Err: unix.ENOTDIR}
		}
	}
	switch {
	case w.way&anybodys != 0:
	case !isTrusted:
		return false, &NotOursError{path, "belongs to another user"}
	case st.Mode&unix.S_ISVTX == 0:
		if err := notOurs(path, othersWrite(next, &st)); err != nil {
			return false, err
		}
	}
	err = w.at.Close()
	w.at, w.path = next, path
	return false, err
}

// mode is that of a folder which is made.
func (w way) mode() uint32 {
	if w&forAll != 0 {
		return 0o755
	}
	return 0o700
}

// follow goes on with the components of the link at path: from the root, or from the folder that holds the link.
func (w *walker) follow(path, to string) error {
	parts := split(to)
	if w.way&inside != 0 && (filepath.IsAbs(to) || slices.Contains(parts, "..")) {
		return fmt.Errorf("%s is a link out of its folder, to %q: a stranger's link could show your files; name what it "+
			"leads to", path, to)
	}
	w.rest = append(parts, w.rest...)
	if !filepath.IsAbs(to) {
		return nil
	}
	root, err := openPath("/")
	if err != nil {
		return err
	}
	err = w.at.Close()
	w.at, w.path = root, "/"
	return err
}

// mine reports whether a file belongs to this process's user.
func mine(st *unix.Stat_t) bool { return int(st.Uid) == os.Geteuid() }
