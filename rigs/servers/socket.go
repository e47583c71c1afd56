package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"tare/internal/clock"
)

// Running is a fixture that has been started.
type Running struct {
	// Addr is where calls are taken.
	Addr netip.AddrPort

	of     Fixture
	rig    *rig
	first  part
	server *http.Server
	addr   string // of the fixture itself, behind a proxy if it has one
	cancel context.CancelFunc
	all    sync.WaitGroup
	child  *child
	link   *link    // that answers go over; nil: it has no limit
	own    *process // that the fixture runs in; nil: this one
	failed error    // to listen again; for Stop

	crashes chan time.Duration // how long each lasts

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	stopped  bool
}

func newRunning(f Fixture, seed uint64) *Running {
	r := &Running{
		of: f, rig: newRig(clock.System{}, seed), conns: map[net.Conn]bool{}, cancel: func() {},
		crashes: make(chan time.Duration, 1),
	}
	r.first = f.build(r.rig)
	r.server = &http.Server{
		Handler: r, ConnState: r.track, ReadHeaderTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	r.rig.lost = r.crashed
	if f.bandwidth > 0 {
		r.link = &link{clock: clock.System{}, bandwidth: f.bandwidth}
	}
	return r
}

// Late is the share of what the server did that it did more than 5 ms late, because the host did not let it run. Its
// capacity is what it should be all the same; its responses are not, and look like pauses.
// It is 0 for a fixture that computes.
func (r *Running) Late() float64 {
	if r.own != nil {
		return 0
	}
	r.rig.mu.Lock()
	defer r.rig.mu.Unlock()
	return float64(r.rig.late) / float64(max(1, r.rig.ran))
}

// MostLate is the Late up to which a search can be judged.
const MostLate = 0.01

// open listens, and serves until Stop.
func (r *Running) open(ctx context.Context) error {
	l, err := listenLow(ctx)
	if err != nil {
		return err
	}
	r.addr = l.Addr().String()
	if r.Addr, err = netip.ParseAddrPort(r.addr); err != nil {
		return errors.Join(err, l.Close())
	}
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.server.BaseContext = func(net.Listener) context.Context { return ctx }
	r.all.Go(func() { r.rig.run(ctx) })
	r.all.Go(func() { r.failed = r.suffer(ctx) })
	return r.serve(l)
}

// serve takes connections from l until it is closed.
func (r *Running) serve(l net.Listener) error {
	if err := setBacklog(l, r.of.backlog); err != nil {
		return errors.Join(err, l.Close())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return l.Close()
	}
	r.listener = l
	if r.of.conns > 0 {
		l = &limited{Listener: l, slots: make(chan struct{}, r.of.conns), done: make(chan struct{})}
		r.listener = l
	}
	r.all.Go(func() { _ = r.server.Serve(l) }) // it ends when l is closed
	return nil
}

// Stop ends the server and waits for it.
func (r *Running) Stop() error {
	if r.own != nil {
		return r.own.stop()
	}
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	var err error
	if r.child != nil {
		err = r.child.stop()
	}
	r.cancel()
	r.disconnect()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if closed := r.server.Shutdown(ctx); !errors.Is(closed, net.ErrClosed) { // the listener is closed already
		err = errors.Join(err, closed)
	}
	r.all.Wait()
	return errors.Join(err, r.failed)
}

// ServeHTTP implements http.Handler.
func (r *Running) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	host, _, _ := net.SplitHostPort(q.RemoteAddr)
	c := newCall(host)
	r.rig.enter(c, r.first)
	select {
	case a := <-c.reply:
		if a.status == 0 {
			abort(w)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if r.link != nil {
			r.link.send(q.Context(), w, a)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	case <-q.Context().Done():
		r.rig.abandon(c)
	}
}

// abort resets the connection.
func abort(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	resetConn(c)
}

func resetConn(c net.Conn) {
	under := c
	if l, ok := c.(*limitedConn); ok {
		under = l.Conn
	}
	if t, ok := under.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

// track keeps the open connections, to be reset in a crash.
func (r *Running) track(c net.Conn, s http.ConnState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch s {
	case http.StateNew:
		r.conns[c] = true
	case http.StateClosed, http.StateHijacked:
		delete(r.conns, c)
	case http.StateActive, http.StateIdle:
	}
}

// crashed is told of a crash by the timeline, which must not be kept waiting.
func (r *Running) crashed() {
	select {
	case r.crashes <- r.rig.back - r.rig.now:
	default:
	}
}

// suffer does to the sockets what crashes do.
func (r *Running) suffer(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case down := <-r.crashes:
			r.disconnect()
			if (clock.System{}).Sleep(ctx, down) != nil {
				return nil //nolint:nilerr // it has been stopped
			}
			if err := r.relisten(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// disconnect closes the listener and resets all connections.
func (r *Running) disconnect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener != nil {
		_ = r.listener.Close()
		r.listener = nil
	}
	for c := range r.conns {
		resetConn(c)
	}
}

func (r *Running) relisten(ctx context.Context) error {
	var conf net.ListenConfig
	l, err := conf.Listen(ctx, "tcp", r.addr)
	if err != nil {
		return fmt.Errorf("listen again: %w", err)
	}
	return r.serve(l)
}

// listenLow listens on a port below those that the kernel gives to clients: a client's connection to such a port, while
// nobody listens there, could be connected to itself.
func listenLow(ctx context.Context) (net.Listener, error) {
	const lowest, highest, tries = 10_000, 32_000, 100
	var conf net.ListenConfig
	var failed error
	for range tries {
		l, err := conf.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(lowest+rand.IntN(highest-lowest))))
		if err == nil {
			return l, nil
		}
		failed = err
	}
	return nil, failed
}

// setBacklog changes how many connections wait in the kernel: Go asks for as many as it allows, and a second listen(2)
// changes that. 0: as it is.
func setBacklog(l net.Listener, backlog int) error {
	tcp, ok := l.(*net.TCPListener)
	if !ok || backlog == 0 {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return fmt.Errorf("set the backlog: %w", err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = syscall.Listen(int(fd), backlog) }); err != nil {
		return fmt.Errorf("set the backlog: %w", err)
	}
	return failed
}

// limited accepts a connection only when fewer than a number are open. The others wait in the kernel, where they look
// established to the client.
type limited struct {
	net.Listener
	slots chan struct{}
	done  chan struct{}
	once  sync.Once
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitedConn{Conn: c, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

// Close implements net.Listener.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	free func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.free()
	return err
}
