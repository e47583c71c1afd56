package area

import (
	"context"
	"sync"
	"time"

	"tare/internal/clock"
)

// A Pace keeps what is asked of a system outside of the load – canaries, tokens, policies on their way – below the rate that the file allows. Nothing
// is saved up. It may be shared; nil is no bound.
type Pace struct {
	clock clock.Clock
	gap   time.Duration // between two requests

	mu   sync.Mutex
	next time.Time
}

// NewPace is a bound of rate requests a second; nil, which is none, for 0.
func NewPace(c clock.Clock, rate float64) *Pace {
	if !(rate > 0) {
		return nil
	}
	return &Pace{clock: c, gap: time.Duration(float64(time.Second) / rate)}
}

// Takes is how long n requests take at least.
func (p *Pace) Takes(n int) time.Duration {
	if p == nil {
		return 0
	}
	return time.Duration(n) * p.gap
}

// Wait returns when another request may be sent, or with ctx's error.
func (p *Pace) Wait(ctx context.Context) error {
	if p == nil {
		return ctx.Err()
	}
	p.mu.Lock()
	now := p.clock.Now()
	at := p.next
	if at.Before(now) {
		at = now
	}
	p.next = at.Add(p.gap)
	p.mu.Unlock()
	if left := at.Sub(now); left > 0 {
		return p.clock.Sleep(ctx, left)
	}
	return ctx.Err()
}
