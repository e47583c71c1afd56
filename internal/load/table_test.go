package load

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/rigs/hosttest"
)

// sums adds up the bytes of cells.
func sums(cells []Cell) (in, out, calls uint64) {
	for _, c := range cells {
		in, out, calls = in+c.BytesIn, out+c.BytesOut, calls+c.Response.Count()
	}
	return in, out, calls
}

func TestGoCallsAndHTTP2WeighCalls(t *testing.T) {
	s := open(t, netip.AddrPort{}, func(c *Config) {
		c.Operations = []Operation{{
			Name: "go", Weight: 1,
			Call: func(context.Context, uint64) Result { return Result{BytesIn: 11, BytesOut: 7} },
		}}
	})
	offer(t, s, Constant{Rate: 100, Duration: 50 * time.Millisecond})
	drain(t, s)
	if in, out, calls := sums(s.Take()); calls != 5 || in != 55 || out != 35 {
		t.Errorf("%d calls with %d bytes in and %d out, want 5 with 55 and 35", calls, in, out)
	}

	x := newHTTP2(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Date"] = nil
		w.Header()["Content-Type"] = nil
		w.Header()["Content-Length"] = []string{"2"}
		_, _ = w.Write([]byte("ok"))
	})
	s = open(t, netip.AddrPort{}, x.to)
	offer(t, s, Constant{Rate: 100, Duration: 50 * time.Millisecond})
	if p := drain(t, s); p.Done[OK] != 5 {
		t.Fatalf("%+v", p)
	}
	// As over HTTP/1.1, whatever HPACK makes of the heads.
	if in, out, calls := sums(s.Take()); in != calls*uint64(len(good)) || out != calls*uint64(len(wire{}.Render(nil, 0))) {
		t.Errorf("%d calls with %d bytes in and %d out, want %d and %d each", calls, in, out, len(good),
			len(wire{}.Render(nil, 0)))
	}
}

func TestCausesAreBounded(t *testing.T) {
	tables := []table{newTable(1), newTable(1)}
	for i := range 1000 {
		c := Call{Outcome: Failed, Intended: 1, Done: 2}
		tables[i%2].record(&c, footnote{code: uint16(300 + i)})
	}
	c := Call{Outcome: ConnFailed, Intended: 1, Done: 2, Cause: CauseConnect}
	tables[0].record(&c, footnote{code: uint16(syscall.ECONNREFUSED)})
	fine := Call{Outcome: Denied, Intended: 1, Done: 2}
	tables[1].record(&fine, footnote{code: 403})
	cells := mergeTables(tables)
	if len(cells) != 3 {
		t.Fatalf("%d cells", len(cells))
	}
	for _, cell := range cells {
		var sum uint64
		for _, n := range cell.Causes {
			sum += n.Count
		}
		var want []CauseCount
		if cell.Outcome == ConnFailed {
			want = []CauseCount{{Cause: CauseConnect, Errno: uint16(syscall.ECONNREFUSED), Count: 1}}
		}
		if d := cmp.Diff(want, cell.Causes); cell.Outcome != Failed && d != "" {
			t.Errorf("%v: %s", cell.Outcome, d)
		}
		if cell.Outcome == Failed && (sum != 1000 || len(cell.Causes) > mostCauses+1 ||
			cell.Causes[0] != (CauseCount{Status: 300, Count: 1})) {
			t.Errorf("%d causes of %d calls, the first %v", len(cell.Causes), sum, cell.Causes[0])
		}
	}
}

// Take, again and again from within a segment, loses no call and counts none twice.
func TestTakeWithinASegment(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		s := open(t, newTarget(t, says(good)).addr, set, func(c *Config) { c.KeepCalls = false })
		var in, calls uint64
		takes := 0
		take := func() bool {
			i, _, n := sums(s.Take())
			in, calls = in+i, calls+n
			takes++
			return takes >= 100 && calls > 100
		}
		if _, err := s.Cycle(t.Context(), Closed{Workers: 4, Duration: time.Minute}, time.Millisecond, take); err != nil {
			t.Fatal(err)
		}
		p := drain(t, s)
		take()
		if calls != p.Due || in != p.BytesIn && !usesTLS(set) || takes < 100 || p.Done[OK] != p.Due {
			t.Errorf("%d calls and %d bytes in %d takes, the stream has %d and %d", calls, in, takes, p.Due, p.BytesIn)
		}
	})
}

// Without KeepCalls, calls use no memory, however long the run.
func TestMemoryDoesNotGrowWithCalls(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	const calls = 15_000
	eachEngineAlone(t, func(t *testing.T, set func(*Config)) {
		s := open(t, newTarget(t, says(good)).addr, set, func(c *Config) { c.KeepCalls = false })
		live := func() (float64, uint64) {
			before := s.Progress().Due
			if _, err := s.Cycle(t.Context(), Closed{Workers: 8, Duration: time.Minute}, time.Millisecond, func() bool {
				s.Take()
				return s.Progress().Due-before >= calls
			}); err != nil {
				t.Fatal(err)
			}
			drain(t, s)
			s.Take()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return float64(m.HeapAlloc), s.Progress().Due
		}
		first, n1 := live()
		// What other goroutines hold changes by some kB, up and down. What calls leave behind only grows.
		for try := 1; ; try++ {
			second, n2 := live()
			t.Logf("after %d calls %.0f bytes are live, after %d calls %.0f", n1, first, n2, second)
			if grown := second - first; grown <= 24e3 { // a byte a call would be 86 MB in a day at 1,000/s
				return
			} else if try == 3 {
				t.Errorf("%d calls left %.0f bytes behind, and so it was %d times", n2-n1, grown, try)
				return
			}
			first, n1 = second, n2
		}
	})
}

// A target that is gone is not called as fast as the host can fail: not by a closed loop over the wire, and not by one
// of Go calls, which no dial holds back. Once it is back, all workers go on.
func TestClosedLoopAgainstNobody(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	addr := nobody(t)
	gone := func(context.Context, uint64) Result {
		return Result{Outcome: ConnFailed, Errno: uint16(syscall.ECONNREFUSED), Cause: CauseConnect}
	}
	calls := func(c *Config) { c.Engine, c.Operations = Std, []Operation{{Name: "go", Weight: 1, Call: gone}} }
	for name, c := range map[string]struct {
		set     func(*Config)
		workers int
	}{
		"fast": {engines["fast"], 10}, "fast-2": {engines["fast-2"], 10}, "std": {engines["std"], 10}, "go": {calls, 10},
		"go, many": {calls, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const length = time.Second
			s := open(t, addr, c.set)
			if _, err := s.Cycle(t.Context(), Closed{Workers: c.workers, Duration: length}, 0, nil); err != nil {
				t.Fatal(err)
			}
			p := drain(t, s)
			most := uint64(c.workers) * uint64(int64(length)/pause(c.workers)+1)
			if p.Done[ConnFailed] != p.Due || p.Due > most || p.Due < uint64(c.workers) {
				t.Errorf("%d calls, of which %d found nobody; want all, and at most %d", p.Due, p.Done[ConnFailed], most)
			}
			t.Logf("%d calls in %v", p.Due, length)
			auditCells(t, s.Take(), s.Calls(0), p)
		})
	}
}

func TestWorkersGoOnWhenTheTargetIsBack(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	for _, engine := range []string{"fast", "std"} {
		t.Run(engine, func(t *testing.T) {
			addr := nobody(t)
			s := open(t, addr, engines[engine])
			var good, least uint64
			back := false
			_, err := s.Cycle(t.Context(), Closed{Workers: 6, Duration: 20 * time.Second}, 10*time.Millisecond, func() bool {
				p := s.Progress()
				if !back && p.Done[ConnFailed] > 12 {
					l, err := net.Listen("tcp", addr.String())
					if err != nil {
						t.Error(err)
						return true
					}
					back = true
					srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						time.Sleep(20 * time.Millisecond)
						_, _ = w.Write([]byte("ok"))
					}), ReadHeaderTimeout: time.Minute}
					done := make(chan struct{})
					go func() { defer close(done); _ = srv.Serve(l) }()
					t.Cleanup(func() { _ = srv.Close(); <-done })
				}
				good = p.Done[OK]
				least = max(least, uint64(p.InFlight))
				return good > 100 && least == 6
			})
			if err != nil || good < 100 || least != 6 {
				t.Errorf("%d calls were answered once the target was back, at most %d at a time of 6 workers: %v", good, least, err)
			}
		})
	}
}
