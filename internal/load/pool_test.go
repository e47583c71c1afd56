package load

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"tare/rigs/hosttest"
)

func TestClosedLoop(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		const workers, service, length = 5, 10 * time.Millisecond, 400 * time.Millisecond
		s := open(t, newTarget(t, saysAfter(service)).addr, set)
		host := watchHost(t)
		most := 0
		g, err := s.Cycle(t.Context(), Closed{Workers: workers, Duration: length}, 2*time.Millisecond, func() bool {
			most = max(most, s.Progress().Open())
			return false
		})
		if err != nil {
			t.Fatal(err)
		}
		p := drain(t, s)
		calls := audit(t, s, 0)
		if most != workers {
			t.Errorf("%d calls were open at once, of %d workers", most, workers)
		}
		if limit := workers * int(length/service); g.Offered > limit+workers || g.Offered < workers {
			t.Errorf("%d calls of %d workers, at most %d are possible", g.Offered, workers, limit)
		}
		// Little's law: the mean number of open calls is the rate times the mean response.
		open := 0.0
		for _, c := range calls {
			open += (min(c.Done, g.End) - c.Intended).Seconds()
		}
		// A host that lets nobody work for a while keeps workers between two calls.
		longest := workers * (g.End - g.Start).Seconds()
		if least := (workers-0.6)*length.Seconds() - 20*workers*host().Seconds(); open > longest+0.01 || open < least {
			t.Errorf("calls were open for %.2f s together, want %.2f to %.2f s of %d workers", open, least, longest, workers)
		}
		if p.Done[OK] != p.Due {
			t.Errorf("%+v", p)
		}
	})
}

func TestClosedLoopRampsAndKeepsToTheRate(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		s := open(t, newTarget(t, hang).addr, set)
		const ramp = 200 * time.Millisecond
		begun := s.Now()
		g, err := s.Cycle(t.Context(), Closed{Workers: 10, Ramp: ramp, Duration: 20 * time.Second},
			time.Millisecond, func() bool {
				return s.Progress().Due >= 10 && s.Now() > begun+ramp+20*time.Millisecond
			})
		if err != nil {
			t.Fatal(err)
		}
		calls := s.Calls(0)
		if len(calls) != 10 || g.Offered != 10 {
			t.Fatalf("%d calls by 10 workers that hang", len(calls))
		}
		for i, c := range calls {
			if want := g.Start + time.Duration(i)*20*time.Millisecond; c.Intended < want {
				t.Errorf("worker %d began %v early", i, want-c.Intended)
			}
		}
		r := open(t, newTarget(t, says(good)).addr, set, func(c *Config) { c.MaxRate = 100 })
		if g, err = r.Cycle(t.Context(), Closed{Workers: 4, Duration: 20 * time.Second}, time.Millisecond,
			func() bool { return r.Progress().Due >= 20 }); err != nil {
			t.Fatal(err)
		}
		if drain(t, r); g.Offered > int((g.End-g.Start)/(10*time.Millisecond))+6 || g.Offered < 20 {
			t.Errorf("%d calls in %v at 100/s", g.Offered, g.End-g.Start)
		}
		if _, err := r.Offer(t.Context(), Constant{Rate: 101, Duration: time.Second}, 0, nil); err == nil {
			t.Error("a process above the bound was offered")
		}
	})
}

func TestResetAbandonsEverything(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		srv := newTarget(t, hang)
		s := open(t, srv.addr, set, func(c *Config) { c.MaxConns = 4 })
		offer(t, s, Constant{Rate: 500, Duration: 40 * time.Millisecond})
		s.Reset()
		p := s.Progress()
		if p.Open() != 0 || p.Done[ConnFailed] != 20 {
			t.Errorf("after reset: %+v", p)
		}
		eventually(t, func() bool { p := s.Progress(); return p.Established+p.Connecting == 0 })
		for _, c := range audit(t, s, 0) {
			if syscall.Errno(c.Errno) != syscall.ECONNABORTED {
				t.Fatalf("%+v", c)
			}
		}
		offer(t, s, Constant{Rate: 100, Duration: 30 * time.Millisecond})
		// else the stream is dead after reset
		eventually(t, func() bool { p := s.Progress(); return p.Sent > 0 && p.Established > 0 })
	})
}

// TestNoDialForAbandonedCall: a call that Reset ends between its rendering and its connection gets none, which nobody
// would use.
func TestNoDialForAbandonedCall(t *testing.T) {
	s := open(t, newTarget(t, hang).addr, func(c *Config) { c.Engine = Std })
	e := s.(*stream).engine.(*std)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := e.acquireLink(ctx, 0)
	e.mu.Lock()
	defer e.mu.Unlock()
	if !errors.Is(err, context.Canceled) || e.links.size != 0 || len(e.links.waiters) != 0 {
		t.Errorf("%v, with %d connections or dials and %d that wait", err, e.links.size, len(e.links.waiters))
	}
}

func TestDropIdleClosesIdleConnections(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		srv := newTarget(t, says(good))
		s := open(t, srv.addr, set)
		offer(t, s, Constant{Rate: 200, Duration: 50 * time.Millisecond})
		drain(t, s)
		before := srv.connections()
		eventually(t, func() bool { return s.Progress().Established > 0 })
		eventually(t, func() bool { // a connection in its handshake is idle only after it
			s.DropIdle()
			return s.Progress().Established == 0
		})
		offer(t, s, Constant{Rate: 200, Duration: 50 * time.Millisecond})
		if p := drain(t, s); p.Done[OK] != 20 || srv.connections() == before {
			t.Errorf("%+v over %d connections, %d before", p, srv.connections(), before)
		}
	})
}

// A server that closes idle connections costs new ones, not calls.
func TestServerClosesIdleConnections(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		srv := newTarget(t, says(good))
		s := open(t, srv.addr, set)
		for range 3 {
			offer(t, s, Constant{Rate: 100, Duration: 30 * time.Millisecond})
			drain(t, s)
			if s.Progress().Established == 0 {
				t.Error("no connection was kept")
			}
			eventually(t, func() bool { // one that was in its handshake is hung up after it
				srv.hangUp()
				return s.Progress().Established == 0
			})
		}
		if p := s.Progress(); p.Done[OK] != 9 {
			t.Errorf("%+v", p)
		}
	})
}

// The target may close after every answer: replacing connections is no growth, and must not bound the rate.
func TestClosingServerIsNotSlowedDown(t *testing.T) {
	if fastMissing != "" {
		hosttest.Missing(t, fastMissing, "run on Linux")
	}
	srv := newTarget(t, once("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"))
	const gap = 50 * time.Millisecond // the pool may grow by one connection in this time
	s := open(t, srv.addr, engines["fast"], func(c *Config) { c.GrowGap = gap })
	g, err := s.Cycle(t.Context(), Closed{Workers: 8, Duration: 30 * time.Second}, time.Millisecond,
		func() bool { return s.Progress().Due > 400 })
	if err != nil {
		t.Fatal(err)
	}
	p := drain(t, s)
	if bound := int((g.End-g.Start)/gap) + 8; p.Done[OK] != p.Due || g.Offered < 3*bound {
		t.Errorf("%d calls in %v, where growth alone would allow %d: %+v", g.Offered, g.End-g.Start, bound, p)
	}
}

func TestFresh(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		srv := newTarget(t, says(good))
		s := open(t, srv.addr, set)
		for range 2 {
			c := s.Fresh(t.Context(), 0, 1, time.Minute)
			if c.Outcome != OK || c.Status != 200 || c.Sent < c.Ready || c.Done < c.FirstByte || c.FirstByte < c.Sent {
				t.Errorf("%+v", c)
			}
		}
		if p := s.Progress(); p.Due != 0 || srv.connections() != 2 || len(s.Calls(0)) != 0 {
			t.Errorf("%+v over %d connections", p, srv.connections())
		}
		deaf := open(t, newTarget(t, hang).addr, set)
		patiently(t, 50*time.Millisecond, func(timeout time.Duration) (slow bool) {
			c := deaf.Fresh(t.Context(), 0, 1, timeout)
			if c.Outcome != Timeout {
				t.Errorf("%+v", c)
			}
			return c.Unsent()
		})
		cut := open(t, newTarget(t, once("")).addr, set)
		if c := cut.Fresh(t.Context(), 0, 1, time.Minute); c.Outcome != Failed {
			t.Errorf("%+v", c)
		}
	})
}
