//go:build amd64 || arm64 || riscv64

package load

import (
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A shard is one event loop with its connections and calls. Only its own goroutine uses it, except for the mailbox, the
// board and the ledger.
type shard struct {
	cfg     Config
	clock   streamClock
	timeout int64
	handoff bool // there is no spare processor: never hold one while blocked

	keepsPriority bool // its thread inherited a real-time priority, and keeps it
	hasPriority   bool // its thread has a real-time priority during an open-loop segment

	alarm *alarm // its poller waits for the connections too
	mail  atomic.Bool
	mu    sync.Mutex
	box   []func()

	now     int64
	closing bool

	pool     pool
	calls    callList // not ended, in order of the intended instant
	free     *liveCall
	tally    tally
	board    board
	ledger   ledger
	table    table
	template template
	in, out  []byte
	stamp    stamped
	wall     wallClock

	plain, clear []byte         // requests before encryption, answers after decryption
	handshakes   sync.WaitGroup // TLS handshakes in progress
	turn         chan struct{}  // held by those that compute

	source source
	sends  sends
	held   callQueue // calls that the rate limit delays
	sent   int       // calls of this segment that were sent

	thread atomic.Int32 // that runs it; 0: not yet
	spun   atomic.Int64 // ns of deliberate spinning
	unread delays       // of answers on sampled connections, from their arrival until they are read
}

func newShard(c Config, clock streamClock, k int) (*shard, error) {
	s := &shard{cfg: c, clock: clock, timeout: int64(c.Timeout)}
	s.source.k, s.source.shards = k, c.Shards
	s.sends = newSends(c.Limit, clock)
	s.in, s.out = make([]byte, 64<<10), make([]byte, 0, 4<<10)
	s.table, s.ledger.tick = newTable(len(c.Operations)), tickFor(c.Timeout)
	s.pool.init(c, k)
	var err error
	if s.alarm, err = newAlarm(); err != nil {
		return nil, err
	}
	return s, nil
}

// post runs do soon in the shard's own goroutine.
func (s *shard) post(do func()) {
	s.mu.Lock()
	s.box = append(s.box, do)
	s.mu.Unlock()
	s.mail.Store(true)
	s.alarm.wake()
}

func (s *shard) readMail() {
	s.mail.Store(false)
	s.mu.Lock()
	box := s.box
	s.box = nil
	s.mu.Unlock()
	for _, do := range box {
		do()
	}
}

// run is the shard's goroutine. It ends without unlocking its thread, so that the thread with its modified timers ends
// too.
func (s *shard) run() {
	runtime.LockOSThread()
	clearTimerSlack()
	s.keepsPriority = realTime()
	s.thread.Store(int32(unix.Gettid()))
	for !s.closing {
		s.now = s.clock.now()
		if s.mail.Load() {
			s.readMail()
			continue
		}
		if s.calls.oldest != nil {
			s.expire()
		}
		s.grow()
		s.launch()
		s.board.publish(&s.tally)
		s.sleep()
	}
	s.shut()
}

func (s *shard) shut() {
	s.readMail()
	for _, c := range s.pool.conns {
		if c != nil {
			s.discard(c)
		}
	}
	s.board.publish(&s.tally)
	s.handshakes.Wait() // they wake the alarm
	s.alarm.close()
}

// The waits of a shard, in ns.
const (
	maxLazy  = int64(1e6) // the longest delay of lazy reaping
	spinPoll = int64(8e3) // while spinning, check for answers if this much time is left
)

// sleep waits for the next event or instant.
func (s *shard) sleep() {
	due := s.due()
	left := due - s.now
	if due != never && left > 0 {
		left = due - s.clock.now()
	}
	spin := int64(0)
	if s.source.seg != nil {
		spin = int64(s.cfg.Spin)
	}
	switch {
	case left <= 0:
		s.poll(0, false)
	case left <= spin:
		s.spin(due, left)
	case s.isLazy() && left <= maxLazy && s.tally[nInFlight] > 0:
		nap(left-spin, s.handoff)
		if spin == 0 {
			s.now = s.clock.now()
			s.launch() // the send comes first, reaping can wait
			s.poll(0, false)
		}
	case due == never:
		s.poll(-1, true)
	default:
		s.poll(left-spin, s.handoff || s.source.seg == nil)
	}
}

// spin passes the time until due without sleeping, or a part of it. Work that it finds meanwhile does not count as
// spinning.
func (s *shard) spin(due, left int64) {
	began := s.clock.now()
	if left > spinPoll && s.tally[nInFlight]+s.tally[nConnecting] > 0 {
		if s.poll(0, false) {
			return
		}
	} else {
		for s.clock.now() < due && !s.mail.Load() {
		}
	}
	s.spun.Store(s.spun.Load() + s.clock.now() - began)
}

// isLazy reports whether arrived answers may wait to be read: in an open loop in which the kernel timestamps their
// arrival, while no call waits for a connection.
func (s *shard) isLazy() bool {
	return s.pool.stamps && s.source.isOpen() && s.tally[nWaiting] == 0
}

// due returns the next instant at which the shard has to act without an event.
func (s *shard) due() int64 {
	due := never
	if c := s.calls.oldest; c != nil {
		due = c.intended + s.timeout
	}
	if s.pool.dialRequests.n > 0 && s.pool.hasRoom() {
		if s.pool.replaceable > 0 {
			return s.now
		}
		due = min(due, s.pool.nextDial)
	}
	if c := s.pool.dialing.first; c != nil {
		due = min(due, c.since+s.timeout)
	}
	if c := s.held.first; c != nil {
		due = min(due, s.now+s.sends.wait(c.intended, s.now, 0))
	}
	return min(due, s.source.due())
}

// poll waits up to ns for events and handles them. It reports whether there were any.
func (s *shard) poll(ns int64, handoff bool) bool {
	n := s.alarm.poller.wait(ns, handoff)
	if n == 0 {
		return false
	}
	if s.pool.stamps || s.pool.sampling {
		s.wall.refresh(s.clock)
	}
	for i := range n {
		ev := &s.alarm.poller.events[i]
		if ev.Fd == wakerSlot {
			s.alarm.drain()
			continue
		}
		c := s.pool.conns[ev.Fd]
		if c == nil || c.gen != ev.Pad {
			continue // closed earlier in this batch
		}
		if c.stamped || ev.Events&^(unix.EPOLLIN|unix.EPOLLOUT) != 0 || c.state != busy || len(c.unsent) > 0 ||
			c.secure != nil {
			s.event(c, ev.Events)
			continue
		}
		// The common case is inlined: after a system call the processor mispredicts every return to an earlier caller, and a
		// chain of small functions would cost as much as all their work.
		got, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(c.fd), uintptr(unsafe.Pointer(&s.in[0])),
			uintptr(len(s.in)), 0, 0, 0)
		if n := int(got); e != 0 || n == 0 || n == len(s.in) {
			if s.handleRead(c, n, s.clock.now(), e, false) {
				s.read(c, false)
			}
			continue
		}
		s.tally[nBytesIn] += uint64(got)
		if s.consume(c, s.in[:got], s.clock.now(), false) == stepWrite {
			put, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(c.fd), uintptr(unsafe.Pointer(&s.out[0])),
				uintptr(len(s.out)), unix.MSG_NOSIGNAL, 0, 0)
			s.recordWrite(c, int(put), e)
		}
	}
	return true
}

// expire ends the calls that have timed out, and the dials that no call can wait for any longer.
func (s *shard) expire() {
	for c := s.calls.oldest; c != nil && c.intended+s.timeout <= s.now; c = s.calls.oldest {
		if c.conn != nil {
			s.drop(c.conn)
		} else {
			if c.cause = s.pool.pendingCause(c, s.timeout); c.held {
				c.cause = CauseHeldBack
			}
			s.unqueue(c)
		}
		s.finish(c, Timeout, 0, max(c.intended+s.timeout, c.sent))
	}
}

// finish records how a call ended and releases it. code is a status, or the errno of a ConnFailed call.
func (s *shard) finish(c *liveCall, o Outcome, code uint16, done int64) {
	s.calls.remove(c)
	s.tally[nDone+int(o)]++
	if o == Timeout && c.sent == 0 {
		s.tally[nUnsent]++
	}
	s.source.release(c.worker, done, o == ConnFailed && c.sent == 0 && c.cause != CauseAbandoned)
	rec := c.record(o, done)
	s.table.record(&rec, footnote{code, uint64(c.in), uint64(c.out)})
	if c.entry != nil {
		s.ledger.ended(c.entry, &rec, code)
	}
	*c = liveCall{next: s.free}
	s.free = c
}

// reset abandons every call and closes every connection.
func (s *shard) reset() {
	for c := s.calls.oldest; c != nil; c = s.calls.oldest {
		if c.conn != nil {
			s.drop(c.conn)
		} else {
			s.unqueue(c)
		}
		c.cause = CauseAbandoned
		s.finish(c, ConnFailed, uint16(syscall.ECONNABORTED), max(s.clock.now(), c.intended))
	}
	for _, c := range s.pool.conns {
		if c != nil {
			s.discard(c)
		}
	}
	s.pool.replaceable = 0
}

func (s *shard) dropIdle() {
	for c := s.pool.idle.first; c != nil; c = s.pool.idle.first {
		s.discard(c)
	}
}
