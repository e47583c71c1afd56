//go:build amd64 || arm64 || riscv64

package load

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// A lost connection is classified as follows. A reset or a broken pipe, whichever side noticed it first, is ConnFailed
// with its errno, even if the connection had been idle and the target may never have seen the request: timed calls are
// never retried. An orderly close before the response is complete is Failed, since the target chose it.

// prepare renders the request of c into s.out for immediate sending on conn. It returns false if the operation
// renders none, or it could not be encrypted: the call has then ended.
func (s *shard) prepare(conn *conn, c *liveCall) bool {
	s.out = s.cfg.Operations[c.op].Wire.Render(s.out[:0], c.i)
	if len(s.out) == 0 {
		c.cause, c.ready = CauseRequest, 0
		s.finish(c, Failed, 0, max(s.clock.now(), c.intended))
		return false
	}
	conn.parser.begin(s.out[0] == 'H')
	conn.requestLen = int32(len(s.out))
	if conn.secure != nil && !s.encrypt(conn, c) {
		return false
	}
	conn.state, conn.call, c.conn = busy, c, conn
	s.tally[nSent]++
	s.tally[nInFlight]++
	if s.source.seg != nil && c.segment == s.source.seg.id {
		s.sent++
	}
	c.sent = s.clock.now()
	return true
}

// send sends a call.
func (s *shard) send(conn *conn, c *liveCall) {
	if s.prepare(conn, c) {
		s.write(conn)
	} else {
		s.pool.makeIdle(conn)
	}
}

func (s *shard) write(conn *conn) {
	n, e := 0, unix.EAGAIN
	if len(conn.unsent) == 0 { // otherwise messages of TLS itself go first
		n, e = send(conn.fd, s.out)
	}
	s.recordWrite(conn, n, e)
}

// recordWrite records how much of s.out was sent on conn.
func (s *shard) recordWrite(conn *conn, n int, e syscall.Errno) {
	c := conn.call
	if c.entry != nil {
		s.ledger.sent(c.entry, c.intended, c.ready, c.sent, c.op, conn.id)
	}
	switch {
	case e == unix.EAGAIN:
		n = 0
	case e != 0:
		s.loseConn(conn, e)
		return
	}
	s.tally[nBytesOut] += uint64(n)
	c.out = uint32(n)
	if n < len(s.out) {
		conn.unsent = append(conn.unsent, s.out[n:]...)
	}
	if conn.secure != nil {
		c.out = conn.requestSent()
	}
}

// flush sends more of a request that did not fit.
func (s *shard) flush(c *conn) {
	for len(c.unsent) > 0 {
		n, e := send(c.fd, c.unsent)
		if e == unix.EAGAIN {
			return
		}
		if e != 0 {
			s.handleClose(c, e)
			return
		}
		s.tally[nBytesOut] += uint64(n)
		c.unsent = c.unsent[n:]
		switch {
		case c.secure == nil:
			c.call.out += uint32(n)
		case c.call != nil:
			c.call.out = c.requestSent()
		}
	}
	c.unsent = nil
}

// loseConn ends c, which the target reset with e or closed in good order (e is 0), and the call on it.
func (s *shard) loseConn(c *conn, e syscall.Errno) {
	why := CauseClosedWithin
	if c.call.first == 0 {
		why = CauseClosedEarly
	}
	if e != 0 {
		s.failCall(c, ConnFailed, uint16(e), why)
		return
	}
	s.failCall(c, Failed, c.status(), why)
}

// failCall ends the call on c with outcome o, and closes c.
func (s *shard) failCall(c *conn, o Outcome, code uint16, why Cause) {
	call := c.call
	call.cause = why
	s.drop(c)
	s.finish(call, o, code, max(s.clock.now(), call.sent))
}

// read reads what has arrived. ending: the peer has closed, or will have when everything is read.
func (s *shard) read(c *conn, ending bool) {
	for more := true; more; {
		n, at, e := s.recv(c)
		more = s.handleRead(c, n, at, e, ending)
	}
}

// handleRead handles the result of one read and reports whether there is more to read.
func (s *shard) handleRead(c *conn, n int, at int64, e syscall.Errno, ending bool) bool {
	switch {
	case e == unix.EAGAIN:
		return false
	case e == unix.EINTR:
		return true
	case e != 0 || n == 0:
		s.handleClose(c, e)
		return false
	}
	switch s.receive(c, s.in[:n], at, ending) {
	case stepWrite:
		s.write(c)
	case stepRead:
		// A short read has emptied the socket; an ending connection still has its end to report.
		return n == len(s.in) || ending
	case stepNone:
	}
	return false
}

// recv reads into s.in and returns when the bytes arrived, on the stream's clock. Unless all connections have
// timestamps, that is the instant of the read, and a timestamp only shows how much earlier the kernel had them.
func (s *shard) recv(c *conn) (n int, at int64, e syscall.Errno) {
	if !c.stamped {
		n, e = recv(c.fd, s.in)
		return n, s.clock.now(), e
	}
	n, at, e = s.stamp.recv(c.fd, s.in)
	now := s.clock.now()
	if at == 0 {
		return n, now, e
	}
	at = min(at-s.wall.ahead, now)
	if s.pool.stamps {
		return n, at, e
	}
	if c.call != nil && c.call.first == 0 {
		s.unread.add(now - at)
	}
	return n, now, e
}

// handleClose handles the end of c, which may complete its response.
func (s *shard) handleClose(c *conn, e syscall.Errno) {
	switch {
	case c.isShaking():
		c.secure.shaking.stop(endReason(e))
	case c.call == nil:
		s.discard(c)
	case e == 0 && !c.isCut() && c.parser.eof():
		s.complete(c, s.clock.now(), false)
	default:
		s.loseConn(c, e)
	}
}

// status returns the status of the response so far.
func (c *conn) status() uint16 {
	if c.parser.state == inHeader {
		return 0
	}
	return uint16(c.parser.status)
}

// nextStep says what a connection needs after bytes were read from it.
type nextStep uint8

const (
	stepNone  nextStep = iota // nothing
	stepRead                  // more of its response
	stepWrite                 // its next request, which s.out holds, must be written
)

// consume passes bytes of HTTP to the response that c is reading.
func (s *shard) consume(c *conn, b []byte, at int64, ending bool) nextStep {
	call := c.call
	if call == nil {
		s.discard(c) // unsolicited
		return stepNone
	}
	call.in += uint32(len(b))
	at = max(at, call.sent)
	if call.first == 0 {
		call.first = at
		if (c.probation > 0 || at-call.sent < soonestAnswer) && s.isUnsolicited(c) {
			s.failCall(c, Failed, 0, CauseUnasked)
			return stepNone
		}
	}
	done, rest, err := c.parser.feed(b, &s.template)
	if err != nil {
		s.failCall(c, Failed, c.status(), parseCause(err))
		return stepNone
	}
	if !done {
		return stepRead
	}
	reusable := len(rest) == 0 && len(c.unsent) == 0 && !c.parser.close && !ending
	return s.complete(c, at, reusable && (c.secure == nil || s.isDrained(c, len(b))))
}

// complete judges the response and frees the connection for the next call.
func (s *shard) complete(conn *conn, at int64, reusable bool) nextStep {
	c := conn.call
	at = max(at, c.sent)
	o, status := Timeout, conn.parser.status
	if at <= c.intended+s.timeout {
		op := &s.cfg.Operations[c.op]
		if o = op.Wire.Check(c.i, status, conn.parser.whole); !o.Good() {
			c.cause = explain(op, c.i, status, conn.parser.whole)
		}
	} else {
		at, status, reusable = max(c.intended+s.timeout, c.sent), 0, false
	}
	if !reusable {
		if o != Timeout {
			s.pool.replaceable = min(s.pool.replaceable+1, s.pool.most)
		}
		s.drop(conn)
		s.finish(c, o, uint16(status), at)
		return stepNone
	}
	s.tally[nInFlight]--
	conn.call, conn.since = nil, at
	s.finish(c, o, uint16(status), at)
	return s.serve(conn)
}

// An answer that left the target's kernel before the request had arrived there belongs to no request: the target sent
// more than one answer to an earlier request, or sent first. HTTP/1.1 has no other sign of that; without a check every
// later call on the connection would receive the answer to its predecessor. Such an answer arrives before any byte of
// the request is acknowledged, whatever the target's software does, since a segment acknowledges all that arrived
// before it. The check costs a system call: it is made for the first answers of every connection, and for those that
// arrive sooner than a target can answer. Together with a check for unread bytes before an idle connection is used,
// this misses one case: a late second answer on a connection that is never idle.
const (
	probation     = 4
	soonestAnswer = int64(30e3)
)

// isUnsolicited reports whether the answer on c arrived before its request had.
func (s *shard) isUnsolicited(c *conn) bool {
	if c.probation > 0 {
		c.probation--
	}
	return unacknowledged(c.fd) >= int(c.requestLen)-len(c.unsent)
}

// setStamps turns receive timestamps on or off: on all sockets, or on a sample of them.
func (s *shard) setStamps(all, some bool) {
	if s.pool.stamps == all && s.pool.sampling == some {
		return
	}
	s.pool.stamps, s.pool.sampling = all, some
	for _, c := range s.pool.conns {
		if c != nil {
			s.setStamp(c)
		}
	}
}

// sampleEvery is the sampling interval of connections: enough for a mean and a 99th percentile, at no noticeable cost.
const sampleEvery = 8

func (s *shard) setStamp(c *conn) {
	on := s.pool.stamps || s.pool.sampling && c.gen%sampleEvery == 0
	if c.stamped == on {
		return
	}
	value := 0
	if on {
		value = 1
	}
	if unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, value) == nil {
		c.stamped = on
	}
}

// wallClock holds how far CLOCK_REALTIME, the clock of the kernel's timestamps, is ahead of the stream's clock.
type wallClock struct {
	ahead int64
	read  int64 // when it was compared last
}

// wallGap is the interval at which it is updated, to follow the slewing of the time daemon.
const wallGap = int64(100e6)

func (w *wallClock) refresh(c streamClock) {
	now := c.now()
	if w.read != 0 && now-w.read < wallGap {
		return
	}
	w.read = now
	best := never
	for range 5 {
		before := c.now()
		wall := wallNow()
		after := c.now()
		if after-before < best {
			best, w.ahead = after-before, wall-(before+after)/2
		}
	}
}
