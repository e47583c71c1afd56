package identity

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"tare/internal/area"
	"tare/internal/ratelimit"
)

const (
	// maxIdentities is how many source addresses 127.1.0.1 … 127.1.255.250 there are.
	maxIdentities = 256 * 250
	// maxBody bounds what is read of an answer outside the load engine, and maxAnswer the same with its head and as it is on the wire.
	maxBody   = 1 << 16
	maxAnswer = 4 * maxBody
)

// sourceOf is the source address of an identity on the loopback network.
func sourceOf(key int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, 1, byte(key / 250), byte(1 + key%250)})
}

// A caller makes single requests, each on a connection of its own, with the very bytes that the load engine sends.
type caller struct {
	addr  netip.AddrPort
	local func(key int) netip.Addr // nil: the kernel's choice
	tls   *tls.Config              // nil: plaintext
	limit *ratelimit.Limiter
}

// do sends request as the identity key and reads one answer, within timeout. It keeps the answer in memory only.
func (c caller) do(ctx context.Context, key int, request []byte, timeout time.Duration) (status int, body []byte, err error) {
	a, err := c.ask(ctx, key, request, timeout)
	return a.status, a.body, err
}

// ask is do with the answer's header.
func (c caller) ask(ctx context.Context, key int, request []byte, timeout time.Duration) (a answer, err error) {
	if err := c.limit.Wait(ctx); err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := c.dial(ctx, key)
	if err != nil {
		return answer{}, err
	}
	defer conn.Close() //nolint:errcheck // nothing to lose
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if a, err = exchange(conn, request); err != nil && ctx.Err() != nil {
		return answer{}, fmt.Errorf("no answer within %v: %w", timeout, ctx.Err())
	}
	return a, err
}

func (c caller) dial(ctx context.Context, key int) (net.Conn, error) {
	var d net.Dialer
	if c.local != nil {
		if a := c.local(key); a.IsValid() {
			d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(a, 0))
		}
	}
	conn, err := d.DialContext(ctx, "tcp", c.addr.String())
	if err != nil || c.tls == nil {
		return conn, err
	}
	secure := tls.Client(conn, c.tls)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}

func exchange(conn net.Conn, request []byte) (a answer, err error) {
	if _, err := conn.Write(request); err != nil {
		return a, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(io.LimitReader(conn, maxAnswer)), nil) // of itself it reads a head of any length
	if err != nil {
		return a, unquoted(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	a.status, a.header = resp.StatusCode, resp.Header
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody))
	return a, err
}

// unquoted keeps an answer that is no HTTP out of errors, where net/http would quote it: it may hold a token.
func unquoted(err error) error {
	var n net.Error
	if errors.As(err, &n) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if _, ok := area.ExplainTLS(err); ok {
		return err
	}
	return errors.New("the answer is not HTTP")
}
