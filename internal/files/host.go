package files

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// errNoFile is what a pipe, a socket or a device gets in the place of a file.
var errNoFile = errors.New("neither a regular file nor a folder")

// Host is this machine's file system, to read from. Elsewhere than in the kernel's own file systems it opens regular
// files and folders only, so that a process that owns a folder cannot have tare wait for a pipe or open a device, not
// even by one that it puts there at the last moment.
func Host() fs.FS { return host{} }

type host struct{}

// Open implements fs.FS.
func (host) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if kernels(name) {
		return os.DirFS("/").Open(name)
	}
	at, err := unix.Open("/"+name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(at) //nolint:errcheck // it only names the file
	var is unix.Stat_t
	if err := unix.Fstat(at, &is); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	if kind := is.Mode & unix.S_IFMT; kind != unix.S_IFREG && kind != unix.S_IFDIR {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errNoFile}
	}
	f, err := os.Open(byDescriptor(at))
	if err != nil {
		return nil, err
	}
	return f, nil
}

// ReadFile implements fs.ReadFileFS. The kernel states no size for its files, writes them anew for each read, and gives
// some, those of /proc/sys, in the first read only: a page is asked for at once.
func (h host) ReadFile(name string) ([]byte, error) {
	f, err := h.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	b := bytes.NewBuffer(make([]byte, 0, os.Getpagesize()))
	_, err = b.ReadFrom(f)
	return b.Bytes(), err
}

// Stat implements fs.StatFS.
func (host) Stat(name string) (fs.FileInfo, error) { return fs.Stat(os.DirFS("/"), name) }

// Lstat implements fs.ReadLinkFS.
func (host) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(os.DirFS("/"), name) }

// ReadLink implements fs.ReadLinkFS.
func (host) ReadLink(name string) (string, error) { return fs.ReadLink(os.DirFS("/"), name) }

// kernels reports whether the kernel alone decides what a path is. What is behind a process's links is the process's.
func kernels(name string) bool {
	first, rest, _ := strings.Cut(name, "/")
	if first != "proc" {
		return first == "sys"
	}
	return !slices.ContainsFunc(strings.Split(rest, "/"), func(part string) bool {
		return slices.Contains([]string{"root", "cwd", "exe", "fd", "map_files"}, part)
	})
}
