package decision

import (
	"context"
	"sync"
	"time"

	"tare/internal/clock"
)

// A pacer keeps what is asked outside of the load below the rate that the file allows: canaries, counts, and policies on their way.
type pacer struct {
	clock clock.Clock
	gap   time.Duration // between two requests; 0: none

	mu   sync.Mutex
	next time.Time
}

// newPacer makes a pacer for a rate in 1/s; 0: no bound.
func newPacer(c clock.Clock, rate float64) *pacer {
	p := &pacer{clock: c}
	if rate > 0 {
		p.gap = time.Duration(float64(time.Second) / rate)
	}
	return p
}

// wait returns when another request may be sent, or with ctx's error.
func (p *pacer) wait(ctx context.Context) error {
	if p.gap == 0 {
		return nil
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
