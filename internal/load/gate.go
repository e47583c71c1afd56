package load

import (
	"context"
	"errors"
	"time"
)

// A gate lets the dials of an identity through one after another. net/http dials for every call that finds no connection, though one connection
// will do for all of them: whenever a target says goodbye, that would be as many handshakes as there are workers. The engine's lock guards it.
type gate struct {
	wanted      int           // calls that wait for a connection
	dialing     int           // dials under way
	ended       chan struct{} // closed when one of them ends
	began, made int64         // when the last dial began, and when the last connection was made
}

// errUnwanted ends a dial that no call waits for any more.
var errUnwanted = errors.New("the call has found another connection")

// slowDial is how long calls wait for a dial before there is another one beside it, as any client would try whose target does not answer: it may
// be one that has lost a packet, and the target is there again.
const slowDial = 200 * time.Millisecond

// wait is how long until the next dial may begin, in ns: when no other is under way, and a connection that was just made has had a growth gap of time
// to serve those who wait; or when the last one began too long ago.
func (g *gate) wait(now, gap int64) int64 {
	switch {
	case g.dialing > 0:
		return g.began + int64(slowDial) - now
	case g.made > 0:
		return g.made + gap - now
	}
	return 0
}

// pass waits until a dial may begin.
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

// passed says that a dial has ended.
func (m *modern) passed(g *gate) {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	g.dialing--
	close(g.ended)
	g.ended = make(chan struct{})
}

// want notes whether c waits for a connection.
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
