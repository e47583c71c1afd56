package area

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"tare/internal/proc"
)

// A Process is a child process of an area, with its journal entry. Stop and Failed take nil for a process that was
// never started.
type Process struct {
	*proc.Child
	name    string
	change  Change
	journal Journal
}

// StartProcess starts a process that the journal knows by that area and id before it does anything, and reads into
// ready what it says when it is ready. After an error there is no process.
func StartProcess(ctx context.Context, j Journal, area, id string, s proc.Spec, ready any) (*Process, error) {
	p := &Process{name: s.Name, journal: j}
	s.Born = func(who proc.ID) error {
		change := ProcessChange(area, id, who)
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

// Stop ends the process and waits for it. One that has ended already is no error.
func (p *Process) Stop(ctx context.Context) error {
	if p == nil {
		return nil
	}
	if err := p.Child.Stop(ctx); err != nil {
		return err
	}
	return p.undone()
}

// undone journals that the process is no more, if the journal knows of it.
func (p *Process) undone() error {
	if p.change.ID == "" {
		return nil
	}
	err := p.journal.Undone(p.change)
	if err == nil {
		p.change = Change{}
	}
	return err
}

// Failed is why the process has ended by itself; nil: it runs.
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

// LogFile is where a process of that name writes its log; empty: the run has no folder.
func (e Env) LogFile(name string, index int) string {
	if e.Dir == "" {
		return ""
	}
	return filepath.Join(e.Dir, fmt.Sprintf("%s-%d.log", name, index))
}

// ProcessKind is the kind of changes that are processes.
const ProcessKind = "process"

// ProcessChange is a process as a change of an area: its pid with its start time, so that a pid that was given to
// another is told apart.
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
