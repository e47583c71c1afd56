package decision

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"tare/internal/area"
	"tare/internal/area/decision/protocol"
	"tare/internal/design"
	"tare/internal/load"
)

// target is the decision point under test: one place per treatment, side by side.
type target struct {
	spec     *Spec
	env      area.Env
	patience time.Duration // with a decision point that is not ready
	warmth   rehearsal     // of a JVM

	mu     sync.Mutex
	places map[string]*place // by treatment
}

var (
	_ area.Target = (*target)(nil)
	_ area.Ledger = (*target)(nil)
)

// Prepare implements area.Target: it starts the decision point or fills the one behind the URL, waits until it answers, and warms it up.
func (t *target) Prepare(ctx context.Context, tr design.Treatment, j area.Journal) error {
	plan, err := t.spec.plan(tr)
	if err != nil {
		return err
	}
	t.mu.Lock()
	if t.places[tr.ID] != nil {
		t.mu.Unlock()
		return fmt.Errorf("treatment %q is prepared already", tr.ID)
	}
	p := &place{plan: plan, env: t.env, journal: j, index: len(t.places), patience: t.patience, warmth: t.warmth}
	t.places[tr.ID] = p // before it is whole, so that Close finds what has been started
	t.mu.Unlock()
	if plan.url != nil {
		err = p.reach(ctx)
	} else {
		err = p.start(ctx)
	}
	for _, step := range []func(context.Context) error{p.await, p.learn, p.attach, p.warm} {
		if err == nil {
			err = step(ctx)
		}
	}
	p.whole = err == nil
	return err
}

// place finds what Prepare made.
func (t *target) place(tr design.Treatment) (*place, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.places[tr.ID]; p != nil && p.whole {
		return p, nil
	}
	return nil, fmt.Errorf("treatment %q is not prepared", tr.ID)
}

// Enter implements area.Target: an embedded decision point that is just being started again is waited for.
func (t *target) Enter(ctx context.Context, tr design.Treatment) error {
	p, err := t.place(tr)
	if err != nil {
		return err
	}
	return p.running(ctx)
}

// Leave implements area.Target. It reports a decision point that does not stay up.
func (t *target) Leave(_ context.Context, tr design.Treatment) error {
	p, err := t.place(tr)
	if err != nil {
		return err
	}
	return p.failed()
}

// Operations implements area.Target.
func (t *target) Operations(tr design.Treatment) ([]load.Operation, error) {
	p, err := t.place(tr)
	if err != nil {
		return nil, err
	}
	return p.operations()
}

// Endpoint implements area.Target.
func (t *target) Endpoint(tr design.Treatment) (*load.Endpoint, error) {
	p, err := t.place(tr)
	if err != nil {
		return nil, err
	}
	return p.endpoint(), nil
}

// Counted implements area.Ledger.
func (t *target) Counted(ctx context.Context, tr design.Treatment) (map[string]float64, error) {
	p, err := t.place(tr)
	if err != nil {
		return nil, err
	}
	return p.counted(ctx)
}

// counted is nil where the decision point keeps no counts that the adapter can read.
func (p *place) counted(ctx context.Context) (map[string]float64, error) {
	c, ok := p.adapter.(protocol.Counter)
	if !ok {
		return nil, nil
	}
	return c.Counted(ctx, p.session)
}

// Recover implements area.Target: it waits until the decision point answers again. An embedded one that does not is killed, and so started
// anew.
func (t *target) Recover(ctx context.Context, tr design.Treatment) error {
	p, err := t.place(tr)
	if err != nil {
		return err
	}
	err = p.await(ctx)
	if err == nil || p.url != nil || ctx.Err() != nil {
		return err
	}
	if err := p.kill(); err != nil {
		return err
	}
	if err := p.running(ctx); err != nil {
		return err
	}
	return p.await(ctx)
}

// Close implements area.Target.
func (t *target) Close(ctx context.Context) error {
	t.mu.Lock()
	places := slices.Collect(maps.Values(t.places))
	t.places = map[string]*place{}
	t.mu.Unlock()
	errs := make([]error, len(places))
	var wg sync.WaitGroup
	for i, p := range places {
		wg.Go(func() { errs[i] = p.close(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
