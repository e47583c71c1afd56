package load

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Every cause has its words, and no two the same: a report is made of nothing else.
func TestCauseTexts(t *testing.T) {
	own := []string{"own 0", "own 1"}
	seen := map[string]Cause{}
	for c := range CauseHeldBack + 1 {
		text := c.Text(own)
		if other, twice := seen[text]; twice {
			t.Errorf("causes %d and %d are both %q", c, other, text)
		}
		if seen[text] = c; (text == "") != (c == 0) || strings.HasPrefix(text, "cause ") {
			t.Errorf("cause %d is %q", c, text)
		}
	}
	for c, want := range map[Cause]string{
		OwnCauses: "own 0", OwnCauses + 1: "own 1", OwnCauses + 2: "cause 66", CauseHeldBack + 1: "cause 31",
		255:          "cause 255",
		CauseConnect: "no connection could be made", CauseNoEnd: "the answer did not end before the timeout",
	} {
		if got := c.Text(own); got != want {
			t.Errorf("cause %d is %q, want %q", c, got, want)
		}
	}
}

// explaining is a wire that names its cause.
type explaining struct {
	wire
	cause int
}

func (e explaining) Explain(_ uint64, status int, body []byte) int {
	if status == 200 && string(body) == "ok" {
		panic("Explain after a good answer")
	}
	return e.cause
}

func TestOwnCauses(t *testing.T) {
	const moved = "HTTP/1.1 307 Temporary Redirect\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"
	for name, c := range map[string]struct {
		text  string
		cause int
		want  Cause
	}{
		"first":             {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno", 0, OwnCauses},
		"last":              {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno", 191, 255},
		"none":              {"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", -1, 0},
		"beyond":            {"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", 192, 0},
		"own for redirect":  {moved, 3, OwnCauses + 3},
		"redirect":          {moved, -1, CauseRedirect},
		"not modified":      {"HTTP/1.1 304 Not Modified\r\n\r\n", -1, 0},
		"good":              {good, 1, 0},
		"denied, as wanted": {"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			eachEngine(t, func(t *testing.T, set func(*Config)) {
				s := open(t, newTarget(t, says(c.text)).addr, set,
					func(conf *Config) { conf.Operations[0].Wire = explaining{cause: c.cause} })
				offer(t, s, Constant{Rate: 100, Duration: 30 * time.Millisecond})
				drain(t, s)
				for _, call := range append(audit(t, s, 0), s.Fresh(t.Context(), 0, 1, 5*time.Second)) {
					if call.Cause != c.want {
						t.Errorf("%+v, want cause %d", call, c.want)
					}
				}
			})
		})
	}
}

// silent renders nothing.
type silent struct{ wire }

func (silent) Render(dst []byte, _ uint64) []byte { return dst }

// An operation that renders no request fails for that, at once, and does the connections no harm.
func TestNoRequest(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		srv := newTarget(t, says(good))
		s := open(t, srv.addr, set, func(c *Config) {
			c.MaxConns = 4 // more are made only if some were lost
			c.Operations = []Operation{{Name: "get", Weight: 1, Wire: wire{}}, {Name: "silent", Weight: 1, Wire: silent{}}}
		})
		offer(t, s, Constant{Rate: 300, Duration: 200 * time.Millisecond})
		drain(t, s)
		n := [2]int{}
		for _, c := range audit(t, s, 0) {
			n[c.Operation]++
			if want := [...]Outcome{OK, Failed}[c.Operation]; c.Outcome != want ||
				(c.Cause == CauseRequest) != (want == Failed) {
				t.Errorf("%+v", c)
			}
		}
		if n[0] == 0 || n[1] == 0 || srv.connections() > 4 {
			t.Errorf("%v calls over %d connections", n, srv.connections())
		}
		if c := s.Fresh(t.Context(), 1, 0, time.Second); c.Outcome != Failed || c.Cause != CauseRequest {
			t.Errorf("%+v", c)
		}
	})
}

func TestCausesOfGoCalls(t *testing.T) {
	patiently(t, 300*time.Millisecond, func(timeout time.Duration) (slow bool) {
		s := open(t, netip.AddrPort{}, func(c *Config) {
			c.Timeout = timeout
			c.Operations = []Operation{{
				Name: "go", Weight: 1, Causes: []string{"a", "b"},
				Call: func(ctx context.Context, i uint64) Result {
					switch i {
					case 0:
						return Result{Outcome: Wrong, Status: 9, Cause: OwnCauses + 1}
					case 1:
						<-ctx.Done()
					}
					return Result{Outcome: ConnFailed, Errno: 5, Cause: CauseConnect}
				},
			}}
		})
		offer(t, s, Constant{Rate: 100, Duration: 30 * time.Millisecond})
		drain(t, s)
		var got []Cause
		calls := s.Calls(0)
		for _, c := range calls {
			got = append(got, c.Cause)
		}
		if unsent(calls) || calls[0].Outcome == Timeout || calls[2].Outcome == Timeout {
			return true
		}
		if d := cmp.Diff([]Cause{OwnCauses + 1, CauseNoReturn, CauseConnect}, got); d != "" {
			t.Error(d)
		}
		if c := s.Fresh(t.Context(), 0, 0, time.Minute); c.Cause != OwnCauses+1 || c.Status != 9 {
			t.Errorf("%+v", c)
		}
		c := s.Fresh(t.Context(), 0, 1, timeout)
		if c.Outcome != Timeout || (c.Cause != CauseNoReturn && !c.Unsent()) {
			t.Errorf("%+v", c)
		}
		return c.Unsent()
	})
}

// Calls that find every connection busy until their timeout were not failed by the dials.
func TestPoolTimeoutIsTheConnections(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		patiently(t, 400*time.Millisecond, func(timeout time.Duration) (slow bool) {
			s := open(t, newTarget(t, hang).addr, set, func(c *Config) { c.MaxConns, c.Timeout = 2, timeout })
			offer(t, s, Burst{Calls: 12, Duration: 60 * time.Millisecond})
			drain(t, s)
			n := map[Cause]int{}
			calls := audit(t, s, timeout)
			for _, c := range calls {
				n[c.Cause]++
			}
			if n[CauseNoByte] < 2 { // not both connections were there in time
				return true
			}
			for _, c := range calls {
				if c.Unsent() != (c.Cause == CauseNoConnection) {
					t.Errorf("%+v", c)
				}
			}
			if n[CauseNoConnection] == 0 || len(n) != 2 {
				t.Errorf("causes %v", n)
			}
			return false
		})
	})
}

func TestResetIsOurs(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		s := open(t, newTarget(t, hang).addr, set)
		offer(t, s, Constant{Rate: 200, Duration: 20 * time.Millisecond})
		s.Reset()
		drain(t, s)
		for _, c := range audit(t, s, 0) {
			if c.Outcome != ConnFailed || c.Cause != CauseAbandoned {
				t.Errorf("%+v", c)
			}
		}
	})
}

// A target that offers no HTTP/2 is spoken to in HTTP/1.1, by the calls that found that out, too.
func TestNoHTTP2(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			t.Errorf("HTTP/%d", r.ProtoMajor)
		}
		_, _ = io.WriteString(w, "ok")
	}))
	srv.StartTLS()
	defer srv.Close()
	conf := srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	conf.NextProtos = []string{"h2", "http/1.1"}
	s := open(t, netip.MustParseAddrPort(srv.Listener.Addr().String()), func(c *Config) {
		c.Endpoint.TLS, c.Endpoint.Host = conf, "example.com"
	})
	for range 2 {
		offer(t, s, Burst{Calls: 10, Duration: 50 * time.Millisecond})
		drain(t, s)
	}
	if p := s.Progress(); p.Done[OK] != 20 {
		t.Errorf("%+v", p)
	}
	for _, c := range audit(t, s, 0) {
		if c.Cause != 0 {
			t.Errorf("%+v", c)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// What a target says without being asked is never taken for an answer, and never shown to anybody: it may be a
// credential.
func TestUnaskedOnIdleConnection(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		again, said := make(chan struct{}), make(chan struct{})
		srv := newTarget(t, requests(func(c net.Conn, _ *http.Request) bool {
			_, _ = io.WriteString(c, good)
			if _, open := <-again; open {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno")
				said <- struct{}{}
			}
			return true
		}))
		s := open(t, srv.addr, set)
		offer(t, s, Burst{Calls: 1, Duration: time.Millisecond})
		drain(t, s)
		again <- struct{}{}
		<-said
		close(again)
		offer(t, s, Constant{Rate: 100, Duration: 50 * time.Millisecond})
		drain(t, s)
		calls, met := audit(t, s, 0), 0
		for i, c := range calls {
			// The call that takes this connection next may be on its way already when the bytes are noticed. On a host that
			// stands still several calls come due together, and any of them may be that one.
			if c.Outcome == Failed && c.Cause == CauseUnasked && i > 0 && c.Conn == calls[0].Conn {
				met++
			} else if c.Outcome != OK {
				t.Errorf("call %d: %+v", i, c)
			}
		}
		if met > 1 {
			t.Errorf("%d calls met what was said before them", met)
		}
		if srv.connections() < 2 {
			t.Error("the connection was used again")
		}
	})
}

// HTTP/2 has its own code for connections, and says the same about how calls end.
func TestCausesOfHTTP2(t *testing.T) {
	for name, c := range map[string]struct {
		handle func(w http.ResponseWriter, r *http.Request)
		want   Outcome
		status uint16
		cause  Cause
	}{
		"hangs":  {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, Timeout, 0, CauseNoByte},
		"aborts": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, Failed, 0, CauseClosedEarly},
		"aborts the body": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("x", 64<<10))
			panic(http.ErrAbortHandler)
		}, Failed, 200, CauseClosedWithin},
		"never ends": {func(w http.ResponseWriter, _ *http.Request) {
			for b := make([]byte, 256<<10); ; {
				if _, err := w.Write(b); err != nil {
					return
				}
			}
		}, Failed, 200, CauseTooLong},
		"redirects": {
			func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) }, Failed,
			302, CauseRedirect,
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newHTTP2(t, c.handle)
			timeout := time.Minute // 16 MiB for each call take their time
			if c.want == Timeout {
				timeout = 500 * time.Millisecond
			}
			try := func(timeout time.Duration) (slow bool) {
				s := open(t, netip.AddrPort{}, x.to, func(to *Config) { to.Timeout = timeout })
				offer(t, s, Constant{Rate: 100, Duration: 30 * time.Millisecond})
				drain(t, s)
				calls := audit(t, s, timeout)
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if c.want == Timeout && unsent(calls) {
					return true
				}
				for _, call := range calls {
					if call.Outcome != c.want || call.Status != c.status || call.Cause != c.cause {
						t.Errorf("%+v, want %v, status %d, %q", call, c.want, c.status, c.cause.Text(nil))
					}
				}
				return false
			}
			if c.want != Timeout {
				try(timeout)
				return
			}
			patiently(t, timeout, try)
		})
	}
}

// The pool's bound holds over all identities together.
func TestBoundHoldsOverAllKeys(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		s := open(t, newTarget(t, saysAfter(2*time.Millisecond)).addr, set, func(c *Config) {
			c.MaxConns, c.Endpoint.Keys = 3, 5
			c.Operations[0].Wire = wire{keys: 5}
		})
		most := 0
		_, err := s.Offer(t.Context(), Constant{Rate: 400, Duration: 200 * time.Millisecond}, time.Millisecond, func() bool {
			p := s.Progress()
			most = max(most, p.Established+p.Connecting)
			return false
		})
		if p := drain(t, s); err != nil || most > 3 || p.Done[OK] != 80 {
			t.Errorf("%d connections, %v, %v", most, p.Done, err)
		}
	})
}
