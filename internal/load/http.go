package load

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"time"
)

// transport keeps the connections of one identity.
func (e *std) transport(key int) *http.Transport {
	t := &http.Transport{
		DialContext:  func(ctx context.Context, _, _ string) (net.Conn, error) { return e.dialHTTP(ctx, key) },
		MaxIdleConns: 0, MaxIdleConnsPerHost: e.cfg.MaxConns, MaxConnsPerHost: e.cfg.MaxConns,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		TLSClientConfig:        e.cfg.Endpoint.tls(),
	}
	if t.TLSClientConfig != nil && slices.Contains(t.TLSClientConfig.NextProtos, "h2") {
		t.ForceAttemptHTTP2 = true
	} else {
		t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	return t
}

// countedConn is a connection with its number.
type countedConn struct {
	net.Conn
	id   uint32
	e    *std
	once sync.Once
}

func (e *std) dialHTTP(ctx context.Context, key int) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	e.connecting.Add(1)
	defer e.connecting.Add(-1)
	if err := e.holdBack(ctx); err != nil {
		return nil, err
	}
	c, err := e.cfg.Endpoint.dial(ctx, key)
	e.mu.Lock()
	if err == nil {
		e.nextDial = 0
	} else {
		e.nextDial = max(e.nextDial, e.clock.now()+growGap)
	}
	e.mu.Unlock()
	if err != nil {
		return nil, err
	}
	e.established.Add(1)
	return &countedConn{Conn: c, id: e.conns.Add(1), e: e}, nil
}

// holdBack keeps dials that fail from spinning: the next one comes a growth gap later.
func (e *std) holdBack(ctx context.Context) error {
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
	t := time.NewTimer(ns(wait))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func (c *countedConn) Read(b []byte) (int, error) {
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
	c.once.Do(func() { c.e.established.Add(-1) })
	return c.Conn.Close()
}

// number is the number of the connection below c.
func number(c net.Conn) uint32 {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if n, ok := c.(*countedConn); ok {
		return n.id
	}
	return 0
}

// onlyReader hides the type of a body, also of an empty one: net/http sends again what it thinks it can, and a timed call is
// never sent twice.
type onlyReader struct{ io.Reader }

func (onlyReader) Close() error { return nil }

var errRequest = errors.New("the operation rendered no valid HTTP/1.1 request")

// request turns the bytes of an HTTP/1.1 request into one for net/http.
func (e *std) request(ctx context.Context, w Wire, i uint64) (*http.Request, error) {
	raw := bufio.NewReader(bytes.NewReader(w.Render(nil, i)))
	r, err := http.ReadRequest(raw)
	if err != nil {
		return nil, errRequest
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, errRequest
	}
	r.RequestURI = ""
	r.URL.Scheme, r.URL.Host = "http", r.Host
	if e.cfg.Endpoint.TLS != nil {
		r.URL.Scheme = "https"
	}
	if r.URL.Host == "" {
		r.URL.Host = e.cfg.Endpoint.Addr.String()
	}
	if _, given := r.Header["User-Agent"]; !given {
		r.Header["User-Agent"] = []string{""} // none, instead of Go's own
	}
	r.ContentLength = int64(len(body))
	r.Body = onlyReader{bytes.NewReader(body)}
	return r.WithContext(ctx), nil
}

// exchange performs an operation over HTTP.
func (e *std) exchange(ctx context.Context, w *worker, c *goCall, wire Wire) ending {
	key := 0
	if n := e.cfg.Endpoint.Keys; n > 1 {
		key = int(uint(wire.ConnKey(c.i)) % uint(n))
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { e.markSent(c, number(info.Conn), !info.Reused) },
		GotFirstResponseByte: func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			if !c.ended {
				c.rec.FirstByte = ns(e.clock.now())
			}
		},
	})
	r, err := e.request(ctx, wire, c.i)
	if err != nil {
		return ending{Failed, 0, e.clock.now()}
	}
	answer, err := e.clients[key].RoundTrip(r)
	if err != nil {
		return e.blame(c, err, 0)
	}
	defer func() { _ = answer.Body.Close() }()
	if err := w.read(answer.Body); err != nil {
		return e.blame(c, err, uint16(answer.StatusCode))
	}
	at := e.clock.now()
	return ending{wire.Check(c.i, answer.StatusCode, w.body), uint16(answer.StatusCode), at}
}

func (e *std) blame(c *goCall, err error, status uint16) ending {
	at := e.clock.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	o, code := blame(err, c.rec.Sent != 0)
	if o == Failed {
		code = status
	}
	return ending{o, code, at}
}

// read takes the body into w.body, as far as Check sees it, and throws the rest away.
func (w *worker) read(body io.Reader) error {
	w.body = shed(w.body)
	if cap(w.body) == 0 {
		w.body = make([]byte, 0, 4<<10)
	}
	for len(w.body) < maxBody {
		if len(w.body) == cap(w.body) {
			w.body = append(w.body, 0)[:len(w.body)]
		}
		n, err := body.Read(w.body[len(w.body):min(cap(w.body), maxBody)])
		w.body = w.body[:len(w.body)+n]
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	_, err := io.Copy(io.Discard, body)
	return err
}
