package reference

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/internal/clock"
	"tare/rigs/memtest"
)

const (
	askMonitoring = `{"ONAPName":"DCAE","ONAPComponent":"PolicyHandler","ONAPInstance":"i","action":"configure","resource":{"policy-id":"onap.restart.tca","policy-type":"onap.policies.monitoring.tcagen2"}}`
	askAbsent     = `{"ONAPName":"DCAE","action":"configure","resource":{"policy-id":"nobody"}}`
	askMinMax     = `{"ONAPName":"Policy","requestId":"1","action":"guard","resource":{"guard":{"actor":"SO","operation":"VF Module Create","target":"vf-module-id-1","vfCount":"%s"}}}`
	askFrequency  = `{"ONAPName":"Policy","requestId":"1","action":"guard","resource":{"guard":{"actor":"APPC","operation":"%s","target":"vf-module-id-1"}}}`
	askUnknown    = `{"ONAPName":"Policy","requestId":"1","action":"guard","resource":{"guard":{"actor":"SO","operation":"scaleOut","target":"vLoadBalancer-00","vfCount":"1"}}}`
	permitAnswer  = `{"status":"Permit"}`
	denyAnswer    = `{"status":"Deny"}`
)

func newTestPDPX(t *testing.T, c clock.Clock, cfg engine.Config) *pdpx {
	t.Helper()
	p, err := newPDPX(c, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ask makes one request of p and returns status and body.
func ask(t *testing.T, p *pdpx, method, path, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, pdpxBase+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	p.handler().ServeHTTP(w, r)
	return w
}

func statisticsOf(t *testing.T, p *pdpx) statistics {
	t.Helper()
	w := ask(t, p, "GET", "/statistics", "")
	var s statistics
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || w.Code != 200 {
		t.Fatalf("statistics: %d, %v, %s", w.Code, err, w.Body)
	}
	return s
}

// TestPDPXDecides: one answer of each kind, and how it is counted.
func TestPDPXDecides(t *testing.T) {
	for _, c := range []struct {
		name, planted, body, want string
		counted                   string // as what
	}{
		{"min/max", "", fmt.Sprintf(askMinMax, "1"), permitAnswer, "permit"},
		{"min/max denies", "", fmt.Sprintf(askMinMax, "6"), denyAnswer, "deny"},
		{"min/max denies at its maximum", "", fmt.Sprintf(askMinMax, "5"), denyAnswer, "deny"},
		{"min/max permits less", "", fmt.Sprintf(askMinMax, "4"), permitAnswer, "permit"},
		{"min/max permits none", "", fmt.Sprintf(askMinMax, "0"), permitAnswer, "permit"},
		{"min/max without a count", "", strings.ReplaceAll(fmt.Sprintf(askMinMax, "0"), `,"vfCount":"0"`, ""), denyAnswer, "deny"},
		{"frequency", "", fmt.Sprintf(askFrequency, "Restart"), permitAnswer, "permit"},
		{"frequency denies", "", fmt.Sprintf(askFrequency, "Rebuild"), denyAnswer, "deny"},
		{"no policy is a permit", "", askUnknown, permitAnswer, "none"},
		{"no guard at all", "", `{"action":"guard"}`, permitAnswer, "none"},
		{"recipe", "", strings.ReplaceAll(fmt.Sprintf(askMinMax, "6"), "operation", "recipe"), denyAnswer, "deny"},
		{"count as a number", "", strings.ReplaceAll(fmt.Sprintf(askMinMax, "6"), `"6"`, "6"), denyAnswer, "deny"},
		{"invalid count", "", fmt.Sprintf(askMinMax, "many"), `{"status":"error","message":"Failed to decode vfCount"}`, "error"},
		{"absent", "", askAbsent, `{"status":"error","policies":{}}`, "none"},

		{"planted permit", "always-permit", fmt.Sprintf(askMinMax, "6"), permitAnswer, "permit"},
		{"planted gap", "not-applicable-as-permit", fmt.Sprintf(askMinMax, "6"), permitAnswer, "none"},
		{"planted gap, permitted", "not-applicable-as-permit", fmt.Sprintf(askMinMax, "1"), permitAnswer, "none"},
		{"planted gap, monitoring", "not-applicable-as-permit", askAbsent, `{"status":"error","policies":{}}`, "none"},
		{"planted doubt", "indeterminate", fmt.Sprintf(askMinMax, "1"), permitAnswer, "doubt"},
		{
			"planted doubt, monitoring", "indeterminate", askMonitoring,
			`{"status":"error","message":"the policies could not be evaluated","policies":{}}`, "doubt",
		},
	} {
		p := newTestPDPX(t, clock.System{}, engine.Config{N: 3, Answer: c.planted})
		w := ask(t, p, "POST", "/decision", c.body)
		if w.Code != 200 || w.Body.String() != c.want {
			t.Errorf("%s: %d %s, want %s", c.name, w.Code, w.Body, c.want)
		}
		s := statisticsOf(t, p)
		got := map[string]int64{
			"permit": s.PermitDecisionsCount, "deny": s.DenyDecisionsCount, "none": s.NotApplicableDecisionsCount,
			"doubt": s.IndeterminantDecisionsCount, "error": s.TotalErrorCount,
		}
		if maps.DeleteFunc(got, func(_ string, n int64) bool { return n == 0 }); len(got) != 1 || got[c.counted] != 1 {
			t.Errorf("%s is counted as %v, want one %s", c.name, got, c.counted)
		}
	}
}

func TestPDPXMonitoringAnswer(t *testing.T) {
	p := newTestPDPX(t, clock.System{}, engine.Config{N: 3})
	var got struct {
		Policies map[string]map[string]any `json:"policies"`
	}
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"", []string{"metadata", "name", "properties", "type", "type_version", "version"}},
		{"?abbrev=true", []string{"metadata", "type"}},
		{"?abbrev=false", []string{"metadata", "name", "properties", "type", "type_version", "version"}},
	} {
		w := ask(t, p, "POST", "/decision"+c.query, askMonitoring)
		got.Policies = nil
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		policy := got.Policies[model.MonitoringID]
		if len(got.Policies) != 1 || len(policy) != len(c.want) || policy["type"] != model.MonitoringType {
			t.Fatalf("query %s: got %s, want one monitoring policy", c.query, w.Body)
		}
		for _, name := range c.want {
			if policy[name] == nil {
				t.Errorf("%s: no %s in %s", c.query, name, w.Body)
			}
		}
	}
	w := ask(t, p, "POST", "/decision", `{"action":"configure","resource":{"policy-id":["onap.restart.tca","onap.restart.tca.2"]}}`)
	got.Policies = nil
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Policies) != 2 {
		t.Errorf("two IDs: %v, %s", err, w.Body)
	}
	forged := newTestPDPX(t, clock.System{}, engine.Config{N: 3, Answer: "always-permit"})
	if w := ask(t, forged, "POST", "/decision", askAbsent); !strings.Contains(w.Body.String(), `"nobody":{"type":`) {
		t.Errorf("planted permit: %s", w.Body)
	}
}

func TestPDPXRefuses(t *testing.T) {
	p := newTestPDPX(t, clock.System{}, engine.Config{N: 1})
	media := func(m string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Content-Type", m) }
	}
	container := func(path string, status int, message string) string {
		return fmt.Sprintf("{\n\"message\":%q,\n\"url\":\"http://example.com%s%s\",\n\"status\":\"%d\"\n}", message, pdpxBase,
			path, status)
	}
	thrown := container("/decision", 500, "Request failed.")
	for _, c := range []struct {
		name, method, path, body string
		change                   func(*http.Request)
		status                   int
		want                     string
		counted                  int64
	}{
		{
			"unknown action", "POST", "/decision", `{"action":"optimise"}`, nil, 400,
			`{"code":"BAD_REQUEST","error":"No application for action optimise","details":["No application for action optimise"]}`, 1,
		},
		{"no JSON", "POST", "/decision", `{"action":`, nil, 400, `{"errorDetails":"Invalid request"}`, 0},
		{"no object", "POST", "/decision", `[]`, nil, 400, `{"errorDetails":"Invalid request"}`, 0},
		{"nothing", "POST", "/decision", ``, nil, 500, thrown, 0},
		{"null", "POST", "/decision", `null`, nil, 500, thrown, 0},
		{"no resource", "POST", "/decision", `{"action":"configure"}`, nil, 500, thrown, 0},
		{"no guard", "POST", "/decision", `{"action":"guard","resource":{"guard":7}}`, nil, 500, thrown, 0},
		{
			"too long", "POST", "/decision", `{"action":"` + strings.Repeat("x", maxBody) + `"}`, nil, 413,
			container("/decision", 413, "Request Entity Too Large"), 0,
		},
		{"another type", "POST", "/decision", `x`, media("text/plain"), 415, container("/decision", 415, "Unsupported Media Type"), 0},
		{"no Request", "POST", "/xacml", `{"request":[]}`, media("application/xacml+json"), 500, container("/xacml", 500, "Internal Server Error"), 0},
		{"another method", "GET", "/decision", "", nil, 405, container("/decision", 405, "Method Not Allowed"), 0},
		{"another path", "GET", "/nothing", "", nil, 404, container("/nothing", 404, "Not Found"), 0},
	} {
		var change []func(*http.Request)
		if c.change != nil {
			change = append(change, c.change)
		}
		before := statisticsOf(t, p).TotalErrorCount
		w := ask(t, p, c.method, c.path, c.body, change...)
		if w.Code != c.status || w.Body.String() != c.want {
			t.Errorf("%s: %d %s, want %d %s", c.name, w.Code, w.Body, c.status, c.want)
		}
		if n := statisticsOf(t, p).TotalErrorCount - before; n != c.counted {
			t.Errorf("%s: counted as %d errors, want %d", c.name, n, c.counted)
		}
	}
	if s := statisticsOf(t, p); s.PermitDecisionsCount+s.NotApplicableDecisionsCount != 0 {
		t.Errorf("refused requests are counted as decisions: %+v", s)
	}
	for _, cfg := range []engine.Config{{N: -1}, {Answer: "perhaps"}} {
		if _, err := newPDPX(clock.System{}, cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}

func TestPDPXCredentials(t *testing.T) {
	p := newTestPDPX(t, clock.System{}, engine.Config{N: 1, Username: "healthcheck", Password: "p:w"})
	basic := func(name, password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(name, password) }
	}
	for _, c := range []struct {
		name   string
		with   func(*http.Request)
		status int
	}{
		{"none", func(*http.Request) {}, 401},
		{"wrong password", basic("healthcheck", "p"), 401},
		{"wrong name", basic("admin", "p:w"), 401},
		{"bearer", func(r *http.Request) { r.Header.Set("Authorization", "Bearer p:w") }, 401},
		{"right", basic("healthcheck", "p:w"), 200},
	} {
		for _, path := range []string{"/healthcheck", "/statistics"} {
			w := ask(t, p, "GET", path, "", c.with)
			asks := w.Header().Get("WWW-Authenticate")
			if w.Code == 401 && !strings.HasPrefix(w.Body.String(), "{\n\"message\":\"Unauthorized\",\n\"url\":\"http://") {
				t.Errorf("%s: %s, want an error of the servlet container's", c.name, w.Body)
			}
			if w.Code != c.status || (c.status == 401) != strings.HasPrefix(asks, `Basic realm="`) {
				t.Errorf("%s, %s: got status %d, challenge %q", c.name, path, w.Code, asks)
			}
		}
	}
}

func TestPDPXNotReady(t *testing.T) {
	c := clock.NewFake(time.Unix(1.7e9, 0))
	p := newTestPDPX(t, c, engine.Config{N: 1, Delay: 2.5})
	for range 2 {
		if w := ask(t, p, "POST", "/decision", askMonitoring); w.Code != 409 || w.Body.Len() != 0 {
			t.Errorf("not ready: %d %s", w.Code, w.Body)
		}
		if w := ask(t, p, "GET", "/healthcheck", ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"healthy":true`) {
			t.Errorf("healthcheck: %d %s", w.Code, w.Body)
		}
		c.Advance(time.Second)
	}
	c.Advance(time.Second)
	if w := ask(t, p, "POST", "/decision", askMonitoring); w.Code != 200 {
		t.Errorf("ready: %d %s", w.Code, w.Body)
	}
}

// TestPDPXUndeploysGuards: a planted answer begins when its time has come.
func TestPDPXUndeploysGuards(t *testing.T) {
	c := clock.NewFake(time.Unix(1.7e9, 0))
	p := newTestPDPX(t, c, engine.Config{N: 1, Answer: notApplicableAsPermit, AnswerAfter: 5})
	for _, want := range []struct {
		answer   string
		policies int
	}{{denyAnswer, 4}, {permitAnswer, 1}} {
		if w := ask(t, p, "POST", "/decision", fmt.Sprintf(askMinMax, "6")); w.Body.String() != want.answer {
			t.Errorf("got %s, want %s", w.Body, want.answer)
		}
		if s := statisticsOf(t, p); s.TotalPoliciesCount != want.policies {
			t.Errorf("%d policies, want %d", s.TotalPoliciesCount, want.policies)
		}
		c.Advance(6 * time.Second)
	}
	if s := statisticsOf(t, p); s.DenyDecisionsCount != 1 || s.NotApplicableDecisionsCount != 1 {
		t.Errorf("counted %+v", s)
	}
}

func TestPDPXHeaders(t *testing.T) {
	p := newTestPDPX(t, clock.System{}, engine.Config{})
	w := ask(t, p, "GET", "/healthcheck", "", func(r *http.Request) {
		r.Header.Set("X-ONAP-RequestID", "622431a4-9dea-4eae-b443-3b2164639c64")
	})
	if got := w.Header().Get("X-ONAP-RequestID"); got != "622431a4-9dea-4eae-b443-3b2164639c64" ||
		w.Header().Get("X-LatestVersion") != "1.0.0" {
		t.Errorf("got headers %v", w.Header())
	}
	a, b := ask(t, p, "GET", "/healthcheck", ""), ask(t, p, "GET", "/healthcheck", "")
	first, second := a.Header().Get("X-ONAP-RequestID"), b.Header().Get("X-ONAP-RequestID")
	if len(first) != 36 || first[14] != '4' || first == second {
		t.Errorf("request IDs %q and %q", first, second)
	}
	w = ask(t, p, "POST", "/xacml", `{"Request":{"Category":[]}}`, func(r *http.Request) { r.Header.Set("Content-Type", "application/xacml+json") })
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/xacml+json" || !strings.Contains(w.Body.String(), `"Decision":"NotApplicable"`) {
		t.Errorf("xacml: %d %s", w.Code, w.Body)
	}
	if s := statisticsOf(t, p); s.ApplicationMetrics["native"][notApplicableCount] != 1 {
		t.Errorf("native: %+v", s)
	}
}

// TestPDPXCountsExactly: concurrent decisions are all counted, each for its application.
func TestPDPXCountsExactly(t *testing.T) {
	p := newTestPDPX(t, clock.System{}, engine.Config{N: 2})
	h := p.handler()
	bodies := []string{
		askMonitoring, askAbsent, fmt.Sprintf(askMinMax, "1"), fmt.Sprintf(askMinMax, "6"), askUnknown,
		fmt.Sprintf(askFrequency, "Rebuild"),
	}
	const workers, rounds = 8, 50
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range rounds {
				for _, body := range bodies {
					h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", pdpxBase+"/decision", strings.NewReader(body)))
				}
				s := p.statistics()
				if sum := s.ApplicationMetrics["guard"][permitCount] +
					s.ApplicationMetrics["monitoring"][permitCount]; sum != s.PermitDecisionsCount {
					t.Errorf("%d permits in all, %d in the applications", s.PermitDecisionsCount, sum)
				}
			}
		})
	}
	wg.Wait()
	const n = workers * rounds
	want := statistics{
		Code: 200, TotalPolicyTypesCount: 19, TotalPoliciesCount: 5, DeploySuccessCount: 5,
		PermitDecisionsCount: 2 * n, DenyDecisionsCount: 2 * n, NotApplicableDecisionsCount: 2 * n,
		ApplicationMetrics: map[string]map[string]int64{
			"monitoring": {"permit_decisions_count": n, "not_applicable_decisions_count": n},
			"guard":      {"permit_decisions_count": n, "deny_decisions_count": 2 * n, "not_applicable_decisions_count": n},
		},
	}
	if d := cmp.Diff(want, statisticsOf(t, p)); d != "" {
		t.Errorf("statistics (-want +got):\n%s", d)
	}
}

// running serves until stop, which returns what run returned. The test fails if that is not the end of its context.
func running(t *testing.T, cfg engine.Config,
	run func(ctx context.Context, cfg engine.Config, ready func(engine.Ready) error) error,
) (ready engine.Ready, stop func()) {
	t.Helper()
	cfg.Addr = "127.0.0.1:0"
	ctx, cancel := context.WithCancel(context.Background())
	readies, done := make(chan engine.Ready, 1), make(chan error, 1)
	go func() { done <- run(ctx, cfg, func(r engine.Ready) error { readies <- r; return nil }) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	})
	t.Cleanup(stop)
	select {
	case ready = <-readies:
	case err := <-done:
		done <- context.Canceled
		t.Fatal(err)
	}
	return ready, stop
}

// TestRunPDPXEndsGracefully: an answer in progress is finished, and then the port is free.
func TestRunPDPXEndsGracefully(t *testing.T) {
	server, stop := running(t, engine.Config{N: 1, Leak: 1 << 20}, RunPDPX)
	conn, err := net.Dial("tcp", server.Addr)
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
	stop()
	if _, err := net.DialTimeout("tcp", server.Addr, time.Second); err == nil {
		t.Error("somebody listens still")
	}
}

// TestRunPDPXLeavesNothing: no goroutine, no connection and no leaked memory remains after the end.
func TestRunPDPXLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	server, stop := running(t, engine.Config{N: 10, Leak: 8 << 20}, RunPDPX)
	client := &http.Client{Transport: &http.Transport{}}
	resp, err := client.Get("http://" + server.Addr + pdpxBase + "/statistics")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.Body.Close() != nil || resp.StatusCode != 200 {
		t.Fatalf("%v, status %d", err, resp.StatusCode)
	}
	client.CloseIdleConnections()
	stop()
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

func TestRunPDPXErrors(t *testing.T) {
	server, _ := running(t, engine.Config{N: 1}, RunPDPX)
	told := func(engine.Ready) error { return nil }
	if err := RunPDPX(t.Context(), engine.Config{Addr: server.Addr}, told); err == nil ||
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

func TestTargetApplies(t *testing.T) {
	b := &bags{attrPolicyID: {"a", "b"}, attrPolicyType: {"t"}}
	for _, c := range []struct {
		name string
		t    target
		want bool
	}{
		{"empty", nil, true},
		{"one of the bag", target{{{attrPolicyID, "b"}}}, true},
		{"none of the bag", target{{{attrPolicyID, "c"}}}, false},
		{"absent attribute", target{{{attrActor, ""}}}, false},
		{"either", target{{{attrPolicyID, "c"}}, {{attrPolicyType, "t"}}}, true},
		{"both hold", target{{{attrPolicyID, "a"}, {attrPolicyType, "t"}}}, true},
		{"one of both", target{{{attrPolicyID, "a"}, {attrPolicyType, "u"}}}, false},
	} {
		if got := c.t.applies(b); got != c.want {
			t.Errorf("%s: applies is %v, want the opposite", c.name, got)
		}
	}
}

// TestCombiningAlgorithms follows the tables of XACML 3.0, appendix C, for pairs in either order.
func TestCombiningAlgorithms(t *testing.T) {
	const na, p, d, ip, id, idp = notApplicable, permits, denies, indeterminateP, indeterminateD, indeterminateDP
	for _, c := range []struct {
		a, b                         xacmlDecision
		denyWins, permitWins, guards xacmlDecision
	}{
		{na, na, na, na, d},
		{na, p, p, p, p},
		{na, d, d, d, d},
		{na, ip, ip, ip, d},
		{na, id, id, id, d},
		{na, idp, idp, idp, d},
		{p, p, p, p, p},
		{p, d, d, p, p},
		{p, ip, p, p, p},
		{p, id, idp, p, p},
		{p, idp, idp, p, p},
		{d, d, d, d, d},
		{d, ip, d, idp, d},
		{d, id, d, d, d},
		{d, idp, d, idp, d},
		{ip, ip, ip, ip, d},
		{ip, id, idp, idp, d},
		{ip, idp, idp, idp, d},
		{id, id, id, id, d},
		{id, idp, idp, idp, d},
		{idp, idp, idp, idp, d},
	} {
		for _, ds := range [][]xacmlDecision{{c.a, c.b}, {c.b, c.a}} {
			if got := denyOverrides(ds); got != c.denyWins {
				t.Errorf("deny-overrides of %v is %v, want %v", ds, got, c.denyWins)
			}
			if got := permitOverrides(ds); got != c.permitWins {
				t.Errorf("permit-overrides of %v is %v, want %v", ds, got, c.permitWins)
			}
			if got := denyUnlessPermit(ds); got != c.guards {
				t.Errorf("deny-unless-permit of %v is %v, want %v", ds, got, c.guards)
			}
		}
	}
	if got := firstApplicable([]xacmlDecision{na, id, p}); got != id {
		t.Errorf("first-applicable: %v", got)
	}
	if got := firstApplicable(nil); got != na {
		t.Errorf("first-applicable of nothing: %v", got)
	}
}

func TestRuleDecides(t *testing.T) {
	b := &bags{attrActor: {"SO"}}
	yes := func(*bags) (bool, error) { return true, nil }
	no := func(*bags) (bool, error) { return false, nil }
	fails := func(*bags) (bool, error) { return false, errors.New("no") }
	other := target{{{attrActor, "APPC"}}}
	for _, c := range []struct {
		name string
		rule rule
		want xacmlDecision
	}{
		{"without condition", rule{effect: permits}, permits},
		{"holds", rule{effect: denies, condition: yes}, denies},
		{"does not hold", rule{effect: permits, condition: no}, notApplicable},
		{"fails to permit", rule{effect: permits, condition: fails}, indeterminateP},
		{"fails to deny", rule{effect: denies, condition: fails}, indeterminateD},
		{"is about another", rule{effect: permits, target: other, condition: fails}, notApplicable},
	} {
		if got := c.rule.decide(b); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func guardOf(actor, name, target, count string) *bags {
	b := &bags{attrActor: {actor}, attrOperation: {name}, attrTarget: {target}}
	if count != "" {
		b[attrVFCount] = []string{count}
	}
	return b
}

func TestGuardPolicies(t *testing.T) {
	a := newGuard(newHistory(clock.NewFake(time.Unix(1.7e9, 0))), true)
	for _, c := range []struct {
		name string
		b    *bags
		want xacmlDecision
	}{
		{"below the least", guardOf("SO", "VF Module Create", model.GuardTarget, "0"), permits},
		{"the least", guardOf("SO", "VF Module Create", model.GuardTarget, "1"), permits},
		{"the most", guardOf("SO", "VF Module Create", model.GuardTarget, "5"), denies},
		{"beyond the most", guardOf("SO", "VF Module Create", model.GuardTarget, "6"), denies},
		{"no count", guardOf("SO", "VF Module Create", model.GuardTarget, ""), denies},
		{"another target", guardOf("SO", "VF Module Create", "other", "1"), notApplicable},
		{"another operation", guardOf("SO", "scaleOut", model.GuardTarget, "1"), notApplicable},
		{"within the limit", guardOf("APPC", "Restart", model.GuardTarget, ""), permits},
		{"over the limit", guardOf("APPC", "Rebuild", model.GuardTarget, ""), denies},
		{"over it on another target", guardOf("APPC", "Rebuild", "vserver-another", ""), denies},
		{"never done on that target", guardOf("APPC", "Rebuild", "new", ""), permits},
		{"unknown target", &bags{attrActor: {"APPC"}, attrOperation: {"Restart"}}, denies},
		{"nothing", &bags{}, notApplicable},
	} {
		if got, _ := a.decide(c.b); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestHistoryIsStableOverADay: the frequency limiters answer the same throughout a day, since nothing enters or leaves
// the window.
func TestHistoryIsStableOverADay(t *testing.T) {
	c := clock.NewFake(time.Unix(1.7e9, 0))
	h := newHistory(c)
	count := func(operation string) int {
		n, err := h.count(guardOf(model.FrequencyActor, operation, model.GuardTarget, ""), frequencyWindow)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for hour := range 25 {
		within, over := count(model.FrequencyWithin), count(model.FrequencyOver)
		if within != model.FrequencyLimit-1 || over != model.FrequencyLimit+1 {
			t.Fatalf("hour %d: %d and %d operations, limit %d", hour, within, over, model.FrequencyLimit)
		}
		c.Advance(time.Hour)
	}
	// They are real operations: once they are older than the window, they do not count, and the limiter permits again.
	c.Advance(frequencyWindow)
	if n := count(model.FrequencyOver); n != 0 {
		t.Errorf("after the window: %d", n)
	}
}

func TestHistoryCountsWhatCounts(t *testing.T) {
	now := time.Unix(1.7e9, 0)
	window := time.Hour
	b := guardOf("A", "op", "t", "")
	for _, c := range []struct {
		name string
		row  operation
		want int
	}{
		{"inside", operation{"A", "op", "t", outcomeSuccess, now.Add(-time.Minute)}, 1},
		{"a failure too", operation{"A", "op", "t", outcomeFailure, now.Add(-time.Minute)}, 1},
		{"now", operation{"A", "op", "t", outcomeSuccess, now}, 1},
		{"at the window's beginning", operation{"A", "op", "t", outcomeSuccess, now.Add(-window)}, 1},
		{"before it", operation{"A", "op", "t", outcomeSuccess, now.Add(-window - 1)}, 0},
		{"in the future", operation{"A", "op", "t", outcomeSuccess, now.Add(1)}, 0},
		{"refused by a guard", operation{"A", "op", "t", outcomeFailureGuard, now.Add(-time.Minute)}, 0},
		{"another actor", operation{"B", "op", "t", outcomeSuccess, now.Add(-time.Minute)}, 0},
		{"another operation", operation{"A", "po", "t", outcomeSuccess, now.Add(-time.Minute)}, 0},
		{"another target", operation{"A", "op", "u", outcomeSuccess, now.Add(-time.Minute)}, 0},
	} {
		h := &history{clock: clock.NewFake(now), rows: []operation{c.row}}
		if got, err := h.count(b, window); got != c.want || err != nil {
			t.Errorf("%s: got count %d, %v, want %d", c.name, got, err, c.want)
		}
	}
	if _, err := (&history{clock: clock.NewFake(now)}).count(&bags{attrActor: {"A"}}, window); !errors.Is(err,
		errUnknown) {
		t.Errorf("an operation without a name: %v", err)
	}
}

// TestMonitoringSelectsOne: each monitoring policy is found by its ID, by its type, and by both, always alone.
func TestMonitoringSelectsOne(t *testing.T) {
	const n = 12
	a, err := newMonitoring(n)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n + 1 {
		id, kind := model.Monitoring(i)
		for _, b := range []*bags{
			{attrPolicyID: {id}},
			{attrPolicyType: {kind}},
			{attrPolicyID: {id}, attrPolicyType: {kind}},
		} {
			d, docs := a.decide(b)
			switch {
			case i == n && (d != notApplicable || len(docs) != 0):
				t.Errorf("a policy that is not deployed: %v, %d policies", d, len(docs))
			case i < n && (d != permits || len(docs) != 1 || docs[0].key != `"`+id+`"`):
				t.Errorf("policy %d: %v, %d policies", i, d, len(docs))
			}
		}
	}
	id, _ := model.Monitoring(3)
	_, kind := model.Monitoring(7)
	if d, docs := a.decide(&bags{attrPolicyID: {id}, attrPolicyType: {kind}}); d != permits || len(docs) != 2 {
		t.Errorf("an ID and another's type: %v, %d policies", d, len(docs))
	}
}
