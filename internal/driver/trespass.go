package driver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	"tare/area"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/load"
)

// guards reports whether the run asks for trespasses: single calls are then made, at a rate.
func (t *Target) guards() bool { return t.c.Env.Trespasses }

// chosen returns the operations that the run asks for: in guard those that must be allowed, and their trespasses.
func (c Config) chosen(d Description) []string {
	names := d.chosen(c.Operations)
	if !c.Env.Trespasses {
		return names
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		o, _ := d.operation(name)
		return o.Harness
	})
	for _, o := range d.Operations {
		if o.Trespass != "" && slices.Contains(names, o.Trespass) {
			names = append(names, o.Name)
		}
	}
	return names
}

// CheckGuard returns what is wrong with a description if the chosen operations (none: all) have no trespass, and else
// how many calls it takes at once.
func (d Description) CheckGuard(operations []string) []area.Finding {
	if slices.ContainsFunc(d.Operations, func(o Operation) bool {
		return o.Trespass != "" && (len(operations) == 0 || slices.Contains(operations, o.Trespass))
	}) {
		return []area.Finding{{Severity: area.Info, Message: d.takes(d.Name)}}
	}
	return []area.Finding{{
		Path: "operations", Severity: area.Error,
		Message: d.Name + " describes no call that the control must refuse, which guard asks for",
		Hint: `let it describe one: {"name": "load-forged", "trespass": "load"}, and answer operate with "refused" and ` +
			`"permitted"`,
	}}
}

// The causes of calls that were neither allowed nor refused as they must be.
const (
	causeReported = iota
	causeEnded
	causeUnsaid
	causeError
	causeRefused
)

var callCauses = []string{
	causeReported: "the program reported an error",
	causeEnded:    "the program had ended",
	causeUnsaid:   "the program did not say whether the control refused the call",
	causeError:    "the program counted the call as an error",
	causeRefused:  "the control refused what it must allow",
}

// Trespasses is area.Can.Trespass.
func (t *Target) Trespasses(tr design.Treatment) ([]load.Operation, error) {
	a, err := t.arm(tr)
	if err != nil {
		return nil, err
	}
	var out []load.Operation
	for _, name := range a.preparation.Operations {
		if o, _ := a.description.operation(name); o.Trespass != "" {
			out = append(out, t.called(a, o))
		}
	}
	return out, nil
}

// called is an operation as a Go call.
func (t *Target) called(a *arm, o Operation) load.Operation {
	t.note(a.description.takes(a.program.Name))
	return load.Operation{
		Name: o.Name, Weight: 1, Expect: o.Expect, Twin: o.Trespass, Causes: callCauses,
		Call: func(ctx context.Context, _ uint64) load.Result {
			return a.calls.Call(ctx, func(ctx context.Context, _ struct{}) load.Result {
				sent := t.c.Env.Clock.Now()
				r := t.one(ctx, a, o)
				r.Sent = sent
				return r
			})
		},
		Describe: func(uint64, int, []byte) (request, answer string) {
			return "operate " + o.Name, "the program said that the control permitted it"
		},
	}
}

// takes says how many calls of guard the program takes at once, and what that means.
func (d Description) takes(program string) string {
	if d.AtOnce > 1 {
		return fmt.Sprintf("%s takes up to %d calls at once; what is offered beyond that waits in tare", program, d.AtOnce)
	}
	return program + " takes one call at a time: what is offered above its capacity waits and times out in tare, so the " +
		"control itself is never asked for more than it can do"
}

// one makes the program perform one call, and says what became of it.
func (t *Target) one(ctx context.Context, a *arm, o Operation) load.Result {
	s := t.process(a)
	if s == nil {
		return because(load.ConnFailed, causeEnded)
	}
	var c Cost
	n := 1
	took, err := s.client.ask(ctx, t.c.Patience, Request{Do: DoOperate, Operation: o.Name, Calls: &n}, &c)
	if err == nil {
		if err = c.valid(n, took); err != nil {
			err = s.client.fail(fmt.Errorf("its answer to operate %s is wrong: %w", o.Name, err))
		}
	}
	if err != nil {
		a.failed.Do(func() { t.note(fmt.Sprintf("the first call that failed under %s: %v", a.treatment.ID, err)) })
		if _, said := errors.AsType[*Failure](err); said {
			return because(load.Failed, causeReported)
		}
		return because(load.ConnFailed, causeEnded)
	}
	return o.judge(c)
}

// judge says what became of one call.
func (o Operation) judge(c Cost) load.Result {
	switch {
	case o.Trespass == "" && c.Refused > 0:
		return because(load.Wrong, causeRefused)
	case c.Total["error"] > 0:
		return because(load.Failed, causeError)
	case o.Trespass == "":
		return load.Result{Outcome: load.OK}
	case c.Refused > 0:
		return load.Result{Outcome: load.Denied}
	case c.Permitted > 0:
		return load.Result{Outcome: load.Permitted}
	}
	return because(load.Failed, causeUnsaid)
}

func because(o load.Outcome, cause int) load.Result {
	r := load.Result{Outcome: o, Cause: load.OwnCauses + load.Cause(cause)}
	if o == load.ConnFailed {
		r.Errno = uint16(syscall.EPIPE)
	}
	return r
}

// awaitCalls waits until no call is under way, and kills a process that does not answer.
func (t *Target) awaitCalls(a *arm) {
	s := t.process(a)
	if s == nil || s.client == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.client.grace)
	defer cancel()
	held, err := a.calls.Hold(ctx)
	if err != nil {
		_ = s.client.child.Signal(syscall.SIGKILL)   // then the calls that it has end
		held, _ = a.calls.Hold(context.Background()) // which cannot fail
	}
	a.calls.Release(held...)
}

// Conditions is area.Can.Conditions.
func (t *Target) Conditions(tr design.Treatment) []area.Condition {
	a, err := t.arm(tr)
	if err != nil || !t.guards() {
		return nil
	}
	out := []area.Condition{
		{
			Name: area.Restart, Does: "the program is killed, started again, and prepared again",
			Impose: func(ctx context.Context) (func(context.Context) error, error) { return nil, t.restart(ctx, a) },
		},
		{
			Name: area.Starved, Does: kit.StarvedDoes("the program"),
			Impose: func(context.Context) (func(context.Context) error, error) {
				s := t.process(a)
				if s == nil {
					return nil, errNoProcess
				}
				return kit.Starve(t.c.Env.Clock, s.client.child.Signal), nil
			},
		},
	}
	for _, name := range slices.Sorted(maps.Keys(a.conditions)) {
		out = append(out, area.Condition{
			Name: name, Does: a.conditions[name],
			Impose: func(ctx context.Context) (func(context.Context) error, error) {
				lift := func(ctx context.Context) error { return t.condition(ctx, a, DoLift, name) }
				return lift, t.condition(ctx, a, DoImpose, name)
			},
		})
	}
	return out
}

// condition asks the program to bring a condition about, or to end it: beside calls where it takes several at once.
func (t *Target) condition(ctx context.Context, a *arm, do, name string) error {
	s := t.process(a)
	if s == nil {
		return errNoProcess
	}
	if s.client.shared == nil {
		held, err := a.calls.Hold(ctx)
		if err != nil {
			return err
		}
		defer a.calls.Release(held...)
	}
	_, err := s.client.ask(ctx, t.c.Patience, Request{Do: do, Condition: name}, nil)
	return err
}

// offer takes over the conditions that the program offers under an arm's treatment.
func (t *Target) offer(a *arm, conditions map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(conditions)) {
		if !slices.Contains(t.c.Conditions, name) {
			return fmt.Errorf("it offers a condition %.80q, which is none of %s", name, strings.Join(t.c.Conditions, ", "))
		}
		if conditions[name] == "" {
			return fmt.Errorf("it does not say what its condition %q does", name)
		}
	}
	a.conditions = conditions
	return nil
}

var (
	errRestarted = errors.New("it was killed to be started again")
	errNoProcess = errors.New("no process of the program runs")
)

// restart kills the process of an arm, starts another, and lets that prepare the treatment again. It is not verified
// again: the calls that follow show whether the control is in force.
func (t *Target) restart(ctx context.Context, a *arm) error {
	s := t.process(a)
	if s == nil {
		return errNoProcess
	}
	_ = s.client.child.Signal(syscall.SIGKILL) // it fails only if the process has ended
	held, err := a.calls.Hold(ctx)             // its calls have ended
	if err != nil {
		return err
	}
	defer a.calls.Release(held...)
	s.client.discard(errRestarted)
	if err := errors.Join(t.end(ctx, a), t.begin(ctx, a)); err != nil {
		return err
	}
	if err := t.process(a).unchanged(a); err != nil {
		return err
	}
	return t.prepare(ctx, a)
}
