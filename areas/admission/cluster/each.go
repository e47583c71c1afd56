package cluster

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// Each calls do for 0 ≤ i < n in order, up to parallel at once. After an error it starts no more calls and cancels
// those in flight. It returns when all have ended, with all errors except cancellations.
func Each(ctx context.Context, n, parallel int, do func(ctx context.Context, i int) error) error {
	inner, cancel := context.WithCancel(quiet(ctx))
	defer cancel()
	var (
		next atomic.Int64
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for range min(max(1, parallel), n, abreast) {
		wg.Go(func() {
			for inner.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(inner, i); err != nil {
					mu.Lock()
					if len(errs) == 0 || !errors.Is(err, context.Canceled) {
						errs = append(errs, err)
					}
					mu.Unlock()
					cancel()
				}
			}
		})
	}
	wg.Wait()
	if len(errs) == 0 {
		return ctx.Err()
	}
	return errors.Join(errs...)
}
