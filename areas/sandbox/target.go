package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"tare/area"
	"tare/areas/sandbox/workload"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/load"
	"tare/internal/probe"
)

// target is this host: one arm per treatment, side by side.
type target struct {
	spec *Spec
	env  area.Env
	cpus []int

	mu      sync.Mutex
	arms    map[string]*arm // by treatment
	order   []*arm
	folder  string // for files; made with the first treatment
	journal area.Journal
	host    *host
	entered int // samples so far, for names
	// attributions are what BPF programs did, for the notes.
	attributions []string
	// multiple divides the number of calls in every batch, so that each planted share is a whole number of calls.
	multiple int
	patience time.Duration // see launcher
	// holding is the arm whose other policies are in force; removeHeld removes them.
	holding    *arm
	removeHeld func(context.Context) error
}

var _ area.Target = (*target)(nil)

// arm is one treatment.
type arm struct {
	treatment design.Treatment
	plan      plan
	cpus      []int   // of its workers
	sample    *sample // between Enter and Leave
	// attributed says that the cost of its BPF programs has been attributed.
	attributed bool
	// crew are the workers that make calls at a rate, for guard; nil: there are none.
	crew *crew
	// spare is the slot of BPF rules that replace the policy's; nil: none is in use. reloaded is how often policies were
	// replaced.
	spare    *uint32
	reloaded atomic.Int64
}

// Prepare implements area.Target.
func (t *target) Prepare(ctx context.Context, tr design.Treatment, j area.Journal) error {
	p, err := t.spec.plan(tr)
	if err != nil {
		return err
	}
	if all, err := kit.Processors(t.env); err == nil && t.env.Trespasses && p.workers == 0 {
		p.workers = len(all)
	}
	cpus, err := workerCPUs(t.env, p.count())
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.arms[tr.ID] != nil {
		return fmt.Errorf("treatment %q is prepared already", tr.ID)
	}
	if t.folder == "" {
		if t.folder, err = makeFolder(j); err != nil {
			return err
		}
		t.journal = j
		t.host = &host{run: t.env.Run, journal: j}
	}
	p.policy.Dir = filepath.Join(t.folder, fmt.Sprintf("arm%03d", len(t.order)))
	if f := p.policy.AppFile; f != nil {
		f.onlyServers = !t.spec.needsWorker(p)
	}
	a := &arm{treatment: tr, plan: p, cpus: cpus}
	t.arms[tr.ID] = a // added before it is complete, so that Close finds it
	t.order = append(t.order, a)
	t.multiple = leastCommonMultiple(t.multiple, p.planted.whole)
	if t.multiple > mostMultiple {
		return fmt.Errorf("planted: the shares of all treatments together need batches of multiples of %d calls; use "+
			"rounder ones", t.multiple)
	}
	if err := t.host.plant(p.program); err != nil {
		return err
	}
	return a.plan.stack.install(ctx, &a.plan.policy, t.host)
}

func (t *target) arm(tr design.Treatment) (*arm, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.arms[tr.ID]; a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("treatment %q has not been prepared", tr.ID)
}

// current returns the arm's sample between Enter and Leave.
func (t *target) current(a *arm) (*sample, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.sample == nil {
		return nil, fmt.Errorf("treatment %q has not been entered", a.treatment.ID)
	}
	return a.sample, nil
}

// Enter implements area.Target: it confines a new worker.
func (t *target) Enter(ctx context.Context, tr design.Treatment) error {
	a, err := t.arm(tr)
	if err != nil {
		return err
	}
	t.mu.Lock()
	busy := a.sample != nil
	t.mu.Unlock()
	if busy {
		return fmt.Errorf("treatment %q has been entered already", tr.ID)
	}
	s := t.newSample(a)
	t.mu.Lock()
	a.sample = s // set before it is complete, so that Close finds it
	t.mu.Unlock()
	if err := s.start(ctx, t.env.Clock); err != nil {
		return errors.Join(err, t.leave(context.WithoutCancel(ctx), a))
	}
	return nil
}

// Verify implements area.Target.
func (t *target) Verify(ctx context.Context, tr design.Treatment) error {
	a, err := t.arm(tr)
	if err != nil {
		return err
	}
	s, err := t.current(a)
	if err != nil {
		return err
	}
	if err := s.prove(ctx); err != nil {
		return err
	}
	if t.env.Trespasses {
		a.crew, err = t.muster(ctx, a, s)
		return err
	}
	return t.attribute(ctx, a, s)
}

// Operations implements area.Target.
func (t *target) Operations(tr design.Treatment) ([]load.Operation, error) {
	a, err := t.arm(tr)
	if err != nil {
		return nil, err
	}
	if t.env.Trespasses {
		return t.calledOperations(a)
	}
	var ops []load.Operation
	for _, o := range t.spec.operations(a.plan) {
		ops = append(ops, load.Operation{
			Name: o.name, Weight: 1, Expect: o.expect, Span: o.span, Rounds: t.spec.Rounds, Most: o.most,
			Whole: o.whole, Batch: t.batch(a, o), Negative: t.negative(a, o),
		})
	}
	return ops, nil
}

// batch makes n calls and the planted ones, and returns the cost of one of the n.
func (t *target) batch(a *arm, o operation) func(context.Context, int) ([]load.BatchSample, error) {
	return func(ctx context.Context, n int) ([]load.BatchSample, error) {
		s, err := t.current(a)
		if err != nil {
			return nil, err
		}
		t.mu.Lock()
		n = roundUp(roundUp(n, o.whole), t.multiple)
		t.mu.Unlock()
		if changed, err := t.hold(ctx, a); err != nil {
			return nil, err
		} else if changed { // a warm-up
			if _, err := o.run(ctx, s, max(1, n/4)); err != nil {
				return nil, err
			}
		}
		cost, err := o.run(ctx, s, n+a.plan.planted.of(n))
		if err != nil {
			return nil, err
		}
		return perCall(cost, n), nil
	}
}

// roundUp returns the least multiple of whole that is at least n, and 1.
func roundUp(n, whole int) int {
	whole = max(1, whole)
	return max(1, (n+whole-1)/whole) * whole
}

// perCall divides a cost by n calls.
func perCall(c workload.Cost, n int) []load.BatchSample {
	if c.Memory > 0 {
		return memorySample(c, n)
	}
	each := float64(n)
	out := []load.BatchSample{
		{Metric: metricWall, Value: c.Wall.Seconds() / each},
		{Metric: metricCPU, Value: c.CPU.Seconds() / each},
	}
	if c.Counted {
		out = append(out, load.BatchSample{Metric: metricInstructions, Value: float64(c.Instructions) / each})
	}
	return out
}

// negative reports whether neither the treatment nor its baseline can affect the operation: any difference is then an
// artefact. If neither side has an enforcer, the difference itself is the subject of the experiment.
func (t *target) negative(a *arm, o operation) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !o.micro || a.treatment.Baseline || a.treatment.Control != design.None || len(t.order) == 0 || a == t.order[0] {
		return false
	}
	enforced := false
	for _, x := range append(t.bases(), a) {
		if x.plan.planted.part > 0 || x.plan.program.attached || x.plan.command != "" || !x.plan.besidesAlike(a.plan) ||
			!x.plan.stack.inert(x.plan.policy, o.name) {
			return false
		}
		enforced = enforced || x.plan.policy.Enforcer != enforcerNone
	}
	return enforced
}

// bases returns the arms that treatments are compared to: the baselines or, without one, the first treatment.
func (t *target) bases() []*arm {
	var out []*arm
	for _, b := range t.order {
		if b.treatment.Baseline {
			out = append(out, b)
		}
	}
	if len(out) == 0 {
		return t.order[:1:1]
	}
	return out
}

// Endpoint implements area.Target: it is nil, since workers time themselves.
func (*target) Endpoint(design.Treatment) (*load.Endpoint, error) { return nil, nil }

// Probes implements area.Target: it is nil, since workers time themselves.
func (*target) Probes(design.Treatment) []probe.Probe { return nil }

// Leave implements area.Target.
func (t *target) Leave(ctx context.Context, tr design.Treatment) error {
	a, err := t.arm(tr)
	if err != nil {
		return err
	}
	return t.leave(ctx, a)
}

func (t *target) leave(ctx context.Context, a *arm) error {
	t.mu.Lock()
	s := a.sample
	t.mu.Unlock()
	if s == nil {
		return nil
	}
	a.crew.disband(s)
	a.crew = nil
	if err := errors.Join(t.leaveOthers(ctx, a), s.end(ctx)); err != nil {
		return err // Close tries again
	}
	t.mu.Lock()
	a.sample = nil
	t.mu.Unlock()
	return nil
}

// Close implements area.Target.
func (t *target) Close(ctx context.Context) error {
	t.mu.Lock()
	arms, folder := t.order, t.folder
	t.mu.Unlock()
	var errs []error
	for _, a := range arms {
		errs = append(errs, t.leave(ctx, a))
	}
	if t.host != nil {
		errs = append(errs, t.host.close(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if folder == "" {
		return nil
	}
	if err := removeFolder(folder); err != nil {
		return fmt.Errorf("remove %s: %w", folder, err)
	}
	t.mu.Lock()
	t.folder, t.order, t.arms = "", nil, map[string]*arm{}
	t.mu.Unlock()
	return t.journal.Undone(folderChange(folder))
}

// Can implements area.Target.
func (t *target) Can() area.Can {
	return area.Can{Enter: t.Enter, Leave: t.Leave, Probes: t.Probes, Notes: t.Notes, Trespass: t.Trespasses, Conditions: t.Conditions}
}
