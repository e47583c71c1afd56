package load

import (
	"context"
	"crypto/tls"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/rigs/hosttest"
)

func TestOpenRefuses(t *testing.T) {
	get := []Operation{{Name: "get", Weight: 1, Wire: wire{}}}
	call := []Operation{{Name: "go", Weight: 1, Call: func(context.Context, uint64) Result { return Result{} }}}
	at := Endpoint{Addr: netip.MustParseAddrPort("127.0.0.1:1")}
	for name, c := range map[string]struct {
		conf Config
		want string
	}{
		"no operation": {Config{Endpoint: at}, "0 operations"},
		"no weight":    {Config{Endpoint: at, Operations: []Operation{{Name: "x", Wire: wire{}}}}, "weight 0"},
		"two kinds": {Config{
			Endpoint:   at,
			Operations: []Operation{{Name: "x", Weight: 1, Wire: wire{}, Call: call[0].Call}},
		}, "exactly one"},
		"batch": {Config{Operations: []Operation{{
			Name: "x", Weight: 1,
			Batch: func(context.Context, int) ([]BatchSample, error) { return nil, nil },
		}}}, "batch"},
		"no endpoint": {Config{Operations: get}, "Endpoint.Addr"},
		"fast and HTTP/2": {Config{
			Engine: Fast, Endpoint: Endpoint{Addr: at.Addr, TLS: &tls.Config{NextProtos: []string{"h2", "http/1.1"}}},
			Operations: get,
		}, "HTTP/2; use engine std"},
		"fast and renegotiation": {Config{
			Engine: Fast, Endpoint: Endpoint{Addr: at.Addr, TLS: &tls.Config{Renegotiation: tls.RenegotiateFreelyAsClient}},
			Operations: get,
		}, "renegotiate TLS, and the endpoint allows that; use engine std"},
		"fast and Go":   {Config{Engine: Fast, Operations: call}, "engine std"},
		"engine":        {Config{Engine: "warp", Endpoint: at, Operations: get}, `"warp"`},
		"timeout":       {Config{Endpoint: at, Operations: get, Timeout: 2 * time.Hour}, "timeout"},
		"connections":   {Config{Endpoint: at, Operations: get, MaxConns: -1}, "MaxConns"},
		"rate":          {Config{Endpoint: at, Operations: get, MaxRate: -1}, "MaxRate"},
		"spin":          {Config{Endpoint: at, Operations: get, Spin: time.Second}, "Spin"},
		"too many":      {Config{Endpoint: at, Operations: get, MaxConns: 1 << 29}, "ulimit -n"},
		"negative keys": {Config{Endpoint: Endpoint{Addr: at.Addr, Keys: -1}, Operations: get}, "Keys"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.Context(), c.conf)
			if err == nil {
				_ = s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestAutoPicksTheEngine(t *testing.T) {
	at := Endpoint{Addr: netip.MustParseAddrPort("127.0.0.1:1")}
	secure := func(protocols ...string) Endpoint {
		return Endpoint{Addr: at.Addr, TLS: &tls.Config{NextProtos: protocols}}
	}
	get := []Operation{{Weight: 1, Wire: wire{}}}
	for _, c := range []struct {
		conf Config
		want Engine
	}{
		{Config{Endpoint: at, Operations: get}, Fast},
		{Config{Endpoint: secure(), Operations: get}, Fast},
		{Config{Endpoint: secure("http/1.1"), Operations: get}, Fast},
		{Config{Endpoint: secure("h2", "http/1.1"), Operations: get}, Std},
		{Config{Operations: []Operation{{Weight: 1, Call: func(context.Context, uint64) Result { return Result{} }}}}, Std},
	} {
		if fastMissing != "" {
			c.want = Std
		}
		if err := c.conf.normalize(); err != nil || c.conf.Engine != c.want {
			t.Errorf("engine %q (%v), want %q", c.conf.Engine, err, c.want)
		}
	}
}

func TestLimits(t *testing.T) {
	l := Limits{Files: 1024, OpenFiles: 10, Ports: 28232}
	for _, c := range []struct {
		limits         Limits
		conns, sources int
		want           string
	}{
		{l, 950, 1, ""},
		{l, 951, 1, `"ulimit -n 1025"`},
		{Limits{Files: 1 << 20, Ports: 1000}, 1000, 1, ""},
		{Limits{Files: 1 << 20, Ports: 1000}, 1001, 1, "ip_local_port_range has 1000"},
		{Limits{Files: 1 << 20, Ports: 1000}, 1001, 2, ""},
		{Limits{}, 1 << 30, 1, ""},
	} {
		err := c.limits.Check(c.conns, c.sources)
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c, err, c.want)
		}
	}
	for _, c := range []struct {
		conf Config
		want int
	}{
		{Config{MaxConns: 256, MaxRate: 0, Timeout: time.Second}, 256},
		{Config{MaxConns: 256, MaxRate: 100, Timeout: time.Second}, 100},
		{Config{MaxConns: 256, MaxRate: 1e6, Timeout: time.Second}, 256},
		{Config{MaxConns: 256, MaxRate: 0.1, Timeout: time.Second}, 1},
	} {
		if got := c.conf.Connections(); got != c.want {
			t.Errorf("%+v: %d connections, want %d", c.conf, got, c.want)
		}
	}
}

// Go calls run on engine std: what they say about their own phases counts, and a call that does not heed its context is
// let go.
func TestGoCalls(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	stuck := make(chan struct{})
	defer close(stuck)
	s := open(t, netip.AddrPort{}, func(c *Config) {
		c.Timeout = time.Second
		c.Operations = []Operation{{Name: "go", Weight: 1, Call: func(_ context.Context, i uint64) Result {
			switch i {
			case 0:
				now := time.Now()
				return Result{Outcome: Denied, Status: 7, FirstByte: now}
			case 1:
				<-stuck
			}
			return Result{Outcome: ConnFailed, Errno: 5}
		}}}
	})
	offer(t, s, Constant{Rate: 100, Duration: 30 * time.Millisecond})
	drain(t, s)
	calls := s.Calls(0)
	type short struct {
		Outcome       Outcome
		Status, Errno uint16
		First         bool
	}
	var got []short
	for _, c := range calls {
		got = append(got, short{c.Outcome, c.Status, c.Errno, c.FirstByte != 0})
	}
	want := []short{{Denied, 7, 0, true}, {Timeout, 0, 0, false}, {ConnFailed, 0, 5, false}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestTLS(t *testing.T) {
	for _, protocols := range [][]string{{"http/1.1"}, {"h2", "http/1.1"}} {
		var mu sync.Mutex
		major := 0
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			major = r.ProtoMajor
			mu.Unlock()
			if _, err := w.Write([]byte("ok")); err != nil {
				t.Error(err)
			}
		}))
		srv.EnableHTTP2 = true
		srv.StartTLS()
		conf := srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		conf.NextProtos = protocols
		s := open(t, netip.MustParseAddrPort(srv.Listener.Addr().String()), func(c *Config) {
			c.Endpoint.TLS, c.Endpoint.Host = conf, "example.com"
		})
		offer(t, s, Constant{Rate: 100, Duration: 100 * time.Millisecond})
		p := drain(t, s)
		audit(t, s, 0)
		mu.Lock()
		if p.Done[OK] != 10 || (major == 2) != (protocols[0] == "h2") {
			t.Errorf("%v: %+v, HTTP/%d", protocols, p, major)
		}
		mu.Unlock()
		if fresh := s.Fresh(t.Context(), 0, 0, 5*time.Second); fresh.Outcome != OK {
			t.Errorf("fresh %+v", fresh)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		srv.Close()
	}
}

// Readers of the ledger see whole calls while they are being written.
func TestLedger(t *testing.T) {
	l := ledger{tick: tickFor(time.Second)}
	const n = 3*chunkLen + 7
	var all sync.WaitGroup
	all.Go(func() {
		for i := range int64(n) {
			e := l.add(i*1000, 3)
			l.sent(e, i*1000, i*1000+2000, i*1000+3000, 3, 9)
			l.ended(e, &Call{
				Operation: 3, Conn: 9, Intended: ns(i * 1000), Ready: ns(i*1000 + 2000), Sent: ns(i*1000 + 3000),
				FirstByte: ns(i*1000 + 4000), Done: ns(i*1000 + 5999), Outcome: ConnFailed, Cause: 255,
			}, 104)
		}
	})
	for seen := 0; seen < n; {
		calls := l.since(0)
		if len(calls) < seen {
			t.Fatalf("%d calls after %d", len(calls), seen)
		}
		seen = len(calls)
		for i, c := range calls {
			at := ns(int64(i) * 1000)
			want := Call{Operation: 3, Conn: 9, Intended: at, Ready: at + 2000, Sent: at + 3000, FirstByte: at + 4000, Done: at +
				5999, Outcome: ConnFailed, Errno: 104, Cause: 255}
			if c.Intended != at || (c.Done != 0 && c != want) {
				t.Fatalf("call %d is %+v, want %+v", i, c, want)
			}
		}
	}
	all.Wait()
	if got := l.since(ns((n - 5) * 1000)); len(got) != 5 {
		t.Errorf("%d calls since the fifth from the end", len(got))
	}
}

// TestLedgerIsAsFineAsItsTimeoutAllows: four timeouts have room, and what is later counts as that.
func TestLedgerIsAsFineAsItsTimeoutAllows(t *testing.T) {
	for timeout, tick := range map[time.Duration]time.Duration{
		time.Millisecond: 1, time.Second: 1, 5 * time.Second: 8, 30 * time.Second: 32, maxTimeout: 4096,
	} {
		l := ledger{tick: tickFor(timeout)}
		for _, late := range []time.Duration{0, 1, 12345, timeout, 4 * timeout, 1000 * timeout} {
			e := l.add(7, 0)
			l.ended(e, &Call{Intended: 7, Done: 7 + late, Outcome: OK}, 200)
			got, want := l.call(e).Done-7, min(late, (math.MaxUint32-1)*tick)
			if got > want || got < want-tick {
				t.Errorf("a call of %v with a timeout of %v is recorded with %v", late, timeout, got)
			}
		}
	}
}

func TestMergeCallsKeepsTheOrder(t *testing.T) {
	at := func(ts ...int64) (l []Call) {
		for _, v := range ts {
			l = append(l, Call{Intended: ns(v)})
		}
		return l
	}
	got := mergeCalls([][]Call{at(1, 4, 4, 9), nil, at(0, 2, 5), at(3)})
	if d := cmp.Diff(at(0, 1, 2, 3, 4, 4, 5, 9), got); d != "" {
		t.Error(d)
	}
}
