package driver

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"tare/internal/proc"
)

// endMarked kills the processes that have a folder's mark in their environment: drivers, and all that they started, in
// any process group and session. A group other than 0 restricts it to that process group. It skips processes of other
// users, whose environment is not readable.
func endMarked(folder string, group int) error {
	mark := []byte(Mark + "=" + folder)
	return proc.KillWhere(func(pid int) bool {
		if !carries(pid, mark) {
			return false
		}
		g, err := unix.Getpgid(pid)
		return group == 0 || err == nil && g == group
	})
}

// carries reports whether a process was started with a variable in its environment.
func carries(pid int, variable []byte) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	for one := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.Equal(one, variable) {
			return true
		}
	}
	return false
}
