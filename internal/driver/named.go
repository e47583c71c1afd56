package driver

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tare/area"
	"tare/internal/files"
	"tare/internal/kit"
	"tare/internal/proc"
)

// NamedKind is the kind of changes that are processes which a program started and named in its answer to prepare. They
// are identified by pid and start time, however they changed their environment and session.
const NamedKind = "named-process"

// journalNamed journals those processes that an arm's program has just named and has started itself.
func (t *Target) journalNamed(a *arm, s *process) error {
	for _, id := range s.pids {
		if _, known := a.named[id]; known || !a.started(id, s.client.child.PID) || !s.mayEnd(a, id) {
			continue
		}
		c := processChange(t.c.Area, fmt.Sprintf("%s-%d-%d", filepath.Base(a.preparation.Folder), id.PID, id.StartTicks), id,
			a.preparation.Folder)
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

// started reports whether the program of the arm, of which driver is one process, started a process: it must not be
// older than the program's first process, and must be in the same control group. An earlier server, and what a service
// manager or a container runtime has started, must not be killed. Of two that began in the same tick, of 10 ms, the one
// with the lower pid is older, unless pids began anew within it.
func (a *arm) started(id proc.ID, driver int) bool {
	if id.StartTicks < a.first.StartTicks || id.StartTicks == a.first.StartTicks && id.PID < a.first.PID {
		return false
	}
	group, err := controlGroup(driver)
	other, e := controlGroup(id.PID)
	return errors.Join(err, e) == nil && group == other
}

// mayEnd reports whether the program could end a process itself: tare, which may be root, does not do it for a program
// that has fewer rights. What began with the arm's mark, or runs below the program, the program has started.
func (s *process) mayEnd(a *arm, id proc.ID) bool {
	if proc.Carries(id.PID, Mark+"="+a.preparation.Folder) {
		return true
	}
	if tree, err := proc.Descendants(s.client.child.PID); err == nil && slices.Contains(tree, id.PID) {
		return true
	}
	user, err := statusNumber(id.PID, userField)
	return err == nil && !slices.ContainsFunc(s.users, func(u int) bool { return u != 0 && u != user })
}

// userField is the field with a process's users, the real one first.
const userField = "Uid"

// usersOf returns the users of a program's processes: sudo remains root's, and what it has started is another user's.
func usersOf(pid int) (users []int) {
	tree, err := proc.Descendants(pid)
	if err != nil {
		tree = []int{pid}
	}
	for _, pid := range tree {
		if u, err := statusNumber(pid, userField); err == nil {
			users = append(users, u)
		}
	}
	return users
}

// controlGroup returns the control group of a process, in all hierarchies.
func controlGroup(pid int) (string, error) {
	text, err := files.Kernel(fmt.Sprintf("/proc/%d/cgroup", pid))
	return strings.TrimSpace(string(text)), err
}

// endNamed kills the processes of an arm that the program should have ended in undo.
func (t *Target) endNamed(a *arm) error {
	var errs []error
	for id, c := range a.named {
		err := kit.KillProcess(c)
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
