//go:build amd64 || arm64 || riscv64

package load

// liveCall is a call that has not ended.
type liveCall struct {
	i                            uint64
	intended, ready, sent, first int64
	conn                         *conn
	entry                        *entry
	older, newer                 *liveCall // all calls, by intended instant
	next                         *liveCall // those that wait for a connection of this key; or the free list
	segment                      uint32
	worker                       uint32 // the closed loop whose worker made it, 0: none
	key                          int32
	op                           uint8
	cause                        Cause
	held                         bool   // by the rate limit
	in, out                      uint32 // bytes of the answer so far, and of the request as far as it was sent
}

// record returns the record of the ended call.
func (c *liveCall) record(o Outcome, done int64) Call {
	r := Call{
		Operation: c.op, Intended: ns(c.intended), Ready: ns(c.ready), Sent: ns(c.sent), FirstByte: ns(c.first),
		Done:    ns(done),
		Outcome: o, Cause: c.cause,
	}
	if c.conn != nil {
		r.Conn = c.conn.id
	}
	r.forgetLate()
	if o == Timeout && r.Cause == 0 {
		r.Cause = r.Phase()
	}
	return r
}

// callList holds the calls that have not ended. Timeouts are equal and count from the intended instant, so the oldest
// expires first.
type callList struct{ oldest, newest *liveCall }

func (l *callList) add(c *liveCall) {
	c.older = l.newest
	if l.newest != nil {
		l.newest.newer = c
	} else {
		l.oldest = c
	}
	l.newest = c
}

func (l *callList) remove(c *liveCall) {
	if c.older != nil {
		c.older.newer = c.newer
	} else {
		l.oldest = c.newer
	}
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		l.newest = c.older
	}
}

// keyPool holds an identity's idle connections, the last used on top, and the calls that wait for one.
type keyPool struct {
	callQueue
	idle          *conn
	dialing       int
	dialRequested bool // it is in pool.dialRequests
}

// callQueue holds waiting calls, first in, first out.
type callQueue struct {
	first, last *liveCall
	waiting     int
}

func (q *callQueue) push(c *liveCall) {
	if q.last == nil {
		q.first = c
	} else {
		q.last.next = c
	}
	q.last = c
	q.waiting++
}

// remove removes a call. It is the first, unless calls came due out of order.
func (q *callQueue) remove(c *liveCall) {
	q.waiting--
	next := c.next
	c.next = nil
	if q.first == c {
		if q.first = next; next == nil {
			q.last = nil
		}
		return
	}
	for p := q.first; p != nil; p = p.next {
		if p.next == c {
			if p.next = next; next == nil {
				q.last = p
			}
			return
		}
	}
}

// pool is a shard's share of the connections.
type pool struct {
	conns        []*conn // by slot
	vacant       []int32
	size         int // connections in any state
	most         int
	keys         []keyPool
	idle         connList // the longest unused first
	dialing      connList // the oldest first
	dialRequests ring     // keys with more waiting calls than dials in progress
	nextDial     int64
	dialGap      int64
	replaceable  int  // connections that the target closed after an answer: each may be replaced immediately
	stamps       bool // sockets carry receive timestamps
	sampling     bool // some of them do
	made         uint32
	shards       uint32
	shard        uint32
}

func (p *pool) init(c Config, k int) {
	p.most = (c.MaxConns + c.Shards - 1 - k) / c.Shards
	p.keys = make([]keyPool, c.at.keys)
	p.dialRequests.slots = make([]int32, c.at.keys)
	p.dialGap = c.growGap() * int64(c.Shards)
	p.shards, p.shard = uint32(c.Shards), uint32(k)
}

// hasRoom reports whether one more connection is possible, perhaps in place of an idle one.
func (p *pool) hasRoom() bool { return p.size < p.most || p.idle.first != nil }

// queue makes a call wait for the first free connection: one that becomes idle, or a new one.
func (p *pool) queue(k *keyPool, c *liveCall) {
	k.push(c)
	p.requestDial(k, c.key)
}

// requestDial queues a key for a dial if it has more waiting calls than dials in progress.
func (p *pool) requestDial(k *keyPool, key int32) {
	if !k.dialRequested && k.waiting > k.dialing {
		k.dialRequested = true
		p.dialRequests.push(key)
	}
}

// pendingCause returns the cause of a timeout of c, which was never sent, if it had waited for a target that accepts no
// connections: a dial for its identity was pending, or in the TLS handshake, for more than half of its time. Otherwise
// it returns 0.
func (p *pool) pendingCause(c *liveCall, timeout int64) Cause {
	if p.keys[c.key].dialing == 0 {
		return 0
	}
	d := p.dialing.first
	for d.key != c.key {
		d = d.after
	}
	switch {
	case d.since > c.intended+timeout/2:
		return 0
	case d.isShaking():
		return CauseHandshaking
	}
	return CauseDialing
}

// takeIdle returns the most recently used connection: the others may be closed in time.
func (p *pool) takeIdle(k *keyPool) *conn {
	c := k.idle
	p.removeIdle(c)
	return c
}

// makeIdle makes c idle.
func (p *pool) makeIdle(c *conn) {
	k := &p.keys[c.key]
	c.state = idle
	c.under = k.idle
	if k.idle != nil {
		k.idle.over = c
	}
	k.idle = c
	p.idle.add(c)
}

// removeIdle removes c from the idle connections.
func (p *pool) removeIdle(c *conn) {
	k := &p.keys[c.key]
	if c.over != nil {
		c.over.under = c.under
	} else {
		k.idle = c.under
	}
	if c.under != nil {
		c.under.over = c.over
	}
	c.over, c.under = nil, nil
	p.idle.remove(c)
}

// connList is a list of connections in the order in which they came.
type connList struct{ first, last *conn }

func (l *connList) add(c *conn) {
	c.before, c.after = l.last, nil
	if l.last != nil {
		l.last.after = c
	} else {
		l.first = c
	}
	l.last = c
}

func (l *connList) remove(c *conn) {
	if c.before != nil {
		c.before.after = c.after
	} else {
		l.first = c.after
	}
	if c.after != nil {
		c.after.before = c.before
	} else {
		l.last = c.before
	}
	c.before, c.after = nil, nil
}

// ring is a queue of keys, each at most once in it.
type ring struct {
	slots   []int32
	head, n int
}

func (r *ring) push(k int32) {
	r.slots[(r.head+r.n)%len(r.slots)] = k
	r.n++
}

func (r *ring) pop() int32 {
	k := r.slots[r.head]
	r.head = (r.head + 1) % len(r.slots)
	r.n--
	return k
}
