package identity

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"
)

const (
	// maxIdentities is how many source addresses 127.1.0.1 … 127.1.255.250 there are.
	maxIdentities = 256 * 250
	// maxBody bounds what is read of an answer outside the load engine.
	maxBody = 1 << 16
)

// sourceOf is the source address of an identity on the loopback network.
func sourceOf(key int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, 1, byte(key / 250), byte(1 + key%250)})
}

// A caller makes single requests, each on a connection of its own, with the very bytes that the load engine sends.
type caller struct {
	addr  netip.AddrPort
	local func(key int) netip.Addr // nil: the kernel's choice
}

// do sends request as the identity key and reads one answer, within timeout. It keeps the answer in memory only.
func (c caller) do(ctx context.Context, key int, request []byte, timeout time.Duration) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := c.dial(ctx, key)
	if err != nil {
		return 0, nil, err
	}
	defer conn.Close() //nolint:errcheck // nothing to lose
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if status, body, err = exchange(conn, request); err != nil && ctx.Err() != nil {
		return 0, nil, fmt.Errorf("no answer within %v: %w", timeout, ctx.Err())
	}
	return status, body, err
}

func (c caller) dial(ctx context.Context, key int) (net.Conn, error) {
	var d net.Dialer
	if c.local != nil {
		if a := c.local(key); a.IsValid() {
			d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(a, 0))
		}
	}
	return d.DialContext(ctx, "tcp", c.addr.String())
}

func exchange(conn net.Conn, request []byte) (int, []byte, error) {
	if _, err := conn.Write(request); err != nil {
		return 0, nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	return resp.StatusCode, bytes.Clone(body), err
}
