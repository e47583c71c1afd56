// Package secretfile opens files with secrets, and tells who else can read or change them.
package secretfile

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/clock"
	"tare/internal/files"
)

// A Warning says what is wrong with a file, and how to mend it.
type Warning struct{ Message, Hint string }

// pipeWithin bounds the wait for what is written into a pipe.
const pipeWithin = 2 * time.Second

// Open opens a file with secrets for reading. It refuses a file that other users can write, or replace because
// they can write to a folder above it: its content decides as whom tare acts and, in a kubeconfig, which programs it
// runs. A pipe must be written within pipeWithin.
func Open(path string) (*os.File, error) {
	f, err := files.ForReading(path)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(guarded(f, path, "600"), awaitWritten(f, path)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// awaitWritten waits until a pipe has something to read. Reads from it end with pipeWithin, too.
func awaitWritten(f *os.File, path string) error {
	info, err := f.Stat()
	if err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return err
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var n int
	var failed error
	err = raw.Control(func(fd uintptr) { // its Fd would take the deadline from it
		n, failed = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(pipeWithin/time.Millisecond))
	})
	if failed == nil && n == 0 {
		failed = fmt.Errorf("%s is a pipe that nobody has written within %v", path, pipeWithin)
	}
	return errors.Join(err, failed, f.SetReadDeadline(clock.System{}.Now().Add(pipeWithin)))
}

// openRegular opens a regular file, and nothing else: who writes a pipe would take this for its reader.
func openRegular(path string) (f *os.File, ok bool) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	f, err := files.ForReading(path)
	return f, err == nil
}

// Check returns the error with which Open would refuse an existing file. It ignores a file that cannot
// be opened: whoever needs it will report that.
func Check(path string) error { return check(path, "600") }

// CheckAuthorities is Check for the certificates to trust: who can change them gets the secrets that are sent. Others
// may read them.
func CheckAuthorities(path string) error { return check(path, "go-w") }

func check(path, mode string) error {
	f, ok := openRegular(path)
	if !ok {
		return nil // its reader says what is wrong
	}
	return errors.Join(guarded(f, path, mode), f.Close())
}

// guarded returns an error if other users can change the content of f; it names the mode that mends it. It accepts a
// file that nobody can write, such as a secret that Kubernetes mounts, and whatever is not a regular file, such as a
// pipe.
func guarded(f *os.File, path, mend string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || readOnly(f) {
		return nil
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("other users can write %s (mode %#o): look at what it holds, then: chmod %s %[1]s", path, mode,
			mend)
	}
	for _, dir := range foldersOf(path) {
		if err := files.Replaceable(dir); err != nil {
			return fmt.Errorf("other users can replace %s: %w", path, err)
		}
	}
	return nil
}

// foldersOf returns the folders above a file: by its own path, and by the path that it links to.
func foldersOf(path string) []string {
	found := map[string]bool{}
	above := func(path string) {
		for dir := filepath.Dir(path); !found[dir]; dir = filepath.Dir(dir) {
			found[dir] = true
		}
	}
	if p, err := filepath.Abs(path); err == nil {
		above(p)
	}
	if p, err := files.Resolved(path); err == nil {
		if p, err = filepath.Abs(p); err == nil {
			above(p)
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Owned returns an error if an open regular file, or a folder above it, belongs to a stranger. It is for a file that
// decides which programs run. Like guarded, it accepts a file that nobody can write.
func Owned(f *os.File) error {
	info, err := f.Stat()
	if err != nil || readOnly(f) {
		return err
	}
	if owner, foreign := stranger(info); foreign {
		return fmt.Errorf("%s belongs to another user (uid %d): look at what it holds, and name a copy of your own",
			f.Name(), owner)
	}
	if w, found := replaceable(f.Name()); found {
		return fmt.Errorf("%s: %s", w.Message, w.Hint)
	}
	return nil
}

// Exposed returns a warning if other users can read a file.
func Exposed(path string) (Warning, bool) {
	f, ok := openRegular(path)
	if !ok {
		return Warning{}, false
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || mounted(f, path) {
		return Warning{}, false
	}
	owner, foreign := stranger(info)
	switch mode := info.Mode().Perm(); {
	case foreign:
		return Warning{
			Message: fmt.Sprintf(
				"the file with secrets %s belongs to another user (uid %d), who can read and replace it", path, owner),
			Hint: fmt.Sprintf("chown %d %s", os.Geteuid(), path),
		}, true
	case mode&0o077 != 0:
		return Warning{
			Message: fmt.Sprintf("other users can read the file with secrets %s (mode %#o)", path, mode),
			Hint:    "chmod 600 " + path,
		}, true
	}
	return replaceable(path)
}

// replaceable returns a warning if a folder above a file belongs to another user, who can replace the file.
func replaceable(path string) (Warning, bool) {
	for _, dir := range foldersOf(path) {
		info, err := os.Stat(dir)
		if err != nil {
			continue
		}
		if owner, foreign := stranger(info); foreign {
			return Warning{
				Message: fmt.Sprintf("the folder %s belongs to another user (uid %d), who can replace the file with secrets %s",
					dir, owner, path),
				Hint: "move the file into a folder of your own",
			}, true
		}
	}
	return Warning{}, false
}

// stranger returns the owner of a file; foreign reports that it is neither root, nor the user of this process, nor the
// one who has started it by sudo.
func stranger(info os.FileInfo) (owner uint32, foreign bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Uid == 0 || int(st.Uid) == os.Geteuid() {
		return 0, false
	}
	caller, _ := os.LookupEnv("SUDO_UID")
	return st.Uid, strconv.FormatUint(uint64(st.Uid), 10) != caller
}

// mounted reports whether the file was mounted for this process: by Kubernetes, whose volumes have a link ..data, or
// read-only by another manager of secrets.
func mounted(f *os.File, path string) bool {
	if _, err := files.Leads(filepath.Join(filepath.Dir(path), "..data")); err == nil {
		return true
	}
	return readOnly(f)
}

// readOnly reports whether f is on a read-only mount.
func readOnly(f *os.File) bool {
	var s unix.Statfs_t
	return unix.Fstatfs(int(f.Fd()), &s) == nil && s.Flags&unix.ST_RDONLY != 0
}
