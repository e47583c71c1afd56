package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/proc"
)

const (
	// holderWithin is how long a holder may take to close its plane: each component has its own grace.
	holderWithin = 60 * time.Second
	// lookEvery is the interval at which a wait for a process checks its context.
	lookEvery = 100 * time.Millisecond
)

// End ends a kept plane and returns when nothing of it is left. It asks the holder first, which closes the plane in
// order, and then kills and removes what remains. When ctx ends, the holder is killed.
func (k Kept) End(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, holderWithin)
	defer cancel()
	err := terminate(ctx, k.Holder)
	_, killed := proc.KillStale(k.Holder) // if it still runs
	return errors.Join(err, killed, k.Clear())
}

// Clear kills the components that still run and removes the folders. It is for planes whose holder has ended, and may
// be called twice.
func (k Kept) Clear() error {
	var errs []error
	for _, p := range k.Processes {
		if _, err := proc.KillStale(p.ID); err != nil {
			errs = append(errs, fmt.Errorf("end %s: %w", p.Name, err))
		}
	}
	for _, dir := range k.Folders {
		if err := RemoveFolder(dir); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// RemoveFolder removes a folder that a plane made and reported to Config.Folder. It succeeds if the folder does not
// exist, and refuses others.
func RemoveFolder(dir string) error {
	if !isPlaneFolder(dir) {
		return fmt.Errorf("remove folder: %q is not a folder of a plane", dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove folder: %w", err)
	}
	return nil
}

// terminate sends SIGTERM and waits until the process or ctx has ended; neither is an error.
func terminate(ctx context.Context, id proc.ID) error {
	fd, err := openProcess(id)
	if err != nil || fd < 0 {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing to lose
	if err := unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("end process %d: %w", id.PID, err)
	}
	for ctx.Err() == nil {
		if ended, err := awaitEnd(fd, lookEvery); ended || err != nil {
			return err
		}
	}
	return nil
}

// alive reports whether the process still runs; a zombie does not.
func alive(id proc.ID) bool {
	fd, err := openProcess(id)
	if err != nil || fd < 0 {
		return false
	}
	defer unix.Close(fd) //nolint:errcheck // nothing to lose
	over, err := awaitEnd(fd, 0)
	return err == nil && !over
}

// openProcess returns a pidfd of the process, or -1 when it has ended. From then on it cannot refer to another process.
func openProcess(id proc.ID) (int, error) {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return -1, nil
	}
	if err != nil {
		return -1, fmt.Errorf("process %d: %w", id.PID, err)
	}
	if ticks, err := proc.StartTicks(id.PID); err != nil || ticks != id.StartTicks {
		_ = unix.Close(fd) // nothing to lose
		return -1, nil     //nolint:nilerr // it has ended, or is another process
	}
	return fd, nil
}

// awaitEnd reports whether the process behind a pidfd ends within d: the pidfd then becomes readable.
func awaitEnd(fd int, d time.Duration) (bool, error) {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, int(d/time.Millisecond))
	if err != nil && !errors.Is(err, unix.EINTR) {
		return false, fmt.Errorf("wait for a process: %w", err)
	}
	return n > 0, nil
}
