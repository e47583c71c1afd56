package reference

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/internal/clock"
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
		counted                   statistics // decisions and errors
	}{
		{"min/max", "", fmt.Sprintf(askMinMax, "1"), permitAnswer, statistics{PermitDecisionsCount: 1}},
		{"min/max denies", "", fmt.Sprintf(askMinMax, "6"), denyAnswer, statistics{DenyDecisionsCount: 1}},
		{"min/max denies at its maximum", "", fmt.Sprintf(askMinMax, "5"), denyAnswer, statistics{DenyDecisionsCount: 1}},
		{"min/max permits less", "", fmt.Sprintf(askMinMax, "4"), permitAnswer, statistics{PermitDecisionsCount: 1}},
		{"min/max permits none", "", fmt.Sprintf(askMinMax, "0"), permitAnswer, statistics{PermitDecisionsCount: 1}},
		{
			"min/max without a count", "", strings.ReplaceAll(fmt.Sprintf(askMinMax, "0"), `,"vfCount":"0"`, ""), denyAnswer,
			statistics{DenyDecisionsCount: 1},
		},
		{"frequency", "", fmt.Sprintf(askFrequency, "Restart"), permitAnswer, statistics{PermitDecisionsCount: 1}},
		{"frequency denies", "", fmt.Sprintf(askFrequency, "Rebuild"), denyAnswer, statistics{DenyDecisionsCount: 1}},
		{"no policy is a permit", "", askUnknown, permitAnswer, statistics{NotApplicableDecisionsCount: 1}},
		{"no guard at all", "", `{"action":"guard"}`, permitAnswer, statistics{NotApplicableDecisionsCount: 1}},
		{
			"recipe", "", strings.ReplaceAll(fmt.Sprintf(askMinMax, "6"), "operation", "recipe"), denyAnswer,
			statistics{DenyDecisionsCount: 1},
		},
		{"count as a number", "", strings.ReplaceAll(fmt.Sprintf(askMinMax, "6"), `"6"`, "6"), denyAnswer, statistics{DenyDecisionsCount: 1}},
		{"invalid count", "", fmt.Sprintf(askMinMax, "many"), `{"status":"error","message":"Failed to decode vfCount"}`, statistics{TotalErrorCount: 1}},
		{"absent", "", askAbsent, `{"status":"error","policies":{}}`, statistics{NotApplicableDecisionsCount: 1}},

		{"planted permit", "always-permit", fmt.Sprintf(askMinMax, "6"), permitAnswer, statistics{PermitDecisionsCount: 1}},
		{
			"planted gap", "not-applicable-as-permit", fmt.Sprintf(askMinMax, "6"), permitAnswer,
			statistics{NotApplicableDecisionsCount: 1},
		},
		{
			"planted gap, permitted", "not-applicable-as-permit", fmt.Sprintf(askMinMax, "1"), permitAnswer,
			statistics{NotApplicableDecisionsCount: 1},
		},
		{"planted gap, monitoring", "not-applicable-as-permit", askAbsent, `{"status":"error","policies":{}}`, statistics{NotApplicableDecisionsCount: 1}},
		{
			"planted doubt", "indeterminate", fmt.Sprintf(askMinMax, "1"), permitAnswer,
			statistics{IndeterminantDecisionsCount: 1},
		},
		{
			"planted doubt, monitoring", "indeterminate", askMonitoring,
			`{"status":"error","message":"the policies could not be evaluated","policies":{}}`,
			statistics{IndeterminantDecisionsCount: 1},
		},
	} {
		p := newTestPDPX(t, clock.System{}, engine.Config{N: 3, Answer: c.planted})
		w := ask(t, p, "POST", "/decision", c.body)
		if w.Code != 200 || w.Body.String() != c.want {
			t.Errorf("%s: %d %s, want %s", c.name, w.Code, w.Body, c.want)
		}
		s := statisticsOf(t, p)
		got := statistics{
			PermitDecisionsCount: s.PermitDecisionsCount, DenyDecisionsCount: s.DenyDecisionsCount,
			TotalErrorCount:             s.TotalErrorCount,
			NotApplicableDecisionsCount: s.NotApplicableDecisionsCount,
			IndeterminantDecisionsCount: s.IndeterminantDecisionsCount,
		}
		if d := cmp.Diff(c.counted, got); d != "" {
			t.Errorf("%s is counted as (+), want (-):\n%s", c.name, d)
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
		{
			"no Request", "POST", "/xacml", `{"request":[]}`, media("application/xacml+json"), 500,
			container("/xacml", 500, "Internal Server Error"), 0,
		},
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
			"guard": {
				"permit_decisions_count": n, "deny_decisions_count": 2 * n, "not_applicable_decisions_count": n,
			},
		},
	}
	if d := cmp.Diff(want, statisticsOf(t, p)); d != "" {
		t.Errorf("statistics (-want +got):\n%s", d)
	}
}
