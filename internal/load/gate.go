package load

import (
	"context"
	"errors"
	"time"
)

// A gate serializes the dials of an identity. net/http dials for every call that finds no connection, though one
// connection serves all of them: whenever a target closes it, there would be as many handshakes as workers. The
// engine's lock guards the gate.
type gate struct {
	waiting     int           // calls that wait for a connection
	dialing     int           // dials under way
	ended       chan struct{} // closed when one of them ends
	began, made int64         // when the last dial started, and when the last connection was established
}

// errDialNotNeeded ends a dial that no call waits for any more.
var errDialNotNeeded = errors.New("the call has found another connection")

// slowDial is how long calls wait for a dial before another starts beside it, as clients do: the first may have lost a
// packet.
const slowDial = 200 * time.Millisecond

// delay returns the time until the next dial may start, in ns. It may start when no other is in progress and a new
// connection has had a growth gap of time to serve the waiting calls, or when the last dial takes too long.
func (g *gate) delay(now, gap int64) int64 {
	switch {
	case g.dialing > 0:
		return g.began + int64(slowDial) - now
	case g.made > 0:
		return g.made + gap - now
	}
	return 0
}

// awaitDial waits until a dial may start.
func (m *modern) awaitDial(ctx context.Context, g *gate) error {
	e := m.e
	for {
		e.mu.Lock()
		now := e.clock.now()
		wait, ended, wanted := g.delay(now, e.cfg.growGap()), g.ended, g.waiting > 0
		if wanted && wait <= 0 {
			g.dialing++
			g.began = now
		}
		e.mu.Unlock()
		if !wanted {
			return errDialNotNeeded
		}
		if wait <= 0 {
			return nil
		}
		t := time.NewTimer(ns(wait))
		select {
		case <-ctx.Done():
		case <-t.C:
		case <-ended:
		}
		t.Stop()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// endDial records that a dial has ended.
func (m *modern) endDial(g *gate) {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	g.dialing--
	close(g.ended)
	g.ended = make(chan struct{})
}

// setWaiting records whether c waits for a connection.
func (m *modern) setWaiting(c *goCall, waits bool) {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	m.setWaitingLocked(c, waits)
}

// setWaitingLocked is setWaiting for callers that hold the engine's lock.
func (m *modern) setWaitingLocked(c *goCall, waits bool) {
	if c.waitsForDial == waits {
		return
	}
	if c.waitsForDial = waits; waits {
		m.gates[c.key].waiting++
	} else {
		m.gates[c.key].waiting--
	}
}
