package load

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"tare/rigs/hosttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(hosttest.Sharing(m)) }

// target is a loopback server of the test's own. talk has each connection to itself, within TLS if the client begins
// with a handshake.
type target struct {
	addr netip.AddrPort
	mu   sync.Mutex
	open map[net.Conn]bool
	seen int // connections
	all  sync.WaitGroup
}

func newTarget(t *testing.T, talk func(c net.Conn)) *target {
	t.Helper()
	return newTargetWith(t, acceptTLS, talk)
}

// newTargetWith is a target that talks on what accept makes of its connections, unless that is nil.
func newTargetWith(t *testing.T, accept func(net.Conn) net.Conn, talk func(c net.Conn)) *target {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &target{addr: netip.MustParseAddrPort(l.Addr().String()), open: map[net.Conn]bool{}}
	s.all.Go(func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				continue
			}
			s.track(c, true)
			s.all.Go(func() {
				defer s.track(c, false)
				if c := accept(c); c != nil {
					talk(c)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		s.hangUp()
		s.all.Wait()
	})
	return s
}

func (s *target) track(c net.Conn, in bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in {
		s.seen++
		s.open[c] = true
		return
	}
	_ = c.Close()
	delete(s.open, c)
}

func (s *target) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

// hangUp closes every connection.
func (s *target) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		_ = c.Close()
	}
}

// requests calls answer for every request on c, until it says stop.
func requests(answer func(c net.Conn, r *http.Request) bool) func(net.Conn) {
	return func(c net.Conn) {
		in := bufio.NewReader(c)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if _, err := io.Copy(io.Discard, r.Body); err != nil || !answer(c, r) {
				return
			}
		}
	}
}

// says answers every request with the same bytes.
func says(text string) func(net.Conn) {
	return requests(func(c net.Conn, _ *http.Request) bool {
		_, err := io.WriteString(c, text)
		return err == nil
	})
}

// saysAfter answers every request with 200 after d.
func saysAfter(d time.Duration) func(net.Conn) {
	return requests(func(c net.Conn, _ *http.Request) bool {
		time.Sleep(d)
		_, err := io.WriteString(c, good)
		return err == nil
	})
}

// hang reads everything and says nothing.
func hang(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

const good = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// wire is a GET, or a POST with a body, that expects "ok".
type wire struct {
	body string
	keys int
	want int // length of the body, 0: it must be "ok"
}

func (w wire) ConnKey(i uint64) int {
	if w.keys == 0 {
		return 0
	}
	return int(i) % w.keys
}

func (w wire) Render(dst []byte, i uint64) []byte {
	if w.body == "" {
		dst = append(dst, "GET / HTTP/1.1\r\nHost: test\r\nX-Key: "...)
		dst = append(dst, byte('0'+w.ConnKey(i)))
		return append(dst, "\r\n\r\n"...)
	}
	dst = append(dst, "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: "...)
	dst = append(dst, itoa(len(w.body))...)
	dst = append(dst, "\r\n\r\n"...)
	return append(dst, w.body...)
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

func (wire) Explain(uint64, int, []byte) int { return -1 }

func (w wire) Check(_ uint64, status int, body []byte) Outcome {
	switch {
	case status == 403:
		return Denied
	case status == 429 || status == 503:
		return Refused
	case status != 200:
		return Failed
	case w.want > 0 && len(body) == w.want:
		return OK
	case string(body) == "ok":
		return OK
	}
	return Wrong
}

// engines are the configurations that must behave alike.
var engines = map[string]func(*Config){
	"fast":         func(c *Config) { c.Engine = Fast },
	"fast-precise": func(c *Config) { c.Engine, c.Precise = Fast, true },
	"fast-spin":    func(c *Config) { c.Engine, c.Spin = Fast, 60*time.Microsecond },
	"fast-2":       func(c *Config) { c.Engine, c.Shards = Fast, 2 },
	"fast-tls":     func(c *Config) { c.Engine, c.Endpoint.TLS = Fast, testClientTLS() },
	"std":          func(c *Config) { c.Engine = Std },
}

// eachEngine runs f with every engine, side by side.
func eachEngine(t *testing.T, f func(t *testing.T, set func(*Config))) {
	t.Helper()
	eachEngineAlone(t, func(t *testing.T, set func(*Config)) {
		t.Parallel()
		f(t, set)
	})
}

// eachEngineAlone runs f with one engine after another. With -short, as under the race detector, one shard is left out:
// it does what each of two does.
func eachEngineAlone(t *testing.T, f func(t *testing.T, set func(*Config))) {
	t.Helper()
	for name, set := range engines {
		if strings.HasPrefix(name, "fast") && fastMissing != "" || testing.Short() && name == "fast" {
			continue
		}
		t.Run(name, func(t *testing.T) { f(t, set) })
	}
}

func open(t *testing.T, addr netip.AddrPort, set ...func(*Config)) Stream {
	t.Helper()
	c := Config{
		Endpoint: Endpoint{Addr: addr, Host: "test"}, Operations: []Operation{{Name: "get", Weight: 1, Wire: wire{}}},
		Timeout: 30 * time.Second, KeepCalls: true, Shards: 1, // a busy host may take its time
	}
	for _, f := range set {
		f(&c)
	}
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("at the end: %+v", s.Progress())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func offer(t *testing.T, s Stream, p Process) Segment {
	t.Helper()
	g, err := s.Offer(t.Context(), p, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// drain waits until every call has ended.
func drain(t *testing.T, s Stream) Progress {
	t.Helper()
	if err := s.Wait(t.Context(), 2*time.Minute, time.Millisecond,
		func() bool { return s.Progress().Open() == 0 }); err != nil {
		t.Fatal(err)
	}
	p := s.Progress()
	if p.Open() != 0 || p.Ended() != p.Due {
		t.Fatalf("not everything ended: %+v", p)
	}
	return p
}

// audit checks what holds for every stream at rest: all calls are recorded, once, with instants in order.
func audit(t *testing.T, s Stream, timeout time.Duration) []Call {
	t.Helper()
	calls, _ := auditAll(t, s, timeout)
	return calls
}

// auditAll is audit, and returns the cells, too.
func auditAll(t *testing.T, s Stream, timeout time.Duration) ([]Call, []Cell) {
	t.Helper()
	p, calls := s.Progress(), s.Calls(0)
	if uint64(len(calls)) != p.Due {
		t.Errorf("%d records of %d calls", len(calls), p.Due)
	}
	var done [Outcomes]uint64
	unsent := uint64(0)
	for i, c := range calls {
		done[c.Outcome]++
		if c.Outcome == Timeout && c.Unsent() {
			unsent++
		}
		if i > 0 && c.Intended < calls[i-1].Intended {
			t.Errorf("call %d is out of order", i)
		}
		if c.Sent != 0 && (c.Ready < c.Intended || c.Sent < c.Ready || c.Done < c.Sent || c.Conn == 0) {
			t.Errorf("call %d has its instants out of order: %+v", i, c)
		}
		if c.FirstByte != 0 && (c.FirstByte < c.Sent || c.Done < c.FirstByte) {
			t.Errorf("call %d has its first byte out of order: %+v", i, c)
		}
		if c.Outcome == Timeout && (c.Done-max(c.Intended+timeout, c.Sent)).Abs() > 2*time.Microsecond {
			t.Errorf("call %d timed out after %v", i, c.Response())
		}
	}
	if done != p.Done || unsent != p.UnsentTimeouts {
		t.Errorf("records say %v and %d unsent, progress %v and %d", done, unsent, p.Done, p.UnsentTimeouts)
	}
	cells := s.Take()
	auditCells(t, cells, calls, p)
	return calls, cells
}

// auditCells checks that cells, which are all that a stream had, say the same as its calls.
func auditCells(t *testing.T, cells []Cell, calls []Call, p Progress) {
	t.Helper()
	type reason struct {
		op int
		o  Outcome
		CauseCount
	}
	want, got := map[reason]uint64{}, map[reason]uint64{}
	for _, c := range calls {
		if !c.Outcome.Good() {
			want[reason{int(c.Operation), c.Outcome, CauseCount{Cause: c.Cause, Status: c.Status, Errno: c.Errno}}]++
		}
	}
	var counted [Outcomes]uint64
	var in, out uint64
	for _, cell := range cells {
		counted[cell.Outcome] += cell.Response.Count()
		in += cell.BytesIn
		out += cell.BytesOut
		for _, n := range cell.Causes {
			got[reason{cell.Operation, cell.Outcome, CauseCount{Cause: n.Cause, Status: n.Status, Errno: n.Errno}}] += n.Count
		}
	}
	if counted != p.Done {
		t.Errorf("histograms count %v, progress %v", counted, p.Done)
	}
	if d := cmp.Diff(want, got); d != "" && len(want) <= mostCauses {
		t.Errorf("causes of cells (-calls +cells):\n%s", d)
	}
	if in > p.BytesIn || out > p.BytesOut {
		t.Errorf("cells count %d bytes in and %d out, the stream %d and %d", in, out, p.BytesIn, p.BytesOut)
	}
}

// patiently has f try with a timeout, and with longer and longer ones for as long as it says that this host was too
// slow to get to the point within it: what a call does after it has begun can be judged only if it began. A target that
// stays slow fails.
func patiently(t *testing.T, timeout time.Duration, f func(timeout time.Duration) (slow bool)) {
	t.Helper()
	for ; timeout < 30*time.Second; timeout *= 2 {
		if !f(timeout) || t.Failed() {
			return
		}
		t.Logf("this host was too slow for a timeout of %v", timeout)
	}
	t.Fatal("the calls never began in time")
}

// unsent reports whether any of calls timed out before it was sent.
func unsent(calls []Call) bool {
	return slices.ContainsFunc(calls, func(c Call) bool { return c.Outcome == Timeout && c.Unsent() })
}

// eventually waits for what other goroutines do.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never happened")
		}
	}
}
