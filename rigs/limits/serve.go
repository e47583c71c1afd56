package limits

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Serve is the server until ctx ends. It writes its address, and a line break, to out.
func (s Spec) Serve(ctx context.Context, out io.Writer) error {
	if s.Procs > 0 {
		runtime.GOMAXPROCS(s.Procs)
	}
	l, err := listen(s.Backlog)
	if err != nil {
		return err
	}
	h := &server{Spec: s, began: time.Now()}
	if s.Slots > 0 {
		h.slots = make(chan struct{}, s.Slots)
	}
	if s.Heap > 0 {
		debug.SetGCPercent(5)
		for range s.Heap / 64 {
			h.live = append(h.live, &[8]uint64{})
		}
	}
	if s.Conns > 0 {
		l = &limited{l, make(chan struct{}, s.Conns)}
	}
	if _, err := fmt.Fprintln(out, l.Addr()); err != nil {
		return err
	}
	web := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() {
		<-ctx.Done()
		_ = web.Close() // its end is Serve's
	}()
	if err := web.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

// listen listens on a free port of loopback, with that many connections waiting at most; 0: the usual.
func listen(backlog int) (net.Listener, error) {
	if backlog == 0 {
		return net.Listen("tcp", "127.0.0.1:0")
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "listener")
	defer f.Close() //nolint:errcheck // the listener has a copy
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return nil, err
	}
	if err := unix.Listen(fd, backlog); err != nil {
		return nil, err
	}
	return net.FileListener(f)
}

// limited accepts so many connections at a time.
type limited struct {
	net.Listener

	places chan struct{}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	l.places <- struct{}{}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &place{Conn: c, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

// place is a connection that has one of the places.
type place struct {
	net.Conn

	leave func()
}

// Close implements net.Conn.
func (p *place) Close() error {
	p.leave()
	return p.Conn.Close()
}

type server struct {
	Spec

	slots chan struct{}
	began time.Time
	live  []*[8]uint64

	mu       sync.Mutex
	inFlight int
	used     float64       // of the bucket, so far
	next     time.Duration // since began: when the next call may pass
	sent     time.Duration // since began: when the bandwidth is free
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if !s.enter() {
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	defer s.leave()
	if s.Pace > 0 {
		time.Sleep(s.turn(&s.next, 1/s.Pace))
	}
	s.work()
	w.Header().Set("Content-Type", "text/plain")
	if s.Bytes == 0 {
		_, _ = io.WriteString(w, "ok\n") // a caller that is gone needs no answer
		return
	}
	s.write(w)
}

// enter reports whether the limiters let a call pass.
func (s *server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Bucket > 0 {
		s.used = max(s.used, s.Bucket*time.Since(s.began).Seconds()-s.Burst) // what is saved up is bounded
		if s.used+1 > s.Bucket*time.Since(s.began).Seconds() {
			return false
		}
		s.used++
	}
	if s.Refuse > 0 && s.inFlight >= s.Refuse {
		return false
	}
	s.inFlight++
	return true
}

func (s *server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
}

// turn takes the next of the turns that are so many seconds apart, and returns how long to wait for it.
func (s *server) turn(next *time.Duration, apart float64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Since(s.began)
	at := max(*next, now)
	*next = at + time.Duration(apart*1e9)
	return at - now
}

// work does what a call needs.
func (s *server) work() {
	if s.slots != nil {
		s.slots <- struct{}{}
		defer func() { <-s.slots }()
	}
	factor := 1.0
	if s.Varied {
		factor = rand.ExpFloat64()
	}
	burn(time.Duration(factor * float64(s.Work)))
	if s.Rest > 0 {
		time.Sleep(time.Duration(factor * float64(s.Rest)))
	}
	if s.Garbage > 0 {
		for range s.Garbage / 64 {
			s.live[rand.IntN(len(s.live))] = &[8]uint64{}
		}
	}
}

// burn uses so much processor time.
func burn(d time.Duration) {
	if d <= 0 {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for began := threadTime(); threadTime()-began < d; {
	}
}

func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// write sends the answer as fast as the bandwidth allows, which all answers share.
func (s *server) write(w http.ResponseWriter) {
	const chunk = 5000
	part := make([]byte, chunk)
	for left := s.Bytes; left > 0; left -= chunk {
		if wait := s.turn(&s.sent, chunk/s.Bandwidth); wait > time.Millisecond {
			if f, ok := w.(http.Flusher); ok {
				f.Flush()
			}
			time.Sleep(wait)
		}
		if _, err := w.Write(part[:min(chunk, left)]); err != nil {
			return
		}
	}
}
