package simulation

import (
	"syscall"
	"time"
)

// entrance is what a connection goes through.
type entrance struct {
	limit, limitPart int // connections at most; 0: no limit
	open             int
	handshake        float64 // seconds
	busy             float64 // until when the handshakes so far take
	accept           *acceptQueue
}

// acceptQueue is a limited number of slots, and the kernel's queue before them.
type acceptQueue struct {
	slots, backlog, part int
	taken                int
	queue                []*conn
	// waited are connections whose request has waited for a slot.
	waited map[*conn]struct{}
}

func (e *entrance) dial(s *composed, w *World, c *conn) {
	if c.closed {
		return
	}
	if e.limit > 0 && !c.counted {
		if e.open >= e.limit {
			s.refused[e.limitPart]++
			w.refused(c, w.now+roundTrip, uint16(syscall.ECONNREFUSED))
			return
		}
		e.open++
		c.counted = true
	}
	if a := e.accept; a != nil {
		switch {
		case a.taken < a.slots:
			a.taken++
			c.accepted = true
		case len(a.queue) <= a.backlog:
			a.queue = append(a.queue, c)
		default: // the kernel drops the attempt, and the client's tries again
			s.refused[a.part]++
			c.retry = max(time.Second, 2*c.retry)
			w.after(w.now+c.retry, func() { s.dial(w, c) })
			return
		}
	}
	at := seconds(w.now)
	if e.handshake > 0 {
		e.busy = max(e.busy, at) + e.handshake
		at = e.busy
	}
	w.connected(c, instant(at)+roundTrip)
}

func (e *entrance) hangup(s *composed, w *World, c *conn) {
	if c.counted {
		c.counted = false
		e.open--
	}
	a := e.accept
	if a == nil {
		return
	}
	if _, ok := a.waited[c]; ok && !c.accepted {
		s.refused[a.part]++ // its client gave up before it was accepted
	}
	delete(a.waited, c)
	if c.accepted {
		c.accepted = false
		a.taken--
		for a.taken < a.slots && len(a.queue) > 0 {
			a.next(s, w)
		}
	}
}

// next accepts the connection that has waited longest; those that their clients have closed are skipped.
func (a *acceptQueue) next(s *composed, w *World) {
	c := a.queue[0]
	a.queue = a.queue[1:]
	if c.closed {
		return
	}
	a.taken++
	c.accepted = true
	if j := c.pending; j != nil {
		c.pending = nil
		delete(a.waited, c)
		s.deliver(w, j)
	}
}
