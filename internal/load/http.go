package load

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
)

// HTTP/1.1 on engine std uses the parser of engine fast, so that both treat the same answer alike, and no layer between
// a call and its connection: net/http retries requests, and logs the bytes of unsolicited answers.

// exchange performs an operation over HTTP.
func (e *std) exchange(ctx context.Context, w *worker, c *goCall, op *Operation) ending {
	w.request = op.Wire.Render(reset(w.request), c.i)
	if len(w.request) == 0 {
		return ending{outcome: Failed, cause: CauseRequest, at: e.clock.now()}
	}
	if e.modern != nil && !e.modern.refused[c.key].Load() {
		return e.modern.exchange(ctx, w, c, op)
	}
	return e.exchangeHTTP1(ctx, w, c)
}

// exchangeHTTP1 performs the request w.request of c over HTTP/1.1.
func (e *std) exchangeHTTP1(ctx context.Context, w *worker, c *goCall) ending {
	for {
		l, err := e.acquireLink(ctx, c.key)
		if err != nil {
			return e.failed(c, err)
		}
		if err := e.awaitRateLimit(ctx, c, l.since); err != nil {
			e.returnLink(l)
			return e.failed(c, err)
		}
		switch e.assign(l, c, w.request) {
		case assigned:
			n, err := l.conn.Write(w.request)
			return e.awaitEnding(ctx, l, c, n, err)
		case closedUnused:
			return e.failed(c, l.lost)
		case callEnded:
			return ending{}
		case linkClosed:
		}
	}
}

// assignment is the result of assigning a call to a link.
type assignment uint8

const (
	assigned     assignment = iota
	closedUnused            // the target closed the new link before it was used
	callEnded               // the call has ended meanwhile
	linkClosed              // the idle link is closed: the call needs another
)

// unblockedLen is the length up to which a request always fits into an empty socket buffer, so that writing it does not
// block. The link may be used again after an answer that arrives before such a write has returned.
const unblockedLen = 4 << 10

// isWriting reports whether a request that may block is still being written.
func (l *link) isWriting() bool { return l.writing && l.requestLen > unblockedLen }

// assign assigns c to l.
func (e *std) assign(l *link, c *goCall, request []byte) assignment {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case c.ended:
		e.makeAvailable(l)
		return callEnded
	case l.gone && (l.used || l.lost == nil):
		return linkClosed
	case !l.gone && l.used && unreadOn(l.raw.Conn) > 0: // its reader has yet to notice unsolicited bytes
		e.drop(l)
		return linkClosed
	}
	e.markSent(c, l.raw.id, l.since)
	if l.gone {
		return closedUnused
	}
	l.call, l.requestLen, l.writing, l.used = c, len(request), true, true
	c.link, c.answer = l, make(chan ending, 1)
	l.parser.begin(request[0] == 'H')
	return assigned
}

// awaitEnding returns how c ends on l, after n bytes of its request were written with error err.
func (e *std) awaitEnding(ctx context.Context, l *link, c *goCall, n int, err error) ending {
	e.mu.Lock()
	c.out = uint64(n)
	mine := l.call == c // otherwise the link may carry another call by now
	if mine {
		l.writing = false
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
		if !e.handleRead(l, b[:n], err) {
			return
		}
	}
}

// handleRead passes what arrived to the call on l and reports whether the link continues.
func (e *std) handleRead(l *link, b []byte, err error) bool {
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
		reusable := done && err == nil && len(rest) == 0 && !l.parser.close && l.endsHere()
		return e.release(l, c, e.judge(l, c, at), reusable)
	case err != nil:
		end := e.failed(c, err)
		if end.outcome == Failed {
			end.code = status
		}
		return !e.leaveToWriter(l, c, end, err) && e.release(l, c, end, false)
	}
	return true
}

// endsHere reports whether what has arrived on l goes on after an answer neither with more data nor with the end of the
// connection. TLS may hold both back, decrypted or not, where the socket does not show them.
func (l *link) endsHere() bool {
	if net.Conn(l.raw) == l.conn {
		return true
	}
	l.raw.arrivedOnly = true
	_, err := l.conn.Read(make([]byte, 1))
	l.raw.arrivedOnly = false
	return errors.Is(err, errNotArrived)
}

// leaveToWriter lets the writer of the request decide how the call ends, and reports whether it does. Only one system
// call reports a reset, all others see a closed connection: if the writer saw it, it was a reset. It waits for a long
// request only if its writing must fail.
func (e *std) leaveToWriter(l *link, c *goCall, end ending, err error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.call != c || !l.writing || !errors.Is(err, io.EOF) || l.isWriting() && !abortedOn(l.raw.Conn) {
		return false
	}
	l.end = &end
	return true
}

// arrived records that n bytes, or the end, arrived on l, and returns the call that they belong to; without a call it
// closes the link. early reports that they arrived before the request reached the target, so they do not answer it.
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
		early = e.cfg.at.endpoint(l.key).TLS == nil &&
			(at < int64(c.rec.Sent) || unacknowledgedOn(l.raw.Conn) >= l.requestLen)
	}
	return c, early
}

// judge returns how a complete answer ends its call.
func (e *std) judge(l *link, c *goCall, at int64) ending {
	op := &e.cfg.Operations[c.rec.Operation]
	end := ending{op.Wire.Check(c.i, l.parser.status, l.parser.whole), uint16(l.parser.status), 0, at}
	if !end.outcome.Good() {
		end.cause = explain(op, c.i, l.parser.status, l.parser.whole)
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
	if reusable && !l.isWriting() && !l.gone {
		e.makeAvailable(l)
		return true
	}
	e.drop(l)
	return false
}

// CallMark stands for the number of a call in rendered texts. It is as long as the number, and no escaping changes it.
const CallMark = "tareCallNumber00"

// A Template is a request with places for a call's number, so that all calls differ and have equal length.
type Template struct {
	bytes []byte
	holes []int // where a mark stands
}

// NewTemplate finds the marks in b, which must not be changed afterwards.
func NewTemplate(b []byte) *Template {
	t := &Template{bytes: b}
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte(CallMark))
		if i < 0 {
			return t
		}
		t.holes = append(t.holes, at+i)
		at += i + len(CallMark)
	}
}

// Fixed returns the bytes if there is no place for a number, so that all calls are equal.
func (t *Template) Fixed() (b []byte, ok bool) { return t.bytes, len(t.holes) == 0 }

// AppendTo appends the bytes with call i's number, 16 hexadecimal digits. It does not allocate if dst has room.
func (t *Template) AppendTo(dst []byte, i uint64) []byte {
	const digits = "0123456789abcdef"
	start := len(dst)
	dst = append(dst, t.bytes...)
	for _, at := range t.holes {
		hole := dst[start+at : start+at+len(CallMark)]
		for k, n := len(hole)-1, i; k >= 0; k, n = k-1, n>>4 {
			hole[k] = digits[n&15]
		}
	}
	return dst
}
