package decision

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tare/area"
)

// freeAddr returns an address on loopback at which nobody listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// TestRefusedConnectionsAreAwaited: a decision point that does not listen yet is waited for, and the error of one that
// never does says what to look at.
func TestRefusedConnectionsAreAwaited(t *testing.T) {
	addr := freeAddr(t)
	spec := xacmlSpec("http://" + addr)
	found := Area{}.Preflight(t.Context(), spec, testEnv(t))
	if len(found) != 1 || found[0].Severity != area.Warning || !strings.Contains(found[0].Message, "nobody listens") {
		t.Errorf("preflight: %v, want a warning", found)
	}
	late, j := opened(t, spec, testEnv(t))
	late.patience = 3 * time.Second // on a busy host a single try may take a second
	err := late.Prepare(t.Context(), standard, j)
	if err == nil || !strings.Contains(err.Error(), "was not ready within 3s") ||
		!strings.Contains(err.Error(), "the url has its port") || strings.Contains(err.Error(), "policies") {
		t.Errorf("nobody comes: %v", err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"Response":[{"Decision":"Permit"}]}`))
	}))
	started := make(chan error, 1)
	timer := time.AfterFunc(400*time.Millisecond, func() {
		l, err := net.Listen("tcp", addr)
		if err == nil {
			_ = server.Listener.Close()
			server.Listener = l
			server.Start()
		}
		started <- err
	})
	defer timer.Stop()
	tg, j := opened(t, spec, testEnv(t))
	if err := tg.Prepare(t.Context(), standard, j); err != nil {
		t.Errorf("it comes later: %v", err)
	}
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	server.Close()
}

// TestPlaintextToTLSIsExplained at once, and not after a minute with a hint at policies.
func TestPlaintextToTLSIsExplained(t *testing.T) {
	goServer := httptest.NewTLSServer(http.NotFoundHandler())
	defer goServer.Close()
	// Others than Go's close the connection.
	strict, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer strict.Close() //nolint:errcheck // the test has ended
	go func() {
		for {
			conn, err := strict.Accept()
			if err != nil {
				return
			}
			go relayTLS(conn, goServer.Listener.Addr().String())
		}
	}()
	for what, addr := range map[string]string{
		"one that answers 400": goServer.Listener.Addr().String(), "one that closes": strict.Addr().String(),
	} {
		tg, j := opened(t, xacmlSpec("http://"+addr), testEnv(t))
		begin := time.Now()
		err := tg.Prepare(t.Context(), standard, j)
		if err == nil || !strings.Contains(err.Error(), "write https://") || strings.Contains(err.Error(), "policies") {
			t.Errorf("%s: %v", what, err)
		}
		if took := time.Since(begin); took > readyWithin/2 {
			t.Errorf("%s: it took %v", what, took)
		}
	}
	// A server that closes every connection speaks no TLS: it is waited for.
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close() //nolint:errcheck // the test has ended
	go func() {
		for {
			conn, err := mute.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	tg, j := opened(t, xacmlSpec("http://"+mute.Addr().String()), testEnv(t))
	tg.patience = 600 * time.Millisecond
	if err := tg.Prepare(t.Context(), standard, j); err == nil || !strings.Contains(err.Error(), "was not ready within") {
		t.Errorf("a mute server: %v", err)
	}
}

// relayTLS hands a connection on that begins with a TLS handshake, and closes any other.
func relayTLS(conn net.Conn, to string) {
	defer conn.Close() //nolint:errcheck // the other side sees it
	var first [1]byte
	if _, err := conn.Read(first[:]); err != nil || first[0] != 0x16 {
		return
	}
	next, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", to)
	if err != nil {
		return
	}
	defer next.Close() //nolint:errcheck // see above
	if _, err := next.Write(first[:]); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		pipe(next, conn)
	}()
	pipe(conn, next)
	<-done
}

// pipe copies until either side ends, and then ends the other.
func pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from) // either side may end it
	_ = to.Close()
}

// TestColdness: a JVM is warm after many decisions or, where it counts none, after much CPU time.
func TestColdness(t *testing.T) {
	for _, c := range []struct {
		name   string
		cpu    float64
		counts map[string]float64
		want   string
	}{
		{"just started", 9, nil, "had only used 9 CPU-seconds"},
		{"has worked", 90, nil, ""},
		{"has run for days", 900, map[string]float64{"permit": 12, "deny": 3}, "had only made 15 decisions"},
		{"has decided", 9, map[string]float64{"permit": 70_000, "deny": 20_000}, ""},
	} {
		got := coldness("pdp", c.cpu, c.counts)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
