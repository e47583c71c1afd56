//go:build amd64 || arm64 || riscv64

package load

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// TLS on engine fast is crypto/tls over a transport in memory. The shard reads and writes the sockets as in plaintext;
// crypto/tls reads what has arrived from a slice, and appends to another what is to be sent. When the first is empty,
// crypto/tls gets a temporary error, which it does not keep, so that the shard can call again when more has arrived.

// secureLayer is the TLS of one connection, and the transport of its tls.Conn.
type secureLayer struct {
	conn     *tls.Conn
	remote   net.Addr
	shaking  *handshaking // nil once the handshake has ended
	framer   framer
	in       []byte // arrived, not passed to conn yet
	out      []byte // written by conn, not sent yet
	plainLen int32  // bytes of the request before encryption
	own      int    // bytes of TLS itself that it had to send since the request
}

// mostOwn bounds own: replies to about 600 key updates. Unbounded, a target that wants them and reads none would fill
// the memory, and one that reads them would use up the processor.
const mostOwn = 16 << 10

var errManyUpdates = errors.New("the target had TLS update its keys too often within a call")

var _ net.Conn = (*secureLayer)(nil)

// nothingYet is the error of a Read that has to be repeated when more has arrived.
type nothingYet struct{}

func (nothingYet) Error() string   { return "nothing has arrived" }
func (nothingYet) Timeout() bool   { return true }
func (nothingYet) Temporary() bool { return true }

// Read passes what has arrived to crypto/tls, at most to the end of a record. It blocks only during the handshake.
func (l *secureLayer) Read(b []byte) (int, error) {
	if len(l.in) == 0 {
		if l.shaking == nil {
			return 0, nothingYet{}
		}
		if err := l.await(); err != nil {
			return 0, err
		}
	}
	n := l.framer.advance(l.in[:min(len(b), len(l.in))])
	copy(b, l.in[:n])
	l.in = l.in[n:]
	return n, nil
}

// Write keeps b until the shard sends it.
func (l *secureLayer) Write(b []byte) (int, error) {
	l.out = append(l.out, b...)
	return len(b), nil
}

// RemoteAddr returns the target's address: sessions are cached under it if there is no server name.
func (l *secureLayer) RemoteAddr() net.Addr { return l.remote }

// The rest of net.Conn does nothing: the shard has the socket, and keeps the time. The local address is zero, as
// crypto/tls does not use it.

func (l *secureLayer) Close() error                     { return nil }
func (l *secureLayer) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (l *secureLayer) SetDeadline(time.Time) error      { return nil }
func (l *secureLayer) SetReadDeadline(time.Time) error  { return nil }
func (l *secureLayer) SetWriteDeadline(time.Time) error { return nil }

// framer follows the boundaries of records (RFC 8446, section 5.1). crypto/tls gets no byte beyond the record that it
// reads, so that everything that it has received is in its last answer to a Read.
type framer struct {
	header [5]byte
	have   int  // bytes of the header, until it is complete
	left   int  // bytes of the record that are still to come
	early  bool // the record began before the latest request was sent
}

// advance returns how many bytes of b belong to the current record, which it follows to that point.
func (f *framer) advance(b []byte) int {
	n := 0
	if f.left == 0 {
		if f.have == 0 {
			f.early = false
		}
		n = copy(f.header[f.have:], b)
		if f.have += n; f.have < len(f.header) {
			return n
		}
		f.have, f.left = 0, int(binary.BigEndian.Uint16(f.header[3:]))
	}
	body := min(f.left, len(b)-n)
	f.left -= body
	return n + body
}

// isWithin reports whether a part of a record has arrived, and the rest has not.
func (f *framer) isWithin() bool { return f.have > 0 || f.left > 0 }

// isShaking reports whether c is in the TLS handshake.
func (c *conn) isShaking() bool { return c.secure != nil && c.secure.shaking != nil }

// isCut reports whether the end of c cuts a record.
func (c *conn) isCut() bool { return c.secure != nil && c.secure.framer.isWithin() }

// encrypt replaces the request in s.out by its records. It returns false if that failed: the call has then ended, and
// the connection is closed as soon as its event arrives.
func (s *shard) encrypt(conn *conn, c *liveCall) bool {
	l := conn.secure
	l.own = 0
	l.framer.early = l.framer.isWithin()
	s.plain, s.out = s.out, s.plain
	s.out = append(s.out[:0], l.out...)
	before, own := len(s.out), l.out[:0]
	l.out = s.out
	_, err := l.conn.Write(s.plain)
	s.out, l.out = l.out, own
	if err != nil {
		_ = unix.Shutdown(conn.fd, unix.SHUT_RDWR)
		c.cause, c.ready = CauseTLS, 0
		s.finish(c, ConnFailed, 0, max(s.clock.now(), c.intended))
		return false
	}
	l.plainLen, conn.requestLen = int32(len(s.plain)), int32(len(s.out)-before)
	return true
}

// requestSent returns how many bytes of the request were sent, not counting TLS. A part of a record counts in
// proportion.
func (c *conn) requestSent() uint32 {
	sent := int(c.requestLen) - min(int(c.requestLen), len(c.unsent))
	return uint32(int(c.secure.plainLen) * sent / int(c.requestLen))
}

// receive passes arrived bytes to the response that c is reading, or to its TLS.
func (s *shard) receive(c *conn, b []byte, at int64, ending bool) nextStep {
	s.tally[nBytesIn] += uint64(len(b))
	switch {
	case c.secure == nil:
		return s.consume(c, b, at, ending)
	case c.isShaking():
		c.secure.shaking.deliver(b)
		return stepRead
	}
	return s.decrypt(c, b, at, ending)
}

// decrypt passes arrived records to the response that c is reading. Without one, c may receive messages of TLS itself,
// such as session tickets, but no data.
func (s *shard) decrypt(c *conn, b []byte, at int64, ending bool) nextStep {
	l := c.secure
	l.in = b
	step := stepRead
	for step == stepRead && len(l.in) > 0 {
		n, err := l.conn.Read(s.clear)
		switch {
		case l.own+len(l.out) > mostOwn:
			s.endSecure(c, errManyUpdates)
			return stepNone
		case n > 0 && l.framer.early && c.call != nil:
			s.failCall(c, Failed, 0, CauseUnasked)
			return stepNone
		case n > 0:
			step = s.consume(c, s.clear[:n], at, ending)
		case !errors.Is(err, nothingYet{}):
			s.endSecure(c, err)
			return stepNone
		}
	}
	if len(l.out) > 0 && !s.flushOwn(c) {
		return stepNone
	}
	return step
}

// isDrained processes what arrived on c together with the end of its answer, which is in the first bytes of s.clear. It
// reports whether that was nothing, or messages of TLS itself.
func (s *shard) isDrained(c *conn, first int) bool {
	l := c.secure
	for len(l.in) > 0 {
		if n, err := l.conn.Read(s.clear[first:]); n > 0 || !errors.Is(err, nothingYet{}) {
			return false
		}
	}
	return true
}

// endSecure ends c, whose TLS returned err: the target said goodbye, sent an alert, or broke the protocol.
func (s *shard) endSecure(c *conn, err error) {
	_ = s.sendOwn(c) // an alert
	switch {
	case errors.Is(err, io.EOF):
		s.handleClose(c, 0)
	case c.call == nil:
		s.discard(c)
	default:
		o, code, why := classify(err, true, c.call.first != 0)
		if o == Failed {
			code = c.status()
		}
		s.failCall(c, o, code, why)
	}
}

// flushOwn sends the messages of TLS itself that belong to no request. It reports whether c still exists.
func (s *shard) flushOwn(c *conn) bool {
	if s.pool.conns[c.slot] != c {
		return false
	}
	c.secure.own += len(c.secure.out)
	e := s.sendOwn(c)
	if e != 0 {
		s.handleClose(c, e)
	}
	return e == 0
}

// sendOwn tries to.
func (s *shard) sendOwn(c *conn) syscall.Errno {
	e := s.sendRecords(c, c.secure.out)
	c.secure.out = c.secure.out[:0]
	return e
}

// sendRecords sends b, or as much as fits: the rest follows when there is room.
func (s *shard) sendRecords(c *conn, b []byte) syscall.Errno {
	n := 0
	if len(b) > 0 && len(c.unsent) == 0 {
		var e syscall.Errno
		n, e = send(c.fd, b)
		switch {
		case e == unix.EAGAIN:
			n = 0
		case e != 0:
			return e
		}
		s.tally[nBytesOut] += uint64(n)
	}
	c.unsent = append(c.unsent, b[n:]...)
	return 0
}
