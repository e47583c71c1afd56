package load

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// Fresh implements Stream. It uses plain blocking code: nothing of the pool can help or hinder it.
func (s *stream) Fresh(ctx context.Context, op int, i uint64, timeout time.Duration) Call {
	c := Call{Operation: uint8(op), Intended: s.Now()}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	o := &s.cfg.Operations[op]
	var err error
	if o.Wire == nil {
		c.Ready, c.Sent = c.Intended, s.Now()
		r := o.Call(ctx, i)
		c.Outcome, c.Status, c.Errno = r.Outcome, r.Status, r.Errno
		s.clock.adoptPhases(&c, r)
	} else {
		err = s.fresh(ctx, &c, o.Wire, i)
	}
	c.Done = s.Now()
	if err != nil {
		c.Outcome, c.Errno = blame(err, c.Sent != 0)
	}
	if ctx.Err() != nil || c.Done > c.Intended+timeout {
		c.Outcome, c.Errno = Timeout, 0
	}
	return c
}

// adoptPhases takes over what a Go call says about its own phases.
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

// blame tells how an error ends a call: a connection that could not be made, or was lost with an errno, is ConnFailed.
func blame(err error, sent bool) (Outcome, uint16) {
	var e syscall.Errno
	switch {
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded):
		return Timeout, 0
	case errors.As(err, &e):
		return ConnFailed, uint16(e)
	case !sent:
		return ConnFailed, 0
	}
	return Failed, 0
}

func (s *stream) fresh(ctx context.Context, c *Call, w Wire, i uint64) error {
	key := 0
	if n := s.cfg.Endpoint.Keys; n > 1 {
		key = int(uint(w.ConnKey(i)) % uint(n))
	}
	conn, err := s.cfg.Endpoint.dial(ctx, key)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	interrupt := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer interrupt()
	if conf := s.cfg.Endpoint.tls(); conf != nil {
		conf.NextProtos = nil
		secure := tls.Client(conn, conf)
		if err := secure.HandshakeContext(ctx); err != nil {
			return err
		}
		conn = secure
	}
	request := w.Render(nil, i)
	c.Ready = s.Now()
	c.Sent = s.Now()
	if _, err := conn.Write(request); err != nil {
		return err
	}
	return s.freshAnswer(conn, c, w, i, len(request) > 0 && request[0] == 'H')
}

func (s *stream) freshAnswer(conn io.Reader, c *Call, w Wire, i uint64, head bool) error {
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
			return bad
		}
		if done || (errors.Is(err, io.EOF) && p.eof()) {
			c.Outcome = w.Check(i, p.status, p.whole)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// dial connects from the source address of key.
func (e *Endpoint) dial(ctx context.Context, key int) (net.Conn, error) {
	d := net.Dialer{KeepAlive: -1}
	if e.Local != nil {
		if a := e.Local(key); a.IsValid() {
			d.LocalAddr = &net.TCPAddr{IP: a.AsSlice()}
		}
	}
	return d.DialContext(ctx, "tcp", e.Addr.String())
}

// tls is a copy of the configuration with its server name, nil for plaintext.
func (e *Endpoint) tls() *tls.Config {
	if e.TLS == nil {
		return nil
	}
	conf := e.TLS.Clone()
	if conf.ServerName == "" {
		conf.ServerName = e.Host
		if host, _, err := net.SplitHostPort(e.Host); err == nil {
			conf.ServerName = host
		}
	}
	return conf
}
