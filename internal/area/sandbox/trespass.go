package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"tare/internal/area"
	"tare/internal/area/sandbox/workload"
	"tare/internal/design"
	"tare/internal/load"
)

var (
	_ area.Trespasser  = (*target)(nil)
	_ area.Conditioner = (*target)(nil)
)

// A crew is the workers of a treatment that make calls at a rate, one call each at a time.
type crew struct {
	callers *area.Callers[*caller]
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
		all = append(all, &caller{one.worker, demandsOf(ctx, a.plan.stack, one.worker.policy, one.worker.client)})
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
	}
	if len(c.kinds) == 0 {
		return nil, fmt.Errorf("%s refuses nothing that would not be refused without it", a.treatment.ID)
	}
	c.callers = area.NewCallers(all...)
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
	for _, d := range demandsOf(ctx, a.plan.stack, p, s.worker.client) {
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

// Trespasses implements area.Trespasser: one for each kind of attempt that the treatment must refuse, the calls of
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
	chosen := t.env.Operations
	if len(chosen) == 0 {
		chosen = t.spec.Workloads
	}
	var out []load.Operation
	for _, kind := range crew.kinds {
		twin := chosen[0]
		if slices.Contains(chosen, kind) {
			twin = kind
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
	case err != nil:
		return because(load.ConnFailed, causeEnded, syscall.EPIPE)
	case slices.Contains(by.demands[k].errnos, errno):
		return load.Result{Outcome: load.Denied}
	case errno == c.without[k]:
		return load.Result{Outcome: load.Permitted}
	}
	return because(load.Failed, causeOther, errno)
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

// Conditions implements area.Conditioned: what can be done to the confined workers.
func (*Spec) Conditions() []string { return []string{area.Restart, area.Starved} }

// Conditions implements area.Conditioner.
func (t *target) Conditions(tr design.Treatment) []area.Condition {
	a, err := t.arm(tr)
	if err != nil || a.crew == nil {
		return nil
	}
	return []area.Condition{
		{
			Name: area.Restart, Does: "the workers are killed, and others are confined and executed",
			Impose: func(ctx context.Context) (func(context.Context) error, error) { return nil, t.restart(ctx, a) },
		},
		{
			Name: area.Starved, Does: "two confined processes compute on each processor of the workers",
			Impose: func(ctx context.Context) (func(context.Context) error, error) { return t.starve(ctx, a) },
		},
	}
}

// restart replaces the workers of an arm under load. The new ones are asked at once, without a proof.
func (t *target) restart(ctx context.Context, a *arm) error {
	s, err := t.current(a)
	if err != nil {
		return err
	}
	all := append([]*sample{s}, s.peers...)
	for _, one := range all {
		_ = one.worker.child.Signal(killed) // it fails only if the worker has ended
	}
	crew := a.crew
	held, err := crew.callers.Hold(ctx)
	if err != nil {
		return err
	}
	defer func() { crew.callers.Release(held...) }()
	if err := errors.Join(s.end(ctx), s.start(ctx, t.env.Clock)); err != nil {
		return err
	}
	var fresh []*caller
	for _, one := range all {
		fresh = append(fresh, &caller{
			one.worker, demandsOf(ctx, a.plan.stack, one.worker.policy, one.worker.client),
		})
		if len(fresh[len(fresh)-1].demands) != len(crew.demands) {
			return errors.New("the new workers must be refused other attempts than those before")
		}
	}
	held = fresh
	return nil
}

// starve keeps the processors of an arm's workers busy, until lift is called.
func (t *target) starve(ctx context.Context, a *arm) (lift func(context.Context) error, err error) {
	var all []*sample
	var busy sync.WaitGroup
	stop := make(chan struct{})
	lift = func(ctx context.Context) error {
		close(stop)
		busy.Wait()
		var errs []error
		for _, s := range all {
			errs = append(errs, s.end(ctx))
		}
		return errors.Join(errs...)
	}
	for _, cpu := range append(slices.Clone(a.cpus), a.cpus...) {
		s := t.oneSample(a, "")
		s.spec, s.beside, s.launch.cpus = &Spec{}, true, []int{cpu}
		all = append(all, s)
		if err := s.start(ctx, t.env.Clock); err != nil {
			return nil, errors.Join(err, lift(context.WithoutCancel(ctx)))
		}
		busy.Go(func() { compute(s.worker, stop) })
	}
	return lift, nil
}

// computed is how many calls of compute, of about a microsecond, are asked for at once.
const computed = 10_000

// compute keeps a worker's processor busy.
func compute(w *confined, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		if err := w.ask(context.Background(), 10*time.Second, func(ctx context.Context) error {
			_, err := w.client.Run(ctx, workCompute, computed)
			return err
		}); err != nil {
			return
		}
	}
}

// checkGuarded reports what guard cannot ask of a sandbox.
func (s *Spec) checkGuarded(env area.Env) (out []area.Finding) {
	if !env.Trespasses {
		return nil
	}
	fault := func(path, text, hint string) { out = append(out, area.Fault(path, errors.New(text), hint)) }
	if s.On != "" && s.On != onHost {
		fault("target.on", "guard asks workers on this host: the calls of a lab VM are made in batches",
			"leave target.on out")
	}
	if len(s.Workloads) == 0 || len(s.Commands)+len(s.Real)+len(s.SetUp) > 0 {
		fault("target", "guard mixes what must be refused into the calls of workloads, and into nothing else",
			"workloads: [open, syscall], without commands, real and setup")
	}
	for _, t := range env.Treatments {
		p, err := s.plan(t)
		switch {
		case err != nil: // Validate reports it
		case p.stack.has(enforcerNone):
			fault("", fmt.Sprintf("treatment %q refuses nothing", t.ID), "leave it out, or name an enforcer")
		case p.planted.part > 0 || p.others > 0 || p.program.attached:
			fault("", fmt.Sprintf("treatment %q: planted and others belong to compare and scale", t.ID), "leave them out")
		}
	}
	return out
}
