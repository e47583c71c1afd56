package load

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tare/rigs/hosttest"
)

// streams is how many calls a connection of an http2Target takes at once.
const streams = 20

// http2Target is a server that speaks HTTP/2 only.
type http2Target struct {
	*httptest.Server
	mu   sync.Mutex
	open map[any]bool
	made int
}

func newHTTP2(t *testing.T, h http.HandlerFunc) *http2Target {
	t.Helper()
	x := &http2Target{Server: httptest.NewUnstartedServer(h), open: map[any]bool{}}
	x.EnableHTTP2 = true
	x.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	x.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
	x.Listener = counted{x.Listener, x}
	x.StartTLS()
	t.Cleanup(x.Close)
	return x
}

// to sets what a stream to x needs.
func (x *http2Target) to(c *Config) {
	conf := x.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	conf.NextProtos = []string{"h2"}
	c.Endpoint.Addr, c.Endpoint.TLS, c.Endpoint.Host = netip.MustParseAddrPort(x.Listener.Addr().String()),
		conf, "example.com"
}

func (x *http2Target) connections() (open, made int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.open), x.made
}

// left waits until no connection is open, and says how many still are.
func (x *http2Target) left() (open int) {
	for range 500 {
		if open, _ = x.connections(); open == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return open
}

// A target that says goodbye again and again, as a kube-apiserver with --goaway-chance does, costs no call, no call
// twice, and no more connections than it takes.
func TestGoodbyesCostNoCalls(t *testing.T) {
	var seen, goodbyes atomic.Uint64
	x := newHTTP2(t, func(w http.ResponseWriter, _ *http.Request) {
		if seen.Add(1)%25 == 0 {
			goodbyes.Add(1)
			w.Header().Set("Connection", "close") // over HTTP/2, Go's server makes a GOAWAY of it
		}
		_, _ = w.Write([]byte("ok"))
	})
	s := open(t, netip.AddrPort{}, x.to, func(c *Config) { c.Operations[0].Wire = wire{body: "hello"} })
	enough := func() bool { return s.Progress().Ended() > 500 }
	if _, err := s.Cycle(t.Context(), Closed{Workers: 16, Duration: 20 * time.Second}, time.Millisecond,
		enough); err != nil {
		t.Fatal(err)
	}
	p := drain(t, s)
	if p.Done[OK] != p.Due || p.Due < 100 || seen.Load() != p.Due {
		t.Errorf("of %d calls %v ended so; the target saw %d", p.Due, p.Done, seen.Load())
	}
	// A dial that began just before another one's connection was ready is allowed.
	if _, made := x.connections(); goodbyes.Load() < 4 || uint64(made) > 2*goodbyes.Load()+4 {
		t.Errorf("%d connections for %d goodbyes", made, goodbyes.Load())
	}
}

// Many workers that start at once share a connection: they do not dial for themselves.
func TestOneConnectionServesAll(t *testing.T) {
	x := newHTTP2(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(20 * time.Millisecond)
		_, _ = w.Write([]byte("ok"))
	})
	s := open(t, netip.AddrPort{}, x.to)
	if _, err := s.Cycle(t.Context(), Closed{Workers: streams, Duration: 300 * time.Millisecond}, time.Millisecond,
		nil); err != nil {
		t.Fatal(err)
	}
	p := drain(t, s)
	if _, made := x.connections(); p.Done[OK] != p.Due || p.Due < streams || made > 4 {
		t.Errorf("%d connections for %d workers; of %d calls %v ended so", made, streams, p.Due, p.Done)
	}
}

// More calls at once than a connection has streams for make more connections.
func TestConnectionsGrowWithStreams(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	const tries = 6
	for try := 1; ; try++ {
		p, made, early := growWithStreams(t)
		switch {
		case p.Done[OK] == p.Due && made >= 3 && made <= 12:
			return
		case try < tries && p.Done[OK]+early == p.Due:
			// Until the target's SETTINGS have come, which takes long on a busy host, the client may open more streams than the
			// target takes.
			t.Logf("try %d: the target refused %d streams of a connection that was too new to know its limit", try, early)
		default:
			t.Fatalf("%d connections for %d calls at once, of which one takes %d; of %d %v ended so", made, 3*streams,
				streams, p.Due, p.Done)
		}
	}
}

// growWithStreams makes three times as many calls at once as a connection takes. early counts the calls that were
// refused before any answer.
func growWithStreams(t *testing.T) (p Progress, made int, early uint64) {
	t.Helper()
	x := newHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(300 * time.Millisecond):
		case <-r.Context().Done():
		}
		_, _ = w.Write([]byte("ok"))
	})
	s := open(t, netip.AddrPort{}, x.to)
	if _, err := s.Cycle(t.Context(), Closed{Workers: 3 * streams, Duration: time.Second}, time.Millisecond,
		nil); err != nil {
		t.Fatal(err)
	}
	p = drain(t, s)
	for _, c := range s.Calls(0) {
		if c.Outcome == Failed && c.Cause == CauseClosedEarly {
			early++
		}
	}
	_, made = x.connections()
	return p, made, early
}

// What a target breaks off after it has looked at it is not sent again.
func TestHTTP2SendsNothingTwice(t *testing.T) {
	var seen atomic.Uint64
	x := newHTTP2(t, func(http.ResponseWriter, *http.Request) {
		seen.Add(1)
		panic(http.ErrAbortHandler)
	})
	s := open(t, netip.AddrPort{}, x.to, func(c *Config) { c.Operations[0].Wire = wire{body: "hello"} })
	offer(t, s, Constant{Rate: 100, Duration: 100 * time.Millisecond})
	if p := drain(t, s); p.Done[Failed] != 10 || seen.Load() != 10 {
		t.Errorf("%v ended so; the target saw %d", p.Done, seen.Load())
	}
}

// Close and Reset end connections that carry calls, too.
func TestHTTP2LeavesNoConnection(t *testing.T) {
	x := newHTTP2(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	for _, end := range []struct {
		name string
		by   func(Stream)
	}{
		{"reset", Stream.Reset},
		{"close", func(s Stream) {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}},
	} {
		s := open(t, netip.AddrPort{}, x.to)
		offer(t, s, Constant{Rate: 100, Duration: 100 * time.Millisecond})
		for range 500 {
			if n, _ := x.connections(); n > 0 && s.Progress().Established > 0 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		end.by(s)
		if n := x.left(); n > 0 || s.Progress().Established > 0 {
			t.Errorf("%s: %d connections are open, %d by our own count", end.name, n, s.Progress().Established)
		}
	}
}

// TestHTTP2KeepsNoDialOfBeforeAReset: Reset comes between the end of a dial and the note of its connection.
func TestHTTP2KeepsNoDialOfBeforeAReset(t *testing.T) {
	s := open(t, netip.AddrPort{}, newHTTP2(t, func(http.ResponseWriter, *http.Request) {}).to)
	e := s.(*stream).engine.(*std)
	e.mu.Lock()
	base := e.links.base
	e.mu.Unlock()
	ours, theirs := net.Pipe()
	defer theirs.Close() //nolint:errcheck // nothing was sent
	raw := &countedConn{Conn: ours, e: e}
	e.census.dialing()
	e.census.made()
	s.Reset()
	if err := e.modern.track(base, raw, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was cancelled", err)
	}
	if p := s.Progress(); p.Established+p.Connecting != 0 || len(e.modern.open) != 0 {
		t.Errorf("%d connections are kept", p.Established+p.Connecting)
	}
}

// counted is a listener that follows its connections.
type counted struct {
	net.Listener
	x *http2Target
}

func (l counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.x.mu.Lock()
	defer l.x.mu.Unlock()
	l.x.made++
	f := &followed{Conn: c, x: l.x}
	l.x.open[f] = true
	return f, nil
}

type followed struct {
	net.Conn
	x *http2Target
}

func (f *followed) Close() error {
	f.x.mu.Lock()
	delete(f.x.open, f)
	f.x.mu.Unlock()
	return f.Conn.Close()
}
