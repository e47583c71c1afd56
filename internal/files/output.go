package files

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// MakeForAll makes a folder, and those on the way, where they are missing, for all users to read.
func MakeForAll(path string) error {
	dir, err := walk(path, anybodys|makes|forAll)
	if err != nil {
		return err
	}
	return dir.Close()
}

// Save writes a file where the user wants it, for all users to read, in one step: in the place of what was there, but
// for a pipe or a device, into which it writes. It follows no link of another user's.
func Save(path string, write func(io.Writer) error) error {
	is, err := os.Stat(path)
	switch {
	case err != nil || is.Mode().IsRegular():
		return save(path, write, unix.Renameat)
	case is.IsDir():
		return &fs.PathError{Op: "write", Path: path, Err: unix.EISDIR}
	}
	file, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// SaveNew is Save for a path at which nothing may be. The error is fs.ErrExist where something is.
func SaveNew(path string, write func(io.Writer) error) error {
	return save(path, write, func(from int, draft string, to int, name string) error {
		return errors.Join(unix.Linkat(from, draft, to, name, 0), unix.Unlinkat(from, draft, 0))
	})
}

// ForAppending opens a file to write at its end, and makes it where it is missing, for all users to read. It follows no
// link to the file.
func ForAppending(path string) (*os.File, error) {
	folder, name := filepath.Split(path) // and not Dir, for which a/link/.. is a
	at, err := walk(folder, anybodys)
	if err != nil {
		return nil, err
	}
	const flags = unix.O_WRONLY | unix.O_APPEND | unix.O_CREAT | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Openat(int(at.Fd()), name, flags, 0o644)
	_ = at.Close()
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// save writes a draft in the folder of a file, and has put give it the file's name.
func save(path string, write func(io.Writer) error, put func(from int, draft string, to int, name string) error) error {
	folder, name := filepath.Split(path)
	at, err := walk(folder, anybodys)
	if err != nil {
		return err
	}
	defer at.Close() //nolint:errcheck // nothing to lose
	dir, draft := int(at.Fd()), ".tare-"+rand.Text()
	fd, err := unix.Openat(dir, draft, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &fs.PathError{Op: "make a file beside", Path: path, Err: err}
	}
	file := os.NewFile(uintptr(fd), path)
	err = write(file)
	if err == nil {
		err = file.Chmod(0o644)
	}
	if err = errors.Join(err, file.Close()); err == nil {
		if err = put(dir, draft, dir, name); err == nil {
			return nil
		}
		err = &fs.PathError{Op: "write", Path: path, Err: err}
	}
	_ = unix.Unlinkat(dir, draft, 0) // SaveNew has removed it
	return err
}
