package proc

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// NoCore prevents core dumps of this process and its children, which would hold the credentials in their memory. A
// limit of one byte, unlike 0, also keeps the kernel from piping the dump to a program (core(5), "Piping core dumps to
// a program"; kernel fs/coredump.c, "RLIMIT_CORE of 1").
func NoCore() error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &l); err != nil {
		return fmt.Errorf("read the limit of core dumps: %w", err)
	}
	l.Cur = min(1, l.Max)
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &l); err != nil {
		return fmt.Errorf("limit core dumps: %w", err)
	}
	return nil
}
