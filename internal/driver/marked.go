package driver

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"tare/internal/proc"
)

// endMarked kills the processes that carry the mark of a folder in their environment: drivers, and whatever they have started, in their own groups and sessions or
// not. group restricts it to one process group; 0: it does not. Processes of other users cannot be read, and are not ours.
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
