package oneshot

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"tare/internal/clock"
	"tare/internal/kit"
	"tare/internal/ratelimit"
	"tare/rigs/hosttest"
	"tare/rigs/memtest"
)

const (
	get    = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
	within = 10 * time.Second
)

func exchange(conn net.Conn) error {
	var c Conn
	c.use(conn)
	_, err := c.exchange([]byte(get))
	return err
}

// TestEndlessAnswers: tare stops reading an endless answer, whichever part of it is endless, and says so.
func TestEndlessAnswers(t *testing.T) {
	hosttest.SkipIfShort(t)
	memtest.EndlessAnswers(t, 4*maxAnswer, exchange)
}

func FuzzExchange(f *testing.F) { memtest.FuzzAnswers(f, exchange) }

// serve answers each connection's first request with raw bytes, and counts connections.
func serve(t *testing.T, raw string) Client {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, raw)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return Client{Addr: l.Addr().(*net.TCPAddr).AddrPort()}
}

func TestHostileAnswers(t *testing.T) {
	for _, c := range []struct{ name, raw, want string }{
		{"nothing", "", "EOF"},
		{"no HTTP", "SSH-2.0-s3cr3t\r\n", "not HTTP"},
		{"an alert of TLS", "\x15\x03s3cr3t\r\n\r\n", "the server speaks TLS at this port"},
		{"words of TLS", "HTTP/1.1 200 OK\r\n(remote error: tls: s3cr3t\r\n\r\n", "not HTTP"},
		{"a malformed trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\ns3cr3t\r\n\r\n", "not HTTP"},
		{"a malformed header", "HTTP/1.1 200 OK\r\ns3cr3t\r\n\r\n", "not HTTP"},
		{"a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "not HTTP"},
		{"a short body", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ns3cr3t", "unexpected EOF"},
		{"a long body", "HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n" + strings.Repeat("a", 9000000), "longer than"},
	} {
		a, err := serve(t, c.raw).Do(t.Context(), []byte(get), within)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: status %d, %v, want %q", c.name, a.Status, err, c.want)
		}
		if errors.Is(err, ErrTooLong) != (c.want == "longer than") ||
			errors.Is(err, ErrTooLong) && (a.Status != 200 || a.Body != nil) {
			t.Errorf("%s: status %d, %d bytes, %v", c.name, a.Status, len(a.Body), err)
		}
	}
}

func TestDo(t *testing.T) {
	c := serve(t, "HTTP/1.1 401 No\r\nA: b\r\nContent-Length: 2\r\n\r\nno")
	c.Local = netip.MustParseAddr("127.1.0.9")
	a, err := c.Do(t.Context(), []byte(get), within)
	if err != nil || a.Status != 401 || a.Header.Get("A") != "b" || string(a.Body) != "no" {
		t.Errorf("got %+v, %v; want status 401 with its header and body", a, err)
	}
}

// TestSourceAddress: a request comes from the source address that was given.
func TestSourceAddress(t *testing.T) {
	from := ""
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { from = r.RemoteAddr }))
	t.Cleanup(s.Close)
	c := Client{Addr: s.Listener.Addr().(*net.TCPAddr).AddrPort(), Local: netip.MustParseAddr("127.1.0.9")}
	if _, err := c.Do(t.Context(), []byte(get), within); err != nil || !strings.HasPrefix(from, "127.1.0.9:") {
		t.Errorf("from %q, %v", from, err)
	}
}

func TestTimeout(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(func() { close(release); s.Close() })
	c := Client{Addr: s.Listener.Addr().(*net.TCPAddr).AddrPort()}
	_, err := c.Do(t.Context(), []byte(get), 20*time.Millisecond)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "within 20ms") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if _, err := c.Do(ctx, []byte(get), within); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestUnansweredHandshake: what is said names the handshake, and nothing that tare itself did afterwards.
func TestUnansweredHandshake(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // its connections are not accepted
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing was written
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	c := Client{Addr: l.Addr().(*net.TCPAddr).AddrPort(), TLS: &tls.Config{ServerName: "h"}}
	const want = "it accepts the connection, and does not end the TLS handshake in time: context deadline exceeded"
	if _, err := c.Dial(ctx); !errors.Is(err, context.DeadlineExceeded) || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}

// TestLimitHoldsRequestsBack: nothing is sent while the limit does not allow it.
func TestLimitHoldsRequestsBack(t *testing.T) {
	c := serve(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	c.Limit = ratelimit.New(clock.System{}, 1e-3)
	if _, err := c.Do(t.Context(), []byte(get), within); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := c.Do(ctx, []byte(get), within); !errors.Is(err, context.Canceled) {
		t.Errorf("a second request within 1000 s at 0.001/s: %v", err)
	}
}

// TestConnectionIsReused until the server closes it, announced or not.
func TestConnectionIsReused(t *testing.T) {
	var conns []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conns = append(conns, r.RemoteAddr)
		if len(conns) == 2 {
			w.Header().Set("Connection", "close")
		}
	}))
	t.Cleanup(s.Close)
	c := Conn{Client: Client{Addr: s.Listener.Addr().(*net.TCPAddr).AddrPort()}}
	defer c.Close()
	for i, open := range []bool{true, false, true} {
		if _, err := c.Do(t.Context(), []byte(get), within); err != nil || c.IsOpen() != open {
			t.Errorf("request %d: open %v, want %v; %v", i, c.IsOpen(), open, err)
		}
	}
	if conns[0] != conns[1] || conns[1] == conns[2] {
		t.Errorf("connections %v", conns)
	}
	s.CloseClientConnections()
	if _, err := c.Do(t.Context(), []byte(get), within); err == nil || c.IsOpen() {
		t.Errorf("on a connection that the server has closed: %v, open %v", err, c.IsOpen())
	}
	if _, err := c.Do(t.Context(), []byte(get), within); err != nil {
		t.Error(err)
	}
}

// TestTLS: the certificate is verified, and an error says what is wrong with it.
func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	for name, good := range map[string]bool{"example.com": true, "other.example": false} {
		c := Client{Addr: s.Listener.Addr().(*net.TCPAddr).AddrPort()}
		c.TLS = &tls.Config{RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS12}
		a, err := c.Do(t.Context(), []byte(get), within)
		if (err == nil && a.Status == 404) != good {
			t.Errorf("%s: status %d, %v", name, a.Status, err)
		}
		if err != nil {
			f, _ := kit.ExplainTLS(err)
			if f.Path != "tls.server_name" {
				t.Errorf("%s: got %v, want an error about tls.server_name", name, err)
			}
			// a server that has got a secret may show it as its name
			if strings.Contains(err.Error()+f.Message, "example.com") || !strings.Contains(f.Message, name) {
				t.Errorf("%s: %v; %s", name, err, f.Message)
			}
		}
	}
	plain := serve(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	plain.TLS = &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12}
	if _, err := plain.Do(t.Context(), []byte(get), within); err == nil {
		t.Error("a server without TLS is good")
	} else if f, _ := kit.ExplainTLS(err); f.Path != "url" {
		t.Errorf("a server without TLS: %v", err)
	}
}
