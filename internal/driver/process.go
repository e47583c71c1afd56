package driver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"tare/area"
	"tare/internal/files"
	"tare/internal/probe"
	"tare/internal/proc"
)

// process is a process of an arm's program.
type process struct {
	client *client
	change *area.Change // the process, once journaled
	pids   map[string]proc.ID
	users  []int // as whom the program runs
	// description is the description that this process gave, files those that it was started from.
	description Description
	files       map[string]os.FileInfo
}

// process returns the current process of an arm, or nil.
func (t *Target) process(a *arm) *process {
	t.mu.Lock()
	defer t.mu.Unlock()
	return a.live
}

func (t *Target) hold(a *arm, s *process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a.live = s
}

// begin starts an arm's program and asks for its description.
func (t *Target) begin(ctx context.Context, a *arm) error {
	t.mu.Lock()
	t.born++
	id := fmt.Sprintf("driver-%05d", t.born)
	t.mu.Unlock()
	s := &process{}
	var err error
	if s.files, err = a.program.stat(); err != nil {
		return err
	}
	s.client, err = launch{
		program: a.program, folder: a.preparation.Folder, log: a.log, cpus: t.c.CPUs, grace: t.grace,
		born: func(p proc.ID) error {
			c := processChange(t.c.Area, id, p, a.preparation.Folder)
			if err := t.journal.Intend(c); err != nil {
				return fmt.Errorf("journal the process: %w", err)
			}
			s.change = &c
			return nil
		},
	}.start(ctx)
	if err != nil {
		return errors.Join(err, t.ended(s)) // what was started has ended
	}
	t.hold(a, s)
	d, err := describe(ctx, s.client, t.c.DescribeWithin)
	if err == nil && a.description.Name == "" {
		a.description, a.files, a.first = d, s.files, s.client.child.ID
	}
	s.description = d
	s.users = usersOf(s.client.child.PID) // it runs yet: it waits for the next request
	return err
}

// unchanged returns an error if the process's program is not the one that the arm began with.
func (s *process) unchanged(a *arm) error {
	if name := changed(a.files, s.files); name != "" {
		return s.client.fail(fmt.Errorf("%s was changed since the run began: a run measures one program; run it again", name))
	}
	was, is := a.description, s.description
	if is.same(was) {
		return nil
	}
	return s.client.fail(fmt.Errorf("it described itself as %q, version %q, before, and as %q, version %q, now, or "+
		"with other operations or factors: a run "+
		"measures one program", was.Name, was.Version, is.Name, is.Version))
}

// ended journals that a process has ended.
func (t *Target) ended(s *process) error {
	if s.change == nil {
		return nil
	}
	err := t.journal.Undone(*s.change)
	if err == nil {
		s.change = nil
	}
	return err
}

// end ends an arm's process, if it has one.
func (t *Target) end(ctx context.Context, a *arm) error {
	s := t.process(a)
	if s == nil {
		return nil
	}
	if untidy := s.client.stop(ctx); t.note(untidy) && t.c.Env.Log != nil {
		// The record has received the last notes when Close runs.
		t.c.Env.Log.Warn("a program did not end properly", slog.String("why", untidy))
	}
	if err := t.ended(s); err != nil {
		return err // Close tries again
	}
	t.hold(a, nil)
	return nil
}

// prepare asks an arm's process to bring the treatment into force.
func (t *Target) prepare(ctx context.Context, a *arm) error {
	if !t.c.Contained && a.prepared == nil {
		c, err := preparedChange(t.c.Area, a.program, a.preparation, t.c.Patience)
		if err != nil {
			return err
		}
		if err := t.journal.Intend(c); err != nil {
			return fmt.Errorf("journal what %s prepares: %w", a.program.Name, err)
		}
		a.prepared = &c
	}
	s := t.process(a)
	var p Prepared
	if _, err := s.client.ask(ctx, t.c.PrepareWithin, Request{Do: DoPrepare, Preparation: &a.preparation},
		&p); err != nil {
		return err
	}
	if err := s.adopt(a.program.Name, p.PIDs); err != nil {
		return s.client.fail(err)
	}
	if err := t.offer(a, p.Conditions); err != nil {
		return s.client.fail(err)
	}
	t.note(p.Notes...)
	if t.guards() && a.description.AtOnce > 1 {
		s.client.share()
	}
	return t.journalNamed(a, s)
}

// mostPIDs bounds the number of processes that a program may name.
const mostPIDs = 64

// adopt adds the processes that the program named.
func (s *process) adopt(program string, pids map[string]int) error {
	if len(pids) > mostPIDs {
		return fmt.Errorf("it names %d processes, more than %d", len(pids), mostPIDs)
	}
	s.pids = map[string]proc.ID{}
	for name, pid := range pids {
		if !Plain(name) || name == program || name == "generator" || name == "host" {
			return fmt.Errorf("it names a process %.80q: want a name of its own, of letters, digits, '.', '_' and '-'", name)
		}
		if pid <= 1 || pid == os.Getpid() {
			return fmt.Errorf("it says that %q is process %d, which it has not started", name, pid)
		}
		id, err := proc.Identify(pid)
		if err != nil {
			return fmt.Errorf("it says that %q is process %d: %w", name, pid, err)
		}
		if isAncestor(pid) {
			return fmt.Errorf("it says that %q is process %d, below which tare itself runs", name, pid)
		}
		s.pids[name] = id
	}
	return nil
}

// isAncestor reports whether a process is an ancestor of tare.
func isAncestor(pid int) bool {
	for at := os.Getpid(); at > 1; {
		var err error
		if at, err = statusNumber(at, "PPid"); err != nil || at == pid {
			return err == nil
		}
	}
	return false
}

// statusNumber returns the first number of a field of /proc/PID/status (proc_pid_status(5)).
func statusNumber(pid int, field string) (int, error) {
	status, err := files.Kernel(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "\n"+field+":")
	line, _, _ := strings.Cut(rest, "\n")
	number, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
	return strconv.Atoi(number)
}

// roots returns the processes that do the work: the program, and those that it named.
func (s *process) roots() []int {
	out := []int{s.client.child.PID}
	for _, name := range slices.Sorted(maps.Keys(s.pids)) {
		out = append(out, s.pids[name].PID)
	}
	return out
}

func (s *process) probes(program string) []probe.Probe {
	c := s.client.child
	out := []probe.Probe{probe.Process{Name: program, PID: c.PID, StartTicks: c.StartTicks, Light: true}}
	for _, name := range slices.Sorted(maps.Keys(s.pids)) {
		id := s.pids[name]
		out = append(out, probe.Process{Name: name, PID: id.PID, StartTicks: id.StartTicks, Light: true})
	}
	return out
}

// undoArm undoes all of an arm. It may be called again after an error.
func (t *Target) undoArm(ctx context.Context, a *arm) error {
	err := t.undo(ctx, a)
	if err != nil {
		err = fmt.Errorf("%s prepared something for this treatment, and it is not undone; its folder %s stays: %w",
			a.program.Name, a.preparation.Folder, err)
	}
	if err := errors.Join(err, t.end(ctx, a)); err != nil || !a.folder {
		return err
	}
	if err := t.endNamed(a); err != nil {
		return err
	}
	if err := clearFolder(t.c.Area, a.preparation.Folder); err != nil {
		return err
	}
	a.folder = false
	dropEmpty(a.log)
	return t.journal.Undone(folderChange(t.c.Area, a.preparation.Folder))
}

// dropEmpty removes the log of a program that wrote nothing, so that empty logs do not hide the others.
func dropEmpty(log string) {
	_ = files.RemoveEmpty(log) // if it fails, an empty log remains
}

// undo makes the program undo what it prepared. It uses the running process or, if none runs or it is broken, a new
// one.
func (t *Target) undo(ctx context.Context, a *arm) error {
	if a.prepared == nil {
		return nil
	}
	if s := t.process(a); s == nil || !s.client.usable() {
		if err := errors.Join(t.end(ctx, a), t.begin(ctx, a)); err != nil {
			return err
		}
	}
	if _, err := t.process(a).client.ask(ctx, t.c.Patience, Request{Do: DoUndo, Preparation: &a.preparation},
		nil); err != nil {
		return err
	}
	if err := t.journal.Undone(*a.prepared); err != nil {
		return err
	}
	a.prepared = nil
	return nil
}
