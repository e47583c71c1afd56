package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"tare/internal/area"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/probe"
)

// target is the control planes under test: one arm per treatment, on a control plane of its own or on a shared one.
type target struct {
	spec       *Spec
	env        area.Env
	operations []operation

	mu       sync.Mutex
	arms     map[string]*arm     // by treatment
	controls map[string]*control // embedded control planes that are shared, by plan.key
	closing  []*control          // all embedded control planes
}

var (
	_ area.Target  = (*target)(nil)
	_ area.Witness = (*target)(nil)
)

// Prepare implements area.Target: it starts the control plane, or connects to the cluster, creates a namespace with all
// that calls need and, if the control plane is the treatment's own, the policies.
func (t *target) Prepare(ctx context.Context, tr design.Treatment, j area.Journal) error {
	plan, err := t.spec.plan(tr)
	if err != nil {
		return err
	}
	if err := plan.checkOperations(t.operations); err != nil {
		return err
	}
	t.mu.Lock()
	if t.arms[tr.ID] != nil {
		t.mu.Unlock()
		return fmt.Errorf("treatment %q is prepared already", tr.ID)
	}
	p := &arm{plan: plan, env: t.env, journal: j, index: len(t.arms), operations: t.operations}
	if plan.foreign {
		p.limit = t.env.Limit
	}
	t.arms[tr.ID] = p // added before it is complete, so that Close finds what exists
	t.mu.Unlock()
	if !plan.foreign {
		if p.control, err = t.control(ctx, &plan, j, p.index); err != nil {
			return err
		}
	}
	if err := p.prepare(ctx); err != nil {
		return err
	}
	p.whole = true
	return nil
}

// control returns the control plane that p may share, or starts one.
func (t *target) control(ctx context.Context, p *plan, j area.Journal, index int) (*control, error) {
	if c := t.controls[p.key()]; p.shared && c != nil {
		return c, nil
	}
	c, err := startControl(ctx, p, t.env, j, index)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closing = append(t.closing, c)
	if p.shared {
		t.controls[p.key()] = c
	}
	return c, nil
}

// arm returns what Prepare made.
func (t *target) arm(tr design.Treatment) (*arm, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.arms[tr.ID]; p != nil && p.whole {
		return p, nil
	}
	return nil, fmt.Errorf("treatment %q is not prepared", tr.ID)
}

// Enter implements area.Target: it refills the stock and, if policies come and go with the trials, applies them.
func (t *target) Enter(ctx context.Context, tr design.Treatment) error {
	p, err := t.arm(tr)
	if err != nil {
		return err
	}
	return p.enter(ctx)
}

// Leave implements area.Target: it deletes what the trial created, and policies that were applied for it.
func (t *target) Leave(ctx context.Context, tr design.Treatment) error {
	p, err := t.arm(tr)
	if err != nil {
		return err
	}
	return p.leave(ctx)
}

// Verify implements area.Target.
func (t *target) Verify(ctx context.Context, tr design.Treatment) error {
	p, err := t.arm(tr)
	if err != nil {
		return err
	}
	return p.verify(ctx)
}

// Operations implements area.Target.
func (t *target) Operations(tr design.Treatment) ([]load.Operation, error) {
	p, err := t.arm(tr)
	if err != nil {
		return nil, err
	}
	return p.calls()
}

// Endpoint implements area.Target.
func (t *target) Endpoint(tr design.Treatment) (*load.Endpoint, error) {
	p, err := t.arm(tr)
	if err != nil {
		return nil, err
	}
	return p.endpoint, nil
}

// Probes implements area.Target.
func (t *target) Probes(tr design.Treatment) []probe.Probe {
	p, err := t.arm(tr)
	if err != nil {
		return nil
	}
	return p.probes()
}

// Witnessed implements area.Witness.
func (t *target) Witnessed(ctx context.Context, tr design.Treatment) (*area.Served, error) {
	p, err := t.arm(tr)
	if err != nil {
		return nil, err
	}
	return p.served(ctx)
}

// Recover implements area.Target: it waits until the API server is ready, and restarts an embedded control plane that
// does not become ready.
func (t *target) Recover(ctx context.Context, tr design.Treatment) error {
	p, err := t.arm(tr)
	if err != nil {
		return err
	}
	return p.recover(ctx)
}

// Close implements area.Target. Arms are closed first: what they made on a shared or foreign control plane needs it for
// its removal.
func (t *target) Close(ctx context.Context) error {
	t.mu.Lock()
	arms := slices.Collect(maps.Values(t.arms))
	controls := t.closing
	t.arms, t.controls, t.closing = map[string]*arm{}, map[string]*control{}, nil
	t.mu.Unlock()
	errs := make([]error, len(arms)+len(controls))
	var wg sync.WaitGroup
	for i, p := range arms {
		wg.Go(func() { errs[i] = p.close(ctx) })
	}
	wg.Wait()
	for i, c := range controls {
		wg.Go(func() { errs[len(arms)+i] = c.close(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
