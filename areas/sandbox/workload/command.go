package workload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/clock"
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

// AdoptOrphans makes this process, and the program that it becomes, the parent of what its commands leave behind.
func AdoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt what commands leave behind: %w", err)
	}
	return nil
}

// reap waits for the children that have ended, and returns their CPU time and whether others are running.
func reap() (cpu time.Duration, running bool, err error) {
	for {
		var used unix.Rusage
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, &used)
		switch {
		case errors.Is(err, unix.ECHILD):
			return cpu, false, nil
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return cpu, false, fmt.Errorf("wait for what a command has left behind: %w", err)
		case pid == 0:
			return cpu, true, nil
		}
		cpu += time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
}

// awaitOrphans waits at most that long until every child has ended, and returns their CPU time and whether some go on.
func awaitOrphans(ctx context.Context, most time.Duration) (total time.Duration, running bool, err error) {
	for waited := time.Duration(0); ; waited += time.Millisecond {
		cpu, running, err := reap()
		total += cpu
		if err != nil || !running || waited >= most {
			return total, running, err
		}
		if err := (clock.System{}).Sleep(ctx, time.Millisecond); err != nil {
			return total, true, err
		}
	}
}

// lingers is how long what a command has left behind may take to end.
const lingers = 200 * time.Millisecond

// orphans waits for what a command has left behind, and returns its CPU time. It is an error if some of it goes on.
func (c *Command) orphans(ctx context.Context, line []string) (time.Duration, error) {
	cpu, running, err := awaitOrphans(ctx, lingers)
	if err == nil && running {
		err = &Failure{
			Op: c.Name, Call: line[0],
			Detail: "it ended, but left processes behind that go on, whose work would not be counted: have it wait for " +
				"them, or start them in prepare",
		}
	}
	return cpu, err
}

// runCommand runs c n times and sums the cost. The CPU time is that of the command, of the processes that it has waited
// for, and of those that it has left behind.
func runCommand(ctx context.Context, c Command, n int) (Cost, error) {
	total := Cost{N: n}
	for range n {
		if len(c.Prepare) > 0 {
			if _, err := c.once(ctx, c.Prepare); err != nil {
				return Cost{}, fmt.Errorf("prepare: %w", err)
			}
		}
		_, others, err := reap() // started by prepare: they are not the run's
		if err != nil {
			return Cost{}, err
		}
		cost, err := c.once(ctx, c.Run)
		if err != nil {
			return Cost{}, err
		}
		if !others {
			left, err := c.orphans(ctx, c.Run)
			if err != nil {
				return Cost{}, err
			}
			cost.CPU += left
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
		_, _, _ = awaitOrphans(ctx, hangUp) // they were killed: the next run must not meet them while they end
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

// Programs lists the names that NewProgram knows.
func Programs() []string { return []string{"sysbench-cpu", "sysbench-memory"} }

// NewProgram returns an installed program as a command line with a fixed amount of work. The error is a *Missing when
// it is not installed.
func NewProgram(name string) (Command, error) {
	var args []string
	switch name {
	case "sysbench-cpu": // primes: user space alone
		args = []string{"cpu", "--cpu-max-prime=2000", "--events=400"}
	case "sysbench-memory": // writes: user space and page faults
		args = []string{"memory", "--memory-block-size=4K", "--memory-total-size=256M"}
	default:
		return Command{}, fmt.Errorf("unknown program %.40q", name)
	}
	path, err := installed("sysbench", "sysbench")
	if err != nil {
		return Command{}, err
	}
	return Command{Name: name, Run: append(append([]string{path}, args...), "--threads=1", "--time=0", "run")}, nil
}
