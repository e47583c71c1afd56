package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// mostOfKernel bounds what is read of a file that the kernel shows, in bytes.
const mostOfKernel = 64 << 20

// ForReading opens a file that the user names. It waits for nobody: a named pipe without a writer reads as empty, and a
// file that the kernel shows, which may have no end, is refused.
func ForReading(path string) (*os.File, error) {
	f, err := openNow(path)
	if err != nil {
		return nil, err
	}
	if err := checkEnds(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func openNow(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
}

// checkEnds refuses what is in a file system in which the kernel makes what is read. Files in it count as regular, but
// some have no end (/proc/kcore), or are waited for although they are opened without waiting (/proc/kmsg, trace_pipe).
func checkEnds(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var in unix.Statfs_t
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.Fstatfs(int(fd), &in) }); err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	switch in.Type {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC,
		unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.RDTGROUP_SUPER_MAGIC, unix.XENFS_SUPER_MAGIC:
		return fmt.Errorf("%s is a file that the kernel shows, which may have no end: name a copy of it", f.Name())
	}
	return nil
}

// Ends returns an error if reading the file at path could wait, or take more than so many bytes. Of a folder, and of
// what cannot be looked at, its reader says what is wrong.
func Ends(path string, most int64) error {
	at, err := os.OpenFile(path, unix.O_PATH, 0)
	if err != nil {
		return nil
	}
	defer at.Close() //nolint:errcheck // it only names the file
	is, err := at.Stat()
	switch {
	case err != nil || is.IsDir():
		return err
	case !is.Mode().IsRegular():
		return fmt.Errorf("%s: want a regular file", path)
	case is.Size() > most:
		return fmt.Errorf("%s: longer than %d bytes", path, most)
	}
	return checkEnds(at)
}

// Read returns the content of a file of at most so many bytes, opened as by ForReading.
func Read(path string, most int) ([]byte, error) {
	return readAll(ForReading, path, most)
}

func readAll(open func(path string) (*os.File, error), path string, most int) ([]byte, error) {
	f, err := open(path)
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
func Kernel(path string) ([]byte, error) { return readAll(openNow, path, mostOfKernel) }

// Leads says where a link leads. It may lead elsewhere by the time when the answer is used.
func Leads(path string) (string, error) { return os.Readlink(path) }

// Resolved is a path without its links. They may lead elsewhere by the time when it is used.
func Resolved(path string) (string, error) { return filepath.EvalSymlinks(path) }
