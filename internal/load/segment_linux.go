//go:build amd64 || arm64 || riscv64

package load

// maxLaunches bounds the sends in a row before answers are checked.
const maxLaunches = 64

func (s *shard) begin(g *segment) {
	s.sent = 0
	s.source.begin(g)
	// Spinning with a real-time priority would block every other thread on the processor.
	s.hasPriority = g.process != nil && s.cfg.Spin == 0 && !s.keepsPriority && setPriority(true) == nil
	// If answers count from when they are read, a sample of the connections shows how long they waited.
	stamps := g.process != nil && !s.cfg.Precise
	s.setStamps(stamps, !stamps)
}

// end stops the segment if it is still running. Calls that had come due by now belong to it.
func (s *shard) end(g *segment) {
	if s.source.seg != g {
		return
	}
	s.now = s.clock.now()
	for s.source.isOpen() && s.startNext() {
	}
	s.reportSegment()
}

// reportSegment reports the segment's sums.
func (s *shard) reportSegment() {
	g, offered, next := s.source.stop()
	if s.hasPriority {
		s.hasPriority = setPriority(false) != nil
	}
	s.board.publish(&s.tally)
	g.finish(offered, s.sent, next)
}

// launch starts the calls that are due.
func (s *shard) launch() {
	s.source.startWorkers(s.now)
	for n := 0; n < maxLaunches && s.startNext(); n++ {
	}
	s.resume()
	if s.source.hasEnded(s.now, int(s.tally[nWaiting]+s.tally[nInFlight])) {
		s.reportSegment()
	}
}

// delayedByLimit reports whether the rate limit delays c, for which conn is free. If so it queues c, which then does
// not wait for a connection; otherwise it counts c as sent.
func (s *shard) delayedByLimit(conn *conn, c *liveCall) bool {
	if c.ready == 0 {
		c.ready = max(c.intended, conn.since)
	}
	if s.sends.limit == nil || s.sends.admit(c.intended, s.clock.now()) == 0 {
		return false
	}
	c.held = true
	s.held.push(c)
	if c.entry != nil {
		s.ledger.held(c.entry, c.intended, c.ready)
	}
	s.tally[nWaiting]++
	s.tally[nHeld]++
	return true
}

// resume sends the calls that the rate limit no longer delays.
func (s *shard) resume() {
	for n := 0; n < maxLaunches && s.held.first != nil; n++ {
		c := s.held.first
		if s.sends.wait(c.intended, s.now, 0) > 0 {
			return
		}
		s.unqueue(c)
		s.dispatch(c)
	}
}

// unqueue removes a waiting call from its queue.
func (s *shard) unqueue(c *liveCall) {
	if c.held {
		s.held.remove(c)
	} else {
		s.pool.keys[c.key].remove(c)
	}
	c.held = false
	s.tally[nWaiting]--
}

// startNext starts the next call of the segment, if one is due.
func (s *shard) startNext() bool {
	c := s.nextCall()
	if c != nil {
		s.dispatch(c)
	}
	return c != nil
}

// nextCall returns the next due call of the segment; nil when none is due yet.
func (s *shard) nextCall() *liveCall {
	i, at, worker, ok := s.source.nextDue(s.now)
	if !ok {
		return nil
	}
	c := s.free
	if c == nil {
		c = new(liveCall)
	} else {
		s.free = c.next
	}
	op := s.cfg.at.pick(s.source.seg.arm, i)
	*c = liveCall{i: i, intended: at, op: op, worker: worker, segment: s.source.seg.id}
	c.key = int32(s.cfg.at.key(op, s.cfg.Operations[op].Wire, i))
	s.calls.add(c)
	s.tally[nDue]++
	if s.cfg.KeepCalls {
		c.entry = s.ledger.add(at, op)
	}
	return c
}

// dispatch sends a call if a connection of its identity is free, and otherwise makes it wait.
func (s *shard) dispatch(c *liveCall) {
	k := &s.pool.keys[c.key]
	// With lazy reaping, bytes on an idle connection may not have been noticed yet: unsolicited ones, or of TLS itself.
	for k.idle != nil && unread(k.idle.fd) > 0 {
		if k.idle.secure == nil {
			s.discard(k.idle)
		} else {
			s.read(k.idle, false)
		}
	}
	if k.idle == nil || c.intended+s.timeout <= s.now {
		// The intervals between dials count from when there was something to dial for, so that the shard's own delays do not
		// slow the growth.
		if s.pool.dialRequests.n == 0 {
			s.pool.nextDial = max(s.pool.nextDial, c.intended)
		}
		s.pool.queue(k, c)
		s.tally[nWaiting]++
		return
	}
	if !s.delayedByLimit(k.idle, c) {
		s.send(s.pool.takeIdle(k), c)
	}
}
