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
	switch stream, err := openStream(path); {
	case err != nil:
		return written(path, err)
	case stream != nil:
		return written(path, errors.Join(write(stream), stream.Close()))
	}
	return inFolder(path, func(dir int, name string) error {
		draft := ".tare-" + rand.Text()
		err := saveNew(dir, draft, write)
		if err == nil {
			if err = unix.Renameat(dir, draft, dir, name); err != nil {
				_ = unix.Unlinkat(dir, draft, 0)
			}
		}
		return err
	})
}

// CheckSave returns the error that Save would fail with for want of a folder, or of the right to write there.
func CheckSave(path string) error {
	return inFolder(path, func(dir int, name string) error {
		var st unix.Stat_t
		err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		case err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR:
			return unix.EISDIR
		case err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG:
			return nil // a pipe, a device, or a link to one
		}
		return unix.Faccessat(dir, ".", unix.W_OK, unix.AT_EACCESS)
	})
}

// openStream opens a pipe, a device, or a descriptor of this process such as /dev/stdout, to write into it. It returns
// nil where none of them is at path. It follows links of root's and of this user's.
func openStream(path string) (stream *os.File, err error) {
	for range mostLinks {
		leads := ""
		err = inFolder(path, func(dir int, name string) error {
			fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			if err != nil {
				return nil // nothing is there, or nothing that can be written: Save says what is wrong
			}
			defer unix.Close(fd) //nolint:errcheck // nothing to lose
			stream, leads, err = streamOf(dir, fd, name)
			return err
		})
		if err != nil || leads == "" {
			return stream, err
		}
		if path = leads; !filepath.IsAbs(leads) {
			return nil, nil //nolint:nilnil // a link to what stands beside it is a name of a file
		}
	}
	return nil, unix.ELOOP
}

// streamOf opens what openStream has found in a folder. It may lead elsewhere.
func streamOf(dir, fd int, name string) (stream *os.File, leads string, err error) {
	const flags = os.O_WRONLY | os.O_APPEND | unix.O_NONBLOCK | unix.O_NOCTTY
	var st unix.Stat_t
	var in unix.Statfs_t
	if err := errors.Join(unix.Fstat(fd, &st), unix.Fstatfs(fd, &in)); err != nil {
		return nil, "", err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFIFO, unix.S_IFCHR, unix.S_IFBLK:
		stream, err = os.OpenFile(byDescriptor(fd), flags, 0)
	case unix.S_IFLNK:
		if st.Uid != 0 && !mine(&st) {
			break
		}
		if in.Type == unix.PROC_SUPER_MAGIC { // it leads to what the descriptor is of, whatever it says
			stream, err = os.OpenFile(filepath.Join(byDescriptor(dir), name), flags, 0)
			break
		}
		to := make([]byte, unix.PathMax)
		var n int
		n, err = unix.Readlinkat(fd, "", to)
		leads = string(to[:max(0, n)])
	}
	return stream, leads, err
}

// SaveNew is Save for a path at which nothing may be. The error is fs.ErrExist where something is.
func SaveNew(path string, write func(io.Writer) error) error {
	return inFolder(path, func(dir int, name string) error { return saveNew(dir, name, write) })
}

// saveNew makes a file in an open folder, for all users to read. Nothing is left of one that cannot be written.
func saveNew(dir int, name string, write func(io.Writer) error) error {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), name)
	err = write(file)
	if err == nil {
		err = file.Chmod(0o644)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		_ = unix.Unlinkat(dir, name, 0)
	}
	return err
}

// ForAppending opens a file to write at its end, and makes it where it is missing, for all users to read. It follows no
// link to the file.
func ForAppending(path string) (file *os.File, err error) {
	const flags = unix.O_WRONLY | unix.O_APPEND | unix.O_CREAT | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	err = inFolder(path, func(dir int, name string) error {
		fd, err := unix.Openat(dir, name, flags, 0o644)
		if err == nil {
			file = os.NewFile(uintptr(fd), path)
		}
		return err
	})
	return file, err
}

// inFolder calls do with the open folder of a file and the file's name in it.
func inFolder(path string, do func(dir int, name string) error) error {
	folder, name := filepath.Split(path) // and not Dir, for which a/link/.. is a
	at, err := walk(folder, anybodys)
	if err != nil {
		return err
	}
	defer at.Close() //nolint:errcheck // nothing to lose
	return written(path, do(int(at.Fd()), name))
}

// written says which file could not be written.
func written(path string, err error) error {
	if err == nil {
		return nil
	}
	if x, ok := errors.AsType[*fs.PathError](err); ok {
		err = x.Err
	}
	return &fs.PathError{Op: "write", Path: path, Err: err}
}
