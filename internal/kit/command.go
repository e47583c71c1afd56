package kit

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"tare/area"
	"tare/internal/proc"
	"tare/internal/shell"
	"tare/internal/term"
)

// A ByCommand is a condition that the file brings about with a command of its own, and ends with another.
type ByCommand struct {
	Name string
	// Do and Undo are programs with their arguments; no shell is involved. Without Undo the condition ends with Do.
	Do, Undo []string
	For      time.Duration // between Do and Undo; 0: as Condition.Hold
}

const (
	// CommandKind is the kind of a Change that a Command ends.
	CommandKind = "command"
	// CommandTime bounds how long one command may take.
	CommandTime = time.Minute
	// treatmentVariable tells a command under which treatment it is run.
	treatmentVariable = "TARE_TREATMENT"
	// markVariable marks the processes of a command that begins a condition.
	markVariable = "TARE_CONDITION"
)

// Condition is the condition under a treatment. What ends it is journaled before it begins.
func (c ByCommand) Condition(treatment string, j area.Journal) area.Condition {
	return area.Condition{
		Name: c.Name, Does: "the command " + shell.Line(c.Do), Hold: c.For,
		Impose: func(ctx context.Context) (func(context.Context) error, error) { return c.impose(ctx, treatment, j) },
	}
}

// impose runs Do. If that fails, Undo is run all the same, since Do may have done a part of its work.
func (c ByCommand) impose(ctx context.Context, treatment string, j area.Journal) (func(context.Context) error, error) {
	if len(c.Undo) == 0 {
		return nil, runCommand(ctx, c.Do, commandIn{treatment: treatment})
	}
	change, err := c.change(treatment)
	if err == nil {
		err = j.Intend(change)
	}
	if err != nil {
		return nil, err
	}
	lift := func(ctx context.Context) error {
		if err := UndoCommand(ctx, change); err != nil {
			return fmt.Errorf("end the condition %s: %w; `tare undo` runs the command again", c.Name, err)
		}
		return j.Undone(change)
	}
	return lift, runCommand(ctx, c.Do, commandIn{treatment: treatment, mark: change.Data[keyMark]})
}

// keyMark is where the journal keeps what marks the processes of Do.
const keyMark = "mark"

// change is the journal's entry of a condition that has not ended.
func (c ByCommand) change(treatment string) (area.Change, error) {
	line, err := json.Marshal(c.Undo)
	if err != nil {
		return area.Change{}, err
	}
	dir, err := os.Getwd()
	return area.Change{Kind: CommandKind, ID: c.Name + " of " + treatment, Data: map[string]string{
		"run": string(line), "dir": dir, "treatment": treatment, keyMark: rand.Text(),
	}}, err
}

// UndoCommand runs the command that ends a condition, after what began it has ended: after a kill of tare it may still
// be at work, and would bring the condition about again.
func UndoCommand(ctx context.Context, c area.Change) error {
	var line []string
	if err := json.Unmarshal([]byte(c.Data["run"]), &line); err != nil || len(line) == 0 {
		return fmt.Errorf("the journal does not say which command ends %s", c.ID)
	}
	if mark := c.Data[keyMark]; mark != "" {
		if err := proc.EndMarkedGroups(markVariable + "=" + mark); err != nil {
			return fmt.Errorf("end the command that began %s: %w", c.ID, err)
		}
	}
	return runCommand(ctx, line, commandIn{dir: c.Data["dir"], treatment: c.Data["treatment"]})
}

// commandIn says where a command is run, and what it is told.
type commandIn struct{ dir, treatment, mark string }

// environment returns the environment of the command.
func (in commandIn) environment() []string {
	env := append(proc.Environment(), treatmentVariable+"="+in.treatment)
	if in.dir != "" {
		env = append(env, "PWD="+in.dir)
	}
	if in.mark != "" {
		env = append(env, markVariable+"="+in.mark)
	}
	return env
}

// runCommand runs a program to its end. When ctx ends first, its process group is killed.
func runCommand(ctx context.Context, line []string, in commandIn) error {
	within, cancel := context.WithTimeout(ctx, CommandTime)
	defer cancel()
	said := &proc.Tail{}
	cmd := proc.Command(within, line[0], line[1:]...)
	cmd.Dir, cmd.Stderr, cmd.Env = in.dir, said, in.environment()
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: killed: %w", shell.Line(line), context.Cause(ctx))
	case within.Err() != nil:
		return fmt.Errorf("%s: killed, since it did not end within %v", shell.Line(line), CommandTime)
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return nil
	}
	return fmt.Errorf("%s: %w%s", shell.Line(line), err, quoted(said.LastLine()))
}

// quoted is the last line that a program wrote, unless it may hold a secret.
func quoted(line string) string {
	const most = 200
	if _, secret := LiteralSecret(line); secret || line == "" {
		return ""
	}
	return fmt.Sprintf(": %.*s", most, strings.ToValidUTF8(line, "?"))
}

// Servers returns servers that one function runs, by their names.
func Servers(serve func(ctx context.Context, name string, config json.RawMessage, ready func(any) error) error,
	names ...string,
) map[string]area.Serve {
	out := map[string]area.Serve{}
	for _, name := range names {
		out[name] = func(ctx context.Context, config json.RawMessage, ready func(any) error) error {
			return serve(ctx, name, config, ready)
		}
	}
	return out
}

// Named returns words with their help, in the order of the words.
func Named(help map[string]string) (out []area.Named) {
	for _, name := range slices.Sorted(maps.Keys(help)) {
		out = append(out, area.Named{Name: name, Help: help[name]})
	}
	return out
}

// Adapters returns adapters that no address leads to, in the order of their words.
func Adapters(help map[string]string) (out []area.Adapter) {
	for _, n := range Named(help) {
		out = append(out, area.Adapter{Name: n.Name, Help: n.Help})
	}
	return out
}

// Form returns the encoder of a format, or what formats there are.
func Form[V any](form string, forms map[string]V) (V, error) {
	encode, ok := forms[form]
	if !ok {
		return encode, area.Usage("-o %s: unknown format %q; formats are: %s", form, form,
			strings.Join(slices.Sorted(maps.Keys(forms)), ", "))
	}
	return encode, nil
}

// WriteIndented writes a value as indented JSON.
func WriteIndented(w io.Writer, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, term.JSON(string(b))+"\n")
	return err
}
