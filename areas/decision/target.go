package decision

import (
	"context"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/load"
)

// target is the decision point under test: one arm for each treatment, side by side.
type target struct {
	spec     *Spec
	env      area.Env
	patience time.Duration // with a decision point that is not ready
	warmth   rehearsal     // of a JVM

	arms kit.Arms[*arm]
}

var _ area.Target = (*target)(nil)

// Prepare implements area.Target: it starts the decision point or fills the one behind the URL, waits until it answers,
// and warms it up.
func (t *target) Prepare(ctx context.Context, tr design.Treatment, j area.Journal) error {
	plan, err := t.spec.plan(tr)
	if err != nil {
		return err
	}
	p, err := t.arms.Add(tr, func(index int) *arm {
		return &arm{plan: plan, treatment: tr, env: t.env, journal: j, index: index, patience: t.patience, warmth: t.warmth}
	})
	if err != nil {
		return err
	}
	if plan.url != nil {
		err = p.reach(ctx)
	} else {
		err = p.start(ctx)
	}
	for _, step := range []func(context.Context) error{p.await, p.learnRefusals, p.attach, p.feel, p.warm} {
		if err == nil {
			err = step(ctx)
		}
	}
	p.ready = err == nil
	return err
}

// Enter implements area.Target: an embedded decision point that is just being started again is waited for.
func (t *target) Enter(ctx context.Context, tr design.Treatment) error {
	p, err := t.arms.Of(tr)
	if err != nil {
		return err
	}
	return p.running(ctx)
}

// Renew is area.Can.Renew. It leaves JVMs alone, which would have to be warmed up again.
func (t *target) Renew(ctx context.Context, tr design.Treatment) (bool, error) {
	p, err := t.arms.Of(tr)
	if err != nil || p.url != nil || p.launch.Java {
		return false, err
	}
	return true, p.renew(ctx)
}

// Leave implements area.Target. It reports a decision point that does not stay up.
func (t *target) Leave(_ context.Context, tr design.Treatment) error {
	p, err := t.arms.Of(tr)
	if err != nil {
		return err
	}
	return p.failed()
}

// Operations implements area.Target.
func (t *target) Operations(tr design.Treatment) ([]load.Operation, error) {
	p, err := t.arms.Of(tr)
	if err != nil {
		return nil, err
	}
	return p.operations()
}

// Endpoint implements area.Target.
func (t *target) Endpoint(tr design.Treatment) (*load.Endpoint, error) {
	p, err := t.arms.Of(tr)
	if err != nil {
		return nil, err
	}
	return p.endpoint(), nil
}

// Counted is area.Can.Counted.
func (t *target) Counted(ctx context.Context, tr design.Treatment) (map[string]float64, error) {
	p, err := t.arms.Of(tr)
	if err != nil {
		return nil, err
	}
	return p.counted(ctx)
}

// counted returns nil where the decision point keeps no counts that the adapter can read.
func (p *arm) counted(ctx context.Context) (map[string]float64, error) {
	if p.adapter.Counted == nil {
		return nil, nil
	}
	return p.adapter.Counted(ctx, p.session)
}

// Close implements area.Target.
func (t *target) Close(ctx context.Context) error { return t.arms.Close(ctx) }

// Can implements area.Target.
func (t *target) Can() area.Can {
	return area.Can{
		Enter: t.Enter, Leave: t.Leave, Endpoint: t.Endpoint, Probes: t.Probes, Notes: t.Notes, Warnings: t.Warnings,
		Renew: t.Renew, Trespass: t.Trespasses, Conditions: t.Conditions, Counted: t.Counted, Observe: t.Observe,
		Unproved: t.Unproved, Rulings: t.Rulings,
	}
}
