package load

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"time"
)

// Fresh implements Stream. It uses plain blocking code, independent of the pool.
func (s *stream) Fresh(ctx context.Context, op int, i uint64, timeout time.Duration) Call {
	turn := s.cfg.Limit.Wait(ctx)
	c := Call{Operation: uint8(op), Intended: s.Now()}
	if turn != nil {
		c.Done, c.Outcome, c.Errno, c.Cause = c.Intended, ConnFailed, uint16(syscall.ECONNABORTED), CauseAbandoned
		return c
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	o := &s.cfg.Operations[op]
	var err error
	if o.Wire == nil {
		c.Ready, c.Sent = c.Intended, s.Now()
		r := o.Call(ctx, i)
		c.Outcome, c.Status, c.Errno, c.Cause = r.Outcome, r.Status, r.Errno, r.Cause
		s.clock.adoptPhases(&c, r)
	} else {
		err = s.fresh(ctx, &c, o, i)
	}
	c.Done = s.Now()
	if err != nil {
		c.Outcome, c.Errno, c.Cause = classify(err, c.Sent != 0, c.FirstByte != 0)
	}
	if ctx.Err() != nil || c.Done > c.Intended+timeout {
		c.Outcome, c.Done = Timeout, max(c.Intended+timeout, c.Sent)
		c.forgetLate()
		c.Cause = c.freshTimeoutCause(o.Wire == nil, err)
	}
	if c.Outcome != ConnFailed {
		c.Errno = 0
	}
	if c.Outcome == ConnFailed || c.Outcome == Timeout {
		c.Status = 0
	}
	return c
}

// freshTimeoutCause returns the cause of a timeout of a call on its own connection.
func (c *Call) freshTimeoutCause(goCall bool, err error) Cause {
	switch shake := (*handshakeError)(nil); {
	case goCall:
		return CauseNoReturn
	case errors.As(err, &shake):
		return CauseHandshaking
	case c.Sent == 0:
		return CauseDialing
	}
	return c.Phase()
}

// adoptPhases copies the phases that a Go call reports.
func (k streamClock) adoptPhases(c *Call, r Result) {
	adopt := func(to *time.Duration, t time.Time) {
		if !t.IsZero() {
			*to = max(c.Intended, time.Duration(k.at(t)))
		}
	}
	adopt(&c.Ready, r.Ready)
	adopt(&c.Sent, r.Sent)
	adopt(&c.FirstByte, r.FirstByte)
}

func (s *stream) fresh(ctx context.Context, c *Call, o *Operation, i uint64) error {
	w := o.Wire
	key := s.cfg.at.key(c.Operation, w, i)
	conn, err := dial(ctx, s.cfg.at, key)
	if err != nil {
		return err
	}
	raw := conn
	defer func() { _ = raw.Close() }()
	interrupt := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })
	defer interrupt()
	if conf := tlsOf(s.cfg.at.endpoint(key), false); conf != nil {
		if conn, err = handshake(ctx, conn, conf); err != nil {
			return err
		}
	}
	request := w.Render(nil, i)
	if len(request) == 0 {
		return errRequest
	}
	c.Ready = s.Now()
	c.Sent = s.Now()
	if _, err := conn.Write(request); err != nil {
		return err
	}
	return s.freshAnswer(conn, c, o, i, request[0] == 'H')
}

func (s *stream) freshAnswer(conn io.Reader, c *Call, o *Operation, i uint64, head bool) error {
	var p parser
	var t template
	p.begin(head)
	b := make([]byte, 16<<10)
	for {
		n, err := conn.Read(b)
		if n > 0 && c.FirstByte == 0 {
			c.FirstByte = s.Now()
		}
		done, _, bad := p.feed(b[:n], &t)
		if p.state != inHeader {
			c.Status = uint16(p.status)
		}
		if bad != nil {
			return &answerError{bad}
		}
		if done || (errors.Is(err, io.EOF) && p.eof()) {
			if c.Outcome = o.Wire.Check(i, p.status, p.whole); !c.Outcome.Good() {
				c.Cause = explain(o, i, p.status, p.whole)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// dial connects from the source address of key.
func dial(ctx context.Context, at *places, key int) (net.Conn, error) {
	d := net.Dialer{KeepAlive: -1}
	if a := at.local(key); a.IsValid() {
		d.LocalAddr = &net.TCPAddr{IP: a.AsSlice()}
	}
	return d.DialContext(ctx, "tcp", at.endpoint(key).Addr.String())
}

// tlsOf returns a copy of the configuration with its server name, for HTTP/1.1 or with the configured protocols; nil
// for plaintext.
func tlsOf(e *Endpoint, modern bool) *tls.Config {
	if e.TLS == nil {
		return nil
	}
	conf := e.TLS.Clone()
	if !modern {
		conf.NextProtos = slices.DeleteFunc(slices.Clone(conf.NextProtos), func(p string) bool { return p == "h2" })
	}
	if conf.ServerName == "" {
		conf.ServerName = e.Host
		if host, _, err := net.SplitHostPort(e.Host); err == nil {
			conf.ServerName = host
		}
	}
	return conf
}
