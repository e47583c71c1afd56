package workload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/proc"
)

// Command is a command line that is timed as a whole, from before its fork until its end.
type Command struct {
	Name string `json:"name"`
	// Run is the program and its arguments. A program without a slash is looked up in PATH. No shell is involved unless
	// Run names one.
	Run []string `json:"run"`
	// Prepare runs before each Run and is not timed. Empty: nothing.
	Prepare []string `json:"prepare,omitempty"`
	// Dir is the working directory; empty: the worker's.
	Dir string `json:"dir,omitempty"`
}

// Validate rejects a command that cannot be run.
func (c *Command) Validate() error {
	if len(c.Run) == 0 || c.Run[0] == "" {
		return errors.New("a command needs a program to run")
	}
	if len(c.Prepare) > 0 && c.Prepare[0] == "" {
		return errors.New("prepare names no program")
	}
	return nil
}

// runCommand runs c n times and sums the cost. The CPU time is that of the command and of the processes that it has
// waited for.
func runCommand(ctx context.Context, c Command, n int) (Cost, error) {
	total := Cost{N: n}
	for range n {
		if len(c.Prepare) > 0 {
			if _, err := c.once(ctx, c.Prepare); err != nil {
				return Cost{}, fmt.Errorf("prepare: %w", err)
			}
		}
		cost, err := c.once(ctx, c.Run)
		if err != nil {
			return Cost{}, err
		}
		total.Wall += cost.Wall
		total.CPU += cost.CPU
	}
	return total, nil
}

// hangUp bounds the wait for the stderr of a process that has ended.
const hangUp = 2 * time.Second

// once runs one command line to its end. When ctx ends first, its process group is killed.
func (c *Command) once(ctx context.Context, line []string) (Cost, error) {
	errs := &proc.Tail{}
	cmd := proc.Command(ctx, line[0], line[1:]...)
	cmd.Dir, cmd.Env = c.Dir, nil
	cmd.Stderr = errs
	cmd.WaitDelay, cmd.EndHolders = hangUp, true
	began, err := read(unix.CLOCK_MONOTONIC)
	if err != nil {
		return Cost{}, err
	}
	err = cmd.Run()
	ended, clockErr := read(unix.CLOCK_MONOTONIC)
	switch {
	case clockErr != nil:
		return Cost{}, clockErr
	case ctx.Err() != nil:
		return Cost{}, fmt.Errorf("%s: killed: %w", line[0], context.Cause(ctx))
	case errors.Is(err, exec.ErrWaitDelay):
		return Cost{}, &Failure{
			Op: c.Name, Call: line[0],
			Detail: "it ended, but left processes behind that hold its errors open",
		}
	case err != nil:
		return Cost{}, c.failed(line, err, errs.LastLine())
	}
	return Cost{Wall: max(1, ended-began), CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, nil
}

// failed turns a command's failed start or exit into a Failure.
func (c *Command) failed(line []string, err error, said string) error {
	f := &Failure{Op: c.Name, Call: line[0], Detail: err.Error()}
	if errors.Is(err, exec.ErrNotFound) {
		return f
	}
	var path *fs.PathError // of the fork and execve, or of opening /dev/null
	if errno, e := errnoOf(err); e == nil && errors.As(err, &path) {
		f.Call, f.Errno, f.Detail = "execve", errno, path.Path
		if path.Op == "open" {
			f.Call = "openat"
		}
	}
	if said != "" {
		f.Detail += ": " + said
	}
	return f
}
