package load

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// std carries anything that Go can call: HTTP through net/http, with TLS and HTTP/2, and operations that are Go
// functions. One pacer starts the calls; workers, at most one per possible connection, carry them.
type std struct {
	cfg     Config
	clock   streamClock
	timeout int64
	base    context.Context
	cancel  context.CancelFunc
	modern  *modern // nil: HTTP/1.1 only
	alarm   *alarm
	all     sync.WaitGroup // pacer, workers, readers and dials

	bytesIn, bytesOut atomic.Int64
	conns             atomic.Uint32
	census            census

	mu       sync.Mutex
	source   source
	sends    sends
	held     waitList // calls that the rate limit delays
	given    int      // calls that have a worker and are not sent yet
	sent     int      // calls of this segment that were sent
	open     goCalls
	waiting  waitList
	idle     []*worker // the last used on top
	workers  int
	nextGrow int64
	links    links
	nextDial int64 // after a failed dial: not before
	due      int64 // when the pacer will wake
	tally    tally
	table    table
	ledger   ledger
	closing  bool
}

var _ carrier = (*std)(nil)

func newStd(ctx context.Context, c Config, clock streamClock) (carrier, error) {
	e := &std{
		cfg: c, clock: clock, timeout: int64(c.Timeout),
		table: newTable(len(c.Operations)), ledger: ledger{tick: tickFor(c.Timeout)},
	}
	e.base, e.cancel = context.WithCancel(ctx)
	e.source.shards, e.sends = 1, newSends(c.Limit, clock)
	var err error
	if e.alarm, err = newAlarm(); err != nil {
		e.cancel()
		return nil, fmt.Errorf("start engine std: %w", err)
	}
	e.links.init(e.base, c)
	if slices.ContainsFunc(c.at.arms, func(a place) bool { return isModern(&a.Endpoint) }) {
		e.modern = newModern(e)
	}
	e.all.Go(e.pace)
	return e, nil
}

// pace starts calls when they are due. It has its own thread: Go's timers may be a millisecond late.
func (e *std) pace() {
	runtime.LockOSThread()
	clearTimerSlack()
	var first priority
	defer first.release()
	for {
		e.mu.Lock()
		if e.closing {
			e.mu.Unlock()
			return
		}
		now := e.clock.now()
		e.expire(now)
		e.launch(now)
		e.grow(now)
		e.due = e.nextDue()
		due, open := e.due, e.source.isOpen()
		e.mu.Unlock()
		first.update(now, open)
		if due == never {
			e.alarm.sleep(-1)
		} else if left := due - e.clock.now(); left > 0 {
			e.alarm.sleep(left)
		}
	}
}

func (e *std) nextDue() int64 {
	due := e.source.due()
	if c := e.open.oldest; c != nil {
		due = min(due, int64(c.rec.Intended)+e.timeout)
	}
	if e.waiting.live > 0 && e.workers < e.cfg.MaxConns {
		due = min(due, e.nextGrow)
	}
	if c := e.held.first(); c != nil {
		now := e.clock.now()
		due = min(due, now+e.sends.wait(int64(c.rec.Intended), now, e.given))
	}
	return due
}

func (e *std) expire(now int64) {
	for c := e.open.oldest; c != nil && int64(c.rec.Intended)+e.timeout <= now; c = e.open.oldest {
		e.finish(c, ending{outcome: Timeout, at: int64(c.rec.Intended) + e.timeout})
	}
	e.waiting.trim()
	e.held.trim()
}

func (e *std) launch(now int64) {
	e.source.startWorkers(now)
	for {
		c := e.nextCall(now)
		if c == nil {
			break
		}
		e.dispatch(c, now)
	}
	for c := e.held.first(); c != nil && !e.mustWait(c, now); c = e.held.first() {
		e.dispatch(e.held.pop(), now)
	}
	if e.source.hasEnded(now, int(e.tally[nWaiting]+e.tally[nInFlight])) {
		e.reportSegment()
	}
}

// dispatch assigns a call to a worker. The call waits if the rate limit delays it, or no worker is free.
func (e *std) dispatch(c *goCall, now int64) {
	if e.mustWait(c, now) {
		e.delay(c, int64(c.rec.Intended))
		return
	}
	c.held = false
	if n := len(e.idle); n > 0 {
		w := e.idle[n-1]
		e.idle = e.idle[:n-1]
		e.give(w, c)
		return
	}
	// The intervals count from when there was something to grow for, so that the pacer's own delays do not slow the
	// growth.
	if e.waiting.live == 0 {
		e.nextGrow = max(e.nextGrow, int64(c.rec.Intended))
	}
	e.waiting.push(c)
}

func (e *std) give(w *worker, c *goCall) {
	e.markGiven(c)
	w.next <- c
}

// markGiven records that a worker has c.
func (e *std) markGiven(c *goCall) {
	c.given = true
	e.given++
}

// clearGiven records that c no longer waits in its worker: it was sent, or has ended.
func (e *std) clearGiven(c *goCall) {
	if c.given {
		c.given = false
		e.given--
	}
}

// mustWait reports whether the rate limit delays a late call. Calls that have a worker and are not sent yet go first.
func (e *std) mustWait(c *goCall, now int64) bool {
	due := int64(c.rec.Intended)
	return now-due > onTimeWithin && e.sends.wait(due, now, e.given) > 0
}

// delay queues a call until the rate limit admits it. It could have been sent at ready.
func (e *std) delay(c *goCall, ready int64) {
	c.recordDelay(ready, &e.ledger)
	e.tally[nHeld]++
	e.held.push(c)
}

// nextCall returns the next due call of the segment.
func (e *std) nextCall(now int64) *goCall {
	i, at, worker, ok := e.source.nextDue(now)
	if !ok {
		return nil
	}
	g := e.source.seg
	c := &goCall{
		i: i, worker: worker, segment: g.id, rec: Call{Operation: e.cfg.at.pick(g.arm, i), Intended: ns(at)},
	}
	e.open.add(c)
	e.tally[nDue]++
	e.tally[nWaiting]++
	if e.cfg.KeepCalls {
		c.entry = e.ledger.add(at, c.rec.Operation)
	}
	return c
}

// grow adds a worker when calls wait for one, at most one per growth gap.
func (e *std) grow(now int64) {
	if e.waiting.live == 0 || e.workers >= e.cfg.MaxConns || now < e.nextGrow {
		return
	}
	e.nextGrow += e.cfg.growGap()
	e.workers++
	w := &worker{next: make(chan *goCall, 1)}
	if c := e.waiting.pop(); c != nil {
		e.give(w, c)
	}
	e.all.Go(func() { e.work(w) })
}

func (e *std) work(w *worker) {
	for c := range w.next {
		for c != nil {
			e.perform(w, c)
			next, more := e.nextFor(w)
			if !more {
				return
			}
			c = next
		}
	}
}

// nextFor returns the next call of w: the one that has waited longest or, in a closed loop, a new one. Without a call w
// becomes idle. more is false when the engine closes.
func (e *std) nextFor(w *worker) (c *goCall, more bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		return nil, false
	}
	now := e.clock.now()
	for c = e.waiting.pop(); c != nil && e.mustWait(c, now); c = e.waiting.pop() {
		e.delay(c, now)
	}
	if c == nil && e.source.isClosed() {
		c = e.nextCall(now)
	}
	if c == nil {
		e.idle = append(e.idle, w)
	} else {
		e.markGiven(c)
		c.free = now
	}
	if e.source.due() < e.due || e.held.live > 0 {
		e.alarm.wake()
	}
	return c, true
}

// perform performs one call and records it, unless it has ended meanwhile.
func (e *std) perform(w *worker, c *goCall) {
	ctx, cancel := context.WithCancel(e.base)
	defer cancel()
	op, key := &e.cfg.Operations[c.rec.Operation], 0
	if op.Call == nil {
		key = e.cfg.at.key(c.rec.Operation, op.Wire, c.i)
	}
	e.mu.Lock()
	c.cancel, c.key = cancel, key
	ended := c.ended
	e.mu.Unlock()
	if ended {
		return
	}
	var r ending
	if op.Call != nil {
		r = e.invoke(ctx, op, c)
	} else {
		r = e.exchange(ctx, w, c, op)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !c.ended {
		if limit := int64(c.rec.Intended) + e.timeout; r.at > limit {
			r = ending{outcome: Timeout, at: limit}
		}
		e.finish(c, r)
	}
}

// markSent records that the call was sent on a connection, which was free since then.
func (e *std) markSent(c *goCall, conn uint32, since int64) {
	if c.ended || c.rec.Sent != 0 {
		return
	}
	c.rec.Conn, c.rec.Sent = conn, ns(e.clock.now())
	if c.ready == 0 {
		c.ready = max(int64(c.rec.Intended), c.free, since)
	}
	c.rec.Ready = ns(c.ready)
	e.clearGiven(c)
	e.tally[nWaiting]--
	e.tally[nInFlight]++
	e.tally[nSent]++
	if e.source.seg != nil && e.source.seg.id == c.segment {
		e.sent++
	}
	if c.entry != nil {
		e.ledger.sent(c.entry, int64(c.rec.Intended), int64(c.rec.Ready), int64(c.rec.Sent), c.rec.Operation, conn)
	}
}

// invoke performs an operation that is a Go call.
func (e *std) invoke(ctx context.Context, op *Operation, c *goCall) ending {
	if err := e.awaitRateLimit(ctx, c, 0); err != nil {
		return ending{ConnFailed, uint16(syscall.ECONNABORTED), CauseAbandoned, e.clock.now()}
	}
	e.mu.Lock()
	e.markSent(c, 0, 0)
	e.mu.Unlock()
	r := op.Call(ctx, c.i)
	at := e.clock.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !c.ended {
		e.clock.adoptPhases(&c.rec, r)
		c.in, c.out, c.marks = r.BytesIn, r.BytesOut, r.Marks
	}
	if r.Outcome == ConnFailed {
		return ending{r.Outcome, r.Errno, r.Cause, at}
	}
	return ending{r.Outcome, r.Status, r.Cause, at}
}

// finish records how a call ended.
func (e *std) finish(c *goCall, end ending) {
	if end.outcome == Timeout && end.cause == 0 {
		end.cause = e.timeoutCause(c, end.at)
	}
	e.open.remove(c)
	c.ended = true
	switch {
	case c.rec.Sent != 0:
		e.tally[nInFlight]--
	default:
		c.rec.Ready = ns(c.ready)
		e.tally[nWaiting]--
		if end.outcome == Timeout {
			e.tally[nUnsent]++
		}
	}
	if c.cancel != nil {
		c.cancel()
	}
	if l := c.link; l != nil {
		l.call, c.link = nil, nil
		e.drop(l)
	}
	c.unqueue()
	e.clearGiven(c)
	e.tally[nDone+int(end.outcome)]++
	c.rec.Outcome, c.rec.Cause, c.rec.Done = end.outcome, end.cause, ns(max(end.at, int64(c.rec.Sent)))
	c.rec.forgetLate()
	e.source.release(c.worker, end.at, e.unreached(c, end))
	if e.source.over && e.open.oldest == nil {
		e.alarm.wake() // a segment that drains has ended
	}
	e.table.record(&c.rec, footnote{end.code, c.in, c.out})
	if len(c.marks) > 0 {
		e.table.mark(&c.rec, c.marks, e.clock)
	}
	if c.entry != nil {
		e.ledger.ended(c.entry, &c.rec, end.code)
	}
}

// timeoutCause returns the cause of a timeout at that instant, by the phase that the call had reached.
func (e *std) timeoutCause(c *goCall, at int64) Cause {
	switch {
	case e.cfg.Operations[c.rec.Operation].Call != nil && c.rec.Sent != 0:
		return stuckCause(&e.cfg.Operations[c.rec.Operation], c.i)
	case c.rec.Sent != 0 && c.rec.FirstByte != 0 && int64(c.rec.FirstByte) <= at:
		return CauseNoEnd
	case c.rec.Sent != 0:
		return CauseNoByte
	case c.held:
		return CauseHeldBack
	case c.cancel == nil || len(e.links.keys) == 0: // it never had a worker
	case e.links.keys[c.key].securing > 0:
		return CauseHandshaking
	case e.links.keys[c.key].connecting > 0:
		return CauseDialing
	}
	return CauseNoConnection
}

func (e *std) reportSegment() {
	g, offered, next := e.source.stop()
	g.finish(offered, e.sent, next)
}

func (e *std) begin(g *segment) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g.left, e.sent = 1, 0
	e.source.begin(g)
	e.alarm.wake()
}

func (e *std) end(g *segment) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.source.seg != g {
		return
	}
	if e.source.isOpen() {
		e.launch(e.clock.now())
	}
	if e.source.seg == g {
		e.reportSegment()
	}
	if !e.closing {
		e.alarm.wake() // the pacer releases its priority
	}
}

func (e *std) progress(p *Progress) {
	e.mu.Lock()
	e.tally.addTo(p)
	e.mu.Unlock()
	p.Established, p.Connecting = e.census.read()
	p.BytesIn, p.BytesOut = uint64(e.bytesIn.Load()), uint64(e.bytesOut.Load())
}

func (e *std) calls(since time.Duration) [][]Call { return [][]Call{e.ledger.since(since)} }

func (e *std) take() []table {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.table
	e.table = newTable(len(e.cfg.Operations))
	return []table{t}
}

func (e *std) dropIdle() {
	e.mu.Lock()
	e.dropLinks(false)
	e.mu.Unlock()
	e.modern.dropIdle()
}

func (e *std) reset() {
	e.mu.Lock()
	now := e.clock.now()
	for c := e.open.oldest; c != nil; c = e.open.oldest {
		e.finish(c, ending{ConnFailed, uint16(syscall.ECONNABORTED), CauseAbandoned, max(now, int64(c.rec.Intended))})
	}
	e.links.dismissWaiters()
	e.links.restartDials(e.base) // dials are cancelled with their calls
	e.dropLinks(true)
	e.modern.drop()
	e.mu.Unlock()
}

func (e *std) close() error {
	e.mu.Lock()
	e.closing = true
	idle := e.idle
	e.idle = nil
	e.dropLinks(true)
	e.modern.drop()
	e.mu.Unlock()
	e.links.stop()
	e.cancel()
	e.alarm.wake()
	for _, w := range idle {
		close(w.next)
	}
	e.all.Wait()
	e.alarm.close()
	return nil
}

// census counts the connections of engine std, dialing and established ones, in one word: a connection that changes
// from one to the other is never counted as both or neither, and the sum never exceeds the pool's bound.
type census struct{ both atomic.Int64 }

// oneDialing is one connection that is dialing; the lower half of the word counts established ones.
const oneDialing = 1 << 32

func (c *census) dialing() { c.both.Add(oneDialing) }
func (c *census) failed()  { c.both.Add(-oneDialing) }
func (c *census) made()    { c.both.Add(1 - oneDialing) }
func (c *census) closed()  { c.both.Add(-1) }

// read returns both counts at one instant.
func (c *census) read() (established, connecting int) {
	n := c.both.Load()
	return int(n & (oneDialing - 1)), int(n >> 32)
}
