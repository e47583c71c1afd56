package load

import (
	"context"
	"errors"
	"io"
)

// HTTP/1.1 on engine std uses the parser of engine fast, so that both treat the same answer alike, and no layer between
// a call and its connection: net/http retries requests, and logs the bytes of unsolicited answers.

// exchange performs an operation over HTTP.
func (e *std) exchange(ctx context.Context, w *worker, c *goCall, op *Operation) ending {
	w.request = op.Wire.Render(shed(w.request), c.i)
	if len(w.request) == 0 {
		return ending{outcome: Failed, cause: CauseRequest, at: e.clock.now()}
	}
	if n := e.cfg.Endpoint.Keys; n > 1 {
		c.key = int(uint(op.Wire.ConnKey(c.i)) % uint(n))
	}
	if e.modern != nil && !e.modern.refused[c.key].Load() {
		return e.modern.exchange(ctx, w, c, op)
	}
	return e.overLink(ctx, w, c)
}

// overLink performs the request w.request of c over HTTP/1.1.
func (e *std) overLink(ctx context.Context, w *worker, c *goCall) ending {
	for {
		l, err := e.obtain(ctx, c.key)
		if err != nil {
			return e.failed(c, err)
		}
		if err := e.turn(ctx, c, l.since); err != nil {
			e.giveBack(l)
			return e.failed(c, err)
		}
		switch e.assign(l, c, w.request) {
		case assigned:
			n, err := l.conn.Write(w.request)
			return e.outcome(ctx, l, c, n, err)
		case stillborn:
			return e.failed(c, l.lost)
		case overtaken:
			return ending{}
		case stale:
		}
	}
}

// assignment is the result of assigning a call to a link.
type assignment uint8

const (
	assigned  assignment = iota
	stillborn            // the target closed the link before it was used
	overtaken            // the call has ended meanwhile
	stale                // the idle link is closed: the call needs another
)

// atOnce is the length up to which a request always fits into an empty socket buffer: writing it does not block, and an
// answer that arrives before the write returns does not count against the link.
const atOnce = 4 << 10

// busy reports whether a request that may block is still being written.
func (l *link) busy() bool { return l.writes && l.asked > atOnce }

// assign assigns c to l.
func (e *std) assign(l *link, c *goCall, request []byte) assignment {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case c.ended:
		e.rest(l)
		return overtaken
	case l.gone && (l.used || l.lost == nil):
		return stale
	case !l.gone && l.used && unreadOn(l.raw.Conn) > 0: // its reader has yet to notice unsolicited bytes
		e.drop(l)
		return stale
	}
	e.markSent(c, l.raw.id, l.since)
	if l.gone {
		return stillborn
	}
	l.call, l.asked, l.writes, l.used = c, len(request), true, true
	c.link, c.answer = l, make(chan ending, 1)
	l.parser.begin(request[0] == 'H')
	return assigned
}

// outcome waits for the end of c on l; n bytes of its request were written, with err.
func (e *std) outcome(ctx context.Context, l *link, c *goCall, n int, err error) ending {
	e.mu.Lock()
	c.out = uint64(n)
	mine := l.call == c // otherwise the link may carry another call by now
	if mine {
		l.writes = false
	}
	cut := err != nil && mine
	end := l.end
	if cut || mine && end != nil {
		l.call, c.link = nil, nil
		e.drop(l)
	}
	ended := c.ended
	e.mu.Unlock()
	switch {
	case ended:
		return ending{}
	case cut:
		return e.failed(c, err)
	case mine && end != nil:
		return *end
	}
	select {
	case end := <-c.answer:
		return end
	case <-ctx.Done():
		return e.failed(c, ctx.Err()) // it has ended, and its link with it; or the engine closes
	}
}

// failed returns how a call ends by an error of its connection.
func (e *std) failed(c *goCall, err error) ending {
	at := e.clock.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	o, code, why := classify(err, c.rec.Sent != 0, c.rec.FirstByte != 0)
	return ending{o, code, why, at}
}

// readLink reads all that arrives on l, until its end.
func (e *std) readLink(l *link) {
	b := make([]byte, 16<<10)
	for {
		n, err := l.conn.Read(b)
		if !e.digest(l, b[:n], err) {
			return
		}
	}
}

// digest passes what arrived to the call on l and reports whether the link continues.
func (e *std) digest(l *link, b []byte, err error) bool {
	at := e.clock.now()
	c, early := e.arrived(l, len(b), at, err)
	if c == nil {
		return false
	}
	if early {
		return e.release(l, c, ending{outcome: Failed, cause: CauseUnasked, at: at}, false)
	}
	done, rest, bad := l.parser.feed(b, &l.known)
	status := uint16(0)
	if l.parser.state != inHeader {
		status = uint16(l.parser.status)
	}
	switch {
	case bad != nil:
		return e.release(l, c, ending{Failed, status, parseCause(bad), at}, false)
	case done || (errors.Is(err, io.EOF) && l.parser.eof()):
		return e.release(l, c, e.judge(l, c, at), done && err == nil && len(rest) == 0 && !l.parser.close)
	case err != nil:
		end := e.failed(c, err)
		if end.outcome == Failed {
			end.code = status
		}
		return !e.leave(l, c, end, err) && e.release(l, c, end, false)
	}
	return true
}

// leave lets the writer of the request decide how the call ends, and reports whether it does. Only one system call
// reports a reset, all others see a closed connection: if the writer saw it, it was a reset. It waits for a long
// request only if its writing must fail.
func (e *std) leave(l *link, c *goCall, end ending, err error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.call != c || !l.writes || !errors.Is(err, io.EOF) || l.busy() && !abortedOn(l.raw.Conn) {
		return false
	}
	l.end = &end
	return true
}

// arrived records the arrival of n bytes, or of the end, on l and returns the call that they belong to; without one it
// closes the link. early: they arrived before the request had, and are no answer to it.
func (e *std) arrived(l *link, n int, at int64, err error) (c *goCall, early bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c = l.call; c == nil {
		l.lost = err
		e.drop(l)
		return nil, false
	}
	c.in += uint64(n)
	if n > 0 && c.rec.FirstByte == 0 && !c.ended {
		c.rec.FirstByte = max(ns(at), c.rec.Sent)
		// TLS messages of its own, such as session tickets, may arrive at any time.
		early = e.cfg.Endpoint.TLS == nil && (at < int64(c.rec.Sent) || unacknowledgedOn(l.raw.Conn) >= l.asked)
	}
	return c, early
}

// judge returns how a complete answer ends its call.
func (e *std) judge(l *link, c *goCall, at int64) ending {
	op := &e.cfg.Operations[c.rec.Operation]
	end := ending{op.Wire.Check(c.i, l.parser.status, l.parser.whole), uint16(l.parser.status), 0, at}
	if !end.outcome.Good() {
		end.cause = op.explain(c.i, l.parser.status, l.parser.whole)
	}
	return end
}

// release removes the call from its link and reports whether the link continues.
func (e *std) release(l *link, c *goCall, end ending, reusable bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.call != c {
		return false // it was removed, and the link closed
	}
	l.call, c.link = nil, nil
	c.answer <- end
	if reusable && !l.busy() && !l.gone {
		e.rest(l)
		return true
	}
	e.drop(l)
	return false
}
