package driver

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"tare/internal/proc"
)

// endMarked kills the processes that carry the mark of a folder in their environment: drivers, and whatever they have started, in their own groups and sessions or
// not. group restricts it to one process group; 0: it does not. Processes of other users cannot be read, and are not ours.
func endMarked(folder string, group int) error {
	all, err := os.ReadDir("/proc")
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	mark := []byte(Mark + "=" + folder)
	var errs []error
	for _, p := range all {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// The start time is read first: KillStale then kills no other process that has got this pid since.
		ticks, err := proc.StartTicks(pid)
		if err != nil || !carries(pid, mark) {
			continue // ended meanwhile, or another's
		}
		if g, err := unix.Getpgid(pid); group != 0 && (err != nil || g != group) {
			continue
		}
		_, err = proc.KillStale(proc.ID{PID: pid, StartTicks: ticks})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
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
