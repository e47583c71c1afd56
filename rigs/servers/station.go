package servers

import (
	"slices"
	"time"
)

// A station serves calls that wait in one queue, the oldest first.
type station struct {
	servers int
	// service draws how long a call is served; waiting is how many are queued behind it.
	service func(waiting int) time.Duration
	next    part // takes calls that have been served

	// room bounds the queue, 0: it has no bound. Calls that find it full go to refuse.
	room int
	// patience is how long calls wait before they go to refuse, 0: for ever.
	patience time.Duration
	// drop is the probability with which a call that finds so many waiting goes to refuse; nil: 0.
	drop   func(waiting int) float64
	refuse part
	// lifo is the length of the queue from which on the newest call is served first, 0: never.
	lifo int
	// diligent stations also serve calls whose clients have given up.
	diligent bool
	// grown is told how many wait whenever a call has joined them; may be nil.
	grown func(waiting int)

	waiting []*call
	busy    int
	halted  bool
}

// station returns the part that s is.
func (r *rig) station(s *station) part {
	if s.next == nil {
		s.next = serve
	}
	return func(c *call) {
		n := len(s.waiting)
		if s.room > 0 && n >= s.room || s.drop != nil && r.rng.Float64() < s.drop(n) {
			s.refuse(c)
			return
		}
		s.waiting = append(s.waiting, c)
		if s.patience > 0 {
			r.after(s.patience, func() { s.expire(c) })
		}
		s.begin(r)
		if s.grown != nil {
			s.grown(len(s.waiting))
		}
	}
}

// expire sends a call that still waits away.
func (s *station) expire(c *call) {
	if i := slices.Index(s.waiting, c); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		s.refuse(c)
	}
}

// begin serves as many calls as there are servers.
func (s *station) begin(r *rig) {
	for s.busy < s.servers && len(s.waiting) > 0 && !s.halted {
		c := s.take()
		if c.answered || c.gone && !s.diligent {
			continue
		}
		s.busy++
		r.after(s.service(len(s.waiting)), func() {
			s.busy--
			if !s.halted {
				s.next(c)
			}
			s.begin(r)
		})
	}
}

// take removes the call that is served next from the queue.
func (s *station) take() *call {
	i := 0
	if s.lifo > 0 && len(s.waiting) > s.lifo {
		i = len(s.waiting) - 1
	}
	c := s.waiting[i]
	if i == 0 {
		s.waiting[0], s.waiting = nil, s.waiting[1:]
	} else {
		s.waiting = s.waiting[:i]
	}
	return c
}

// constant is a service that always takes as long.
func constant(d time.Duration) func(int) time.Duration {
	return func(int) time.Duration { return d }
}
