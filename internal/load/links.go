package load

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// A link is an HTTP/1.1 connection of engine std. Its reader uses it alone between the request and the end of the
// answer; the engine's lock guards everything else.
type link struct {
	conn       net.Conn // plaintext as we see it
	raw        *countedConn
	key        int
	since      int64   // when it became free
	call       *goCall // the call that it carries
	requestLen int     // bytes of its request
	writing    bool    // they are still being written
	end        *ending // how the call ends unless its writer learns better
	gone       bool
	used       bool
	lost       error // why it is gone, if the target ended it
	parser     parser
	known      template
}

// A waiter is a call that waits for a link.
type waiter struct {
	key int
	got chan linkOrErr
}

type linkOrErr struct {
	link *link
	err  error
}

// links is the connection pool of engine std, guarded by the engine's lock.
type links struct {
	most    int // maximum of links and dials together
	size    int
	keys    []keyLinks
	waiters []*waiter // the oldest first
	all     map[*link]bool
	base    context.Context // of dials
	stop    context.CancelFunc
}

// keyLinks are the links of one identity.
type keyLinks struct {
	idle                 []*link // the last used on top
	waiting, dialing     int
	connecting, securing int // connections being established, for links or HTTP/2: before and in the TLS handshake
}

func (p *links) init(ctx context.Context, c Config) {
	p.most, p.keys, p.all = c.MaxConns, make([]keyLinks, c.at.keys), map[*link]bool{}
	p.restartDials(ctx)
}

// restartDials makes dials belong to ctx from now on, and cancels those in progress.
func (p *links) restartDials(ctx context.Context) {
	if p.stop != nil {
		p.stop()
	}
	p.base, p.stop = context.WithCancel(ctx)
}

// acquireLink returns a link for a call: an idle one, or else the first that becomes free or is established. It dials
// for none that has ended: after a Reset nobody would use the connection.
func (e *std) acquireLink(ctx context.Context, key int) (*link, error) {
	e.mu.Lock()
	if err := ctx.Err(); err != nil { // a call is cancelled under the lock
		e.mu.Unlock()
		return nil, err
	}
	k := &e.links.keys[key]
	if n := len(k.idle); n > 0 {
		l := k.idle[n-1]
		k.idle = k.idle[:n-1]
		e.mu.Unlock()
		return l, nil
	}
	h := &waiter{key: key, got: make(chan linkOrErr, 1)}
	e.links.waiters = append(e.links.waiters, h)
	k.waiting++
	e.dialFor(key)
	e.mu.Unlock()
	select {
	case f := <-h.got:
		return f.link, f.err
	case <-ctx.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.links.removeWaiter(h) {
		if f := <-h.got; f.link != nil {
			e.makeAvailable(f.link)
		}
	}
	return nil, ctx.Err()
}

// removeWaiter removes h. It reports false if h already has its link or error.
func (p *links) removeWaiter(h *waiter) bool {
	i := slices.Index(p.waiters, h)
	if i < 0 {
		return false
	}
	p.waiters = slices.Delete(p.waiters, i, i+1)
	p.keys[h.key].waiting--
	return true
}

// dismissWaiters tells all that wait that there is no link for them: their calls have been abandoned, and nobody dials
// for them any more.
func (p *links) dismissWaiters() {
	for len(p.waiters) > 0 {
		h := p.waiters[0]
		p.removeWaiter(h)
		h.got <- linkOrErr{err: context.Canceled}
	}
}

// serveWaiter gives f to the call of key that has waited longest. It reports false if none waits.
func (p *links) serveWaiter(key int, f linkOrErr) bool {
	if p.keys[key].waiting == 0 {
		return false
	}
	for _, h := range p.waiters {
		if h.key == key {
			p.removeWaiter(h)
			h.got <- f
			return true
		}
	}
	return false
}

// makeAvailable makes l available for the next call of its identity.
func (e *std) makeAvailable(l *link) {
	if l.gone {
		return
	}
	l.since = e.clock.now()
	if !e.links.serveWaiter(l.key, linkOrErr{link: l}) {
		k := &e.links.keys[l.key]
		k.idle = append(k.idle, l)
		e.dialMore()
	}
}

// returnLink makes l, obtained for a call that has ended, available again.
func (e *std) returnLink(l *link) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.makeAvailable(l)
}

// drop closes l. It closes a TLS connection without close_notify, which could block.
func (e *std) drop(l *link) {
	if !l.gone {
		e.links.remove(l)
		e.dialMore()
	}
}

// remove closes l and removes it from the pool.
func (p *links) remove(l *link) {
	l.gone = true
	_ = l.raw.Close()
	delete(p.all, l)
	p.size--
	k := &p.keys[l.key]
	if i := slices.Index(k.idle, l); i >= 0 {
		k.idle = slices.Delete(k.idle, i, i+1)
	}
}

// dialMore dials for the waiting calls, within the bound.
func (e *std) dialMore() {
	for _, h := range e.links.waiters {
		if !e.dialFor(h.key) {
			return
		}
	}
}

// dialFor dials if more calls of an identity wait than dials are in progress. It reports false when the bound is
// reached.
func (e *std) dialFor(key int) bool {
	p := &e.links
	k := &p.keys[key]
	switch {
	case k.waiting <= k.dialing:
		return true
	case e.closing || (p.size >= p.most && !p.makeRoom()):
		return false
	}
	p.size++
	k.dialing++
	ctx, cancel := context.WithTimeout(p.base, e.cfg.Timeout)
	e.all.Go(func() {
		defer cancel()
		e.makeLink(ctx, key)
	})
	return true
}

// makeRoom closes the idle link, of any identity, that has been unused for longest.
func (p *links) makeRoom() bool {
	var oldest *link
	for i := range p.keys {
		if idle := p.keys[i].idle; len(idle) > 0 && (oldest == nil || idle[0].since < oldest.since) {
			oldest = idle[0]
		}
	}
	if oldest != nil {
		p.remove(oldest)
	}
	return oldest != nil
}

// makeLink dials, and passes the link or the error to a waiting call. A failure ends one call, as it would a client's.
func (e *std) makeLink(ctx context.Context, key int) {
	conn, raw, err := e.connect(ctx, key, tlsOf(e.cfg.at.endpoint(key), false))
	e.mu.Lock()
	defer e.mu.Unlock()
	e.links.keys[key].dialing--
	if err != nil {
		e.links.size--
		// A dial that timed out, or was cancelled, says nothing about a call that has time left.
		if o, _, why := classify(err, false, false); o != Timeout && why != CauseAbandoned {
			e.links.serveWaiter(key, linkOrErr{err: err})
		}
		e.dialMore()
		return
	}
	e.addLink(ctx, conn, raw, key)
}

// addLink adds a new, already counted connection of a dial to the pool.
func (e *std) addLink(dial context.Context, conn net.Conn, raw *countedConn, key int) {
	if e.closing || errors.Is(dial.Err(), context.Canceled) { // Reset came between the dial and this
		e.links.size--
		_ = raw.Close()
		e.dialMore()
		return
	}
	l := &link{conn: conn, raw: raw, key: key}
	e.links.all[l] = true
	e.all.Go(func() { e.readLink(l) })
	e.makeAvailable(l)
}

// dropLinks closes every link, or only the idle ones.
func (e *std) dropLinks(busy bool) {
	for l := range e.links.all {
		if busy || l.call == nil {
			e.drop(l)
		}
	}
}

// connect establishes a connection for an identity, with TLS unless conf is nil. raw counts its bytes.
func (e *std) connect(ctx context.Context, key int, conf *tls.Config) (conn net.Conn, raw *countedConn, err error) {
	e.census.dialing()
	if err := e.awaitDialGap(ctx); err != nil {
		e.census.failed()
		return nil, nil, err
	}
	e.addDialPhases(key, 1, 0)
	c, err := dial(ctx, e.cfg.at, key)
	e.addDialPhases(key, -1, 0)
	if err != nil {
		e.census.failed()
	} else {
		raw = &countedConn{Conn: c, id: e.conns.Add(1), e: e}
		e.census.made()
		if conn = raw; conf != nil {
			e.addDialPhases(key, 0, 1)
			conn, err = handshake(ctx, raw, conf)
			e.addDialPhases(key, 0, -1)
		}
	}
	e.mu.Lock()
	if err == nil {
		e.nextDial = 0
	} else {
		e.nextDial = max(e.nextDial, e.clock.now()+growGap)
	}
	e.mu.Unlock()
	if err != nil && raw != nil {
		_ = raw.Close()
	}
	return conn, raw, err
}

// addDialPhases counts connections of an identity that are dialing, and that are in the TLS handshake.
func (e *std) addDialPhases(key, connecting, securing int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.links.keys[key].connecting += connecting
	e.links.keys[key].securing += securing
}

// awaitDialGap waits before a dial that follows a failed one, so that failing dials keep a growth gap.
func (e *std) awaitDialGap(ctx context.Context) error {
	e.mu.Lock()
	wait := int64(0)
	if e.nextDial > 0 {
		now := e.clock.now()
		wait = max(0, e.nextDial-now)
		e.nextDial = max(now, e.nextDial) + growGap
	}
	e.mu.Unlock()
	if wait == 0 {
		return nil
	}
	return sleepNS(ctx, wait)
}

// sleepNS waits for so many ns, or returns the error of ctx.
func sleepNS(ctx context.Context, wait int64) error {
	t := time.NewTimer(ns(wait))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// countedConn is a connection with its number.
type countedConn struct {
	net.Conn
	id   uint32
	e    *std
	once sync.Once
	// after is called when it is closed. May be nil.
	after func()
	// arrivedOnly makes a Read fail with errNotArrived. The reader of the link owns it.
	arrivedOnly bool
}

// errNotArrived says that what TLS has read does not hold another whole record. It is temporary, like an expired
// deadline, so that TLS goes on with the next Read.
var errNotArrived error = notArrived{}

type notArrived struct{}

func (notArrived) Error() string   { return "no more has arrived" }
func (notArrived) Timeout() bool   { return true }
func (notArrived) Temporary() bool { return true }

func (c *countedConn) Read(b []byte) (int, error) {
	if c.arrivedOnly {
		return 0, errNotArrived
	}
	n, err := c.Conn.Read(b)
	c.e.bytesIn.Add(int64(n))
	return n, err
}

func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.e.bytesOut.Add(int64(n))
	return n, err
}

func (c *countedConn) Close() error {
	c.once.Do(func() {
		c.e.census.closed()
		if c.after != nil {
			c.after()
		}
	})
	return c.Conn.Close()
}
