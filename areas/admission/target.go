package admission

import (
	"context"
	"errors"
	"slices"

	"tare/area"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/load"
	"tare/internal/probe"
)

// target is the control planes under test: one arm per treatment, on a control plane of its own or on a shared one.
type target struct {
	spec       *Spec
	env        area.Env
	operations []operation
	arms       kit.Arms[*arm]
	controls   *controls
	found      map[string]finding // what bundles have shown, by their paths
	salt       []byte             // of the numbers of texts that are not shown
}

var _ area.Target = (*target)(nil)

// Prepare implements area.Target: it starts the control plane, or connects to the cluster, creates a namespace with all
// that calls need and, if the control plane is the treatment's own, the policies.
func (t *target) Prepare(ctx context.Context, tr design.Treatment, j area.Journal) error {
	plan, err := t.spec.plan(tr)
	if err != nil {
		return err
	}
	if err := plan.checkOperations(t.operations, t.env.Trespasses); err != nil {
		return err
	}
	p, err := t.arms.Add(tr, func(index int) *arm {
		return &arm{
			plan: plan, treatment: tr, env: t.env, journal: j, index: index, declared: t.spec, found: t.found, salt: t.salt,
			operations: t.operations,
		}
	})
	if err != nil {
		return err
	}
	if plan.foreign {
		p.limit = t.env.Limit
	}
	if !plan.foreign {
		if p.control, err = t.controls.of(ctx, tr, &plan, j, p.index); err != nil {
			return err
		}
	}
	if err := p.prepare(ctx); err != nil {
		return err
	}
	p.ready = true
	return nil
}

// Enter implements area.Target: it refills the stock and, if policies come and go with the trials, applies them.
func (t *target) Enter(ctx context.Context, tr design.Treatment) error {
	p, err := t.arms.Of(tr)
	if err != nil {
		return err
	}
	return p.enter(ctx)
}

// Renew is area.Can.Renew: the processes of the control plane, and the engines beside it, are others afterwards. It is
// done for all treatments or for none, since what has run for long may differ from what has just begun.
func (t *target) Renew(ctx context.Context, tr design.Treatment) (bool, error) {
	p, err := t.arms.Of(tr)
	if err != nil || slices.ContainsFunc(t.arms.Ready(), func(p *arm) bool { return !p.renewable(p.policies.own) }) {
		return false, err
	}
	return true, t.controls.restart(ctx, p)
}

// Leave implements area.Target: it deletes what the trial created, and policies that were applied for it.
func (t *target) Leave(ctx context.Context, tr design.Treatment) error {
	p, err := t.arms.Of(tr)
	if err != nil {
		return err
	}
	return p.leave(ctx)
}

// Verify implements area.Target.
func (t *target) Verify(ctx context.Context, tr design.Treatment) error {
	p, err := t.arms.Of(tr)
	if err != nil {
		return err
	}
	return p.verify(ctx)
}

// Operations implements area.Target.
func (t *target) Operations(tr design.Treatment) ([]load.Operation, error) {
	p, err := t.arms.Of(tr)
	if err != nil {
		return nil, err
	}
	return p.calls()
}

// Endpoint implements area.Target.
func (t *target) Endpoint(tr design.Treatment) (*load.Endpoint, error) {
	p, err := t.arms.Of(tr)
	if err != nil {
		return nil, err
	}
	return p.endpoint, nil
}

// Probes implements area.Target.
func (t *target) Probes(tr design.Treatment) []probe.Probe {
	p, err := t.arms.Of(tr)
	if err != nil {
		return nil
	}
	return p.probes()
}

// Witnessed is area.Can.Witnessed.
func (t *target) Witnessed(ctx context.Context, tr design.Treatment) (*area.Served, error) {
	p, err := t.arms.Of(tr)
	if err != nil {
		return nil, err
	}
	return p.served(ctx)
}

// Close implements area.Target. Arms are closed first: what they made on a shared or foreign control plane needs it for
// its removal.
func (t *target) Close(ctx context.Context) error {
	return errors.Join(t.arms.Close(ctx), t.controls.close(ctx))
}

// Can implements area.Target.
func (t *target) Can() area.Can {
	return area.Can{
		Enter: t.Enter, Leave: t.Leave, Renew: t.Renew, Endpoint: t.Endpoint, Probes: t.Probes, Notes: t.Notes,
		Warnings: t.Warnings,
		Trespass: t.Trespasses, Conditions: t.Conditions, Witnessed: t.Witnessed, Observe: t.Observe,
		Rulings: t.Rulings, Unproved: t.Unproved,
	}
}
