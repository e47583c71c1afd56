package load

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// stream drives an engine: it is the part of a Stream that does not depend on the engine.
type stream struct {
	cfg    Config
	clock  streamClock
	engine carrier
	id     uint32
	next   []uint64 // number of the next call of each arm
	closed bool
}

var _ Stream = (*stream)(nil)

var errClosed = errors.New("the stream is closed")

func (s *stream) Now() time.Duration { return time.Duration(s.clock.now()) }

func (s *stream) Offer(ctx context.Context, p Process, poll time.Duration, stop func() bool) (Segment, error) {
	if peak := p.Peak(); s.cfg.MaxRate > 0 && peak > s.cfg.MaxRate*(1+1e-9) {
		return Segment{}, fmt.Errorf("offer load: the arrivals peak at %g/s, above the bound of %g/s: lower the rate or "+
			"raise max_rate", peak, s.cfg.MaxRate)
	}
	g := &segment{process: p, length: int64(p.Length())}
	if t, ok := p.(Turn); ok {
		g.process, g.arm, g.drains = t.Process, t.Arm, true
	}
	return s.run(ctx, g, poll, stop)
}

func (s *stream) Cycle(ctx context.Context, c Closed, poll time.Duration, stop func() bool) (Segment, error) {
	if c.Workers < 1 || c.Duration <= 0 || c.Ramp < 0 {
		return Segment{}, fmt.Errorf("cycle load: %d workers for %v with a ramp of %v: give at least one worker and some "+
			"time", c.Workers, c.Duration, c.Ramp)
	}
	return s.run(ctx, &segment{
		closed: c, length: int64(c.Duration), rate: s.cfg.MaxRate, arm: c.Arm, drains: len(s.cfg.Arms) > 0,
	}, poll, stop)
}

func (s *stream) run(ctx context.Context, g *segment, poll time.Duration, stop func() bool) (Segment, error) {
	if s.closed {
		return Segment{}, errClosed
	}
	if err := ctx.Err(); err != nil {
		return Segment{}, err
	}
	if g.arm < 0 || g.arm >= len(s.next) {
		return Segment{}, fmt.Errorf("offer load to arm %d: the stream has %d", g.arm, len(s.next))
	}
	s.id++
	next := &s.next[g.arm]
	g.id, g.base, g.stride, g.ended = s.id, *next, 1, make(chan struct{})
	if a, ok := g.process.(Alone); ok && a.Callers > 1 {
		g.stride = uint64(a.Callers)
		g.base = (*next + g.stride - 1) / g.stride * g.stride
	}
	var before Meter
	if !g.drains { // turns are many, and each is short: what the generator spent on one is not read
		before = s.Meter()
	}
	g.start = s.clock.now() + int64(lead)
	s.engine.begin(g)
	stopped, err := s.watch(ctx, g.ended, poll, stop)
	s.engine.end(g)
	<-g.ended
	*next = max(*next, g.next)
	out := Segment{Start: time.Duration(g.start), Offered: g.offered, Sent: g.sent, Stopped: stopped}
	if g.drains {
		out.End = s.Now()
		return out, err
	}
	end := g.start + g.length
	if stopped || err != nil {
		end = min(end, s.clock.now())
	}
	after := s.Meter()
	out.End, out.CPU, out.Effort = time.Duration(end), after.cpu-before.cpu, after.Since(&before)
	return out, err
}

// watch calls stop every poll until the segment has ended.
func (s *stream) watch(ctx context.Context, ended <-chan struct{}, poll time.Duration,
	stop func() bool,
) (stopped bool, err error) {
	if poll <= 0 {
		poll = defaultPoll
	}
	t := time.NewTicker(poll)
	defer t.Stop()
	for {
		select {
		case <-ended:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		case <-t.C:
			if stop != nil && stop() {
				return true, nil
			}
		}
	}
}

func (s *stream) Wait(ctx context.Context, d, poll time.Duration, done func() bool) error {
	if poll <= 0 {
		poll = defaultPoll
	}
	end := s.Now() + d
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
		left := end - s.Now()
		if left <= 0 || (done != nil && done()) {
			return ctx.Err()
		}
		t.Reset(min(poll, left))
	}
}

func (s *stream) DropIdle() {
	if !s.closed {
		s.engine.dropIdle()
	}
}

func (s *stream) Reset() {
	if !s.closed {
		s.engine.reset()
	}
}

func (s *stream) Progress() Progress {
	var p Progress
	s.engine.progress(&p)
	p.Now = s.Now()
	return p
}

func (s *stream) Calls(since time.Duration) []Call {
	if !s.cfg.KeepCalls {
		return nil
	}
	return mergeCalls(s.engine.calls(since))
}

func (s *stream) Take() []Cell {
	if s.closed {
		return nil
	}
	return mergeTables(s.engine.take())
}

func (s *stream) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	return s.engine.close()
}
