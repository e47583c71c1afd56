package doctor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"tare/internal/hist"
	"tare/internal/load"
	"tare/internal/proc"
)

// sampleLength is about how long one sample of a micro-workload takes.
const sampleLength = 5 * time.Millisecond

// spun keeps the compiler from removing a loop without effect.
var spun atomic.Uint64

// spin computes for n steps (xorshift64, Marsaglia 2003).
func spin(n int) {
	v := uint64(88172645463325252)
	for range n {
		v ^= v << 13
		v ^= v >> 7
		v ^= v << 17
	}
	spun.Store(v)
}

// loop is CPU-bound work of a fixed number of steps.
type loop struct{ steps int }

// newLoop finds how many steps take sampleLength, from the fastest of a few rounds.
func newLoop() loop {
	const steps = 1 << 20
	best := int64(1 << 62)
	for range 5 {
		from := monotonic()
		spin(steps)
		best = min(best, monotonic()-from)
	}
	return loop{steps: int(float64(steps) * float64(sampleLength) / float64(max(best, 1)))}
}

func (l loop) run(context.Context) (effort, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cpu, err := proc.ThreadCPU()
	if err != nil {
		return effort{}, err
	}
	from := monotonic()
	spin(l.steps)
	wall := monotonic() - from
	after, err := proc.ThreadCPU()
	return effort{wall: time.Duration(wall).Seconds(), cpu: (after - cpu).Seconds()}, err
}

// exchangeRate is the load's rate in a sample of exchange.
const exchangeRate = 5000

// exchange sends HTTP over loopback with the load engine, in an open loop as in most runs, and takes the median
// response time of a few calls, as a run's p50. Its CPU time is that of this process, client and server together, for
// each call.
type exchange struct{ stream load.Stream }

func (x exchange) run(ctx context.Context) (effort, error) {
	seg, err := x.stream.Offer(ctx, load.Constant{Rate: exchangeRate, Duration: sampleLength}, 0, nil)
	if err != nil {
		return effort{}, err
	}
	sum, err := awaitCalls(ctx, x.stream)
	if err != nil {
		return effort{}, err
	}
	return effort{wall: sum.response.Quantile(.5) / 1e9, cpu: seg.CPU / float64(sum.response.Count())}, nil
}

// fork starts this program with nothing to do, and waits for its end. CPU time is the child's.
func (x *examiner) fork(ctx context.Context) (effort, error) {
	cmd := proc.Command(ctx, x.Self, TrialCommand, trialNothing)
	cmd.Env = []string{}
	from := monotonic()
	if err := cmd.Run(); err != nil {
		return effort{}, fmt.Errorf("start process: %w", err)
	}
	wall := monotonic() - from
	return effort{
		wall: time.Duration(wall).Seconds(),
		cpu:  (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(),
	}, nil
}

// total holds the times of a stream's calls.
type total struct{ response, lateness hist.Histogram }

var errNoCalls = errors.New("no call was answered")

// awaitCalls waits for the calls in flight and collects their times. It fails if any call failed.
func awaitCalls(ctx context.Context, s load.Stream) (*total, error) {
	if err := s.Wait(ctx, callTimeout+time.Second, 200*time.Microsecond,
		func() bool { return s.Progress().Open() == 0 }); err != nil {
		return nil, err
	}
	var sum total
	for _, c := range s.Take() {
		if c.Outcome != load.OK {
			return nil, fmt.Errorf("%d of the calls to tare's own test server ended as %s", c.Response.Count(), c.Outcome)
		}
		sum.response.Merge(c.Response)
		sum.lateness.Merge(c.Lateness)
	}
	if sum.response.Count() == 0 {
		return nil, errNoCalls
	}
	return &sum, nil
}

const callTimeout = 5 * time.Second

func openStream(ctx context.Context, addr netip.AddrPort) (load.Stream, error) {
	return load.Open(ctx, load.Config{
		Timeout: callTimeout, MaxConns: 16, Endpoint: load.Endpoint{Addr: addr, Host: addr.String(), Keys: 1},
		Operations: []load.Operation{{
			Name: "get", Weight: 1, Expect: "200 ok",
			Wire: get{[]byte("GET / HTTP/1.1\r\nHost: " + addr.String() + "\r\n\r\n")},
		}},
	})
}

type get struct{ request []byte }

var _ load.Wire = get{}

func (get) Explain(uint64, int, []byte) int      { return -1 }
func (get) ConnKey(uint64) int                   { return 0 }
func (g get) Render(dst []byte, _ uint64) []byte { return append(dst, g.request...) }

func (get) Check(_ uint64, status int, body []byte) load.Outcome {
	if status == 200 && string(body) == "ok" {
		return load.OK
	}
	return load.Wrong
}

// server answers every request with the same bytes, with minimal work.
type server struct {
	addr     netip.AddrPort
	listener net.Listener
	all      sync.WaitGroup
	mu       sync.Mutex
	open     map[net.Conn]bool // nil: closed
}

func serve(ctx context.Context) (*server, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	addr, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	s := &server{addr: addr, listener: l, open: map[net.Conn]bool{}}
	s.all.Go(s.accept)
	return s, nil
}

func (s *server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		s.mu.Lock()
		if s.open == nil {
			_ = c.Close()
		} else {
			s.open[c] = true
			s.all.Go(func() { s.serveConn(c) })
		}
		s.mu.Unlock()
	}
}

func (s *server) serveConn(c net.Conn) {
	defer func() {
		_ = c.Close()
		s.mu.Lock()
		delete(s.open, c)
		s.mu.Unlock()
	}()
	in := bufio.NewReader(c)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		if len(line) > 2 {
			continue
		}
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil {
			return
		}
	}
}

// close ends all connections and waits for their goroutines.
func (s *server) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	for c := range s.open {
		_ = c.Close()
	}
	s.open = nil
	s.mu.Unlock()
	s.all.Wait()
}
