package reference

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tare/areas/decision/engine"
	"tare/internal/clock"
	"tare/rigs/memtest"
)

// runTestPDPX serves until stop, which returns what RunPDPX returned.
func runTestPDPX(t *testing.T, cfg engine.Config) (addr string, stop func() error) {
	t.Helper()
	cfg.Addr = "127.0.0.1:0"
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan engine.Ready, 1), make(chan error, 1)
	go func() { done <- RunPDPX(ctx, cfg, func(r engine.Ready) error { ready <- r; return nil }) }()
	stopped := sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = stopped() })
	select {
	case r := <-ready:
		return r.Addr, stopped
	case err := <-done:
		done <- err
		t.Fatal(err)
		return "", stopped
	}
}

// TestRunPDPXEndsGracefully: an answer in progress is finished, and then the port is free.
func TestRunPDPXEndsGracefully(t *testing.T) {
	addr, stop := runTestPDPX(t, engine.Config{N: 1, Leak: 1 << 20})
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // the other side closes it
	if _, err := fmt.Fprintf(conn, "GET %s/healthcheck HTTP/1.1\r\nHost: h\r\n\r\n", pdpxBase); err != nil {
		t.Fatal(err)
	}
	var head [12]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil || string(head[:]) != "HTTP/1.1 200" {
		t.Fatalf("got head %q, %v; want status 200", head, err)
	}
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if _, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
		t.Error("somebody listens still")
	}
}

// TestRunPDPXLeavesNothing: no goroutine, no connection and no leaked memory remains after the end.
func TestRunPDPXLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	addr, stop := runTestPDPX(t, engine.Config{N: 10, Leak: 8 << 20})
	client := &http.Client{Transport: &http.Transport{}}
	resp, err := client.Get("http://" + addr + pdpxBase + "/statistics")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.Body.Close() != nil || resp.StatusCode != 200 {
		t.Fatalf("%v, status %d", err, resp.StatusCode)
	}
	client.CloseIdleConnections()
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

func TestRunPDPXErrors(t *testing.T) {
	addr, _ := runTestPDPX(t, engine.Config{N: 1})
	told := func(engine.Ready) error { return nil }
	if err := RunPDPX(t.Context(), engine.Config{Addr: addr}, told); err == nil ||
		!strings.Contains(err.Error(), "in use") {
		t.Errorf("a port that is taken: %v", err)
	}
	if err := RunPDPX(t.Context(), engine.Config{Addr: "127.0.0.1:0", Answer: "x"}, told); err == nil {
		t.Error("an unknown fault is accepted")
	}
	refusal := errors.New("nobody listens to what is ready")
	if err := RunPDPX(t.Context(), engine.Config{Addr: "127.0.0.1:0"},
		func(engine.Ready) error { return refusal }); !errors.Is(err, refusal) {
		t.Errorf("ready failed: %v", err)
	}
}

func FuzzPDPXDecision(f *testing.F) {
	for _, body := range []string{askMonitoring, askAbsent, fmt.Sprintf(askMinMax, "1"), fmt.Sprintf(askFrequency, "Rebuild"), askUnknown, `{"action":"guard","resource":{"guard":null}}`, `{"action":"configure","resource":{"policy-id":[1]}}`} {
		f.Add(body)
	}
	p, err := newPDPX(clock.System{}, engine.Config{N: 3})
	if err != nil {
		f.Fatal(err)
	}
	h := p.handler()
	f.Fuzz(func(t *testing.T, body string) {
		defer memtest.Bound(t, len(body))()
		before := p.statistics()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", pdpxBase+"/decision", strings.NewReader(body)))
		if !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%q: %d, no JSON: %s", body, w.Code, w.Body)
		}
		after := p.statistics()
		decided := after.PermitDecisionsCount + after.DenyDecisionsCount + after.NotApplicableDecisionsCount +
			after.IndeterminantDecisionsCount -
			before.PermitDecisionsCount - before.DenyDecisionsCount - before.NotApplicableDecisionsCount -
			before.IndeterminantDecisionsCount
		failed := after.TotalErrorCount - before.TotalErrorCount
		switch {
		case w.Code == 200 && strings.HasPrefix(w.Body.String(), `{"status":"error"`):
			noRequest := !strings.Contains(w.Body.String(), `"policies"`) // it could not be converted
			if noRequest && (decided != 0 || failed != 1) || !noRequest && (decided != 1 || failed != 0) {
				t.Errorf("%q: %s is counted as %d decisions, %d errors", body, w.Body, decided, failed)
			}
		case w.Code == 200 && (decided != 1 || failed != 0), w.Code != 200 && (decided != 0 || failed > 1):
			t.Errorf("%q: status %d is counted as %d decisions, %d errors", body, w.Code, decided, failed)
		}
	})
}

// TestPDPXSlowClients: the server does not wait for a client that never finishes its request. Its timeouts are
// shortened.
func TestPDPXSlowClients(t *testing.T) {
	srv := newServer(newTestPDPX(t, clock.System{}, engine.Config{N: 1}).handler())
	const faster = 100
	for _, d := range []*time.Duration{&srv.ReadHeaderTimeout, &srv.ReadTimeout, &srv.WriteTimeout} {
		if *d <= 0 || *d > time.Minute {
			t.Fatalf("a timeout is %v", *d)
		}
		*d /= faster
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	defer func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	for name, half := range map[string]string{
		"no request": "",
		"header":     "POST " + pdpxBase + "/decision HTTP/1.1\r\nHost:",
		"body":       "POST " + pdpxBase + "/decision HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n{",
	} {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, half); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn) // ends when the server closes
		if err != nil || strings.Contains(string(answer), "200 OK") {
			t.Errorf("%s: got %v, %q; want no answer with status 200", name, err, answer)
		}
		_ = conn.Close()
	}
}
