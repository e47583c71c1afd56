// Package controls has servers that decide requests, most of them with a planted fault: they permit, at times, what
// they must refuse. They show whether question guard finds such faults, and charges none to a sound server.
package controls

import (
	"encoding/json"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// A Control is one kind of server.
type Control struct {
	Name string
	// Sound says that it never permits a trespass; else Share is about the smallest share of trespasses that it permits
	// where its fault shows.
	Sound bool
	Share float64
	// Under names the condition that its fault needs; empty: load alone.
	Under  string
	decide func(*request) decision
	// after is called when the process has been started anew, and reload when policies are replaced. May be nil.
	after, reload func(*Server)
}

// A decision is what a server answers.
type decision int

const (
	byRule decision = iota // permit what is allowed, refuse the rest
	permit                 // whatever was asked
	refuse
	shed    // 503
	broken  // 500
	silent  // no answer until the client gives up
	another // the answer to another request
)

const (
	workers     = 4
	serviceTime = 8 * time.Millisecond // 500 requests/s in all
)

// A request is one that waits for its decision.
type request struct {
	*Server

	number  uint64 // of all requests since the start
	call    uint64
	allowed bool
	waited  time.Duration // in the queue
	flying  int           // requests in the server, this one included
	fresh   bool          // the first on its connection
}

// Server is a running control.
type Server struct {
	control Control
	http    *http.Server
	Addr    string

	places   chan struct{}
	number   atomic.Uint64
	flying   atomic.Int64
	down     atomic.Bool
	empty    atomic.Int64 // until then, in ns since 1970, there are no policies
	slow     atomic.Int64 // added to what each decision depends on, in ns
	cut      atomic.Bool  // what decisions depend on cannot be reached
	lastSeen atomic.Uint64

	mu     sync.Mutex
	bucket float64
	filled time.Time
	conns  sync.Map // addresses of the connections that were used
}

// Start starts a server of the kind.
func (c Control) Start() (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{control: c, Addr: l.Addr().String(), places: make(chan struct{}, workers), filled: time.Now()}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute, ConnState: s.forget}
	go func() { _ = s.http.Serve(l) }()
	return s, nil
}

// forget forgets connections that are closed.
func (s *Server) forget(conn net.Conn, state http.ConnState) {
	if state == http.StateClosed {
		s.conns.Delete(conn.RemoteAddr().String())
	}
}

// Close ends the server.
func (s *Server) Close() error { return s.http.Close() }

// ServeHTTP implements http.Handler: /read?call=N&right=yes must be permitted, right=no refused.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.down.Load() {
		panic(http.ErrAbortHandler) // as a process that is gone
	}
	call, _ := strconv.ParseUint(r.URL.Query().Get("call"), 10, 64)
	_, used := s.conns.LoadOrStore(r.RemoteAddr, struct{}{})
	x := &request{
		Server: s, number: s.number.Add(1), call: call, allowed: r.URL.Query().Get("right") == "yes", fresh: !used,
		flying: int(s.flying.Add(1)),
	}
	defer s.flying.Add(-1)
	began := time.Now()
	s.places <- struct{}{}
	x.waited = time.Since(began)
	time.Sleep(serviceTime + time.Duration(s.slow.Load()))
	<-s.places
	s.answer(w, r, x, s.control.decide(x))
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, x *request, d decision) {
	out := struct {
		Call    uint64 `json:"call"`
		Allowed bool   `json:"allowed"`
	}{x.call, x.allowed}
	before := s.lastSeen.Load()
	if x.allowed {
		s.lastSeen.Store(x.call)
	}
	switch d {
	case permit:
		out.Allowed = true
	case refuse:
		out.Allowed = false
	case another:
		out.Call, out.Allowed = before, true
	case shed:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case broken:
		w.WriteHeader(http.StatusInternalServerError)
		return
	case silent:
		<-r.Context().Done()
		return
	case byRule:
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

// Restart is what a killed process and its successor look like from outside.
func (s *Server) Restart() {
	s.down.Store(true)
	time.Sleep(300 * time.Millisecond)
	if s.control.after != nil {
		s.control.after(s)
	}
	s.down.Store(false)
}

// Reload replaces the policies.
func (s *Server) Reload() {
	if s.control.reload != nil {
		s.control.reload(s)
	}
}

// Slow adds to what each decision depends on, and Cut makes it unreachable.
func (s *Server) Slow(d time.Duration) { s.slow.Store(int64(d)) }

// Cut makes what decisions depend on unreachable, or reachable again.
func (s *Server) Cut(on bool) { s.cut.Store(on) }

// withoutPolicies lets the server have none for a while.
func withoutPolicies(d time.Duration) func(*Server) {
	return func(s *Server) { s.empty.Store(time.Now().Add(d).UnixNano()) }
}

// bare reports whether the server has no policies.
func (s *Server) bare() bool { return time.Now().UnixNano() < s.empty.Load() }

// token takes one of the tokens of which rate are added each second, up to burst.
func (s *Server) token(rate, burst float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.bucket = min(burst, s.bucket+rate*now.Sub(s.filled).Seconds())
	s.filled = now
	if s.bucket < 1 {
		return false
	}
	s.bucket--
	return true
}

// chance is true with probability p.
func chance(p float64) bool { return rand.Float64() < p }

func when(yes bool, d decision) decision {
	if yes {
		return d
	}
	return byRule
}
