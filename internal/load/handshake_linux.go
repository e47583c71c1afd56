//go:build amd64 || arm64 || riscv64

package load

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"syscall"
)

// maxHandshake bounds the bytes of a target's handshake that wait to be processed.
const maxHandshake = 1 << 20

var errHandshakeTooLong = errors.New("the target sends a handshake without end")

// handshaking is a handshake in progress. crypto/tls cannot interrupt a handshake and resume it, so it runs in a
// goroutine, which only computes: the shard sends and receives for it.
type handshaking struct {
	send func(b []byte) // has the shard send b
	turn chan struct{}  // held while it computes
	mu   sync.Mutex
	more sync.Cond
	in   []byte // arrived, not fetched yet
	end  error  // why nothing more will arrive
}

// deliver adds bytes that have arrived.
func (h *handshaking) deliver(b []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.in)+len(b) > maxHandshake {
		h.fail(errHandshakeTooLong)
		return
	}
	h.in = append(h.in, b...)
	h.more.Signal()
}

// stop says that nothing more will arrive. The first reason counts.
func (h *handshaking) stop(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fail(why)
}

func (h *handshaking) fail(why error) {
	if h.end == nil {
		h.end = why
	}
	h.more.Signal()
}

// fetch waits until bytes have arrived, or returns why none will arrive.
func (h *handshaking) fetch() ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.in) == 0 && h.end == nil {
		h.more.Wait()
	}
	b := h.in
	if h.in = nil; len(b) == 0 {
		return nil, h.end
	}
	return b, nil
}

// await has the shard send what the handshake has written, and waits for the target's answer.
func (l *secureLayer) await() (err error) {
	if len(l.out) > 0 {
		l.shaking.send(l.out)
		l.out = nil
	}
	<-l.shaking.turn
	l.in, err = l.shaking.fetch()
	l.shaking.turn <- struct{}{}
	return err
}

// startHandshake starts the TLS handshake of c.
func (s *shard) startHandshake(c *conn, conf *tls.Config) {
	if s.clear == nil {
		s.clear = make([]byte, 64<<10)
		// Many handshakes at once would keep the shard from a processor that they share for as long as all of them take.
		s.turn = make(chan struct{}, max(1, (runtime.GOMAXPROCS(0)-s.cfg.Shards)/s.cfg.Shards))
	}
	h := &handshaking{turn: s.turn, send: func(b []byte) { s.post(func() { s.sendFlight(c, b) }) }}
	h.more.L = &h.mu
	c.secure = &secureLayer{remote: net.TCPAddrFromAddrPort(s.endpoint(c.key).Addr), shaking: h}
	secure := tls.Client(c.secure, conf)
	c.secure.conn = secure
	s.handshakes.Go(func() {
		s.turn <- struct{}{}
		defer func() { <-s.turn }()
		err := secure.HandshakeContext(context.Background()) // the shard ends it
		s.post(func() { s.endHandshake(c, err) })
	})
}

// sendFlight sends a part of the handshake of c.
func (s *shard) sendFlight(c *conn, b []byte) {
	if s.pool.conns[c.slot] != c {
		return // the handshake was abandoned
	}
	if e := s.sendRecords(c, b); e != 0 {
		c.secure.shaking.stop(e)
		s.read(c, false) // an alert may have arrived before
	}
}

// endHandshake makes c available, whose handshake ended with err, or ends the oldest waiting call of its key.
func (s *shard) endHandshake(c *conn, err error) {
	if s.pool.conns[c.slot] != c {
		return // the handshake was abandoned
	}
	h := c.secure.shaking
	c.secure.shaking, c.secure.in = nil, append(c.secure.in, h.in...)
	var o Outcome
	var code uint16
	var why Cause
	if err != nil {
		o, code, why = classify(&handshakeError{err}, false, false)
	} else {
		n, early := c.secure.conn.Read(s.clear)
		if errors.Is(early, nothingYet{}) {
			early = h.end
		}
		switch {
		case n > 0:
			o, why = Failed, CauseUnasked
		case early != nil:
			o, code, why = classify(early, true, false)
		default:
			s.establish(c)
			s.flushOwn(c) // the end of the handshake, unless a request has taken it along
			return
		}
	}
	_ = s.sendOwn(c) // an alert
	s.discard(c)
	s.failWaiting(c.key, o, code, why)
}

// abandon ends the handshake of c, if it is in progress, without a result.
func (c *conn) abandon() {
	if c.isShaking() {
		c.secure.shaking.stop(net.ErrClosed)
	}
}

// endReason returns the error of a connection that ended with e, or in good order.
func endReason(e syscall.Errno) error {
	if e == 0 {
		return io.EOF
	}
	return e
}
