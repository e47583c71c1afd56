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

// StartTicks returns the start time of a process in clock ticks since boot (field 22 of /proc/PID/stat,
// proc_pid_stat(5)). The error is fs.ErrNotExist when there is no such process.
func StartTicks(pid int) (uint64, error) { return statOf(pid, fieldStart) }

// Fields of /proc/PID/stat, counted from 1 as in proc_pid_stat(5).
const (
	fieldFaults = 11 // page faults of children that were waited for
	fieldStart  = 22
)

// statOf reads a numeric field. The error is fs.ErrNotExist when there is no such process.
func statOf(pid, field int) (uint64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, syscall.ESRCH) { // it ended between open and read
		return 0, fmt.Errorf("process %d: %w", pid, fs.ErrNotExist)
	}
	if err != nil {
		return 0, err
	}
	n, err := statField(stat, field)
	if err != nil {
		return 0, fmt.Errorf("process %d: %w", pid, err)
	}
	return n, nil
}

// statField finds a field after the command's name, which may hold blanks and parentheses: it counts from the last ')'.
func statField(stat []byte, field int) (uint64, error) {
	afterName := field - 3
	_, rest, ok := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(") "))
	fields := bytes.Fields(rest)
	if !ok || len(fields) <= afterName {
		return 0, fmt.Errorf("malformed stat %q", stat)
	}
	return strconv.ParseUint(string(fields[afterName]), 10, 64)
}

// KillStale kills the process that id named when it was journaled, and waits for its end. If the process has ended, or
// its pid now belongs to another, it does nothing and killed is false. It may be called twice, and from a process that
// is not the parent.
func KillStale(id ID) (killed bool, err error) {
	if id.PID <= 1 || id.StartTicks == 0 {
		return false, fmt.Errorf("kill stale process: pid %d with start time %d does not identify a process", id.PID,
			id.StartTicks)
	}
	// The pidfd is opened before the start time is read: from then on it cannot refer to another process.
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

// KillWhere kills the processes for which is returns true, except this one, and waits for their end. is may be called
// for a process that has ended meanwhile, or that belongs to another user.
func KillWhere(is func(pid int) bool) error {
	all, err := os.ReadDir("/proc")
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	var errs []error
	for _, p := range all {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// The start time is read first, so that KillStale kills no later process with this pid.
		ticks, err := StartTicks(pid)
		if err != nil || !is(pid) {
			continue
		}
		_, err = KillStale(ID{PID: pid, StartTicks: ticks})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
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
