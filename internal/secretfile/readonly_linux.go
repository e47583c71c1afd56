package secretfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// readOnly reports whether f is on a read-only mount.
func readOnly(f *os.File) bool {
	var s unix.Statfs_t
	return unix.Fstatfs(int(f.Fd()), &s) == nil && s.Flags&unix.ST_RDONLY != 0
}
