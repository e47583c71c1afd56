package area

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"time"
)

// A Group is a heading of the list of commands.
type Group string

// The groups. A command without one is in no list.
const (
	AskWithoutFile Group = "Ask without a file:"
	Experiments    Group = "Experiments:"
	Results        Group = "Results:"
	ThisHost       Group = "This host:"
)

// A Command is an area's own command: tare NAME.
type Command struct {
	// Use is the name with its arguments: "up", "run [flags] -- COMMAND…".
	Use                  string
	Short, Long, Example string
	Group                Group // of a command at the top
	Hidden               bool  // tare starts it itself
	// Least and Most bound the number of arguments; Most −1: no bound. Rest: flags end at the first argument. After: those
	// after -- do not count.
	Least, Most int
	Rest, After bool
	// Asks: it composes an experiment, and has the flags of the commands that do so.
	Asks  bool
	Flags func(*flag.FlagSet)
	Run   func(ctx context.Context, sh *Shell, args []string) error
	Below []Command
}

// A Mode is what `tare doctor` does instead of its own checks when a flag is given: `tare doctor --rbac`.
type Mode struct {
	Flag, Help string              // the switch that chooses the mode
	Flags      func(*flag.FlagSet) // flags that only the mode has; nil: none
	Run        func(ctx context.Context, sh *Shell) error
}

// A Shell is the outside world of a command.
type Shell struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(name string) (string, bool)
	Log            *slog.Logger
	Print          func(format string, args ...any) // to standard output: results
	Tell           func(format string, args ...any) // to standard error: everything else
	// Ask runs a composed experiment, with the margin and the budgets of the command line.
	Ask func(ctx context.Context, c Composed) error
	// Lock holds a name for this process, so that no other holds it.
	Lock func(key, who string, since time.Time) (unlock func(), err error)
}

// A Composed is an experiment that a command line stands for.
type Composed struct {
	Text  string // the file that a person would have written, without margin and budget
	Label string // of the first line of the plan
	What  string // that is asked
	Needs string // what to do where the address alone is not enough; empty: it is
}

// Usage returns an error about the command line.
func Usage(format string, args ...any) error {
	return ExitError{Code: 2, Err: fmt.Errorf(format, args...)}
}

// An ExitError ends the process with a code. Without Err it has been reported already.
type ExitError struct {
	Code int
	Err  error
}

// Error implements error.
func (e ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e ExitError) Unwrap() error { return e.Err }

// Builds are what an area builds on this host and keeps.
type Builds struct {
	Holds  string // "control planes"
	Folder string
	// List returns what is there, and Prune removes what this version of tare would not use, or all.
	List  func() ([]Build, error)
	Prune func(all bool) (removed, kept []Build, err error)
}

// A Build is one thing that was built. Used is zero if it is unknown.
type Build struct {
	Name, Dir, State, Busy string
	Bytes                  int64
	Used                   time.Time
}
