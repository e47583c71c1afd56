package area

import (
	"errors"
	"fmt"
	"strconv"

	"tare/internal/proc"
)

// ProcessKind is the kind of changes that are processes.
const ProcessKind = "process"

// ProcessChange is a process as a change of an area: its pid with its start time, so that a pid that was given to another is told apart.
func ProcessChange(area, id string, p proc.ID) Change {
	return Change{Area: area, Kind: ProcessKind, ID: id, Data: map[string]string{
		"pid": strconv.Itoa(p.PID), "start_ticks": strconv.FormatUint(p.StartTicks, 10),
	}}
}

// KillProcess takes back a ProcessChange. A process that is gone is no error.
func KillProcess(c Change) error {
	pid, err := strconv.Atoi(c.Data["pid"])
	if err != nil {
		return fmt.Errorf("pid: %w", err)
	}
	ticks, err := strconv.ParseUint(c.Data["start_ticks"], 10, 64)
	if err != nil {
		return fmt.Errorf("start_ticks: %w", err)
	}
	_, err = proc.KillStale(proc.ID{PID: pid, StartTicks: ticks})
	return err
}

// UndoEach takes back changes one after another, in the order given, and goes on after errors.
func UndoEach(changes []Change, undo func(Change) error) error {
	var errs []error
	for _, c := range changes {
		if err := undo(c); err != nil {
			errs = append(errs, fmt.Errorf("undo %s %s: %w", c.Kind, c.ID, err))
		}
	}
	return errors.Join(errs...)
}
