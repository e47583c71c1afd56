package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/files"
)

// reapWithin is how long KillStale waits for the end of a process that it killed.
const reapWithin = 5 * time.Second

// StartTicks returns the start time of a process in clock ticks since boot (field 22 of /proc/PID/stat,
// proc_pid_stat(5)). The error is fs.ErrNotExist when there is no such process.
func StartTicks(pid int) (uint64, error) { return statOf(pid, fieldStart) }

// Identify returns the identity of a process that runs. The error is fs.ErrNotExist when there is no such process.
func Identify(pid int) (ID, error) {
	ticks, err := StartTicks(pid)
	if err != nil {
		return ID{}, err
	}
	boot, err := bootID()
	return ID{PID: pid, StartTicks: ticks, Boot: boot}, err
}

// bootID returns the kernel's random id of this boot (random(4)).
var bootID = sync.OnceValues(func() (string, error) {
	text, err := files.Kernel("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
})

// Open returns a pidfd of the process, which never refers to another; ok is false when it has ended.
func (id ID) Open() (fd int, ok bool, err error) {
	if id.PID <= 1 || id.StartTicks == 0 {
		return -1, false, fmt.Errorf("pid %d with start time %d does not identify a process", id.PID, id.StartTicks)
	}
	// The pidfd is opened before the start time is read: from then on it cannot refer to another process.
	fd, err = unix.PidfdOpen(id.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return -1, false, nil
	}
	if err != nil {
		return -1, false, fmt.Errorf("process %d: %w", id.PID, err)
	}
	now, err := Identify(id.PID)
	if id.Boot == "" {
		now.Boot = ""
	}
	if err == nil && now == id {
		return fd, true, nil
	}
	_ = unix.Close(fd) // nothing to lose
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return -1, false, err
}

// Fields of /proc/PID/stat, counted from 1 as in proc_pid_stat(5).
const (
	fieldState  = 3
	fieldFaults = 11 // page faults of children that were waited for
	fieldStart  = 22
)

// statOf reads a numeric field. The error is fs.ErrNotExist when there is no such process.
func statOf(pid, field int) (uint64, error) {
	stat, err := files.Kernel(fmt.Sprintf("/proc/%d/stat", pid))
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

// statField finds a numeric field.
func statField(stat []byte, field int) (uint64, error) {
	text, err := statText(stat, field)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(text, 10, 64)
}

// statText finds a field after the command's name, which may hold blanks and parentheses: it counts from the last ')'.
func statText(stat []byte, field int) (string, error) {
	afterName := field - 3
	_, rest, ok := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(") "))
	fields := bytes.Fields(rest)
	if !ok || len(fields) <= afterName {
		return "", fmt.Errorf("malformed stat %q", stat)
	}
	return string(fields[afterName]), nil
}

// KillStale kills the process that id named when it was journaled, and waits for its end. If the process has ended, or
// its pid now belongs to another, it does nothing and killed is false. It may be called twice, and from a process that
// is not the parent.
func KillStale(id ID) (killed bool, err error) {
	fd, ok, err := id.Open()
	if err != nil {
		return false, fmt.Errorf("kill stale process: %w", err)
	}
	if !ok {
		return false, nil
	}
	defer unix.Close(fd) //nolint:errcheck // nothing to lose
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return false, fmt.Errorf("kill stale process %d: %w", id.PID, err)
	}
	return true, awaitEnd(fd, id.PID)
}

// lookEvery is the interval at which a wait for a process checks its context.
const lookEvery = 100 * time.Millisecond

// Terminate sends SIGTERM and waits until the process or ctx has ended; neither is an error.
func Terminate(ctx context.Context, id ID) error {
	fd, ok, err := id.Open()
	if err != nil || !ok {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing to lose
	if err := unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("end process %d: %w", id.PID, err)
	}
	for ctx.Err() == nil {
		if over, err := ended(fd, lookEvery); over || err != nil {
			return err
		}
	}
	return nil
}

// Alive reports whether the process still runs; a zombie does not.
func (id ID) Alive() bool {
	fd, ok, err := id.Open()
	if err != nil || !ok {
		return false
	}
	defer unix.Close(fd) //nolint:errcheck // nothing to lose
	over, err := ended(fd, 0)
	return err == nil && !over
}

// KillWhere kills the processes for which is returns true, except this one, and waits for their end. is may be called
// for a process that has ended meanwhile, or that belongs to another user.
func KillWhere(is func(pid int) bool) error {
	var errs []error
	for _, pid := range pids() {
		// The start time is read first, so that KillStale kills no later process with this pid.
		id, err := Identify(pid)
		if err != nil || !is(pid) {
			continue
		}
		_, err = KillStale(id)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// pids lists the processes that may be ended: not the first, and not this one.
func pids() (list []int) {
	all, _ := filepath.Glob("/proc/[0-9]*") // without /proc no process is found by other means either
	for _, name := range all {
		if pid, err := strconv.Atoi(filepath.Base(name)); err == nil && pid > 1 && pid != os.Getpid() {
			list = append(list, pid)
		}
	}
	return list
}

// awaitEnd waits until the process behind a pidfd has ended.
func awaitEnd(fd, pid int) error {
	for left := reapWithin; left > 0; left -= lookEvery {
		if over, err := ended(fd, lookEvery); over || err != nil {
			return err
		}
	}
	return fmt.Errorf("process %d was killed but has not ended within %v", pid, reapWithin)
}

// ended reports whether the process behind a pidfd ends within d: the descriptor then becomes readable.
func ended(fd int, d time.Duration) (bool, error) {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, int(d/time.Millisecond))
	if err != nil && !errors.Is(err, unix.EINTR) {
		return false, fmt.Errorf("wait for a process: %w", err)
	}
	return n > 0, nil
}
