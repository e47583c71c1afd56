//go:build unix

package record

import (
	"errors"
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

// Own reports whether a file belongs to this process's user.
func Own(f os.FileInfo) bool {
	st, ok := f.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
