package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tare/areas/sandbox/workload"
	"tare/internal/design"
	"tare/internal/unit"
)

// mostOthers bounds the policies that a treatment holds.
const mostOthers = 1000

// A filler is an Enforcer whose policies are in the kernel itself rather than in processes, such as loaded profiles.
type filler interface {
	// Fill loads n further policies like p, and returns what removes them. It gives h what outlives this process.
	Fill(ctx context.Context, p Policy, n int, h *host) (remove func(context.Context) error, err error)
}

// canHold returns an error if further policies of the stack cannot be held.
func (s stack) canHold() error {
	switch s.fillers() {
	case len(s):
		return nil
	case 0:
		return s.canStage()
	}
	return errors.New("some enforcers of the stack keep policies in the kernel, and some in processes; leave one kind out")
}

// fillers returns how many of the enforcers are fillers.
func (s stack) fillers() (n int) {
	for _, e := range s {
		if _, ok := e.(filler); ok {
			n++
		}
	}
	return n
}

// fill loads n further policies of each enforcer that is a filler, and returns what removes them.
func (s stack) fill(ctx context.Context, p Policy, n int, h *host) (remove func(context.Context) error, err error) {
	var undo []func(context.Context) error
	remove = func(ctx context.Context) error {
		var errs []error
		for _, do := range undo {
			errs = append(errs, do(ctx))
		}
		return errors.Join(errs...)
	}
	for _, e := range s {
		f, ok := e.(filler)
		if !ok {
			continue
		}
		do, err := f.Fill(ctx, p, n, h)
		if err != nil {
			return nil, errors.Join(err, remove(ctx))
		}
		undo = append(undo, do)
	}
	return remove, nil
}

// settle is the pause after the number of other policies has changed: the kernel frees what has ended in the
// background.
const settle = 20 * time.Millisecond

// hold brings the host to the number of further policies that the arm's treatment has. The arms take turns, so those
// of another arm are removed first: nothing else would let two numbers be compared. It reports whether anything
// changed.
func (t *target) hold(ctx context.Context, a *arm) (changed bool, err error) {
	if t.holding == a || (t.removeHeld == nil && a.plan.others == 0) {
		return false, nil
	}
	if err := t.release(ctx); err != nil {
		return false, err
	}
	if a.plan.others > 0 {
		if err := t.fill(ctx, a); err != nil {
			return false, fmt.Errorf("hold %d other policies: %w", a.plan.others, err)
		}
		t.holding = a
	}
	return true, t.env.Clock.Sleep(ctx, settle)
}

// fill puts the further policies of an arm in force, and sets what removes them.
func (t *target) fill(ctx context.Context, a *arm) error {
	if a.plan.stack.fillers() > 0 {
		remove, err := a.plan.stack.fill(ctx, a.plan.policy, a.plan.others, t.host)
		t.removeHeld = remove
		return err
	}
	s, err := t.current(a)
	if err != nil {
		return err
	}
	if s.holder == nil {
		return errors.New("the process that holds them has not been started")
	}
	t.removeHeld = func(ctx context.Context) error {
		_, err := micro(workload.KindRelease)(ctx, s.holder, 1)
		return err
	}
	_, err = micro(workload.KindHold)(ctx, s.holder, a.plan.others)
	return err
}

// release removes the policies that are held.
func (t *target) release(ctx context.Context) error {
	if t.removeHeld != nil {
		if err := t.removeHeld(ctx); err != nil {
			return fmt.Errorf("remove other policies: %w", err)
		}
	}
	t.removeHeld, t.holding = nil, nil
	return nil
}

// leaveOthers removes the policies that an arm holds when it is left. Those in a process end with it.
func (t *target) leaveOthers(ctx context.Context, a *arm) error {
	if t.holding != a {
		return nil
	}
	if a.plan.stack.fillers() > 0 {
		return t.release(ctx)
	}
	t.removeHeld, t.holding = nil, nil
	return nil
}

// proveOthers holds the sample's other policies, proves that some of their threads are confined, and releases them.
func (s *sample) proveOthers(ctx context.Context) error {
	if s.holder == nil {
		return nil
	}
	if _, err := micro(workload.KindHold)(ctx, s.holder, s.plan.policiesToProve()); err != nil {
		return fmt.Errorf("hold %d other policies: %w", s.plan.policiesToProve(), err)
	}
	err := s.holder.prove(ctx)
	_, e := micro(workload.KindRelease)(ctx, s.holder, 1)
	return errors.Join(err, e)
}

// createsThreads lists the processes that confine threads of their own, for the plan.
func (s *Spec) createsThreads(treatments []design.Treatment) (out []string) {
	if len(s.SetUp) > 0 {
		out = append(out, unit.Count(len(treatments), "process")+
			" beside them, to confine threads of their own, one after another")
	}
	most := 0
	for _, t := range treatments {
		if p, err := s.plan(t); err == nil {
			most = max(most, p.others)
		}
	}
	if most > 0 {
		out = append(out, fmt.Sprintf("up to %d further policies at a time, in sleeping threads or in the kernel", most))
	}
	return out
}

// threadNotes says what the threads do that confine themselves.
func (t *target) threadNotes() (notes []string) {
	if len(t.spec.SetUp) > 0 {
		notes = append(notes, "each call of a set-up cost runs on another thread of a process that is not confined itself")
	}
	if slices.ContainsFunc(t.order, func(a *arm) bool { return a.plan.others > 0 }) {
		notes = append(notes, "others: that many further policies are in force in batches of the treatment, and end before "+
			"those of another")
	}
	return notes
}
