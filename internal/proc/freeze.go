package proc

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"tare/internal/files"
)

// freezeWithin is how long Freeze waits, and freezeLook how long it pauses between two looks.
const (
	freezeWithin = 10 * time.Second
	freezeLook   = time.Millisecond
)

// Freeze stops the child's process group with SIGSTOP, and returns when none of the child's threads runs: kill(2)
// returns before they have stopped, and each of them runs on until it next enters the kernel. thaw continues the group.
// After an error the child runs as before.
func (c *Child) Freeze(ctx context.Context) (thaw func(context.Context) error, err error) {
	thaw = func(context.Context) error { return c.Signal(syscall.SIGCONT) }
	if err := c.Signal(syscall.SIGSTOP); err != nil {
		return nil, err
	}
	if err := c.awaitFrozen(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("stop %s: %w", c.Name, err), thaw(ctx))
	}
	return thaw, nil
}

// awaitFrozen returns when all threads of the child have stopped.
func (c *Child) awaitFrozen(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, freezeWithin, fmt.Errorf("it still runs after %v", freezeWithin))
	defer cancel()
	for {
		if frozen, err := c.Frozen(); frozen || err != nil {
			return err
		}
		if !pause(ctx, freezeLook) {
			return context.Cause(ctx)
		}
	}
}

// Frozen reports whether all threads of the child have stopped. A child that has ended is an error.
func (c *Child) Frozen() (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", c.PID))
	if err != nil {
		return false, err
	}
	running := 0
	for _, file := range threads {
		stat, err := files.Kernel(file)
		if err != nil {
			continue // the thread has ended
		}
		state, err := statText(stat, fieldState)
		if err != nil {
			return false, err
		}
		if state != "T" && state != "t" {
			running++
		}
	}
	select {
	case <-c.exited:
		return false, errors.New("it has ended")
	default:
	}
	return len(threads) > 0 && running == 0, nil
}
