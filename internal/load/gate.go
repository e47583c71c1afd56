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
	wanted      int           // calls that wait for a connection
	dialing     int           // dials under way
	ended       chan struct{} // closed when one of them ends
	began, made int64         // when the last dial started, and when the last connection was established
}

// errUnwanted ends a dial that no call waits for any more.
var errUnwanted = errors.New("the call has found another connection")

// slowDial is how long calls wait for a dial before another starts beside it, as clients do: the first may have lost a
// packet.
const slowDial = 200 * time.Millisecond

// wait returns the time until the next dial may start, in ns: when no other is in progress and a new connection has had
// a growth gap of time to serve the waiting calls, or when the last dial takes too long.
func (g *gate) wait(now, gap int64) int64 {
	switch {
	case g.dialing > 0:
		return g.began + int64(slowDial) - now
	case g.made > 0:
		return g.made + gap - now
	}
	return 0
}

// pass waits until a dial may start.
func (m *modern) pass(ctx context.Context, g *gate) error {
	e := m.e
	for {
		e.mu.Lock()
		now := e.clock.now()
		wait, ended, wanted := g.wait(now, e.cfg.growGap()), g.ended, g.wanted > 0
		if wanted && wait <= 0 {
			g.dialing++
			g.began = now
		}
		e.mu.Unlock()
		if !wanted {
			return errUnwanted
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

// passed records that a dial has ended.
func (m *modern) passed(g *gate) {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	g.dialing--
	close(g.ended)
	g.ended = make(chan struct{})
}

// want records whether c waits for a connection.
func (m *modern) want(c *goCall, waits bool) {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	m.wants(c, waits)
}

func (m *modern) wants(c *goCall, waits bool) {
	if c.wanting == waits {
		return
	}
	if c.wanting = waits; waits {
		m.gates[c.key].wanted++
	} else {
		m.gates[c.key].wanted--
	}
}
