//go:build amd64 || arm64 || riscv64

package load

// launchMost bounds what is sent in one go before answers are looked for.
const launchMost = 64

func (s *shard) begin(g *segment) {
	s.sent = 0
	s.source.begin(g)
	// Spinning with a real-time priority would keep everybody else from the processor.
	s.preferred = g.process != nil && s.cfg.Spin == 0 && !s.first && prefer(true) == nil
	// Where answers count from the instant at which they are read, a sample of the connections tells how long they waited for that.
	stamps := g.process != nil && !s.cfg.Precise
	s.setStamps(stamps, !stamps)
}

// end stops the segment if it is still running. What had come due by now belongs to it.
func (s *shard) end(g *segment) {
	if s.source.seg != g {
		return
	}
	s.now = s.clock.now()
	for s.source.isOpen() && s.startNext() {
	}
	s.settle()
}

// settle reports the segment's sums.
func (s *shard) settle() {
	g, offered, next := s.source.stop()
	if s.preferred {
		s.preferred = prefer(false) != nil
	}
	s.board.publish(&s.tally)
	g.finish(offered, s.sent, next)
}

// launch starts the calls that are due.
func (s *shard) launch() {
	s.source.hire(s.now)
	for n := 0; n < launchMost && s.startNext(); n++ {
	}
	s.resume()
	if s.source.over(s.now) {
		s.settle()
	}
}

// holdsBack counts c, for which conn is free, as sent, or queues it where the limit says that it has to wait. That is no waiting for a connection.
func (s *shard) holdsBack(conn *conn, c *liveCall) bool {
	if c.ready == 0 {
		c.ready = max(c.intended, conn.since)
	}
	if s.sends.limit == nil || s.sends.take(c.intended, s.clock.now()) == 0 {
		return false
	}
	c.held = true
	s.held.push(c)
	if c.entry != nil {
		c.entry.held(c.intended, c.ready)
	}
	s.tally[nWaiting]++
	s.tally[nHeld]++
	return true
}

// resume sends what the limit does not hold back any longer.
func (s *shard) resume() {
	for n := 0; n < launchMost && s.held.first != nil; n++ {
		c := s.held.first
		if s.sends.wait(c.intended, s.now, 0) > 0 {
			return
		}
		s.unqueue(c)
		s.dispatch(c)
	}
}

// unqueue takes a call that waits out of its queue.
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

// nextCall makes the next call of the segment due; nil when it is not yet.
func (s *shard) nextCall() *liveCall {
	i, at, worker, ok := s.source.pop(s.now)
	if !ok {
		return nil
	}
	c := s.free
	if c == nil {
		c = new(liveCall)
	} else {
		s.free = c.next
	}
	op := s.mix.pick(i)
	*c = liveCall{i: i, intended: at, op: op, worker: worker, segment: s.source.seg.id}
	if n := s.cfg.Endpoint.Keys; n > 1 {
		c.key = int32(uint(s.cfg.Operations[op].Wire.ConnKey(i)) % uint(n))
	}
	s.calls.add(c)
	s.tally[nDue]++
	if s.cfg.KeepCalls {
		c.entry = s.ledger.add(at, op)
	}
	return c
}

// dispatch sends a call if a connection of its identity is free, and lets it wait for one otherwise.
func (s *shard) dispatch(c *liveCall) {
	k := &s.pool.keys[c.key]
	// With lazy reaping, what came unasked on an idle connection may not have been noticed yet.
	for k.idle != nil && unread(k.idle.fd) > 0 {
		s.discard(k.idle)
	}
	if k.idle == nil || c.intended+s.timeout <= s.now {
		// The gaps between dials count from when there was something to dial for: our own delays do not slow the growth.
		if s.pool.wishes.n == 0 {
			s.pool.nextDial = max(s.pool.nextDial, c.intended)
		}
		s.pool.queue(k, c)
		s.tally[nWaiting]++
		return
	}
	if !s.holdsBack(k.idle, c) {
		s.send(s.pool.take(k), c)
	}
}
