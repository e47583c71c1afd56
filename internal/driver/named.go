package driver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tare/internal/area"
	"tare/internal/proc"
)

// NamedKind is the kind of changes that are processes which a program named in its answer to prepare, and which it has started. They are found by pid and start
// time, whatever they have made of their environment and their session.
const NamedKind = "named-process"

// journalNamed journals the processes that an arm's program has just named, as far as they are its own.
func (t *Target) journalNamed(a *arm, s *session) error {
	for _, id := range s.pids {
		if _, known := a.named[id]; known || !a.started(id, s.client.child.PID) {
			continue
		}
		c := processChange(t.c.Area, fmt.Sprintf("%s-%d-%d", filepath.Base(a.preparation.Folder), id.PID, id.StartTicks), id, a.preparation.Folder)
		c.Kind = NamedKind
		if err := t.journal.Intend(c); err != nil {
			return fmt.Errorf("journal a process that %s named: %w", a.program.Name, err)
		}
		if a.named == nil {
			a.named = map[proc.ID]area.Change{}
		}
		a.named[id] = c
	}
	return nil
}

// started reports whether a process was started for the arm by its program, one process of which is driver: not before the first of them, and in their control
// group. A server that was there before, and what a service manager or a container runtime has started, belongs to others, and must not be killed.
func (a *arm) started(id proc.ID, driver int) bool {
	if id.StartTicks < a.since {
		return false
	}
	group, err := controlGroup(driver)
	other, e := controlGroup(id.PID)
	return errors.Join(err, e) == nil && group == other
}

// controlGroup is the control group of a process, in all hierarchies.
func controlGroup(pid int) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	return strings.TrimSpace(string(text)), err
}

// endNamed ends the processes of an arm that the program should have ended when it was asked to undo.
func (t *Target) endNamed(a *arm) error {
	var errs []error
	for id, c := range a.named {
		err := area.KillProcess(c)
		if err == nil {
			err = t.journal.Undone(c)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("end process %d, which %s named: %w", id.PID, a.program.Name, err))
			continue
		}
		delete(a.named, id)
	}
	return errors.Join(errs...)
}
