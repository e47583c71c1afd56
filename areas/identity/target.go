package identity

import (
	"context"
	"strconv"
	"sync"
	"time"

	"tare/area"
	"tare/areas/identity/reference"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/load"
)

const (
	// callTimeout bounds single calls outside the load.
	callTimeout = 5 * time.Second
	// noteThrottle must be in every report of a run without a control group.
	noteThrottle = "the endpoint's CPU limit is a throttle inside its process, because this host gives no control group"
)

// target is the endpoint under test: one arm for each treatment, side by side.
type target struct {
	spec *Spec
	env  area.Env

	arms kit.Arms[*arm]

	mu    sync.Mutex
	asked int // how often Operations was called
	// staged: workloads set the state of the caches, one by one.
	staged bool
	// signers are the keys of the made-up clusters, by algorithm: treatments differ in their levels only.
	signers map[reference.Algorithm]*reference.Signer
	// planGroup is proc.PlanCgroup; tests of the fallback have none.
	planGroup func(name string) (string, error)
}

var _ area.Target = (*target)(nil)

// Prepare implements area.Target.
func (t *target) Prepare(ctx context.Context, tr design.Treatment, j area.Journal) error {
	plan, err := t.spec.plan(tr)
	if err != nil {
		return err
	}
	p, err := t.arms.Add(tr, func(index int) *arm {
		return &arm{
			plan: plan, treatment: tr, env: t.env, journal: j, planGroup: t.planGroup, index: index,
			born: t.env.Clock.Now().UnixNano(),
		}
	})
	if err != nil {
		return err
	}
	if plan.url != nil {
		p.limit = t.env.Limit
	}
	if err = p.unlock(); err == nil && plan.url != nil {
		err = p.find(ctx)
	} else if err == nil {
		if p.signer, err = t.signer(plan.knobs.Signing); err == nil {
			err = p.start(ctx)
		}
	}
	if err == nil {
		err = p.fill(ctx)
	}
	if err == nil {
		p.keepFresh()
	}
	return err
}

// signer returns the key that all treatments with one algorithm sign with.
func (t *target) signer(a reference.Algorithm) (*reference.Signer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.signers[a]; s != nil {
		return s, nil
	}
	s, err := reference.NewSigner(a)
	if err == nil {
		t.signers[a] = s
	}
	return s, err
}

// Enter implements area.Target. Every trial begins in the state that Prepare left: the cache of an endpoint that was
// started anew is filled, and audiences that nobody will ask for again are forgotten, since their number would grow
// from trial to trial. It remembers the throttling so far.
func (t *target) Enter(ctx context.Context, tr design.Treatment) error {
	p, err := t.arms.Of(tr)
	if err != nil {
		return err
	}
	if err := p.alive(); err != nil {
		return err
	}
	if err := p.fill(ctx); err != nil {
		return err
	}
	if p.url == nil && p.operation == opIdentity && p.knobs.Cache {
		if err := p.flush(ctx); err != nil {
			return err
		}
	}
	p.entered = nil
	if now, ok := p.throttling(ctx); ok {
		p.entered = &now
	}
	return nil
}

// Renew is area.Can.Renew: the endpoint and the token service are other processes afterwards.
func (t *target) Renew(ctx context.Context, tr design.Treatment) (bool, error) {
	p, err := t.arms.Of(tr)
	if err != nil || p.url != nil {
		return false, err
	}
	return true, p.paused(func() error { return p.replace(ctx, true) })
}

// Leave implements area.Target. It reports a server that has ended by itself meanwhile.
func (t *target) Leave(_ context.Context, tr design.Treatment) error {
	p, err := t.arms.Of(tr)
	if err != nil {
		return err
	}
	return p.alive()
}

// Operations implements area.Target. Each call returns operations that ask for new audiences.
func (t *target) Operations(tr design.Treatment) ([]load.Operation, error) {
	p, err := t.arms.Of(tr)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.asked++
	s := p.session("run-" + strconv.Itoa(t.asked))
	if p.tally == nil {
		p.tally = newTally(s.identities())
	}
	s.tally = p.tally
	t.mu.Unlock()
	return []load.Operation{{
		Name: p.operation, Weight: 1, Expect: p.adapter.operation(p.operation).expect, Causes: causes(),
		Wire: p.adapter.wire(s), Negative: t.negative(p), Breaches: []int{int(otherSubject), int(alreadyOthers)},
		Describe: p.describe,
	}}, nil
}

// negative reports whether p's operation is one on which its treatment cannot act, seen from the baseline.
func (t *target) negative(p *arm) bool {
	if p.treatment.Baseline || p.treatment.Control == design.AA {
		return false
	}
	for _, b := range t.arms.Ready() {
		if b.treatment.Baseline && untouched(p.plan, b.plan) {
			return true
		}
	}
	return false
}

// Endpoint implements area.Target.
func (t *target) Endpoint(tr design.Treatment) (*load.Endpoint, error) {
	p, err := t.arms.Of(tr)
	if err != nil {
		return nil, err
	}
	return &load.Endpoint{Addr: p.addr, Host: p.host(), TLS: p.tls, Keys: p.identities, Local: p.local()}, nil
}

// Close implements area.Target.
func (t *target) Close(ctx context.Context) error { return t.arms.Close(ctx) }

// Can implements area.Target.
func (t *target) Can() area.Can {
	return area.Can{
		Enter: t.Enter, Leave: t.Leave, Endpoint: t.Endpoint, Probes: t.Probes, Notes: t.Notes,
		Trespass: t.Trespasses, Conditions: t.Conditions, Stage: t.Stage, Observe: t.Observe,
		Levers: t.Levers, Renew: t.Renew, Unproved: t.Unproved,
	}
}
