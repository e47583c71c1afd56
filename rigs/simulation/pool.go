package simulation

import (
	"cmp"
	"slices"
	"syscall"
	"time"

	"tare/internal/load"
)

// growth is the least time between two dials of the pool.
const growth = time.Millisecond

// conn is one connection, as client and server see it.
type conn struct {
	number      uint32
	established bool
	dialing     bool
	closed      bool // by the client or the server
	job         *job // what the client waits for on it
	owner       *job // the fresh call that it was made for
	// accepted and pending are the server's: whether it has taken the connection, and a request that waits for that.
	accepted bool
	pending  *job
	retry    time.Duration // the next pause between two attempts to connect
	// serving is the last call that came on it, counted that it is one of a limited number.
	serving *job
	counted bool
}

// pool is the client's: it grows only when no connection is idle, and takes the one used last first.
type pool struct {
	idle                    []*conn
	open                    map[*conn]struct{}
	waiting                 []*job
	number                  uint32
	established, connecting int
	lastDial                time.Duration
	growing                 bool
}

// want gives j a connection, now or later.
func (p *pool) want(w *World, j *job) {
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		w.send(j, c)
		return
	}
	p.waiting = append(p.waiting, j)
	p.grow(w)
}

// free hands an idle connection to the longest waiting job.
func (p *pool) free(w *World, c *conn) {
	if j := p.head(); j != nil {
		p.waiting = p.waiting[1:]
		w.send(j, c)
		return
	}
	p.idle = append(p.idle, c)
}

// head is the first job that still waits.
func (p *pool) head() *job {
	for len(p.waiting) > 0 && p.waiting[0].Done != 0 {
		p.waiting = p.waiting[1:]
	}
	if len(p.waiting) == 0 {
		return nil
	}
	return p.waiting[0]
}

func (p *pool) grow(w *World) {
	if p.growing || p.head() == nil || len(p.waiting) <= p.connecting || len(p.open) >= w.maxConns {
		return
	}
	p.growing = true
	w.after(p.lastDial+growth, func() {
		p.growing = false
		if p.head() == nil || len(p.waiting) <= p.connecting || len(p.open) >= w.maxConns {
			return
		}
		p.lastDial = w.now
		p.number++
		c := &conn{number: p.number, dialing: true}
		if p.open == nil {
			p.open = map[*conn]struct{}{}
		}
		p.open[c] = struct{}{}
		p.connecting++
		w.server.dial(w, c)
		p.grow(w)
	})
}

// dialing returns the connections that are being made.
func (p *pool) dialing() []*conn {
	var d []*conn
	for c := range p.open {
		if c.dialing {
			d = append(d, c)
		}
	}
	slices.SortFunc(d, func(a, b *conn) int { return cmp.Compare(a.number, b.number) })
	return d
}

// connected tells the client at t that c stands.
func (w *World) connected(c *conn, t time.Duration) {
	w.after(t, func() {
		if c.closed {
			return
		}
		c.established = true
		if c.owner != nil {
			w.send(c.owner, c)
			return
		}
		c.dialing = false
		w.pool.connecting--
		w.pool.established++
		w.pool.free(w, c)
	})
}

// refused tells the client at t that c cannot be made: the longest waiting job fails.
func (w *World) refused(c *conn, t time.Duration, errno uint16) {
	w.after(t, func() {
		if c.closed {
			return
		}
		j := c.owner
		if j == nil {
			if j = w.pool.head(); j != nil {
				w.pool.waiting = w.pool.waiting[1:]
			}
		}
		w.drop(c)
		if j != nil {
			j.Errno = errno
			w.end(j, load.ConnFailed, 0)
		}
	})
}

// drop closes c from either side and takes it out of the pool.
func (w *World) drop(c *conn) {
	if c.closed {
		return
	}
	c.closed = true
	if _, ok := w.pool.open[c]; ok {
		delete(w.pool.open, c)
		if c.dialing {
			w.pool.connecting--
		} else {
			w.pool.established--
		}
	}
	w.server.hangup(w, c)
	w.pool.grow(w)
}

// sever closes all connections of the pool from the server's side: calls on them fail.
func (w *World) sever() {
	all := make([]*conn, 0, len(w.pool.open))
	for c := range w.pool.open {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *conn) int { return cmp.Compare(a.number, b.number) })
	w.pool.idle = nil
	for _, c := range all {
		if j := c.job; j != nil {
			j.Errno = uint16(syscall.ECONNRESET)
			w.end(j, load.ConnFailed, 0)
			continue
		}
		w.drop(c)
	}
}
