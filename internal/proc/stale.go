package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// reapWithin is how long KillStale waits for the end of a process that it killed.
const reapWithin = 5 * time.Second

// StartTicks is the start time of a process in clock ticks since boot (field 22 of /proc/PID/stat, proc_pid_stat(5)). The error is
// fs.ErrNotExist when there is no such process.
func StartTicks(pid int) (uint64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, syscall.ESRCH) { // it ended between open and read
		return 0, fmt.Errorf("process %d: %w", pid, fs.ErrNotExist)
	}
	if err != nil {
		return 0, err
	}
	ticks, err := startTicks(stat)
	if err != nil {
		return 0, fmt.Errorf("process %d: %w", pid, err)
	}
	return ticks, nil
}

// startTicks finds field 22. The command name before it may hold blanks and parentheses, so fields are counted from the last ')'.
func startTicks(stat []byte) (uint64, error) {
	const afterName = 22 - 3
	_, rest, ok := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(") "))
	fields := bytes.Fields(rest)
	if !ok || len(fields) <= afterName {
		return 0, fmt.Errorf("malformed stat %q", stat)
	}
	return strconv.ParseUint(string(fields[afterName]), 10, 64)
}

// KillStale kills the process that id named when it was journaled, and waits for its end. A process that is gone, or whose pid now
// belongs to another, is left alone; killed says which. It is safe to call twice, and from a process that is not the parent.
func KillStale(id ID) (killed bool, err error) {
	if id.PID <= 1 || id.StartTicks == 0 {
		return false, fmt.Errorf("kill stale process: pid %d with start time %d names none", id.PID, id.StartTicks)
	}
	// The descriptor is opened before the start time is read: from then on it cannot come to mean another process.
	fd, err := unix.PidfdOpen(id.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("kill stale process %d: %w", id.PID, err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing to lose
	ticks, err := StartTicks(id.PID)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("kill stale process: %w", err)
	case ticks != id.StartTicks:
		return false, nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return false, fmt.Errorf("kill stale process %d: %w", id.PID, err)
	}
	return true, awaitEnd(fd, id.PID)
}

// awaitEnd waits until the process behind a pidfd has ended: the descriptor then becomes readable.
func awaitEnd(fd, pid int) error {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(poll, int(reapWithin/time.Millisecond))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("wait for process %d: %w", pid, err)
		case n == 0:
			return fmt.Errorf("process %d was killed but has not ended within %v", pid, reapWithin)
		default:
			return nil
		}
	}
}
