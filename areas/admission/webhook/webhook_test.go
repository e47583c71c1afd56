package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"tare/internal/clock"
	"tare/internal/proc"
	"tare/internal/stat"
	"tare/rigs/hosttest"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "serve" { // this test binary, started by itself
		err := proc.Serve(context.Background(), os.Stdin, os.Stdout, func(ctx context.Context, config json.RawMessage,
			ready func(any) error,
		) error {
			var cfg Config
			if err := json.Unmarshal(config, &cfg); err != nil {
				return err
			}
			return Run(ctx, cfg, func(r Ready) error { return ready(r) })
		})
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(hosttest.Sharing(m))
}

// start runs the webhook in this process until the test ends, and fails the test if it does not end as it should.
func start(t *testing.T, cfg Config) Ready {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan Ready, 1), make(chan error, 1)
	go func() { done <- run(ctx, clock.System{}, cfg, func(r Ready) error { ready <- r; return nil }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
	select {
	case r := <-ready:
		return r
	case err := <-done:
		t.Fatal(err)
		return Ready{}
	}
}

// clientOf returns a client that trusts the webhook's authority alone, with or without HTTP/2.
func clientOf(t *testing.T, r Ready, http2 bool) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(r.CA) {
		t.Fatalf("%q is no certificate", r.CA)
	}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: http2,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

func ask(t *testing.T, c *http.Client, url string) (proto int, body string) {
	t.Helper()
	resp, err := c.Post(url, "application/json", strings.NewReader(reviewOf(`{"name":"a"}`)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v: %s", resp.StatusCode, err, text)
	}
	return resp.ProtoMajor, string(text)
}

func TestServesBothProtocols(t *testing.T) {
	for name, c := range map[string]struct {
		http1, asked bool
		want         int
	}{
		"HTTP/2":                      {false, true, 2},
		"HTTP/1.1 asked for":          {false, false, 1},
		"HTTP/1.1 is all that it has": {true, true, 1},
	} {
		r := start(t, Config{HTTP1: c.http1})
		client := clientOf(t, r, c.asked)
		proto, body := ask(t, client, r.URL+"/validate/a")
		if proto != c.want || !strings.Contains(body, `"allowed":true`) {
			t.Errorf("%s: HTTP/%d: %s", name, proto, body)
		}
		counts := readCounts(t, client, r)
		if counts.Reviews != 1 || counts.Connections != 1 || (counts.HTTP2 == 1) != (c.want == 2) {
			t.Errorf("%s: counts %+v, want one review on one connection", name, counts)
		}
	}
}

func readCounts(t *testing.T, c *http.Client, r Ready) (out Counts) {
	t.Helper()
	resp, err := c.Get(r.URL + CountsPath)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCertificateIsForItsNamesOnly(t *testing.T) {
	who, err := NewIdentity(time.Now(), []string{"localhost"})
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, Config{Identity: who})
	if !strings.HasPrefix(r.URL, "https://localhost:") {
		t.Errorf("URL %s", r.URL)
	}
	client := clientOf(t, r, true)
	if resp, err := client.Get("https://" + r.Addr + CountsPath); err == nil {
		_ = resp.Body.Close()
		t.Error("a certificate of localhost was taken for 127.0.0.1's")
	}
	other := start(t, Config{})
	if resp, err := client.Get(other.URL + CountsPath); err == nil {
		_ = resp.Body.Close()
		t.Error("another process's authority was trusted")
	}
}

func TestLatencyIsAtLeastTheConfigured(t *testing.T) {
	const want = 30 * time.Millisecond
	r := start(t, Config{Latency: Latency{Median: want}})
	client := clientOf(t, r, true)
	began := time.Now()
	for range 3 {
		ask(t, client, r.URL+"/validate/a")
	}
	if took := time.Since(began); took < 3*want {
		t.Errorf("three answers of %v each came in %v", want, took)
	}
}

func TestConfigIsRefused(t *testing.T) {
	for name, cfg := range map[string]Config{
		"negative":  {Latency: Latency{Median: -1}},
		"too broad": {Latency: Latency{Median: 1, Spread: 4}},
		"no key":    {Identity: &Identity{Names: []string{"127.0.0.1"}, Base: "/a", CA: []byte("b")}},
		"too long":  {Latency: Latency{Median: MostLatency + 1}},
		"no such":   {Addr: "127.0.0.1:99999"},
		"not a box": {Addr: "192.0.2.1:0"}, // TEST-NET-1 is nobody's
	} {
		err := Run(t.Context(), cfg, func(Ready) error { return errors.New("became ready") })
		if err == nil || strings.Contains(err.Error(), "became ready") {
			t.Errorf("%s: got %v, want that the configuration is rejected", name, err)
		}
	}
}

// TestReviewCostsLittle runs the webhook as a run does and limits the CPU time of one review, generously: the cost to
// be measured must be the API server's.
func TestReviewCostsLittle(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child, err := proc.Start(t.Context(), proc.Spec{
		Name: "webhook", Path: self, Args: []string{"serve"}, Config: Config{},
		ReadyWithin: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := child.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	var r Ready
	if err := json.Unmarshal(child.Ready, &r); err != nil {
		t.Fatal(err)
	}
	client := clientOf(t, r, true)
	const n = 2000
	before := cpuOf(t, child.PID)
	for range n {
		ask(t, client, r.URL+"/mutate/c-relevant-00001")
	}
	each := (cpuOf(t, child.PID) - before) / n
	t.Logf("%v CPU a review", each)
	if each > 3*time.Millisecond {
		t.Errorf("%v CPU for a review is more than what the API server pays for calling a webhook", each)
	}
	if got := readCounts(t, client, r); got.Paths["/mutate/c-relevant-00001"] != n || got.Connections != 1 {
		t.Errorf("counted %+v", got)
	}
}

// cpuOf is the CPU time of a process so far, from its clock.
func cpuOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	var at unix.Timespec
	// The clock of a process's CPU time, as clock_getcpuclockid(3) makes it: the complement of the pid, and
	// CPUCLOCK_SCHED.
	if err := unix.ClockGettime(int32(^pid<<3|2), &at); err != nil {
		t.Fatal(err)
	}
	return time.Duration(at.Nano())
}

// TestStrangersAreNotAnswered: a client that does not know the path can neither read nor change the counts.
func TestStrangersAreNotAnswered(t *testing.T) {
	r := start(t, Config{})
	client := clientOf(t, r, true)
	before := readCounts(t, client, r)
	for _, path := range []string{"/validate/a", "/mutate/a", CountsPath, "/", "/ABC/validate/a"} {
		resp, err := client.Post("https://"+r.Addr+path, "application/json", strings.NewReader(reviewOf(`{"name":"a"}`)))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: status %d", path, resp.StatusCode)
		}
	}
	after := readCounts(t, client, r)
	if after.Reviews != before.Reviews || after.Bad != before.Bad || len(after.Paths) > 0 {
		t.Errorf("counted %+v, before %+v", after, before)
	}
}

// TestLatencyHasItsShare: the share of the draws above a time lies where Above says that it does.
func TestLatencyHasItsShare(t *testing.T) {
	for _, c := range []struct {
		l    Latency
		d    time.Duration
		want float64 // from a table of the normal distribution
	}{
		{Latency{Median: time.Second, Spread: 1}, time.Second, 0.5},
		{Latency{Median: 500 * time.Millisecond, Spread: 0.5}, time.Second, 0.0828},
		{Latency{Median: 500 * time.Millisecond, Spread: 0.25}, time.Second, 0.00278},
		{Latency{Median: 2 * time.Second}, time.Second, 1},
		{Latency{Median: time.Second}, time.Second, 0},
		{Latency{}, time.Second, 0},
	} {
		if got := c.l.Above(c.d); got < c.want-0.0001 || got > c.want+0.0001 {
			t.Errorf("%v above %v: %v, want %v", c.l, c.d, got, c.want)
		}
		const n = 20_000
		above := uint64(0)
		for range n {
			if c.l.draw() > c.d {
				above++
			}
		}
		e, _ := stat.BinomialInterval(above, n, 0.99999)
		if want := c.l.Above(c.d); want < e.Lo || want > e.Hi {
			t.Errorf("%v: %d of %d draws are above %v, want a share of %v", c.l, above, n, c.d, want)
		}
	}
}

// TestLatencyIsReplaced while the webhook serves; what is out of range is rejected and changes nothing.
func TestLatencyIsReplaced(t *testing.T) {
	c := clock.NewFake(time.Unix(1e9, 0))
	h := newHandler(c, Latency{}, 0)
	for body, code := range map[string]int{
		`{"median":-1}`: 400, `{"median":1,"spread":9}`: 400, `x`: 400, `{"median":60000000000}`: 400,
	} {
		if r := post(h, LatencyPath, body); r.Code != code || *h.latency.Load() != (Latency{}) {
			t.Errorf("%s: status %d, latency %v", body, r.Code, h.latency.Load())
		}
	}
	if r := post(h, LatencyPath, `{"median":7000000}`); r.Code != http.StatusNoContent {
		t.Fatal(r.Code)
	}
	begin := c.Now()
	if r := post(h, "/validate/a", reviewOf(`{}`)); r.Code != http.StatusOK || c.Now().Sub(begin) != 7*time.Millisecond {
		t.Errorf("status %d after %v, want 7ms", r.Code, c.Now().Sub(begin))
	}
	r := httptest.NewRecorder()
	h.ServeHTTP(r, httptest.NewRequest(http.MethodGet, LatencyPath, nil))
	if r.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: status %d", r.Code)
	}
}

// TestWorkersBoundTheThroughput: reviews beyond the workers wait for their turn.
func TestWorkersBoundTheThroughput(t *testing.T) {
	h := newHandler(clock.System{}, Latency{Median: 20 * time.Millisecond}, 2)
	begin := time.Now()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if r := post(h, "/validate/a", reviewOf(`{}`)); !strings.Contains(r.Body.String(), `"allowed":true`) {
				t.Error(r.Body)
			}
		})
	}
	wg.Wait()
	if took := time.Since(begin); took < 80*time.Millisecond {
		t.Errorf("8 reviews of 20 ms by 2 workers took %v, want at least 80 ms", took)
	}
}

// TestIdentityOutlivesTheProcess: a webhook that replaces another one is trusted by those who trusted the first, and
// answers at the same path.
func TestIdentityOutlivesTheProcess(t *testing.T) {
	who, err := NewIdentity(time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	first, second := start(t, Config{Identity: who}), start(t, Config{Identity: who})
	if first.Base != second.Base || string(first.CA) != string(second.CA) {
		t.Error("the identities differ")
	}
	client := clientOf(t, first, true)
	ask(t, client, first.URL+"/validate/a")
	ask(t, client, second.URL+"/validate/a")
}
