package simulation

import (
	"time"

	"tare/internal/load"
)

// backlog is a server that takes at most slots connections at a time. The kernel makes up to backlog + 1 more, which
// look established to the client; beyond that it drops the attempts, and clients try again after 1, 2, 4 … seconds. A
// connection keeps its slot until the client closes it.
type backlog struct {
	serve          rule
	slots, backlog int
	taken          int
	queue          []*conn
}

func (s *backlog) dial(w *World, c *conn) {
	switch {
	case c.closed:
	case s.taken < s.slots:
		s.taken++
		c.accepted = true
		w.connected(c, w.now+roundTrip)
	case len(s.queue) <= s.backlog:
		s.queue = append(s.queue, c)
		w.connected(c, w.now+roundTrip)
	default:
		c.retry = max(time.Second, 2*c.retry)
		w.after(w.now+c.retry, func() { s.dial(w, c) })
	}
}

func (s *backlog) request(w *World, j *job, c *conn) {
	if !c.accepted {
		c.pending = j
		return
	}
	a := s.serve.decide(seconds(w.now))
	w.reply(j, instant(a.done), a.outcome, a.status, false)
}

func (s *backlog) hangup(w *World, c *conn) {
	if c.accepted {
		c.accepted = false
		s.taken--
		s.accept(w)
	}
}

// accept takes waiting connections. One that its client has closed meanwhile still costs the work for its request.
func (s *backlog) accept(w *World) {
	for s.taken < s.slots && len(s.queue) > 0 {
		c := s.queue[0]
		s.queue = s.queue[1:]
		s.taken++
		if c.closed {
			a := s.serve.decide(seconds(w.now))
			w.after(instant(a.done), func() { s.taken--; s.accept(w) })
			continue
		}
		c.accepted = true
		if j := c.pending; j != nil {
			c.pending = nil
			a := s.serve.decide(seconds(w.now))
			w.reply(j, instant(a.done), load.OK, 200, false)
		}
	}
}
