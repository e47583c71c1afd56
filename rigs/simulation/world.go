// Package simulation holds servers in virtual time, with known capacities and known ways to break, behind
// capacity.Stream.
package simulation

import (
	"context"
	"fmt"
	"sort"
	"time"

	"tare/internal/capacity"
	"tare/internal/load"
)

// A World is one client with its pool of connections, one server, and the virtual time that both live in.
type World struct {
	server   server
	timeout  time.Duration
	maxConns int
	maxRate  float64
	callers  int // that take turns; 0: one
	// sendGap is the least time between two sends: the generator's own limit. 0: none.
	sendGap time.Duration
	// generator and host are the processors of the generator and of the server; nil: they never stand still.
	generator, host *stolen

	now      time.Duration
	events   agenda
	jobs     []*job
	expired  int // jobs before this one have ended or run into their timeout
	pool     pool
	lastSend time.Duration
	// peak is the highest rate that was ever offered.
	peak   float64
	counts load.Progress
	// ended, when set, is told of each call that ends, and calls are forgotten then.
	ended func(j *job)
	spare []job
}

var _ capacity.Stream = (*World)(nil)

// job is one call on its way.
type job struct {
	load.Call
	conn   *conn
	client bool // part of the stream, not a fresh call
	caller int  // whose turn it is
	// at is the queue that it waits in, inside that it has one of a limited number of places; both are the server's.
	at     *station
	inside bool
}

// Now implements capacity.Stream.
func (w *World) Now() time.Duration { return w.now }

// Peak is the highest rate that was offered so far, in 1/s.
func (w *World) Peak() float64 { return w.peak }

// Offer implements capacity.Stream.
func (w *World) Offer(ctx context.Context, p load.Process, poll time.Duration, stop func() bool) (load.Segment, error) {
	if w.maxRate > 0 && p.Peak() > w.maxRate*(1+1e-9) {
		return load.Segment{}, fmt.Errorf("offer %v/s: above the maximum of %v/s", p.Peak(), w.maxRate)
	}
	w.peak = max(w.peak, p.Peak())
	seg := load.Segment{Start: w.now}
	end, first, due := w.now+p.Length(), len(w.jobs), w.counts.Due
	_, alone := p.(load.Alone)
	arrivals := p.Start()
	at, more := arrivals.Next()
	for tick := w.now + poll; w.now < end; {
		if err := ctx.Err(); err != nil {
			seg.End = w.now
			return seg, err
		}
		for ; more && seg.Start+at <= min(tick, end); at, more = arrivals.Next() {
			w.advance(seg.Start + at)
			w.arrive(alone)
		}
		w.advance(min(tick, end))
		if w.now == tick {
			tick += poll
			if stop != nil && stop() {
				seg.Stopped = true
				break
			}
		}
	}
	seg.End, seg.Offered = w.now, int(w.counts.Due-due)
	seg.Effort = w.effort(seg.End - seg.Start)
	for _, j := range w.jobs[first:] {
		if j.Sent != 0 && j.Sent <= w.now {
			seg.Sent++
		}
	}
	return seg, nil
}

// Wait implements capacity.Stream.
func (w *World) Wait(ctx context.Context, d, poll time.Duration, done func() bool) error {
	for end := w.now + d; w.now < end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		w.advance(min(w.now+poll, end))
		if done != nil && done() {
			break
		}
	}
	return ctx.Err()
}

// Fresh implements capacity.Stream.
func (w *World) Fresh(ctx context.Context, _ int, _ uint64, timeout time.Duration) load.Call {
	j := &job{Call: load.Call{Intended: w.now}}
	c := &conn{owner: j}
	w.server.dial(w, c)
	for end := w.now + timeout; j.Done == 0 && ctx.Err() == nil; {
		next, ok := w.events.next()
		if !ok || next > end {
			w.advance(end)
			w.end(j, load.Timeout, 0)
			break
		}
		w.advance(next)
	}
	if !c.closed {
		c.closed = true
		w.server.hangup(w, c)
	}
	return j.Call
}

// Progress implements capacity.Stream.
func (w *World) Progress() load.Progress {
	p := w.counts
	p.Now, p.Established, p.Connecting = w.now, w.pool.established, w.pool.connecting
	return p
}

// Calls implements capacity.Stream.
func (w *World) Calls(since time.Duration) []load.Call {
	i := sort.Search(len(w.jobs), func(i int) bool { return w.jobs[i].Intended >= since })
	calls := make([]load.Call, len(w.jobs)-i)
	for k, j := range w.jobs[i:] {
		calls[k] = j.Call
		if j.Sent > w.now { // the generator has not come to it yet
			calls[k].Sent = 0
		}
	}
	return calls
}

// DropIdle implements capacity.Stream.
func (w *World) DropIdle() {
	idle := w.pool.idle
	w.pool.idle = nil
	for _, c := range idle {
		w.drop(c)
	}
}

// Reset implements capacity.Stream.
func (w *World) Reset() {
	for _, j := range w.jobs[w.expired:] {
		if j.Done == 0 {
			w.end(j, load.ConnFailed, 0)
		}
	}
	w.DropIdle()
	for _, c := range w.pool.dialing() {
		w.drop(c)
	}
}

// advance lets time pass up to t.
func (w *World) advance(t time.Duration) {
	for {
		next, ok := w.events.next()
		expiry, waits := w.nextExpiry()
		switch {
		case waits && expiry <= t && (!ok || expiry < next):
			w.now = max(w.now, expiry)
			w.end(w.jobs[w.expired], load.Timeout, 0)
		case ok && next <= t:
			e := w.events.pop()
			w.now = max(w.now, e.at)
			w.happen(e)
		default:
			w.now = max(w.now, t)
			return
		}
	}
}

func (w *World) nextExpiry() (time.Duration, bool) {
	for ; w.expired < len(w.jobs); w.expired++ {
		if j := w.jobs[w.expired]; j.Done == 0 {
			return j.Intended + w.timeout, true
		}
	}
	return 0, false
}

func (w *World) happen(e event) {
	switch {
	case e.do != nil:
		e.do()
		return
	case e.worker != nil:
		if e.turn == e.worker.turn {
			e.worker.complete(w)
		}
		return
	}
	w.finish(e.job, e.outcome, e.status, e.hangup)
}

// after calls do at t.
func (w *World) after(t time.Duration, do func()) { w.events.push(event{at: max(t, w.now), do: do}) }

// reply ends j at t; with hangup the server closes the connection behind it.
func (w *World) reply(j *job, t time.Duration, o load.Outcome, status uint16, hangup bool) {
	w.events.push(event{at: w.host.resume(max(t, w.now)), job: j, outcome: o, status: status, hangup: hangup})
}

func (w *World) arrive(alone bool) {
	// A real clock never reads zero twice: instants of zero mean "never".
	if len(w.spare) == 0 {
		w.spare = make([]job, 128)
	}
	j := &w.spare[0]
	w.spare = w.spare[1:]
	j.Intended, j.client = w.now, true
	if w.callers > 1 && !alone {
		j.caller = int(w.counts.Due % uint64(w.callers))
	}
	w.forget()
	w.jobs = append(w.jobs, j)
	w.counts.Due++
	w.counts.Waiting++
	w.pool.want(w, j)
}

// forget drops the calls that have ended, where nobody will ask for them.
func (w *World) forget() {
	if w.ended != nil && w.expired > 1024 && 2*w.expired > len(w.jobs) {
		w.jobs = w.jobs[:copy(w.jobs, w.jobs[w.expired:])]
		w.expired = 0
	}
}

// send puts j on c.
func (w *World) send(j *job, c *conn) {
	j.conn, c.job = c, j
	j.Conn, j.Ready = c.number, max(w.now, 1)
	at := w.now
	if w.sendGap > 0 && j.client {
		at = max(at, w.lastSend+w.sendGap)
		w.lastSend = at
	}
	if at = w.generator.resume(at); at > w.now {
		w.after(at, func() { w.transmit(j, c) })
		return
	}
	w.transmit(j, c)
}

func (w *World) transmit(j *job, c *conn) {
	if j.Done != 0 {
		return
	}
	j.Sent = max(w.now, 1)
	if j.client {
		w.counts.Sent++
		w.counts.Waiting--
		w.counts.InFlight++
	}
	w.server.request(w, j, c)
}

// finish ends j with the server's answer.
func (w *World) finish(j *job, o load.Outcome, status uint16, hangup bool) {
	if j.Done != 0 {
		return
	}
	c := j.conn
	j.FirstByte = w.now
	j.conn = nil
	w.end(j, o, status)
	if c == nil || c.closed {
		return
	}
	c.job = nil
	switch {
	case hangup:
		w.drop(c)
	case j.client:
		w.pool.free(w, c)
	}
}

// end records that j is over. A connection that it still holds is lost.
func (w *World) end(j *job, o load.Outcome, status uint16) {
	j.Done, j.Outcome, j.Status = max(w.now, 1), o, status
	if j.client {
		w.counts.Done[o]++
		if j.Sent == 0 {
			w.counts.Waiting--
			if o == load.Timeout {
				w.counts.UnsentTimeouts++
			}
		} else {
			w.counts.InFlight--
		}
	}
	if c := j.conn; c != nil {
		c.job = nil
		w.drop(c)
	}
	if w.ended != nil {
		w.ended(j)
	}
}
