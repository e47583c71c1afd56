package door_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"tare/areas/admission/engine/door"
	"tare/rigs/hosttest"
)

// TestOthersGetNoAnswer: a server answers its own user, and nobody else, with and without TLS.
func TestOthersGetNoAnswer(t *testing.T) {
	for name, start := range map[string]func(s *httptest.Server){
		"http":      func(s *httptest.Server) { door.Shut(s.Config); s.Start() },
		"https":     func(s *httptest.Server) { door.Shut(s.Config); s.StartTLS() },
		"handshake": func(s *httptest.Server) { s.TLS = &tls.Config{}; door.ShutTLS(s.TLS); s.StartTLS() },
		"http2": func(s *httptest.Server) {
			s.EnableHTTP2, s.TLS = true, &tls.Config{}
			door.ShutTLS(s.TLS)
			s.StartTLS()
		},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				_, _ = io.WriteString(w, "counts")
			}))
			s.Config.ErrorLog = nil
			start(s)
			defer s.Close()
			for range 3 {
				a, err := s.Client().Get(s.URL)
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(a.Body)
				if _ = a.Body.Close(); err != nil || string(text) != "counts" {
					t.Fatalf("its own user got %q, %v", text, err)
				}
				s.Client().CloseIdleConnections()
			}
			var said []byte
			err := hosttest.AsStranger(t, func() error {
				c, err := net.Dial("tcp", s.Listener.Addr().String())
				if err != nil {
					t.Error(err)
					return err
				}
				defer c.Close() //nolint:errcheck // nothing to lose
				if s.TLS != nil {
					c = tls.Client(c, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // whoever it is
				}
				if _, err := io.WriteString(c, "GET / HTTP/1.0\r\n\r\n"); err != nil {
					return err
				}
				said, err = io.ReadAll(c)
				return err
			})
			if len(said) > 0 || s.TLS != nil && err == nil || asked.Load() != 3 {
				t.Errorf("another user got %q, %v; %d requests were answered, want 3", said, err, asked.Load())
			}
		})
	}
}

// TestHalfClosedIsNobodys: the kernel says that a connection is root's once its other end is closed.
func TestHalfClosedIsNobodys(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing to lose
	config := &tls.Config{}
	door.ShutTLS(config)
	hello := func() error {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close() //nolint:errcheck // nothing to lose
		if b, err := io.ReadAll(c); err != nil || len(b) > 0 {
			t.Errorf("read %q, %v", b, err)
		}
		_, err = config.GetConfigForClient(&tls.ClientHelloInfo{Conn: c})
		return err
	}
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := hello(); err == nil || !strings.Contains(err.Error(), "not one of this user's") {
		t.Errorf("a connection that is closed: %v", err)
	}
}
