package reference

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tare/internal/clock"
	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// TestMain: every goroutine has an owner that waits for it.
func TestMain(m *testing.M) { goleak.VerifyTestMain(hosttest.Sharing(m)) }

// A pair is a running STS and endpoint.
type pair struct {
	t        *testing.T
	signer   *Signer
	sts, end Ready
}

func start(t *testing.T, k Knobs) *pair {
	t.Helper()
	signer, err := NewSigner(k.Signing)
	if err != nil {
		t.Fatal(err)
	}
	public, err := signer.Public()
	if err != nil {
		t.Fatal(err)
	}
	private, err := signer.Private()
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{t: t, signer: signer}
	p.sts = p.run(func(ctx context.Context, ready func(Ready) error) error {
		cfg := STSConfig{Addr: "127.0.0.1:0", Admin: "127.0.0.1:0", TrustedKey: public, STSKnobs: k.STSKnobs}
		return runSTS(ctx, clock.System{}, cfg, ready)
	})
	cfg := EndpointConfig{
		Addr: "127.0.0.1:0", Admin: "127.0.0.1:0", STS: "http://" + p.sts.Addr, SigningKey: private, Seed: 1,
		EndpointKnobs: k.EndpointKnobs,
	}
	p.end = p.run(func(ctx context.Context, ready func(Ready) error) error {
		return runEndpoint(ctx, clock.System{}, cfg, ready)
	})
	return p
}

// run runs a server until the test ends, and fails the test if it ends with an error.
func (p *pair) run(serve func(context.Context, func(Ready) error) error) Ready {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	readies, ended := make(chan Ready, 1), make(chan error, 1)
	go func() {
		ended <- serve(ctx, func(r Ready) error { readies <- r; return nil })
	}()
	select {
	case r := <-readies:
		p.t.Cleanup(func() {
			cancel()
			select {
			case err := <-ended:
				if err != nil {
					p.t.Errorf("the server ended with %v", err)
				}
			case <-time.After(20 * time.Second):
				p.t.Error("the server does not end")
			}
		})
		return r
	case err := <-ended:
		cancel()
		p.t.Fatalf("the server did not start: %v", err)
	}
	return Ready{}
}

// get sends the endpoint a workload's request.
func (p *pair) get(path string, header ...string) (int, string) {
	p.t.Helper()
	if len(header) == 0 {
		header = []string{"Metadata-Flavor", "Google"}
	}
	status, body, _ := p.ask(http.MethodGet, p.end.Addr, path, header...)
	return status, body
}

// ask sends a request on a connection of its own.
func (p *pair) ask(method, addr, path string, header ...string) (int, string, http.Header) {
	p.t.Helper()
	req, err := http.NewRequest(method, "http://"+addr+path, http.NoBody)
	if err != nil {
		p.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	c := http.Client{
		Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := c.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header
}

// readCounters reads the counters at an admin address.
func readCounters(t *testing.T, addr string) Counters {
	t.Helper()
	a := NewAdmin(addr)
	defer a.Close()
	c, err := a.Counters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAdminAddressRejectsOtherUsers: every user of the host can connect to it, and must neither empty the cache nor
// read the counters.
func TestAdminAddressRejectsOtherUsers(t *testing.T) {
	p := healthyPair(t, nil)
	for _, admin := range []string{p.end.Admin, p.sts.Admin} {
		addr, secret, _ := strings.Cut(admin, "/")
		if len(secret) < 20 {
			t.Fatalf("%q has no secret", admin)
		}
		for _, x := range []struct{ method, path string }{
			{"GET", "/debug"}, {"POST", "/flush"}, {"GET", "/healthz"}, {"GET", "/" + secret[1:] + "/debug"},
		} {
			if status, _, _ := p.ask(x.method, addr, x.path); status != http.StatusNotFound {
				t.Errorf("%s %s: status %d", x.method, x.path, status)
			}
		}
	}
}

// A testCache is a cache on a fake clock, with a mint that numbers its tokens.
type testCache struct {
	*cache
	clock  *clock.Fake
	owner  *gate
	minted int
	fail   error
}

func newTestCache(t *testing.T, k EndpointKnobs) *testCache {
	t.Helper()
	c := clock.NewFake(time.Unix(1_000_000, 0))
	g := newGate()
	return &testCache{cache: newCache(context.Background(), k, 7, c, g), clock: c, owner: g}
}

// token gets a credential and waits for the refresh that it may have started.
func (v *testCache) token(t *testing.T) string {
	t.Helper()
	got, err := v.get(t.Context(), "k", func(context.Context) (credential, error) {
		v.minted++
		return credential{fmt.Sprint(v.minted), v.clock.Now().Add(time.Hour)}, v.fail
	})
	if err != nil {
		t.Fatal(err)
	}
	for {
		v.mu.Lock()
		flying := len(v.flights)
		v.mu.Unlock()
		if flying == 0 {
			return got.value
		}
		time.Sleep(time.Millisecond)
	}
}

func TestCacheUntilExpiry(t *testing.T) {
	v := newTestCache(t, EndpointKnobs{Cache: true, Singleflight: true})
	for i, c := range []struct {
		later time.Duration
		want  string
	}{
		{0, "1"},
		{30 * time.Minute, "1"},
		{29*time.Minute + 59*time.Second, "1"}, // one second left: expires_in 1
		{time.Millisecond, "2"},                // less: as good as expired
		{time.Hour - time.Second, "2"},
		{time.Hour, "3"}, // and again
	} {
		v.clock.Advance(c.later)
		if got := v.token(t); got != c.want {
			t.Errorf("step %d: token %s, want %s", i, got, c.want)
		}
	}
}

func TestCacheOff(t *testing.T) {
	v := newTestCache(t, EndpointKnobs{Singleflight: true})
	if a, b := v.token(t), v.token(t); a != "1" || b != "2" {
		t.Errorf("tokens %s and %s", a, b)
	}
}

func TestEarlyRefreshServesTheOldToken(t *testing.T) {
	v := newTestCache(t, EndpointKnobs{Cache: true, Singleflight: true, RefreshEarly: 10 * time.Minute})
	v.token(t)
	v.clock.Advance(50*time.Minute - time.Second)
	if got := v.token(t); got != "1" || v.minted != 1 {
		t.Fatalf("before the refresh: token %s, %d minted", got, v.minted)
	}
	v.clock.Advance(time.Second)
	if got := v.token(t); got != "1" || v.minted != 2 {
		t.Errorf("at the refresh: token %s, %d minted", got, v.minted)
	}
	if got := v.token(t); got != "2" || v.minted != 2 {
		t.Errorf("after the refresh: token %s, %d minted", got, v.minted)
	}
	if n := v.refreshes.Load(); n != 1 {
		t.Errorf("%d refreshes are counted", n)
	}
}

func TestFailedRefreshKeepsTheTokenAndWaits(t *testing.T) {
	v := newTestCache(t, EndpointKnobs{Cache: true, Singleflight: true, RefreshEarly: 10 * time.Minute})
	v.token(t)
	v.clock.Advance(55 * time.Minute)
	v.fail = errors.New("down")
	for range 5 {
		if got := v.token(t); got != "1" {
			t.Fatalf("token %s", got)
		}
	}
	if v.minted != 2 {
		t.Errorf("%d mints within a second of a failure, want one", v.minted)
	}
	v.fail = nil
	v.clock.Advance(retryAfter)
	v.token(t)
	if got := v.token(t); got != "3" {
		t.Errorf("after the pause: token %s", got)
	}
}

// TestJitterSpreadsRefreshes: with jitter, tokens that were made together are refreshed at different times, all within
// the range.
func TestJitterSpreadsRefreshes(t *testing.T) {
	v := newTestCache(t, EndpointKnobs{Cache: true, RefreshEarly: 5 * time.Minute, Jitter: 10 * time.Minute})
	expires := v.clock.Now().Add(time.Hour)
	seen := map[int]int{}
	for i := range 300 {
		key := fmt.Sprint(i)
		v.store(key, credential{"x", expires})
		early := expires.Sub(v.entries[key].refresh)
		if early < 5*time.Minute || early > 15*time.Minute {
			t.Fatalf("refresh %v before expiry", early)
		}
		seen[int((early-5*time.Minute)/time.Minute)]++
	}
	for minute := range 10 {
		if seen[minute] < 10 { // 30 on average
			t.Errorf("minute %d holds %d of 300 refreshes", minute, seen[minute])
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	v := newTestCache(t, EndpointKnobs{Cache: true})
	for i := range maxEntries + 100 {
		v.store(fmt.Sprint(i), credential{"x", v.clock.Now().Add(time.Hour)})
	}
	if n := len(v.entries); n != maxEntries {
		t.Errorf("%d entries, want %d", n, maxEntries)
	}
}

func TestClosedGateAdmitsNobody(t *testing.T) {
	g := newGate()
	if !g.enter() {
		t.Fatal("an open gate is closed")
	}
	done := make(chan struct{})
	go func() { g.shut(); close(done) }()
	for g.enter() {
		g.leave() // until shut has begun
	}
	select {
	case <-done:
		t.Fatal("shut did not wait")
	default:
	}
	g.leave()
	<-done
}

// TestLedgerPrice: a request costs its price in total, whatever the work around it costs.
func TestLedgerPrice(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	const price = 600 * time.Microsecond
	var cpu atomic.Int64
	l := &ledger{cost: price, cpu: func() (time.Duration, error) {
		return time.Duration(cpu.Add(int64(time.Microsecond))), nil // each look costs 1 µs of work
	}}
	l.pay()
	start := cpu.Load()
	for range 1000 {
		cpu.Add(int64(60 * time.Microsecond)) // HTTP
		l.pay()
	}
	each := time.Duration((cpu.Load() - start) / 1000)
	if each < price || each > price+5*time.Microsecond {
		t.Errorf("a request costs %v, want %v", each, price)
	}
}

// TestLedgerForgivesIdleWork: the process's own work makes at most one request cheaper.
func TestLedgerForgivesIdleWork(t *testing.T) {
	l := &ledger{cost: time.Millisecond}
	l.book(0)
	at := 500 * time.Millisecond // of garbage collection, say
	var total time.Duration
	for range 10 {
		due := l.book(at)
		total += max(0, due-at)
		at = max(at, due)
	}
	if total < 9*time.Millisecond || total > 10*time.Millisecond {
		t.Errorf("ten requests after idle work pay %v", total)
	}
}

// TestLedgerOnTheRealClock burns real CPU time: never less than the price, and little more.
func TestLedgerOnTheRealClock(t *testing.T) {
	const price, n = 200 * time.Microsecond, 200
	l, err := newLedger(price)
	if err != nil {
		t.Fatal(err)
	}
	l.pay()
	before, err := proc.ProcessCPU()
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		l.pay()
	}
	after, err := proc.ProcessCPU()
	if err != nil {
		t.Fatal(err)
	}
	if each := (after - before) / n; each < price*95/100 || each > price*3/2 {
		t.Errorf("a request costs %v of CPU, want %v", each, price)
	}
}

// TestLivenessRestartsAfterFailures: the restart comes after the given number of failures in a row, and not before.
func TestLivenessRestartsAfterFailures(t *testing.T) {
	answers := []int{200, 500, 500, 200, 500, 500, 500, 200}
	var asked, restarts atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := asked.Add(1)
		if int(n) > len(answers) {
			cancel()
			return
		}
		w.WriteHeader(answers[n-1])
	}))
	defer srv.Close()
	restartedAt := int64(0)
	err := Watch(ctx, clock.NewFake(time.Now()), EndpointKnobs{LivenessPeriod: time.Second, LivenessFailures: 3},
		func() string { return strings.TrimPrefix(srv.URL, "http://") },
		func(context.Context) error { restarts.Add(1); restartedAt = asked.Load(); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if restarts.Load() != 1 || restartedAt != 7 {
		t.Errorf("%d restarts, the last after probe %d; want one after probe 7", restarts.Load(), restartedAt)
	}
}

func TestPresetsAreValid(t *testing.T) {
	for _, name := range Presets() {
		k, ok := Preset(name)
		if !ok || PresetHelp(name) == "" {
			t.Errorf("%s: no preset or no help", name)
		}
		if err := k.Validate(); err != nil {
			t.Errorf("preset %s is invalid: %v", name, err)
		}
	}
	if _, ok := Preset("nothing"); ok {
		t.Error("an unknown preset is known")
	}
	blog, _ := Preset("blog-2020")
	if rate := blog.CPUQuota / blog.CPUPerRequest.Seconds(); rate < 162.5 || rate > 163.5 {
		t.Errorf("blog-2020 serves %.2f/s, want 163", rate)
	}
}

func TestValidateRejectsBadKnobs(t *testing.T) {
	for name, change := range map[string]func(*Knobs){
		"cpu_quota":         func(k *Knobs) { k.CPUQuota = -1 },
		"least":             func(k *Knobs) { k.CPUQuota = 0.001 },
		"out of range":      func(k *Knobs) { k.MaxConns = -1 },
		"durations":         func(k *Knobs) { k.IdleTimeout = -1 },
		"drop":              func(k *Knobs) { k.Drop = 1 },
		"signing":           func(k *Knobs) { k.Signing = "none" },
		"jitter":            func(k *Knobs) { k.RefreshEarly = 0 },
		"liveness_failures": func(k *Knobs) { k.LivenessPeriod, k.LivenessFailures = time.Second, 0 },
		"ttl":               func(k *Knobs) { k.TTL = time.Millisecond },
		"upstream_latency":  func(k *Knobs) { k.UpstreamLatency = -1 },
		"quota_rate":        func(k *Knobs) { k.QuotaRate = -1 },
		"quota_burst":       func(k *Knobs) { k.QuotaRate, k.QuotaBurst = 1, 0 },
		"quota_mode":        func(k *Knobs) { k.QuotaRate, k.QuotaMode = 1, "maybe" },
		"refresh_early":     func(k *Knobs) { k.TTL = time.Minute },
	} {
		k, _ := Preset("healthy")
		change(&k)
		if err := k.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
