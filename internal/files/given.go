package files

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Given opens a regular file or a folder that the user names, to read it, where somebody else may have made it, as in a
// checkout of a pull request. A link on the way may lead to what is below its own folder, and nowhere else: otherwise
// the user's private files could be read as policies, shown and published. Of an absolute path this holds from the top
// of a repository of git's on, and without one for the last component: those before are the host's.
func Given(path string) (*os.File, error) {
	if path == "" || isDescriptor(path) {
		return ForReading(path)
	}
	w, err := begin(path)
	if err != nil {
		return nil, err
	}
	return w.open(path)
}

// Below opens, like Given, what is in a folder or below it, by its path there. It judges each link on the way, and
// opens nothing that is git's own, such as the file in which a pipeline has its token, and what is hidden, such as
// .env, by its own name only.
func Below(folder, name string) (*os.File, error) {
	path := filepath.Join(folder, name)
	if !filepath.IsLocal(name) {
		return nil, fmt.Errorf("%s is outside of %s", path, folder)
	}
	w, err := begin(folder)
	if err == nil {
		_, err = w.to(folder)
	}
	if err != nil {
		return nil, err
	}
	top := w.path
	w.rest = split(name)
	f, err := w.open(path)
	if err != nil {
		return f, err
	}
	switch reached, _ := filepath.Rel(top, w.path); {
	case slices.Contains(split(reached), repository):
		return nil, errors.Join(fmt.Errorf("%s is git's own: no policy is there", path), f.Close())
	case isHidden(reached) && !isHidden(name):
		return nil, errors.Join(fmt.Errorf("%s is a link to what is hidden", path), f.Close())
	}
	return f, nil
}

// isHidden reports whether a name on a path begins with a dot. Those with two are of volumes of Kubernetes.
func isHidden(path string) bool {
	return slices.ContainsFunc(split(path), func(part string) bool {
		return len(part) > 1 && part[0] == '.' && part[1] != '.'
	})
}

// repository is what the top folder of one of git's has: a folder, or a file in a work tree or a submodule.
const repository = ".git"

// Repositories are the repositories in which a folder is, as the paths of their top folders, the nearest first.
func Repositories(folder string) (out []string) {
	for at := filepath.Clean(folder); ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, repository)); err == nil {
			out = append(out, at)
		}
		if at == filepath.Dir(at) {
			return out
		}
	}
}

// Top is the top of the nearest repository in which a folder is, or the folder without one: a stranger's file there may
// name what is in it. A repository that anybody could have made does not count.
func Top(folder string) string {
	for _, top := range Repositories(folder) {
		if is, err := os.Stat(top); err == nil && is.Mode()&0o002 == 0 {
			return top
		}
	}
	return folder
}

// open opens what a walker goes to, if it is a regular file or a folder.
func (w *walker) open(path string) (*os.File, error) {
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
		for _, top := range Repositories(filepath.Dir(path)) {
			above = len(split(top)) // of the outermost: in another one could be whatever a link leads to
		}
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

// Interpreter returns what usually runs a script, by the suffix of its name.
func Interpreter(path string) (program string, ok bool) {
	program, ok = map[string]string{
		".py": "python3", ".sh": "sh", ".js": "node", ".mjs": "node", ".rb": "ruby", ".pl": "perl",
		".jar": "java, -jar", ".php": "php", ".lua": "lua",
	}[filepath.Ext(path)]
	return program, ok
}

// IsCode reports whether a word of a command line is a file that is executable, or a script by its name. Other files
// may be data.
func IsCode(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	_, script := Interpreter(path)
	return script || info.Mode().Perm()&0o111 != 0
}

// unreadable stands for the content of a file that is executable and not readable.
const unreadable = "cannot be read"

// Sum returns the SHA-256 of a file of the user's in hexadecimal digits.
func Sum(path string) (sum string, err error) {
	f, err := ForReading(path)
	if errors.Is(err, fs.ErrPermission) {
		return unreadable, nil
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
