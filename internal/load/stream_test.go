package load

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tare/rigs/hosttest"
)

// The instants are those of the process, over all shards together.
func TestArrivalsAreThoseOfTheProcess(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		s := open(t, newTarget(t, says(good)).addr, set)
		p := Steps{
			Poisson{Rate: 400, Duration: 150 * time.Millisecond, Seed: 7},
			Constant{Rate: 300, Duration: 100 * time.Millisecond},
		}
		g := offer(t, s, p)
		drain(t, s)
		calls := audit(t, s, 0)
		a := p.Start()
		n := 0
		for at, ok := a.Next(); ok; at, ok = a.Next() {
			if n < len(calls) && calls[n].Intended != g.Start+at {
				t.Fatalf("call %d was intended at %v, want %v", n, calls[n].Intended-g.Start, at)
			}
			n++
		}
		if len(calls) != n || g.Offered != n || g.End-g.Start != p.Length() {
			t.Errorf("%d calls of %d; segment %+v", len(calls), n, g)
		}
	})
}

// Whatever happens, every due call has ended or is open, at every moment.
func TestNothingIsLost(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		patiently(t, 200*time.Millisecond, func(timeout time.Duration) (slow bool) { return !everyEnding(t, set, timeout) })
	})
}

// everyEnding offers calls to a server that answers, hangs and fails by turns, and reports whether some ended in each
// of these ways.
func everyEnding(t *testing.T, set func(*Config), timeout time.Duration) bool {
	t.Helper()
	var n atomic.Int64
	srv := newTarget(t, requests(func(c net.Conn, r *http.Request) bool {
		switch n.Add(1) % 7 {
		case 0:
			return resets(c, r)
		case 1:
			return false
		case 2:
			time.Sleep(30 * time.Millisecond)
		case 3:
			_, _ = io.WriteString(c, "what?")
			return true
		case 4:
			time.Sleep(2 * timeout)
		}
		_, err := io.WriteString(c, good)
		return err == nil
	}))
	s := open(t, srv.addr, set, func(c *Config) { c.Timeout, c.MaxConns = timeout, 8 })
	looks := 0
	g, err := s.Offer(t.Context(), Poisson{Rate: 600, Duration: 500 * time.Millisecond, Seed: 3},
		5*time.Millisecond, func() bool {
			looks++
			if p := s.Progress(); p.Due != p.Ended()+uint64(p.Open()) || p.InFlight > 8 || p.Established+p.Connecting > 8 {
				t.Errorf("does not add up: %+v", p)
			}
			s.Calls(0)
			return false
		})
	if err != nil || looks == 0 {
		t.Fatal(err, looks)
	}
	p := drain(t, s)
	audit(t, s, timeout)
	if int(p.Due) != g.Offered {
		t.Errorf("%d of %d due", p.Due, g.Offered)
	}
	for _, o := range []Outcome{OK, Timeout, ConnFailed, Failed} {
		if p.Done[o] == 0 {
			t.Logf("no call ended as %v: %v", o, p.Done)
			return false
		}
	}
	return true
}

// One connection, many calls: they are served in the order of their arrival, and their wait is the pool's.
func TestWaitingCallsAreFIFO(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		srv := newTarget(t, saysAfter(5*time.Millisecond))
		s := open(t, srv.addr, set, func(c *Config) { c.MaxConns, c.Shards = 1, 1 })
		offer(t, s, Constant{Rate: 1000, Duration: 30 * time.Millisecond})
		p := drain(t, s)
		calls := audit(t, s, 0)
		if p.Done[OK] != 30 || srv.connections() != 1 {
			t.Fatalf("%+v over %d connections", p, srv.connections())
		}
		for i := 1; i < len(calls); i++ {
			if calls[i].Sent < calls[i-1].Done {
				t.Errorf("call %d was sent %v before the one before was done", i, calls[i-1].Done-calls[i].Sent)
			}
		}
		if last := calls[29]; last.PoolWait() < 100*time.Millisecond || last.Response() < last.PoolWait() {
			t.Errorf("the last call waited %v of %v", last.PoolWait(), last.Response())
		}
	})
}

// The pool grows by at most one connection per millisecond, to its bound; the calls that found none time out unsent.
func TestPoolGrowsSlowly(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		const timeout = time.Second
		srv := newTarget(t, hang)
		s := open(t, srv.addr, set, func(c *Config) { c.MaxConns, c.Timeout = 12, timeout })
		g := offer(t, s, Constant{Rate: 10000, Duration: 5 * time.Millisecond})
		if ms := int((s.Now() - g.Start).Milliseconds()) + 2; g.Sent > ms {
			t.Errorf("%d connections after %d ms", g.Sent, ms)
		}
		p := drain(t, s)
		early := 0 // sent before the first connection was given up
		for _, c := range audit(t, s, timeout) {
			if c.Sent != 0 && c.Sent < g.Start+timeout {
				early++
			}
		}
		if early > 12 || early == 0 || p.Done[Timeout] != 50 {
			t.Errorf("%d sent at first, %+v", early, p)
		}
	})
}

// A server that stands still for a while must show in the quantiles as it does to users who do not wait for one
// another.
func TestCoordinatedOmission(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	const period, stall, length, rate = time.Second, 200 * time.Millisecond, 2 * time.Second, 500
	// Alone: event loops have priority, and five of them leave little of two processors to the targets.
	eachEngineAlone(t, func(t *testing.T, set func(*Config)) {
		begin := time.Now()
		due := func(at time.Duration) time.Duration {
			if phase := at % period; phase >= period-stall {
				at += period - phase
			}
			return at + time.Millisecond
		}
		srv := newTarget(t, requests(func(c net.Conn, _ *http.Request) bool {
			at := time.Since(begin)
			time.Sleep(due(at) - at)
			_, err := io.WriteString(c, good)
			return err == nil
		}))
		s := open(t, srv.addr, set)
		host := watchHost(t)
		g := offer(t, s, Constant{Rate: rate, Duration: length})
		opened := time.Since(begin) - s.Now()
		drain(t, s)
		audited := audit(t, s, 0)
		var truth, got []float64
		for i, c := range audited {
			at := opened + g.Start + time.Duration(i)*(time.Second/rate)
			truth = append(truth, (due(at) - at).Seconds())
			got = append(got, c.Response().Seconds())
		}
		// The answers cannot come before the schedule lets them, whatever the host does. They come later by what it takes,
		// which is little only where nothing else runs.
		slack := math.Inf(1)
		if late := host(); late < 20*time.Millisecond {
			slack = 0.2
		}
		slices.Sort(truth)
		slices.Sort(got)
		for _, q := range []float64{0.5, 0.9, 0.95, 0.99} {
			k := int(q * float64(len(truth)))
			if got[k] < truth[k]*0.98-0.001 || got[k] > truth[k]+slack {
				t.Errorf("p%g is %.1f ms, by the schedule %.1f ms and at most %.1f ms more", q*100, got[k]*1e3,
					truth[k]*1e3, slack*1e3)
			}
		}
		if i := int(0.99 * float64(len(truth))); truth[i] < 0.15 {
			t.Fatalf("the schedule has no stall: p99 %g", truth[i])
		}
	})
}

// watchHost measures, until the function it returns is called, how late this host wakes a goroutine that sleeps for a
// millisecond; that function returns the longest time by which it was late.
func watchHost(t *testing.T) (latest func() time.Duration) {
	t.Helper()
	end := make(chan struct{})
	var all sync.WaitGroup
	var most time.Duration
	all.Go(func() {
		for {
			begin := time.Now()
			select {
			case <-end:
				return
			case <-time.After(time.Millisecond):
				most = max(most, time.Since(begin)-time.Millisecond)
			}
		}
	})
	stop := sync.OnceFunc(func() { close(end); all.Wait() })
	t.Cleanup(stop)
	return func() time.Duration { stop(); return most }
}

// Each identity keeps to connections from its own address.
func TestKeysHaveTheirOwnConnections(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		var mu sync.Mutex
		wrong := 0
		srv := newTarget(t, requests(func(c net.Conn, r *http.Request) bool {
			host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
			mu.Lock()
			if host != "127.1.0."+itoa(int(r.Header.Get("X-Key")[0]-'0')+1) {
				wrong++
			}
			mu.Unlock()
			_, err := io.WriteString(c, good)
			return err == nil
		}))
		for _, most := range []int{64, 2} { // with 2, connections of one identity make room for another's
			s := open(t, srv.addr, set, func(c *Config) {
				c.MaxConns, c.Endpoint.Keys = most, 5
				c.Endpoint.Local = func(k int) netip.Addr { return netip.AddrFrom4([4]byte{127, 1, 0, byte(k + 1)}) }
				c.Operations[0].Wire = wire{keys: 5}
			})
			offer(t, s, Constant{Rate: 200, Duration: 200 * time.Millisecond})
			if p := drain(t, s); p.Done[OK] != 40 {
				t.Errorf("with %d connections: %+v", most, p)
			}
			audit(t, s, 0)
			if c := s.Fresh(t.Context(), 0, 3, time.Minute); c.Outcome != OK {
				t.Errorf("%+v", c)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if wrong > 0 {
			t.Errorf("%d calls came from another identity's address", wrong)
		}
	})
}

// Calls in flight at the end of a segment go on, and belong to it.
func TestSegmentsBackToBack(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		may := make(chan struct{})
		s := open(t, newTarget(t, requests(func(c net.Conn, _ *http.Request) bool {
			<-may
			_, err := io.WriteString(c, good)
			return err == nil
		})).addr, set)
		a := offer(t, s, Constant{Rate: 200, Duration: 100 * time.Millisecond})
		if p := s.Progress(); p.Open() == 0 {
			t.Errorf("nothing is in flight after the first segment: %+v", p)
		}
		close(may)
		b := offer(t, s, Constant{Rate: 300, Duration: 100 * time.Millisecond})
		p := drain(t, s)
		calls := audit(t, s, 0)
		if a.Offered != 20 || b.Offered != 30 || len(calls) != 50 || p.Done[OK] != 50 || b.Start < a.End {
			t.Errorf("%+v %+v %+v", a, b, p)
		}
		if since := s.Calls(b.Start); len(since) != 30 || since[0].Intended != b.Start {
			t.Errorf("%d calls since the second segment", len(since))
		}
	})
}

func TestStopEndsASegment(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		s := open(t, newTarget(t, says(good)).addr, set)
		g, err := s.Offer(t.Context(), Constant{Rate: 200, Duration: time.Hour}, time.Millisecond,
			func() bool { return s.Progress().Due >= 10 })
		if err != nil || !g.Stopped || g.Offered < 10 || g.End-g.Start > time.Minute {
			t.Fatalf("%+v %v", g, err)
		}
		if p := drain(t, s); int(p.Due) != g.Offered {
			t.Errorf("%d due after a segment of %d", p.Due, g.Offered)
		}
		audit(t, s, 0)
	})
}

func TestCancelEndsASegment(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		s := open(t, newTarget(t, hang).addr, set)
		for name, run := range map[string]func(context.Context) error{
			"offer": func(ctx context.Context) error {
				_, err := s.Offer(ctx, Constant{Rate: 100, Duration: time.Hour}, 0, nil)
				return err
			},
			"cycle": func(ctx context.Context) error {
				_, err := s.Cycle(ctx, Closed{Workers: 3, Duration: time.Hour}, 0, nil)
				return err
			},
			"wait": func(ctx context.Context) error { return s.Wait(ctx, time.Hour, 0, nil) },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			begin := time.Now()
			err := run(ctx)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 5*time.Second {
				t.Errorf("%s ended with %v after %v", name, err, time.Since(begin))
			}
		}
	})
}

func TestMixFollowsTheWeights(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		s := open(t, newTarget(t, says(good)).addr, set, func(c *Config) {
			c.Operations = []Operation{{Name: "a", Weight: 1, Wire: wire{}}, {Name: "b", Weight: 3, Wire: wire{want: 5}}}
			c.Seed = 11
		})
		offer(t, s, Constant{Rate: 1000, Duration: 400 * time.Millisecond})
		drain(t, s)
		m := newMix([]Operation{{Weight: 1}, {Weight: 3}}, 11)
		b := 0
		for i, c := range s.Calls(0) {
			if c.Operation != m.pick(uint64(i)) {
				t.Fatalf("call %d is operation %d", i, c.Operation)
			}
			b += int(c.Operation)
		}
		if b < 250 || b > 350 {
			t.Errorf("%d of 400 calls were of weight 3/4", b)
		}
		audit(t, s, 0)
	})
}

// TestFirstNumber: the calls of a stream are numbered from where its configuration says.
func TestFirstNumber(t *testing.T) {
	var least atomic.Uint64
	least.Store(math.MaxUint64)
	call := func(_ context.Context, i uint64) Result {
		for old := least.Load(); i < old && !least.CompareAndSwap(old, i); old = least.Load() {
		}
		return Result{Outcome: OK}
	}
	s, err := Open(t.Context(), Config{
		Operations: []Operation{{Name: "call", Weight: 1, Call: call}}, MaxConns: 1, First: 7000,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if _, err := s.Offer(t.Context(), Constant{Rate: 200, Duration: 50 * time.Millisecond}, 0, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(t.Context(), time.Second, 0, func() bool { return s.Progress().Open() == 0 }); err != nil {
		t.Fatal(err)
	}
	if got := least.Load(); got != 7000 {
		t.Errorf("the first call has the number %d, want 7000", got)
	}
}
