package kit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"tare/area"
	"tare/internal/proc"
)

// A Process is a child process of an area, with its journal entry. Stop and Failed take nil for a process that was
// never started.
type Process struct {
	*proc.Child
	name    string
	change  area.Change
	journal area.Journal
}

// StartProcess starts a process, journaled under area and id before it does anything, and decodes its ready message
// into ready. After an error no process is left.
func StartProcess(ctx context.Context, j area.Journal, of, id string, s proc.Spec, ready any) (*Process, error) {
	p := &Process{name: s.Name, journal: j}
	s.Born = func(who proc.ID) error {
		change := ProcessChange(of, id, who)
		if err := j.Intend(change); err != nil {
			return err
		}
		p.change = change
		return nil
	}
	var err error
	if p.Child, err = proc.Start(ctx, s); err != nil {
		return nil, errors.Join(err, p.undone())
	}
	if err := json.Unmarshal(p.Ready, ready); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: ready: %w", s.Name, err), p.Stop(ctx))
	}
	return p, nil
}

// Stop ends the process and waits for its end. It is no error if the process has already ended.
func (p *Process) Stop(ctx context.Context) error {
	if p == nil {
		return nil
	}
	if err := p.Child.Stop(ctx); err != nil {
		return err
	}
	return p.undone()
}

// undone journals that the process has ended, if it was journaled.
func (p *Process) undone() error {
	if p.change.ID == "" {
		return nil
	}
	err := p.journal.Undone(p.change)
	if err == nil {
		p.change = area.Change{}
	}
	return err
}

// Failed returns why the process has ended by itself; nil while it runs.
func (p *Process) Failed() error {
	if p == nil {
		return nil
	}
	select {
	case <-p.Exited():
	default:
		return nil
	}
	if err := p.Wait(context.Background()); err != nil { // it has ended: this does not wait
		return fmt.Errorf("%s has ended by itself: %w", p.name, err)
	}
	return fmt.Errorf("%s has ended by itself", p.name)
}

// ProcessKind is the kind of a Change that is a process.
const ProcessKind = "process"

// ProcessChange returns a process as a Change: its pid with its start time and the boot, which detect that the pid was
// reused.
func ProcessChange(of, id string, p proc.ID) area.Change {
	return area.Change{Area: of, Kind: ProcessKind, ID: id, Data: map[string]string{
		"pid": strconv.Itoa(p.PID), "start_ticks": strconv.FormatUint(p.StartTicks, 10), "boot": p.Boot,
	}}
}

// KillProcess undoes a ProcessChange. It is no error if the process has ended.
func KillProcess(c area.Change) error {
	pid, err := strconv.Atoi(c.Data["pid"])
	if err != nil {
		return fmt.Errorf("pid: %w", err)
	}
	ticks, err := strconv.ParseUint(c.Data["start_ticks"], 10, 64)
	if err != nil {
		return fmt.Errorf("start_ticks: %w", err)
	}
	_, err = proc.KillStale(proc.ID{PID: pid, StartTicks: ticks, Boot: c.Data["boot"]})
	return err
}

// UndoEach undoes changes one after another, in the order given, and continues after errors.
func UndoEach(changes []area.Change, undo func(area.Change) error) error {
	var errs []error
	for _, c := range changes {
		if err := undo(c); err != nil {
			errs = append(errs, fmt.Errorf("undo %s %s: %w", c.Kind, c.ID, err))
		}
	}
	return errors.Join(errs...)
}
