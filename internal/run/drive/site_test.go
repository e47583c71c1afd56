package drive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/probe"
)

// A testServer is a small server on loopback that counts its answers and can be restarted at the same address.
type testServer struct {
	mu     sync.Mutex
	addr   netip.AddrPort
	counts map[string]float64
	birth  float64
	server *http.Server
	done   chan struct{}
}

func newTestServer(t *testing.T) *testServer {
	t.Helper()
	s := &testServer{counts: map[string]float64{}}
	if err := s.start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

func (s *testServer) start(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addr = netip.MustParseAddrPort(l.Addr().String())
	s.birth++
	s.server, s.done = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}, make(chan struct{})
	go func(server *http.Server, done chan struct{}) {
		defer close(done)
		_ = server.Serve(l)
	}(s.server, s.done)
	return nil
}

// stop ends the server and all its connections, and resets its counts.
func (s *testServer) stop() {
	s.mu.Lock()
	server, done := s.server, s.done
	s.mu.Unlock()
	_ = server.Close()
	<-done
	s.mu.Lock()
	s.counts, s.server = map[string]float64{}, nil
	s.mu.Unlock()
}

// restart starts the server again at its address.
func (s *testServer) restart(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := s.start(s.addr.String())
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Error(err)
			return
		}
	}
}

func (s *testServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := "permit"
	if r.URL.Path == "/deny" || r.URL.Path == "/strange" {
		answer = "deny"
	}
	s.mu.Lock()
	broken := s.counts["broken"] > 0
	s.counts[answer]++
	s.mu.Unlock()
	if broken {
		w.WriteHeader(http.StatusInternalServerError)
	}
	_, _ = w.Write([]byte(answer))
}

// A serverCall sends a request to a testServer and expects an answer.
type serverCall struct{ path, want string }

func (serverCall) ConnKey(uint64) int { return 0 }
func (q serverCall) Render(dst []byte, _ uint64) []byte {
	return fmt.Appendf(dst, "GET %s HTTP/1.1\r\nHost: site\r\n\r\n", q.path)
}

func (q serverCall) Check(_ uint64, status int, body []byte) load.Outcome {
	switch {
	case status != http.StatusOK:
		return load.Failed
	case string(body) == q.want:
		return load.OK
	}
	return load.Wrong
}

func (q serverCall) Explain(_ uint64, status int, _ []byte) int {
	if status == http.StatusOK {
		return 0
	}
	return -1
}

// A serverTarget is a target that calls a testServer.
type serverTarget struct {
	exactTarget
	site   *testServer
	probes []probe.Probe
}

func (v *serverTarget) Operations(design.Treatment) ([]load.Operation, error) {
	op := func(name string, weight int, q serverCall, causes []string) load.Operation {
		return load.Operation{
			Name: name, Weight: weight, Wire: q, Answer: q.want, Causes: []string{"it said the opposite"},
			CauseAnswers: causes,
		}
	}
	return []load.Operation{
		op("ask", 3, serverCall{"/permit", "permit"}, []string{"deny"}),
		op("refused", 1, serverCall{"/deny", "deny"}, []string{"permit"}),
		op("strange", 1, serverCall{"/strange", "permit"}, []string{"deny"}),
	}, nil
}

func (v *serverTarget) Endpoint(design.Treatment) (*load.Endpoint, error) {
	v.site.mu.Lock()
	defer v.site.mu.Unlock()
	return &load.Endpoint{Addr: v.site.addr, Host: "site"}, nil
}

func (v *serverTarget) Can() area.Can {
	return area.Can{Enter: v.Enter, Leave: v.Leave, Endpoint: v.Endpoint, Probes: v.Probes, Counted: v.Counted}
}

func (v *serverTarget) Probes(design.Treatment) []probe.Probe { return v.probes }

func (v *serverTarget) Counted(context.Context, design.Treatment) (map[string]float64, error) {
	v.site.mu.Lock()
	defer v.site.mu.Unlock()
	if v.site.server == nil {
		return nil, errors.New("nobody answers")
	}
	out := map[string]float64{"permit": 0, "deny": 0}
	maps.Copy(out, v.site.counts)
	return out, nil
}

// A serverProbe probes a testServer.
type serverProbe struct{ site *testServer }

func (serverProbe) Subject() string { return "site" }

func (p serverProbe) Read(context.Context) ([]metric.Sample, error) {
	p.site.mu.Lock()
	defer p.site.mu.Unlock()
	if p.site.server == nil {
		return nil, errors.New("no such process")
	}
	return []metric.Sample{
		{Subject: "site", Metric: probe.Started.Name, Value: p.site.birth},
		{Subject: "site", Metric: probe.CPU.Name, Value: p.site.counts["permit"] + p.site.counts["deny"]},
	}, nil
}
