package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/clock"
	"tare/internal/files"
)

// EndMarked kills the processes that were started with a variable, "NAME=value", in their environment, in any process
// group and session. A group other than 0 restricts it to that process group. It skips processes of other users, whose
// environment is not readable.
func EndMarked(variable string, group int) error {
	return KillWhere(func(pid int) bool { return Carries(pid, variable) && (group == 0 || groupOf(pid) == group) })
}

// EndMarkedGroups kills the process groups whose leaders still run and were started with a variable in their
// environment.
func EndMarkedGroups(variable string) error {
	groups := map[int]bool{}
	for _, pid := range pids() {
		if groupOf(pid) == pid && Carries(pid, variable) {
			groups[pid] = true
		}
	}
	member := func(pid int) bool { return groups[groupOf(pid)] }
	return errors.Join(KillWhere(member), KillWhere(member)) // again: one may have started another meanwhile
}

// groupOf returns the process group of a process; 0 if it has ended.
func groupOf(pid int) int {
	g, err := unix.Getpgid(pid)
	if err != nil {
		return 0
	}
	return g
}

// Carries reports whether a process was started with a variable in its environment.
func Carries(pid int, variable string) bool {
	env, err := environ(pid)
	if err != nil {
		return false
	}
	for one := range bytes.SplitSeq(env, []byte{0}) {
		if string(one) == variable {
			return true
		}
	}
	return false
}

// environ returns the environment that a process was started with. While a process executes a program, the kernel shows
// none for a moment: so an empty one of a process that has a program is read again.
func environ(pid int) ([]byte, error) {
	at := fmt.Sprintf("/proc/%d/", pid)
	for again := 10; ; again-- {
		env, err := files.Kernel(at + "environ")
		if err != nil || len(env) > 0 || again == 0 {
			return env, err
		}
		if _, err := files.Leads(at + "exe"); err != nil { // a thread of the kernel, or one that has ended
			return nil, err
		}
		_ = clock.System{}.Sleep(context.Background(), time.Millisecond)
	}
}
