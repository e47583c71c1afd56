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
	// holderWithin is how long a holder may take to close its plane: each component has its grace.
	holderWithin = 60 * time.Second
	// lookEvery is how often a wait for a process looks whether it is still wanted.
	lookEvery = 100 * time.Millisecond
)

// End ends a kept plane and returns when nothing of it is left: it asks the holder first, which closes the plane in order, and then kills and
// removes what there still is. When ctx ends, the holder is killed.
func (k Kept) End(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, holderWithin)
	defer cancel()
	err := ask(ctx, k.Holder)
	_, killed := proc.KillStale(k.Holder) // if it is still there
	return errors.Join(err, killed, k.Clear())
}

// Clear kills the components that are still there and removes the folders. It is for planes whose holder has ended, and may be called twice.
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

// RemoveFolder removes a folder that a plane made and Config.Folder was told of; that there is none is no error. Others are refused.
func RemoveFolder(dir string) error {
	if !ours(dir) {
		return fmt.Errorf("remove folder: %q is none of a plane's", dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove folder: %w", err)
	}
	return nil
}

// ask sends SIGTERM and waits for the end of the process, or of ctx, which is no error.
func ask(ctx context.Context, id proc.ID) error {
	fd, err := open(id)
	if err != nil || fd < 0 {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing to lose
	if err := unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("end process %d: %w", id.PID, err)
	}
	for ctx.Err() == nil {
		if ended, err := ended(fd, lookEvery); ended || err != nil {
			return err
		}
	}
	return nil
}

// alive reports whether the process has not ended. One that nobody has waited for has ended.
func alive(id proc.ID) bool {
	fd, err := open(id)
	if err != nil || fd < 0 {
		return false
	}
	defer unix.Close(fd) //nolint:errcheck // nothing to lose
	over, err := ended(fd, 0)
	return err == nil && !over
}

// open gives a descriptor of the process, or -1 when it is gone. From then on it cannot come to mean another one.
func open(id proc.ID) (int, error) {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return -1, nil
	}
	if err != nil {
		return -1, fmt.Errorf("process %d: %w", id.PID, err)
	}
	if ticks, err := proc.StartTicks(id.PID); err != nil || ticks != id.StartTicks {
		_ = unix.Close(fd) // nothing to lose
		return -1, nil     //nolint:nilerr // it ended between the two, or is another
	}
	return fd, nil
}

// ended reports whether the process behind the descriptor ends within d: the descriptor then becomes readable.
func ended(fd int, d time.Duration) (bool, error) {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, int(d/time.Millisecond))
	if err != nil && !errors.Is(err, unix.EINTR) {
		return false, fmt.Errorf("wait for a process: %w", err)
	}
	return n > 0, nil
}
