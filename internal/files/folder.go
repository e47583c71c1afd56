// Package files opens, makes, renames and removes what belongs to this user, such that no other user can make it act on
// something else: it checks what it has opened, and follows no link that another user could have made.
package files

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A Folder is an open folder of this user's that nobody else may write. Its methods take the name of something directly
// in it, and reach that even if the folder is moved and another put in its place. They follow no link.
type Folder struct {
	path string
	dir  *os.File
}

// Open opens an existing folder. The error is a *NotOursError where another user could have made it, or could replace
// it.
func Open(path string) (*Folder, error) { return open(path, 0) }

// Make opens a folder, and makes it and those on the way, for this user alone, where they are missing.
func Make(path string) (*Folder, error) { return open(path, makes) }

// Trusted makes a folder and those on the way where they are missing, and returns an error if anybody but root and this
// user could change what is in it. It may be root's.
func Trusted(path string) error {
	dir, err := walk(path, makes)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err = unix.Fstat(int(dir.Fd()), &st); err == nil {
		err = notOurs(path, othersWrite(dir, &st))
	}
	return errors.Join(err, dir.Close())
}

// MakeNew makes the folder at path, for this user alone, in a folder that no other user could replace. The error is
// fs.ErrExist where the name is taken.
func MakeNew(path string) error {
	parent, err := walk(filepath.Dir(path), 0)
	if err != nil {
		return err
	}
	folder, err := newIn(parent, path)
	if err == nil {
		err = folder.Close()
	}
	return errors.Join(err, parent.Close())
}

func open(path string, how way) (*Folder, error) {
	dir, err := walk(path, how)
	if err != nil {
		return nil, err
	}
	f, err := in(dir, path, ".")
	return f, errors.Join(err, dir.Close())
}

// owned returns the open folder if it is ours, and closes it otherwise.
func owned(path string, dir *os.File) (*Folder, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(dir.Fd()), &st)
	switch {
	case err != nil:
	case !mine(&st):
		err = &NotOursError{path, "belongs to another user"}
	default:
		err = notOurs(path, othersWrite(dir, &st))
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return &Folder{path, dir}, nil
}

// At opens the folder at path if it is ours, whoever owns those on the way: another user may put a folder in its place,
// but not change what is opened.
func At(path string) (*Folder, error) { return open(path, anybodys) }

// New makes the folder name in the folder parent, for this user alone, and parent where it is missing. Whoever owns
// parent, what is returned is ours, and stays it. The error is fs.ErrExist where the name is taken.
func New(parent, name string) (*Folder, error) {
	at, err := walk(parent, anybodys|makes)
	if err != nil {
		return nil, err
	}
	f, err := newIn(at, filepath.Join(parent, name))
	if err == nil {
		err = syncFolder(at)
	}
	return f, errors.Join(err, at.Close())
}

// syncFolder makes the names in a folder durable, unless this user may not read it.
func syncFolder(at *os.File) error {
	fd, err := unix.Openat(int(at.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err == nil {
		err = errors.Join(unix.Fsync(fd), unix.Close(fd))
	}
	return err
}

// newIn makes the folder at path in the open folder in which it is.
func newIn(at *os.File, path string) (*Folder, error) {
	name := filepath.Base(path)
	if err := unix.Mkdirat(int(at.Fd()), name, 0o700); err != nil {
		return nil, &fs.PathError{Op: "mkdir", Path: path, Err: err}
	}
	return in(at, path, name)
}

// in opens the folder name in an open folder.
func in(at *os.File, path, name string) (*Folder, error) {
	fd, err := unix.Openat(int(at.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return owned(path, os.NewFile(uintptr(fd), path))
}

// Leaf is At for a folder that must not be a link.
func Leaf(path string) (*Folder, error) { return leaf(path, anybodys) }

// MakeLeaf is Leaf for a folder that is made, with those on the way, where it is missing.
func MakeLeaf(path string) (*Folder, error) { return leaf(path, anybodys|makes) }

func leaf(path string, how way) (*Folder, error) {
	parent, err := walk(filepath.Dir(path), how)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(path)
	if how&makes != 0 {
		if err = unix.Mkdirat(int(parent.Fd()), name, 0o700); errors.Is(err, fs.ErrExist) {
			err = nil
		}
		if err != nil {
			return nil, errors.Join(&fs.PathError{Op: "mkdir", Path: path, Err: err}, parent.Close())
		}
	}
	f, err := in(parent, path, name)
	if err != nil && isLink(parent, name) {
		err = &NotOursError{path, "is a link, and not a folder; remove it"}
	}
	return f, errors.Join(err, parent.Close())
}

func isLink(parent *os.File, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(int(parent.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil &&
		st.Mode&unix.S_IFMT == unix.S_IFLNK
}

// Path returns the path under which the folder was opened.
func (f *Folder) Path() string { return f.path }

// Join returns the path of something in the folder, for messages and for programs that are told of it.
func (f *Folder) Join(name string) string { return filepath.Join(f.path, name) }

// Close ends the use of the folder.
func (f *Folder) Close() error { return f.dir.Close() }

// Self opens the folder itself, to lock it.
func (f *Folder) Self() (*os.File, error) {
	fd, err := unix.Openat(f.fd(), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: f.path, Err: err}
	}
	return os.NewFile(uintptr(fd), f.path), nil
}

// Lock locks the folder until it is closed; locked is false if it is locked already, by whatever process of this
// kernel. The lock ends with this process.
func (f *Folder) Lock() (locked bool, err error) {
	err = unix.Flock(f.fd(), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		return false, &fs.PathError{Op: "lock", Path: f.path, Err: err}
	}
	return true, nil
}

// Has reports whether a name in the folder is that of an open file.
func (f *Folder) Has(name string, file *os.File) bool {
	var named, opened unix.Stat_t
	return unix.Fstatat(f.fd(), name, &named, unix.AT_SYMLINK_NOFOLLOW) == nil &&
		unix.Fstat(int(file.Fd()), &opened) == nil && named.Dev == opened.Dev && named.Ino == opened.Ino
}

// Sync makes the names in the folder durable.
func (f *Folder) Sync() error { return f.dir.Sync() }

// Make opens a folder in this one, and makes it where it is missing.
func (f *Folder) Make(name string) (*Folder, error) {
	if err := f.named(name); err != nil {
		return nil, err
	}
	if err := unix.Mkdirat(f.fd(), name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, &fs.PathError{Op: "mkdir", Path: f.Join(name), Err: err}
	}
	return in(f.dir, f.Join(name), name)
}

// Open opens a regular file of this user's with the flags of os.OpenFile; a new one is for this user alone.
func (f *Folder) Open(name string, flag int) (*os.File, error) {
	if err := f.named(name); err != nil {
		return nil, err
	}
	path := f.Join(name)
	fd, err := unix.Openat(f.fd(), name, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.ELOOP) {
		return nil, &NotOursError{path, "is a link, which is not followed"}
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	switch {
	case err != nil:
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		err = &NotOursError{path, "is not a regular file"}
	case !mine(&st):
		err = &NotOursError{path, "belongs to another user"}
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Read returns the content of a file of at most so many bytes.
func (f *Folder) Read(name string, most int) ([]byte, error) {
	file, err := f.Open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, int64(most)+1))
	if err == nil && len(text) > most {
		err = fmt.Errorf("%s has more than %d bytes", file.Name(), most)
	}
	return text, errors.Join(err, file.Close())
}

// Write replaces the content of a file, or makes one, in one step: no reader sees a part of it.
func (f *Folder) Write(name string, text []byte) error {
	draft, err := f.draft(name, text)
	if err != nil {
		return err
	}
	if err := unix.Renameat(f.fd(), draft, f.fd(), name); err != nil {
		return errors.Join(&fs.PathError{Op: "rename", Path: f.Join(name), Err: err}, f.Remove(draft))
	}
	return nil
}

// Create makes a file in one step, and durably. The error is fs.ErrExist where the name is taken.
func (f *Folder) Create(name string, text []byte) error {
	draft, err := f.draft(name, text)
	if err != nil {
		return err
	}
	if err = unix.Linkat(f.fd(), draft, f.fd(), name, 0); err != nil {
		err = &fs.PathError{Op: "link", Path: f.Join(name), Err: err}
	}
	return errors.Join(err, f.Remove(draft))
}

// draft makes a file with a name of its own.
func (f *Folder) draft(name string, text []byte) (draft string, err error) {
	if err := f.named(name); err != nil {
		return "", err
	}
	draft = ".new-" + rand.Text()
	file, err := f.Open(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return "", err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		err = errors.Join(err, f.Remove(draft))
	}
	return draft, err
}

// Names lists what is in the folder.
func (f *Folder) Names() ([]string, error) {
	all, err := f.Self()
	if err != nil {
		return nil, err
	}
	names, err := all.Readdirnames(-1)
	return names, errors.Join(err, all.Close())
}

// Remove removes a file. One that does not exist is no error.
func (f *Folder) Remove(name string) error {
	if err := f.named(name); err != nil {
		return err
	}
	if err := unix.Unlinkat(f.fd(), name, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &fs.PathError{Op: "remove", Path: f.Join(name), Err: err}
	}
	return nil
}

// RemoveAll removes what has the name, and all below it; a link, but not what it refers to. What does not exist is no
// error. Nothing is removed if a file system is mounted there.
func (f *Folder) RemoveAll(name string) error {
	if err := f.named(name); err != nil {
		return err
	}
	if err := f.unmounted(name); err != nil {
		return err
	}
	return f.removeAll(name)
}

// unmounted returns an error if a file system is mounted below the folder, at what has the name or below that: what is
// in it may be something else's, such as a folder that a program has mounted there and not unmounted. An empty name
// stands for the folder itself.
func (f *Folder) unmounted(name string) error {
	below, err := os.Readlink(byDescriptor(f.fd()))
	if err != nil {
		return err
	}
	below = filepath.Join(below, name)
	mounts, err := Kernel("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("look for mounts: %w", err)
	}
	const at = 4 // proc_pid_mountinfo(5): ID parent major:minor root mount-point; some bytes as octal numbers
	escaped := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) <= at {
			continue
		}
		if m := escaped.Replace(fields[at]); m == below || strings.HasPrefix(m, below+"/") {
			return fmt.Errorf("a file system is mounted at %s: nothing was removed; unmount it first", m)
		}
	}
	return nil
}

func (f *Folder) removeAll(name string) error {
	root, err := os.OpenRoot(byDescriptor(f.fd()))
	if err != nil {
		return err
	}
	if err = root.RemoveAll(name); errors.Is(err, fs.ErrPermission) { // programs make folders read-only, as Go does
		_ = fs.WalkDir(root.FS(), name, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				err = root.Chmod(p, 0o700)
			}
			return err
		}) // what could not be changed is reported now
		err = root.RemoveAll(name)
	}
	if x, ok := errors.AsType[*fs.PathError](err); ok {
		err = &fs.PathError{Op: "remove", Path: f.Join(name), Err: x.Err}
	}
	return errors.Join(err, root.Close())
}

// RemoveFolder removes the folder at path and all below it, if it is ours. One that does not exist is no error.
func RemoveFolder(path string) error {
	parent, err := walk(filepath.Dir(path), 0)
	return remove(path, parent, err, false)
}

// RemoveAt removes the folder at path and all below it if it is ours, whoever owns those on the way. It is for names
// that only tare gives: another user can put such a folder in place of another one, and no other folder. A program for
// which the folder was made may have let others write it. One that does not exist is no error.
func RemoveAt(path string) error {
	parent, err := walk(filepath.Dir(path), anybodys)
	return remove(path, parent, err, true)
}

func remove(path string, parent *os.File, err error, shut bool) error {
	if err == nil && shut {
		err = shutFolder(parent, filepath.Base(path))
	}
	if err == nil {
		err = removeIn(parent, path)
	}
	if parent != nil {
		err = errors.Join(err, parent.Close())
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("remove folder: %w", err)
}

// shutFolder keeps others from writing a folder that is ours.
func shutFolder(parent *os.File, name string) error {
	fd, err := unix.Openat(int(parent.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: filepath.Join(parent.Name(), name), Err: err}
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && mine(&st) && st.Mode&0o022 != 0 {
		err = unix.Fchmod(fd, 0o700)
	}
	return errors.Join(err, unix.Close(fd))
}

func removeIn(parent *os.File, path string) error {
	f, err := in(parent, path, filepath.Base(path))
	if err != nil {
		return err
	}
	var names []string
	if err = f.unmounted(""); err == nil {
		names, err = f.Names()
	}
	for _, name := range names {
		err = errors.Join(err, f.removeAll(name))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := unix.Unlinkat(int(parent.Fd()), filepath.Base(path), unix.AT_REMOVEDIR); err != nil {
		return &fs.PathError{Op: "rmdir", Path: path, Err: err}
	}
	return nil
}

func (f *Folder) fd() int { return int(f.dir.Fd()) }

// named returns an error unless name is that of something directly in the folder.
func (f *Folder) named(name string) error {
	if name == "" || name == "." || name == ".." || filepath.Base(name) != name {
		return fmt.Errorf("%q is no name of a file in %s", name, f.path)
	}
	return nil
}
