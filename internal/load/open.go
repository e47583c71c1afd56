package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"tare/internal/clock"
	"tare/internal/ratelimit"
)

const (
	defaultTimeout = 30 * time.Second
	defaultConns   = 256
	defaultPoll    = 50 * time.Millisecond
	// lead is how far ahead of now a segment starts, so that every shard receives it in time.
	lead = 200 * time.Microsecond
	// growGap is the minimum time between two new connections of the pool, and between dials after a failure.
	growGap = int64(time.Millisecond)
)

// growGap returns the minimum time between two new connections of the pool, in ns.
func (c *Config) growGap() int64 {
	if c.GrowGap > 0 {
		return int64(c.GrowGap)
	}
	return growGap
}

// Open validates c, checks that this process may hold the connections that c can need, and starts an engine. An error
// names the field or the limit, and the next step. ctx bounds the opening; its values reach Operation.Call. The caller
// must close the Stream.
func Open(ctx context.Context, c Config) (Stream, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := c.normalize(); err != nil {
		return nil, fmt.Errorf("open load stream: %w", err)
	}
	if err := checkHost(c.Connections(), c.at.sources()); err != nil {
		return nil, fmt.Errorf("open load stream: %w", err)
	}
	if c.Limit == nil {
		c.Limit = ratelimit.New(clock.System{}, c.MaxRate)
	}
	s := &stream{cfg: c, clock: newClock(), next: slices.Repeat([]uint64{c.First}, len(c.at.arms))}
	var err error
	if c.Engine == Fast {
		s.engine, err = newFast(c, s.clock)
	} else {
		s.engine, err = newStd(context.WithoutCancel(ctx), c, s.clock)
	}
	if err != nil {
		return nil, fmt.Errorf("open load stream: %w", err)
	}
	return s, nil
}

// normalize fills in defaults and rejects invalid fields.
func (c *Config) normalize() error {
	if err := c.settleNumbers(); err != nil {
		return err
	}
	var err error
	if c.at, err = newPlaces(c); err != nil {
		return err
	}
	calls, err := countKinds(c.Operations)
	if err != nil {
		return err
	}
	for i, op := range c.Operations {
		if op.Wire != nil && !c.at.arms[c.at.ofOp[i]].Addr.IsValid() {
			return errors.New("operations over the wire need an endpoint: set Endpoint.Addr")
		}
	}
	why := c.whyNotFast(calls)
	switch c.Engine {
	case Auto:
		if c.Engine = Fast; why != "" {
			c.Engine = Std
		}
	case Fast:
		if why != "" {
			return fmt.Errorf("engine fast cannot be used: %s; use engine std", why)
		}
	case Std:
	default:
		return fmt.Errorf("unknown engine %q: use fast or std, or leave it out", c.Engine)
	}
	return nil
}

// whyNotFast says why engine fast cannot carry this load, or "".
func (c *Config) whyNotFast(calls int) string {
	if calls > 0 {
		return "it carries operations over the wire only, and some are Go calls"
	}
	for i := range c.at.arms {
		switch e := &c.at.arms[i]; {
		case isModern(&e.Endpoint):
			return "it speaks HTTP/1.1 only, and the endpoint offers HTTP/2"
		case e.TLS != nil && e.TLS.Renegotiation != tls.RenegotiateNever:
			return "it cannot renegotiate TLS, and the endpoint allows that"
		case e.Addr.Addr().Zone() != "":
			return "it knows no IPv6 zones"
		}
	}
	return fastMissing
}

func (c *Config) settleNumbers() error {
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.MaxConns == 0 {
		c.MaxConns = defaultConns
	}
	if c.Shards == 0 {
		c.Shards = max(1, runtime.GOMAXPROCS(0)-1)
	}
	switch {
	case c.Timeout < time.Millisecond || c.Timeout > maxTimeout:
		return fmt.Errorf("timeout %v is not between 1ms and %v: set Timeout", c.Timeout, maxTimeout)
	case c.MaxConns < 0:
		return fmt.Errorf("max connections %d is negative: set MaxConns to 1 or more", c.MaxConns)
	case c.MaxRate < 0:
		return fmt.Errorf("max rate %g/s is negative: set MaxRate, or 0 for no bound", c.MaxRate)
	case c.Shards < 0:
		return fmt.Errorf("shards %d is negative: set Shards, or 0 for the default", c.Shards)
	case c.Spin < 0 || c.Spin > time.Millisecond:
		return fmt.Errorf("spin %v is not between 0 and 1ms: set Spin, 60us suits most hosts", c.Spin)
	}
	c.Shards = min(c.Shards, c.MaxConns)
	return nil
}

func countKinds(ops []Operation) (calls int, err error) {
	for _, o := range ops {
		switch {
		case o.Weight < 1:
			return 0, fmt.Errorf("operation %s has weight %d: set it to 1 or more", o.Name, o.Weight)
		case o.Wire != nil && o.Call == nil && o.Batch == nil:
		case o.Wire == nil && o.Call != nil && o.Batch == nil:
			calls++
		case o.Wire == nil && o.Call == nil && o.Batch != nil:
			return 0, fmt.Errorf("operation %s is a batch with a clock of its own: run it without a stream", o.Name)
		default:
			return 0, fmt.Errorf("operation %s must have exactly one of Wire, Call and Batch", o.Name)
		}
	}
	return calls, nil
}

// streamClock is a stream's time: nanoseconds since it was opened. Zero means "never" in a Call, so it starts above.
type streamClock struct{ opened time.Time }

func newClock() streamClock {
	return streamClock{opened: time.Now().Add(-time.Microsecond)} //nolint:forbidigo // the monotonic clock itself
}

func (c streamClock) now() int64 {
	return int64(time.Since(c.opened)) //nolint:forbidigo // see newClock
}

func (c streamClock) at(t time.Time) int64 { return int64(t.Sub(c.opened)) }

func ns(t int64) time.Duration { return time.Duration(t) }

// A carrier is an engine: it runs one segment at a time and carries the calls that it starts.
type carrier interface {
	begin(g *segment)
	// end stops the running segment if it has not ended by itself, and fills in its sums.
	end(g *segment)
	progress(p *Progress)
	// meter fills in what only the engine knows.
	meter(m *Meter)
	calls(since time.Duration) [][]Call
	take() []table
	dropIdle()
	reset()
	close() error
}

// segment is the shards' view of a segment of load.
type segment struct {
	id      uint32
	process Process // nil for a closed loop
	closed  Closed
	arm     int
	drains  bool // it ends when all its calls have ended
	start   int64
	length  int64
	base    uint64 // number of its first call
	stride  uint64 // from one call's number to the next
	rate    float64

	mu            sync.Mutex
	left          int           // shards that have not ended it
	ended         chan struct{} // closed by the last
	offered, sent int
	next          uint64 // number of the first call after it
}

// finish is called by each shard when it has ended the segment.
func (g *segment) finish(offered, sent int, next uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.offered += offered
	g.sent += sent
	g.next = max(g.next, next)
	if g.left--; g.left == 0 {
		close(g.ended)
	}
}

// workers returns how many workers of a closed loop have started after elapsed ns, of those that belong to shard k of
// n.
func (g *segment) workers(elapsed int64, k, n int) int {
	due := g.closed.Workers
	if g.closed.Ramp > 0 && elapsed < int64(g.closed.Ramp) {
		due = 1 + int(float64(elapsed)/float64(g.closed.Ramp)*float64(g.closed.Workers))
	}
	return (min(due, g.closed.Workers) + n - 1 - k) / n
}

// wallNow returns CLOCK_REALTIME in ns.
func wallNow() int64 {
	return time.Now().UnixNano() //nolint:forbidigo // the kernel's receive timestamps are on this clock
}
