package decision

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"tare/areas/decision/engine"
	"tare/internal/kit"
)

// A decision point that ends by itself is started again at the same address, as a supervisor would, until it has ended
// too often.
const (
	// mostEnds within endsWithin: it is not started again.
	mostEnds   = 10
	endsWithin = time.Minute
	// leastBackoff is the pause before the first new start; it doubles with each end, up to mostBackoff.
	leastBackoff = 100 * time.Millisecond
	mostBackoff  = 5 * time.Second
)

// startKeeper starts the keeper. Close ends it.
func (p *arm) startKeeper() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.keepRunning(ctx)
	}()
	p.stopKeeper = func() { cancel(); <-done }
}

// renew replaces the decision point and, if there is one, the enforcement point before it. The keeper does not see it.
func (p *arm) renew(ctx context.Context) error {
	p.stopKeeper()
	defer p.startKeeper()
	if c, down := p.latest(); !down {
		if err := c.Stop(ctx); err != nil {
			return err
		}
	}
	c, err := p.spawn(ctx)
	if err != nil {
		return err
	}
	p.adoptNames(c)
	if p.enforcer != nil {
		if err := p.front.Stop(ctx); err != nil {
			return err
		}
		if _, err := p.startEnforcer(ctx, p.session.Addr.String()); err != nil {
			return err
		}
	}
	return p.await(ctx)
}

// keepRunning waits for the end of one child after another, and starts the next.
func (p *arm) keepRunning(ctx context.Context) {
	var ends []time.Time
	for ctx.Err() == nil {
		if c, down := p.latest(); !down {
			select {
			case <-ctx.Done():
				return
			case <-c.Exited():
			}
			p.ended(c)
		}
		if p.kind == engine.OpenFGA {
			p.giveUp(fmt.Errorf("%s ended, and its store, which was in memory, with it; see its log in %s", p.kind, p.env.Dir))
			return
		}
		ends = recent(append(ends, p.env.Clock.Now()))
		if len(ends) > mostEnds {
			p.giveUp(fmt.Errorf("%s ended more than %d times within %v and is not started any more; see its log in %s",
				p.kind, mostEnds, endsWithin, p.env.Dir))
			return
		}
		if p.env.Clock.Sleep(ctx, backoff(len(ends))) != nil {
			return
		}
		if _, err := p.spawn(ctx); err != nil {
			if kit.IsPortTaken(err) {
				p.giveUp(fmt.Errorf("another process took the port of %s while that was started again: %w", p.kind, err))
				return
			}
			p.env.Log.Error("start the decision point again", slog.String("error", err.Error()))
			continue
		}
		p.mu.Lock()
		p.restarts++
		p.mu.Unlock()
	}
}

// ended records that c has ended.
func (p *arm) ended(c *child) {
	p.mu.Lock()
	p.down = true
	p.mu.Unlock()
	if c.killed.Load() {
		p.env.Log.Info("the decision point was killed and is started again")
	} else {
		why := c.Wait(context.Background()) // it has ended: this does not wait
		p.env.Log.Warn("the decision point has ended by itself and is started again", slog.Any("error", why))
	}
	if err := c.Stop(context.Background()); err != nil { // for the journal
		p.env.Log.Error("journal the end of the decision point", slog.String("error", err.Error()))
	}
}

func (p *arm) giveUp(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = err
}

// recent returns the ends within endsWithin before the last one.
func recent(ends []time.Time) []time.Time {
	for len(ends) > 0 && ends[len(ends)-1].Sub(ends[0]) > endsWithin {
		ends = ends[1:]
	}
	return ends
}

// backoff returns the pause before the next start after this number of ends.
func backoff(ends int) time.Duration {
	return min(leastBackoff<<max(0, ends-1), mostBackoff)
}

// failed returns why the decision point is not started any more; nil: it runs, or will.
func (p *arm) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}

// restarted returns how often a child that had ended was replaced.
func (p *arm) restarted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restarts
}

// running waits until a child runs.
func (p *arm) running(ctx context.Context) error {
	if p.url != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for {
		if err := p.failed(); err != nil {
			return err
		}
		if c, down := p.latest(); !down && alive(c) {
			return nil
		}
		if err := p.env.Clock.Sleep(ctx, pause/5); err != nil {
			return errors.Join(fmt.Errorf("%s is not up again", p.kind), err)
		}
	}
}

// alive reports whether a child has not ended.
func alive(c *child) bool {
	select {
	case <-c.Exited():
		return false
	default:
		return true
	}
}
