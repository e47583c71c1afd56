package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"tare/areas/sandbox/workload"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/load"
)

// A crew is the workers of a treatment that make calls at a rate, one call each at a time.
type crew struct {
	callers *kit.Callers[*caller]
	kinds   []string         // of what is refused: "syscall", "open"
	refused map[string][]int // by kind: which of a caller's demands
	// demands are those of the first worker. without are their errnos in a worker that nothing confines.
	demands []demand
	without []syscall.Errno
}

// A caller is a worker with what it must be refused, which names files and ports of its own.
type caller struct {
	worker  *confined
	demands []demand
}

// muster finds out what the treatment must refuse, and what each of that gives where nothing is enforced. What gives
// the same there shows nothing and is not asked for.
func (t *target) muster(ctx context.Context, a *arm, s *sample) (*crew, error) {
	c := &crew{refused: map[string][]int{}}
	var all []*caller
	for _, one := range append([]*sample{s}, s.peers...) {
		all = append(all, &caller{one.worker, t.demands(ctx, a, one.worker.policy, one.worker.client)})
	}
	var err error
	if c.without, err = t.unconfined(ctx, a); err != nil {
		return nil, fmt.Errorf("try without an enforcer what %s must refuse: %w", a.treatment.ID, err)
	}
	if c.demands = all[0].demands; len(c.demands) != len(c.without) {
		return nil, fmt.Errorf("%s must refuse %d attempts in one worker, and %d in another", a.treatment.ID, len(c.demands),
			len(c.without))
	}
	for i, d := range c.demands {
		if slices.Contains(d.errnos, c.without[i]) {
			continue
		}
		if len(c.refused[d.what]) == 0 {
			c.kinds = append(c.kinds, d.what)
		}
		c.refused[d.what] = append(c.refused[d.what], i)
		if d.what == workload.TryNew {
			if err := s.worker.proveNew(ctx, d); err != nil {
				return nil, err
			}
		}
	}
	if len(c.kinds) == 0 {
		return nil, fmt.Errorf("%s refuses nothing that would not be refused without it", a.treatment.ID)
	}
	c.callers = kit.NewCallers(all...)
	return c, nil
}

// demandsOf returns what the policy must refuse to a worker.
func demandsOf(ctx context.Context, s stack, p Policy, w Attempts) []demand {
	out := []demand{}
	x := &proof{ctx: ctx, w: w, demands: &out}
	for _, e := range s {
		e.Prove(x, p)
	}
	return out
}

// demands returns what the treatment must refuse to a worker and, where a workload executes programs, to a new process
// of it too. A profile of the user's may let that have another profile.
func (t *target) demands(ctx context.Context, a *arm, p Policy, w Attempts) []demand {
	out := demandsOf(ctx, a.plan.stack, p, w)
	if t.executes() == "" || p.AppFile != nil {
		return out
	}
	for _, d := range slices.Clone(out) {
		if workload.CanTryNew(d.what, d.args...) && slices.Max(d.errnos) <= workload.MostNewErrno {
			out = append(out, demand{d.errnos, workload.TryNew, append([]string{d.what}, d.args...)})
		}
	}
	return out
}

// chosen are the workloads that are called.
func (t *target) chosen() []string {
	if len(t.env.Operations) > 0 {
		return t.env.Operations
	}
	return t.spec.Workloads
}

// executes returns the first of the workloads that executes programs; empty: none does.
func (t *target) executes() string {
	for _, name := range t.chosen() {
		if slices.Contains([]string{"exec", "spawn", "shell"}, name) {
			return name
		}
	}
	return ""
}

// proveNew requires that a new process of the worker is refused an attempt as the worker itself is.
func (c *confined) proveNew(ctx context.Context, d demand) error {
	got, err := c.try(ctx, d)
	if err == nil && !slices.Contains(d.errnos, got) {
		err = fmt.Errorf("not enforced as expected: %s must be refused with %s, and gave %s", attempt(d.what, d.args),
			strings.Join(names(d.errnos), " or "), name(got))
	}
	return err
}

// unconfined returns the errnos of the treatment's demands in a worker that nothing confines.
func (t *target) unconfined(ctx context.Context, a *arm) (out []syscall.Errno, err error) {
	s := t.oneSample(a, "")
	s.spec, s.beside = &Spec{}, true
	s.plan = plan{stack: stack{none{}}, policy: Policy{Enforcer: enforcerNone, Dir: a.plan.policy.Dir}}
	defer func() { err = errors.Join(err, s.end(context.WithoutCancel(ctx))) }()
	if err := s.start(ctx, t.env.Clock); err != nil {
		return nil, err
	}
	p := a.plan.policy
	p.Scratch, p.Port = s.worker.policy.Scratch, s.worker.policy.Port
	for _, d := range t.demands(ctx, a, p, s.worker.client) {
		errno, err := s.worker.try(ctx, d)
		if err != nil {
			return nil, err
		}
		out = append(out, errno)
	}
	return out, nil
}

// try makes one attempt.
func (c *confined) try(ctx context.Context, d demand) (errno syscall.Errno, err error) {
	err = c.ask(ctx, proofWithin, func(ctx context.Context) error {
		errno, err = c.client.Try(ctx, d.what, d.args...)
		return err
	})
	return errno, err
}

// disband ends the calls of a sample's workers. Workers that do not answer are killed.
func (c *crew) disband(s *sample) {
	if c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	if _, err := c.callers.Hold(ctx); err == nil {
		return
	}
	for _, one := range append([]*sample{s}, s.peers...) {
		if one.worker != nil {
			_ = one.worker.child.Signal(killed) // it fails only if the worker has ended
		}
	}
	_, _ = c.callers.Hold(context.Background()) // which cannot fail
}

// The causes of calls that were neither allowed nor refused as they must be.
const (
	causeEnded = iota
	causeOther
	causeRefused
	causeCall
)

var callCauses = []string{
	causeEnded:   "the worker had ended",
	causeOther:   "the call failed otherwise than the enforcer refuses it, and than it does without one",
	causeRefused: "the enforcer refused what it must allow",
	causeCall:    "the call failed",
}

func because(o load.Outcome, cause int, errno syscall.Errno) load.Result {
	return load.Result{Outcome: o, Errno: uint16(errno), Cause: load.OwnCauses + load.Cause(cause)}
}

// call lets a worker of the crew make one call.
func (t *target) call(ctx context.Context, c *crew, do func(context.Context, *caller) load.Result) load.Result {
	return c.callers.Call(ctx, func(ctx context.Context, c *caller) load.Result {
		sent := t.env.Clock.Now()
		r := do(ctx, c)
		r.Sent = sent
		return r
	})
}

// calledOperations are the workloads as calls that must be allowed.
func (t *target) calledOperations(a *arm) (out []load.Operation, err error) {
	if a.crew == nil {
		return nil, fmt.Errorf("treatment %q has not been verified", a.treatment.ID)
	}
	for _, o := range t.spec.operations(a.plan) {
		out = append(out, t.called(a.crew, o))
	}
	return out, nil
}

func (t *target) called(crew *crew, o operation) load.Operation {
	return load.Operation{
		Name: o.name, Weight: 1, Expect: o.expect, Causes: callCauses,
		Call: func(ctx context.Context, _ uint64) load.Result {
			return t.call(ctx, crew, func(ctx context.Context, c *caller) load.Result {
				err := c.worker.ask(ctx, batchWithin, func(ctx context.Context) error {
					_, err := c.worker.client.Run(ctx, o.name, 1)
					return err
				})
				f, failed := errors.AsType[*workload.Failure](err)
				switch {
				case err == nil:
					return load.Result{Outcome: load.OK}
				case !failed:
					return because(load.ConnFailed, causeEnded, syscall.EPIPE)
				case f.Errno == syscall.EPERM || f.Errno == syscall.EACCES:
					return because(load.Wrong, causeRefused, f.Errno)
				}
				return because(load.Failed, causeCall, f.Errno)
			})
		},
	}
}

// Trespasses is area.Can.Trespass: one for each kind of attempt that the treatment must refuse, the calls of
// which take turns. It follows Verify.
func (t *target) Trespasses(tr design.Treatment) ([]load.Operation, error) {
	a, err := t.arm(tr)
	if err != nil {
		return nil, err
	}
	crew := a.crew
	if crew == nil {
		return nil, fmt.Errorf("treatment %q has not been verified", tr.ID)
	}
	chosen := t.chosen()
	var out []load.Operation
	for _, kind := range crew.kinds {
		twin := chosen[0]
		switch {
		case slices.Contains(chosen, kind):
			twin = kind
		case kind == workload.TryNew:
			twin = t.executes()
		}
		out = append(out, load.Operation{
			Name: "refused-" + kind, Twin: twin, Weight: 1, Expect: "the enforcer refuses it", Causes: callCauses,
			Call: func(ctx context.Context, i uint64) load.Result {
				return t.call(ctx, crew, func(ctx context.Context, c *caller) load.Result {
					return crew.attempt(ctx, c, kind, i)
				})
			},
			Describe: func(i uint64, _ int, _ []byte) (request, answer string) { return crew.describe(kind, i) },
		})
	}
	return out, nil
}

// pick returns which demand of a kind call i is.
func (c *crew) pick(kind string, i uint64) int {
	all := c.refused[kind]
	return all[i%uint64(len(all))]
}

// attempt makes call i of a kind, and judges it: permitted is what gives the same as where nothing is enforced.
func (c *crew) attempt(ctx context.Context, by *caller, kind string, i uint64) load.Result {
	k := c.pick(kind, i)
	errno, err := by.worker.try(ctx, by.demands[k])
	switch {
	case isFailure(err):
		return because(load.Failed, causeCall, 0)
	case err != nil:
		return because(load.ConnFailed, causeEnded, syscall.EPIPE)
	case slices.Contains(by.demands[k].errnos, errno):
		return load.Result{Outcome: load.Denied}
	case errno == c.without[k]:
		return load.Result{Outcome: load.Permitted}
	}
	return because(load.Failed, causeOther, errno)
}

// isFailure reports whether a worker could not make an attempt, and still answers.
func isFailure(err error) bool {
	_, ok := errors.AsType[*workload.Failure](err)
	return ok
}

// describe describes call i of a kind, with the paths and ports of the first worker.
func (c *crew) describe(kind string, i uint64) (request, answer string) {
	k := c.pick(kind, i)
	d := c.demands[k]
	return attempt(d.what, d.args), fmt.Sprintf("%s, as where nothing is enforced; refused, it gives %s",
		name(c.without[k]), strings.Join(names(d.errnos), " or "))
}

func names(all []syscall.Errno) (out []string) {
	for _, e := range all {
		out = append(out, name(e))
	}
	return out
}
