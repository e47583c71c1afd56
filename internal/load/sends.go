package load

import (
	"context"
	"time"

	"tare/internal/ratelimit"
)

// sends applies the run's rate limit to a stream. A call that is sent on time follows its arrival process, which keeps
// to the rate on average and may be ahead of it by a second. A late call, delayed by the generator or the target, may
// be ahead by a tenth of a second only: a stall must not end in a burst.
type sends struct {
	limit *ratelimit.Limiter
	shift time.Duration // from the stream's time to the limit's
	ahead struct{ prompt, late time.Duration }
}

// onTimeWithin is how long after its intended instant a call still counts as on time.
const onTimeWithin = int64(10 * time.Millisecond)

func newSends(l *ratelimit.Limiter, clock streamClock) (s sends) {
	if l == nil {
		return s
	}
	s.limit, s.shift = l, l.Since(clock.opened)
	s.ahead.prompt = time.Second + l.Takes(10)
	s.ahead.late = time.Second/10 + l.Takes(1)
	return s
}

func (s *sends) mayBeAhead(intended, now int64) time.Duration {
	if now-intended <= onTimeWithin {
		return s.ahead.prompt
	}
	return s.ahead.late
}

// admit counts a call that is sent now and returns 0, or returns how long, in ns, the call has to wait.
func (s *sends) admit(intended, now int64) int64 {
	if s.limit == nil {
		return 0
	}
	return int64(s.limit.Take(s.shift+ns(now), s.mayBeAhead(intended, now)))
}

// wait returns how long, in ns, a call has to wait when so many others are about to be sent. It counts nothing.
func (s *sends) wait(intended, now int64, others int) int64 {
	if s.limit == nil {
		return 0
	}
	return max(0, int64(s.limit.Ahead(s.shift+ns(now))+s.limit.Takes(others)-s.mayBeAhead(intended, now)))
}

// awaitRateLimit waits until the rate limit admits c, whose worker has had a connection since that instant, and counts
// it. A call that finds its connection closed and needs another counts once.
func (e *std) awaitRateLimit(ctx context.Context, c *goCall, since int64) error {
	if e.sends.limit == nil || c.counted != 0 && e.clock.now()-c.counted <= onTimeWithin {
		return nil
	}
	for {
		now := e.clock.now()
		wait := e.sends.admit(int64(c.rec.Intended), now)
		e.recordDelay(c, wait > 0, since)
		if wait == 0 {
			c.counted = now
			return nil
		}
		if err := sleepNS(ctx, wait); err != nil {
			return err
		}
	}
}

// recordDelay records whether the rate limit delays c, which has a worker.
func (e *std) recordDelay(c *goCall, held bool, since int64) {
	if c.held == held {
		return // only its worker sets it from now on
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.held = held; held && !c.ended {
		e.tally[nHeld]++
		c.recordDelay(max(int64(c.rec.Intended), c.free, since), &e.ledger)
	}
}
