//go:build unix

package record

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// tryLock takes an exclusive lock on f unless another process has it. Children do not inherit it: Go opens files
// close-on-exec.
func tryLock(f *os.File) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, err
		}
	}
}

// noRoom reports whether a file could not be opened for writing because its disk is full or read-only.
func noRoom(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EROFS)
}

// ownFolder opens a folder that belongs to this process's user and that no other user may write.
func ownFolder(dir string) (*os.Root, error) {
	named, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil {
		err = owned(dir, named, opened)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// Own reports whether a file belongs to this process's user.
func Own(f os.FileInfo) bool {
	st, ok := f.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// owned checks the folder that was opened; named is what its name referred to just before.
func owned(dir string, named, opened os.FileInfo) error {
	switch {
	case named.Mode()&os.ModeSymlink != 0, !os.SameFile(named, opened):
		return fmt.Errorf("%s is a link, and not a folder; remove it", dir)
	case !Own(opened):
		return fmt.Errorf("the folder %s belongs to another user: let that user do it, or have the folder removed", dir)
	case opened.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("other users may write the folder %s: chmod go-w it once you know that nobody has changed it", dir)
	}
	return nil
}
