package admission

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"tare/area"
	"tare/areas/plane"
	"tare/internal/design"
)

// controls are the embedded control planes of a target.
type controls struct {
	spec *Spec
	env  area.Env
	// turns bounds how many are started at one time: each takes a processor for three seconds.
	turns chan struct{}

	begin    sync.Once
	end      context.CancelFunc   // gives up those that are being started
	starting map[string]*starting // by treatment

	mu     sync.Mutex
	shared map[string]*control // by plan.key
	all    []*control
}

// starting is a control plane that is being started.
type starting struct {
	done    chan struct{}
	control *control
	err     error
}

func newControls(spec *Spec, env area.Env) *controls {
	return &controls{
		spec: spec, env: env, turns: make(chan struct{}, 2*max(2, runtime.NumCPU())), end: func() {},
		starting: map[string]*starting{}, shared: map[string]*control{},
	}
}

// of returns the control plane of a treatment, whose plan is p, and starts it if p may not share another's.
func (c *controls) of(ctx context.Context, tr design.Treatment, p *plan, j area.Journal, index int) (*control, error) {
	if p.shared {
		if found := c.shared[p.key()]; found != nil {
			return found, nil
		}
		made, err := c.start(ctx, p, j, index)
		if err == nil {
			c.shared[p.key()] = made
		}
		return made, err
	}
	var err error
	c.begin.Do(func() { err = c.startAll(ctx, j) })
	if err != nil {
		return nil, err
	}
	if s := c.starting[tr.ID]; s != nil {
		<-s.done
		return s.control, s.err
	}
	return c.start(ctx, p, j, len(c.env.Treatments)+index)
}

// startAll begins to start the control planes of all treatments, at one time: the first of several that are started one
// after another is slower than the last in most runs, for as long as they live.
func (c *controls) startAll(ctx context.Context, j area.Journal) error {
	plans := map[int]*plan{}
	for i, tr := range c.env.Treatments {
		if p, err := c.spec.plan(tr); err == nil && !p.foreign && !p.shared {
			plans[i] = &p
		}
	}
	for _, p := range plans { // one that has to be built is built once
		if _, err := plane.Find(ctx, p.version, host(p, c.env)); err != nil {
			return findFailed(p, err)
		}
	}
	ctx, c.end = context.WithCancel(ctx)
	for i, p := range plans {
		s := &starting{done: make(chan struct{})}
		c.starting[c.env.Treatments[i].ID] = s
		go func() {
			defer close(s.done)
			s.control, s.err = c.start(ctx, p, j, i)
		}()
	}
	return nil
}

func (c *controls) start(ctx context.Context, p *plan, j area.Journal, index int) (*control, error) {
	c.turns <- struct{}{}
	defer func() { <-c.turns }()
	made, err := startControl(ctx, p, c.env, j, index)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, made)
	return made, nil
}

// restart starts afresh the processes of a treatment's control plane, and of what runs beside it.
func (c *controls) restart(ctx context.Context, p *arm) error {
	c.turns <- struct{}{}
	defer func() { <-c.turns }()
	return p.restart(ctx)
}

// close ends all control planes, also those that are being started.
func (c *controls) close(ctx context.Context) error {
	c.end()
	for _, s := range c.starting {
		<-s.done
	}
	errs := make([]error, len(c.all))
	var wg sync.WaitGroup
	for i, one := range c.all {
		wg.Go(func() { errs[i] = one.close(ctx) })
	}
	wg.Wait()
	c.all = nil
	return errors.Join(errs...)
}
