//go:build amd64 || arm64 || riscv64

package load

import (
	"errors"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

type connState uint8

const (
	connecting connState = iota
	idle
	busy
)

// conn is one connection.
type conn struct {
	fd            int
	id            uint32 // from 1, over all shards
	gen           int32  // distinguishes the successive connections of a slot
	slot          int32
	key           int32
	requestLen    int32 // bytes of the request
	probation     uint8 // answers still to be checked for being unsolicited
	stamped       bool  // the kernel timestamps its received bytes
	state         connState
	call          *liveCall // when busy
	since         int64     // when it was dialed, or became free
	over, under   *conn     // idle ones of the same key
	before, after *conn     // idle ones or dialing ones of all keys
	parser        parser
	unsent        []byte       // the rest of a request that did not fit
	secure        *secureLayer // nil: plaintext, or not connected yet
}

// edge is EPOLLET, which the unix package declares negative on some systems.
const edge = uint32(1) << 31

// grow dials for waiting calls: at most one connection per growth gap, and one more for each that the target closed
// after an answer, since replacing one is no growth.
func (s *shard) grow() {
	p := &s.pool
	for c := p.dialing.first; c != nil && c.since+s.timeout <= s.now; c = p.dialing.first {
		s.discard(c)
	}
	for p.dialRequests.n > 0 && (p.replaceable > 0 || s.now >= p.nextDial) && p.hasRoom() {
		key := p.dialRequests.pop()
		k := &p.keys[key]
		k.dialRequested = false
		if k.waiting <= k.dialing {
			continue
		}
		if p.size >= p.most {
			s.discard(p.idle.first) // of another identity: this one has no idle connection
		}
		if p.replaceable > 0 {
			p.replaceable--
		} else {
			p.nextDial += p.dialGap
		}
		if e := s.dial(key); e != 0 {
			s.failDial(key, e)
		}
		p.requestDial(k, key)
	}
}

// failDial ends the oldest waiting call of this key: its dial failed, and timed calls are never retried.
func (s *shard) failDial(key int32, e syscall.Errno) {
	s.failWaiting(key, ConnFailed, uint16(e), CauseConnect)
}

// failWaiting ends the oldest waiting call of this key.
func (s *shard) failWaiting(key int32, o Outcome, code uint16, why Cause) {
	s.pool.replaceable = 0
	k := &s.pool.keys[key]
	if c := k.first; c != nil {
		s.unqueue(c)
		c.cause = why
		s.finish(c, o, code, max(s.clock.now(), c.intended))
	}
	s.pool.requestDial(k, key)
}

// endpoint returns where connections of this key lead.
func (s *shard) endpoint(key int32) *Endpoint { return s.cfg.at.endpoint(int(key)) }

// dial starts a connection. Its events report the result.
func (s *shard) dial(key int32) syscall.Errno {
	sa, family := address(s.endpoint(key).Addr)
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return errno(err)
	}
	c := s.adopt(fd, key)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	s.setStamp(c)
	if err := s.bind(fd, key); err != nil {
		s.discard(c)
		return errno(err)
	}
	if err := unix.Connect(fd, sa); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		s.discard(c)
		return errno(err)
	}
	// Registered once, edge-triggered: this needs no epoll_ctl per request, and no second event for data already read.
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | edge, Fd: c.slot, Pad: c.gen}
	if err := unix.EpollCtl(s.alarm.poller.fd, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		s.discard(c)
		return errno(err)
	}
	return 0
}

func (s *shard) bind(fd int, key int32) error {
	local := s.cfg.at.local(int(key))
	if !local.IsValid() {
		return nil
	}
	// The port is chosen at connect, so that one port can serve many destinations.
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	sa, _ := address(netip.AddrPortFrom(local, 0))
	return unix.Bind(fd, sa)
}

func errno(err error) syscall.Errno {
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return e
	}
	return syscall.EIO
}

// adopt assigns a slot to a new socket.
func (s *shard) adopt(fd int, key int32) *conn {
	p := &s.pool
	c := &conn{fd: fd, id: p.made*p.shards + p.shard + 1, key: key, since: s.now, gen: int32(p.made), probation: probation}
	p.made++
	p.size++
	if n := len(p.vacant); n > 0 {
		c.slot = p.vacant[n-1]
		p.vacant = p.vacant[:n-1]
		p.conns[c.slot] = c
	} else {
		c.slot = int32(len(p.conns))
		p.conns = append(p.conns, c)
	}
	p.keys[key].dialing++
	p.dialing.add(c)
	s.tally[nConnecting]++
	return c
}

// drop closes a busy connection; the caller finishes its call.
func (s *shard) drop(c *conn) {
	s.tally[nInFlight]--
	s.discard(c)
}

// discard closes c in any state.
func (s *shard) discard(c *conn) {
	p := &s.pool
	switch c.state {
	case connecting:
		p.keys[c.key].dialing--
		p.dialing.remove(c)
		if c.secure == nil {
			s.tally[nConnecting]--
		} else {
			s.tally[nEstablished]--
			c.abandon()
		}
		p.requestDial(&p.keys[c.key], c.key)
	case idle:
		p.removeIdle(c)
		s.tally[nEstablished]--
	case busy:
		s.tally[nEstablished]--
	}
	_ = unix.Close(c.fd)
	p.conns[c.slot] = nil
	p.vacant = append(p.vacant, c.slot)
	p.size--
	if c.state == busy {
		c.state = connecting // no other code uses it any more; its call still knows its number
		c.call = nil
	}
}

// event handles an epoll event of c.
func (s *shard) event(c *conn, what uint32) {
	const readable = unix.EPOLLIN | unix.EPOLLHUP | unix.EPOLLERR | unix.EPOLLRDHUP
	if c.state == connecting && c.secure == nil && !s.connected(c) {
		return
	}
	if what&unix.EPOLLOUT != 0 && len(c.unsent) > 0 {
		s.flush(c)
	}
	if what&readable != 0 && s.pool.conns[c.slot] == c {
		s.read(c, what&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0)
	}
}

// connected completes a dial. With TLS, the handshake begins.
func (s *shard) connected(c *conn) bool {
	code, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		code = int(errno(err))
	}
	if code != 0 {
		s.discard(c)
		s.failDial(c.key, syscall.Errno(code))
		return false
	}
	s.tally[nConnecting]--
	s.tally[nEstablished]++
	if conf := tlsOf(s.endpoint(c.key), false); conf != nil {
		s.startHandshake(c, conf)
	} else {
		s.establish(c)
	}
	return true
}

// establish gives a new connection its first call. If none waits for it, it becomes idle.
func (s *shard) establish(c *conn) {
	p := &s.pool
	p.keys[c.key].dialing--
	p.dialing.remove(c)
	c.since = s.clock.now()
	if s.serve(c) == stepWrite {
		s.write(c)
	}
}

// serve assigns a free connection to the call of its key that has waited longest, or to the next one of a closed loop.
func (s *shard) serve(conn *conn) nextStep {
	k := &s.pool.keys[conn.key]
	for c := k.first; c != nil; c = k.first {
		s.unqueue(c)
		if limit := c.intended + s.timeout; s.clock.now() >= limit {
			s.finish(c, Timeout, 0, limit)
			continue
		}
		if !s.delayedByLimit(conn, c) && s.prepare(conn, c) {
			return stepWrite
		}
	}
	if s.source.ready > 0 {
		s.now = max(s.now, conn.since)
		if c := s.nextCall(); c != nil && c.key == conn.key && s.sends.limit == nil {
			c.ready = max(c.intended, conn.since)
			if s.prepare(conn, c) {
				return stepWrite
			}
		} else if c != nil {
			s.pool.makeIdle(conn)
			s.dispatch(c)
			return stepNone
		}
	}
	s.pool.makeIdle(conn)
	return stepNone
}
