package load

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// modern carries HTTP/2 for engine std, through net/http. If the target does not accept it, the connection goes to the
// links.
type modern struct {
	e       *std
	clients []*http.Transport // by connection key
	refused []atomic.Bool     // the target wants HTTP/1.1
	gates   []gate            // by connection key

	mu   sync.Mutex // taken after the engine's lock
	open map[*countedConn]bool
}

var errNotModern = errors.New("the target takes HTTP/1.1 only")

// isModern reports whether an endpoint may be called over HTTP/2.
func isModern(e *Endpoint) bool { return e.TLS != nil && slices.Contains(e.TLS.NextProtos, "h2") }

func newModern(e *std) *modern {
	n := e.cfg.at.keys
	m := &modern{e: e, refused: make([]atomic.Bool, n), gates: make([]gate, n), open: map[*countedConn]bool{}}
	for key := range n {
		m.refused[key].Store(!isModern(e.cfg.at.endpoint(key)))
		m.gates[key].ended = make(chan struct{})
		m.clients = append(m.clients, &http.Transport{
			DialTLSContext:      func(ctx context.Context, _, _ string) (net.Conn, error) { return m.dial(ctx, key) },
			MaxIdleConnsPerHost: e.cfg.MaxConns, MaxConnsPerHost: e.cfg.MaxConns,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeader,
			ForceAttemptHTTP2:      true,
		})
	}
	return m
}

// dial establishes an HTTP/2 connection. net/http may abandon it without waiting for it: the engine does that.
func (m *modern) dial(ctx context.Context, key int) (net.Conn, error) {
	e := m.e
	e.mu.Lock()
	if e.closing {
		e.mu.Unlock()
		return nil, net.ErrClosed
	}
	e.all.Add(1)
	base := e.links.base
	e.mu.Unlock()
	defer e.all.Done()
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	defer context.AfterFunc(base, cancel)()
	if err := m.awaitDial(ctx, &m.gates[key]); err != nil {
		return nil, err
	}
	defer m.endDial(&m.gates[key])
	conn, raw, err := e.connect(ctx, key, tlsOf(e.cfg.at.endpoint(key), true))
	if err != nil {
		return nil, err
	}
	if secure, ok := conn.(*tls.Conn); ok && secure.ConnectionState().NegotiatedProtocol == "h2" {
		return conn, m.track(base, raw, key)
	}
	m.refused[key].Store(true)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.links.size++
	e.addLink(base, conn, raw, key)
	return nil, errNotModern
}

// track records a connection, so that it can be closed: net/http closes only idle ones. It closes one itself if Reset,
// which cancels the base of dials, came between the dial and this.
func (m *modern) track(base context.Context, raw *countedConn, key int) error {
	e := m.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := base.Err(); err != nil || e.closing {
		_ = raw.Close()
		return cmp.Or(err, net.ErrClosed)
	}
	m.gates[key].made = e.clock.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open[raw] = true
	raw.after = func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.open, raw)
	}
	return nil
}

// drop closes every connection, even busy ones.
func (m *modern) drop() {
	if m == nil {
		return
	}
	m.mu.Lock()
	open := slices.Collect(maps.Keys(m.open))
	m.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
}

func (m *modern) dropIdle() {
	if m == nil {
		return
	}
	for _, t := range m.clients {
		t.CloseIdleConnections()
	}
}

// onlyReader hides the type of a body, even of an empty one: net/http resends bodies that it can rewind, and a timed
// call must never be sent twice.
type onlyReader struct{ io.Reader }

func (onlyReader) Close() error { return nil }

// parseRequest turns the bytes of an HTTP/1.1 request into a request for net/http.
func (m *modern) parseRequest(ctx context.Context, key int, b []byte) (*http.Request, error) {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
	if err != nil {
		return nil, errRequest
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, errRequest
	}
	r.RequestURI = ""
	if r.URL.Scheme, r.URL.Host = "https", r.Host; r.URL.Host == "" {
		r.URL.Host = m.e.cfg.at.endpoint(key).Addr.String()
	}
	if _, given := r.Header["User-Agent"]; !given {
		r.Header["User-Agent"] = []string{""} // none, instead of Go's own
	}
	r.ContentLength = int64(len(body))
	r.Body = onlyReader{bytes.NewReader(body)}
	return r.WithContext(ctx), nil
}

// exchange performs the request w.request of c.
func (m *modern) exchange(ctx context.Context, w *worker, c *goCall, op *Operation) ending {
	e := m.e
	answer, err := m.roundTrip(m.trace(ctx, c), w, c)
	if errors.Is(err, errNotModern) {
		return e.exchangeHTTP1(ctx, w, c)
	}
	if err != nil {
		return e.failed(c, err)
	}
	defer func() { _ = answer.Body.Close() }()
	status := uint16(answer.StatusCode)
	body, err := w.read(answer.Body)
	e.recordSizes(c, headLength(answer)+body, len(w.request))
	if err != nil {
		end := e.failed(c, err)
		if end.outcome == Failed {
			end.code = status
		}
		return end
	}
	at := e.clock.now()
	end := ending{op.Wire.Check(c.i, answer.StatusCode, w.body), status, 0, at}
	if !end.outcome.Good() {
		end.cause = explain(op, c.i, answer.StatusCode, w.body)
	}
	return end
}

// maxAttempts bounds how often a request is repeated that the target has not processed.
const maxAttempts = 4

// roundTrip sends the request and returns the answer. It repeats it if the target has not processed it because it is
// closing the connection: that is neither an answer nor a failure, and every client continues on another connection
// (RFC 9113, sections 6.8 and 8.7). A kube-apiserver with --goaway-chance does so often. The call's time includes it.
func (m *modern) roundTrip(ctx context.Context, w *worker, c *goCall) (*http.Response, error) {
	defer m.setWaiting(c, false)
	for n := 1; ; n++ {
		r, err := m.parseRequest(ctx, c.key, w.request)
		if err != nil {
			return nil, err
		}
		answer, err := m.clients[c.key].RoundTrip(r)
		if err == nil || ctx.Err() != nil {
			return answer, err
		}
		if again := isUnprocessed(err) || (n == 1 && isStreamRefused(err)); !again || n >= maxAttempts {
			return nil, err
		}
	}
}

// isUnprocessed reports whether the target has not processed a request, according to the text of net/http's error,
// which has no better type: the request was beyond the last one that a GOAWAY promises to answer, or was not sent, as
// the connection had just ended. net/http would retry by itself if it knew the body, but also after errors that leave
// it open whether the request was processed.
func isUnprocessed(err error) bool {
	text := err.Error()
	return strings.Contains(text, "received Server's graceful shutdown GOAWAY") ||
		strings.Contains(text, "cannot rewind body after connection loss")
}

// isStreamRefused reports whether the target has refused a stream without processing it: calls on a new connection may
// exceed the number that it accepts, which it could not announce before. Another connection is then used; a target that
// sheds load in this way is asked once more only.
func isStreamRefused(err error) bool { return strings.Contains(err.Error(), "REFUSED_STREAM") }

// recordSizes records the sizes of a call's answer and request.
func (e *std) recordSizes(c *goCall, in, out int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c.in, c.out = uint64(in), uint64(out)
}

// headLength returns the length of an HTTP/2 answer's head as HTTP/1.1: its length on the wire depends on what the
// connection has carried before (RFC 7541), and not on the answer.
func headLength(r *http.Response) int {
	n := len("HTTP/1.1 200 ") + len(http.StatusText(r.StatusCode)) + 2*len("\r\n")
	for name, values := range r.Header {
		for _, v := range values {
			n += len(name) + len(": ") + len(v) + len("\r\n")
		}
	}
	return n
}

// trace records the phases of c.
func (m *modern) trace(ctx context.Context, c *goCall) context.Context {
	e := m.e
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { m.setWaiting(c, true) },
		GotConn: func(info httptrace.GotConnInfo) {
			m.setWaiting(c, false)
			since := int64(0)
			if !info.Reused {
				since = e.clock.now()
			}
			_ = e.awaitRateLimit(ctx, c, since) // with an error the call has ended, which net/http sees next
			c.counted = 0                       // sent again, it counts again
			e.mu.Lock()
			defer e.mu.Unlock()
			e.markSent(c, number(info.Conn), since)
		},
		GotFirstResponseByte: func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			if !c.ended {
				c.rec.FirstByte = ns(e.clock.now())
			}
		},
	})
}

// number returns the number of the connection below c.
func number(c net.Conn) uint32 {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if n, ok := c.(*countedConn); ok {
		return n.id
	}
	return 0
}

// read reads the body into w.body, as far as Check sees it, and discards the rest. It returns the length of both.
func (w *worker) read(body io.Reader) (int, error) {
	w.body = reset(w.body)
	if cap(w.body) == 0 {
		w.body = make([]byte, 0, 4<<10)
	}
	for len(w.body) < maxBody {
		if len(w.body) == cap(w.body) {
			w.body = append(w.body, 0)[:len(w.body)]
		}
		n, err := body.Read(w.body[len(w.body):min(cap(w.body), maxBody)])
		w.body = w.body[:len(w.body)+n]
		if errors.Is(err, io.EOF) {
			return len(w.body), nil
		}
		if err != nil {
			return len(w.body), err
		}
	}
	n, err := io.Copy(io.Discard, io.LimitReader(body, maxAnswer-maxBody+1))
	if err == nil && n > maxAnswer-maxBody {
		err = &answerError{errAnswer}
	}
	return len(w.body) + int(n), err
}
