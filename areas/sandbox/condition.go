package sandbox

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"tare/area"
	"tare/internal/design"
)

// Conditions is area.Says.Conditions.
func (*Spec) Conditions() []string { return []string{area.Restart, area.Starved, area.Reload} }

// Conditions is area.Can.Conditions.
func (t *target) Conditions(tr design.Treatment) []area.Condition {
	a, err := t.arm(tr)
	if err != nil || a.crew == nil {
		return nil
	}
	return append([]area.Condition{
		{
			Name: area.Restart, Does: "the workers are killed, and others are confined and executed",
			Impose: func(ctx context.Context) (func(context.Context) error, error) { return nil, t.restart(ctx, a) },
		},
		{
			Name: area.Starved, Does: "two confined processes compute on each processor of the workers",
			Impose: func(ctx context.Context) (func(context.Context) error, error) { return t.starve(ctx, a) },
		},
	}, t.reloading(a)...)
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
			one.worker, t.demands(ctx, a, one.worker.policy, one.worker.client),
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
