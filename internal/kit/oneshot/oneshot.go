// Package oneshot makes single HTTP/1.1 requests to a target, outside of the load: with the very bytes that the load
// engine sends, under the run's rate limit, and with an answer that is bounded in size and in time. It retries nothing,
// follows no redirect and uses no proxy.
package oneshot

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"tare/internal/mask"
	"tare/internal/ratelimit"
)

const (
	// MaxBody bounds the body of an answer, in bytes.
	MaxBody = 4 << 20
	// maxAnswer bounds all of an answer as it is on the wire: net/http itself reads a head of any length.
	maxAnswer = 2*MaxBody + 1<<20
)

// ErrTooLong is about an answer that is longer than MaxBody, or that does not end.
var ErrTooLong = fmt.Errorf("the answer is longer than %d bytes", MaxBody)

// A Client says how a target is reached. The zero values of its fields but for Addr are good.
type Client struct {
	Addr  netip.AddrPort
	Local netip.Addr         // source address; the zero Addr: the kernel's choice
	TLS   *tls.Config        // with a ServerName; nil: plaintext
	Limit *ratelimit.Limiter // shared with the load; nil: no bound
}

// An Answer is a complete response. Its body may be a credential, so that neither it nor its header may be printed.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends a whole request on a connection of its own and reads the answer. timeout bounds all but the wait for the
// rate limit. An answer that is ErrTooLong has its status.
func (c Client) Do(ctx context.Context, request []byte, timeout time.Duration) (Answer, error) {
	conn := Conn{Client: c}
	defer conn.Close()
	return conn.Do(ctx, request, timeout)
}

// Dial connects, with the TLS handshake where there is one, until ctx ends.
func (c Client) Dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	if c.Local.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.Local, 0))
	}
	conn, err := d.DialContext(ctx, "tcp", c.Addr.String())
	if err != nil || c.TLS == nil {
		return conn, err
	}
	secure := tls.Client(conn, c.TLS)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the handshake has, where ctx ended
		err = mask.Answer(err)
		if ctx.Err() != nil {
			err = fmt.Errorf("it accepts the connection, and does not end the TLS handshake in time: %w", err)
		}
		return nil, err
	}
	return secure, nil
}

// A Conn makes one request after another on one connection, for as long as the server keeps it open, and then on a new
// one: where several servers share an address, the same one answers. It is for one goroutine at a time.
type Conn struct {
	Client
	conn  net.Conn          // nil: none is open
	bound *io.LimitedReader // of conn
	in    *bufio.Reader     // of bound
}

// IsOpen reports whether the next request goes on a connection that has served one before.
func (c *Conn) IsOpen() bool { return c.conn != nil }

// Close ends the connection, if there is one. The next request makes another.
func (c *Conn) Close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// Do is Client.Do on c's connection, which an error closes.
func (c *Conn) Do(ctx context.Context, request []byte, timeout time.Duration) (a Answer, err error) {
	if err := c.Limit.Wait(ctx); err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if c.conn == nil {
		conn, err := c.Dial(ctx)
		if err != nil {
			return Answer{}, err
		}
		c.use(conn)
	}
	conn := c.conn
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	a, err = c.exchange(request)
	if err != nil {
		c.Close()
	}
	if err != nil && ctx.Err() != nil {
		return Answer{}, fmt.Errorf("no answer within %v: %w", timeout, ctx.Err())
	}
	return a, err
}

func (c *Conn) use(conn net.Conn) {
	c.conn, c.bound = conn, &io.LimitedReader{R: conn}
	c.in = bufio.NewReader(c.bound)
}

// exchange sends a request and reads one answer.
func (c *Conn) exchange(request []byte) (a Answer, err error) {
	if _, err := c.conn.Write(request); err != nil {
		return a, mask.Answer(err)
	}
	c.bound.N = maxAnswer
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return a, c.tooLong(mask.Answer(err))
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	a.Status, a.Header = resp.StatusCode, resp.Header
	a.Body, err = io.ReadAll(io.LimitReader(resp.Body, MaxBody+1))
	err = mask.Answer(err)
	if len(a.Body) > MaxBody {
		a.Body, err = nil, ErrTooLong
	}
	if resp.Close {
		c.Close()
	}
	return a, c.tooLong(err)
}

// tooLong returns err, or that the answer did not end where it had to.
func (c *Conn) tooLong(err error) error {
	if err != nil && c.bound.N <= 0 {
		return ErrTooLong
	}
	return err
}
