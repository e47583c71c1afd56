package protocol

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/areas/decision/reference"
	"tare/internal/load"
	"tare/rigs/memtest"
)

func startPDPX(t *testing.T, cfg engine.Config) *Session {
	t.Helper()
	return startReference(t, cfg, reference.RunPDPX)
}

func pdpxQuestion(t *testing.T, questions []model.Question, name string) model.Question {
	t.Helper()
	for _, q := range questions {
		if q.Name == name {
			return q
		}
	}
	t.Fatalf("no question %s among %d", name, len(questions))
	return model.Question{}
}

// TestPDPXQuestionsGetTheKnownAnswers for each N and position, with and without the options of old releases.
func TestPDPXQuestionsGetTheKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		name     string
		n        int
		position model.Position
		options  PDPX
	}{
		{"one policy", 1, model.Last, PDPX{}},
		{"last of 100", 100, model.Last, PDPX{}},
		{"first of 100", 100, model.First, PDPX{}},
		{"absent", 10, model.Absent, PDPX{}},
		{"recipe", 1, model.Last, PDPX{Recipe: true}},
		{"native", 1, model.Last, PDPX{XACML: true}},
		{"frequency denies", 1, model.Last, PDPX{FrequencyWant: "deny"}},
		{"own actor", 1, model.Last, PDPX{Actor: "SO"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startPDPX(t, engine.Config{N: c.n, Username: "healthcheck", Password: "zb!XztG34"})
			questions := PDPXQuestions(c.options, model.Set{N: c.n}, c.position)
			if err := pdpx().Validate(Options{Section: &c.options}, questions); err != nil {
				t.Fatal(err)
			}
			for _, q := range questions {
				got, err := pdpx().Ask(t.Context(), s, q)
				if err != nil {
					t.Fatalf("ask %s: %v", q.Name, err)
				}
				want := load.OK
				if q.Want == model.Deny || q.Want == model.NotApplicable {
					want = load.Denied
				}
				if got.Outcome != want || got.Decision != q.Want {
					t.Errorf("%s: outcome %v, decision %v, want %v and %v: %s", q.Name, got.Outcome, got.Decision, want, q.Want,
						got.Text)
				}
			}
		})
	}
}

// TestPDPXUnderLoad runs the mix of the published test through the load engines: every call succeeds, and the decision
// point counts exactly what the callers saw.
func TestPDPXUnderLoad(t *testing.T) {
	for _, kind := range []load.Engine{load.Fast, load.Std} {
		t.Run(string(kind), func(t *testing.T) {
			s := startPDPX(t, engine.Config{N: 20, Username: "u", Password: "password"})
			ops := operations(t, pdpx(), s, 1, PDPXQuestions(PDPX{XACML: true}, model.Set{N: 20}, model.Last)...)
			before, err := pdpx().Counted(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			seen := runOperations(t, s, kind, ops)
			after, err := pdpx().Counted(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			for word := range after {
				after[word] -= before[word]
			}
			if d := cmp.Diff(seen, after); d != "" {
				t.Errorf("what the callers saw (-) is not what the decision point counted (+):\n%s", d)
			}
		})
	}
}

// operations are those of questions.
func operations(t *testing.T, a Adapter, s *Session, n int, questions ...model.Question) (out []load.Operation) {
	t.Helper()
	for _, q := range questions {
		op, err := a.Operation(s, q, n)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, op)
	}
	return out
}

// runOperations runs ops in a closed loop for a few hundred calls, all of which must succeed, and counts the answers by
// their words.
func runOperations(t *testing.T, s *Session, kind load.Engine, ops []load.Operation) map[string]float64 {
	t.Helper()
	stream, err := load.Open(t.Context(), load.Config{
		Engine: kind, Operations: ops, Seed: 1, Timeout: 20 * time.Second, KeepCalls: true,
		Endpoint: load.Endpoint{Addr: s.Addr, Host: s.Host, TLS: s.TLS},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close() //nolint:errcheck // the test has what it wants
	enough := func() bool { return stream.Progress().Ended() > 500 }
	if _, err := stream.Cycle(t.Context(), load.Closed{Workers: 8, Duration: 20 * time.Second}, 5*time.Millisecond,
		enough); err != nil {
		t.Fatal(err)
	}
	if err := stream.Wait(t.Context(), 10*time.Second, time.Millisecond,
		func() bool { return stream.Progress().Open() == 0 }); err != nil {
		t.Fatal(err)
	}
	seen := map[string]float64{"permit": 0, "deny": 0, "not-applicable": 0, "indeterminate": 0}
	called := map[string]bool{}
	for _, c := range stream.Calls(0) {
		o := ops[c.Operation]
		called[o.Name] = true
		if c.Outcome != load.OK && c.Outcome != load.Denied {
			t.Fatalf("%s: outcome %v, status %d, %s", o.Name, c.Outcome, c.Status, c.Cause.Text(o.Causes))
		}
		if o.Answer != "" {
			seen[o.Answer]++
		}
	}
	if len(called) != len(ops) {
		t.Fatalf("of %d operations only %v were called", len(ops), called)
	}
	return seen
}

const onePolicy = `{"policies":{"onap.restart.tca":{"type":"onap.policies.monitoring.tcagen2","version":"1.0.0","properties":{}}}}`

func judgeOf(t *testing.T, q model.Question) judge {
	t.Helper()
	c, err := pdpx().call(&Session{Host: "h"}, q)
	if err != nil {
		t.Fatal(err)
	}
	return c.judge
}

func TestPDPXJudges(t *testing.T) {
	questions := PDPXQuestions(PDPX{XACML: true}, model.Set{N: 1}, model.First)
	const refused = `{"code":"BAD_REQUEST","error":"No application for action x","details":["No application for action x"]}`
	const failed = `{"status":"error","message":"could not evaluate","policies":{}}`
	for _, c := range []struct {
		question string
		status   int
		body     string
		outcome  load.Outcome
		verdict  Verdict
		decision model.Decision
	}{
		{"monitoring", 200, onePolicy, load.OK, Fine, model.Permit},
		{"monitoring", 200, `{"policies":{"x":{"type":"t"},"onap.restart.tca":{"type":"t"}}}`, load.OK, Fine, model.Permit},
		{"monitoring", 200, `{"policies":{"\u006fnap.restart.tca":{"type":"t"}}}`, load.OK, Fine, model.Permit},
		{"monitoring", 200, `{"policies":{"onap.restart.tca":{"type":"t"},"\u006fnap.restart.tca":{"type":"u"}}}`, load.Wrong, NotJSON, model.None},
		{"monitoring", 200, `{"policies":{"other":{"type":"t"}}}`, load.Wrong, OtherPolicies, model.Permit},
		{"monitoring", 200, `{"policies":{"onap.restart.tca":{}}}`, load.Wrong, NotJSON, model.None},
		{"monitoring", 200, `{"policies":{"onap.restart.tca":{"type":""}}}`, load.Wrong, NotJSON, model.None},
		{"monitoring", 200, `{"policies":{"onap.restart.tca":{"type":7}}}`, load.Wrong, NotJSON, model.None},
		{"monitoring", 200, `{"policies":{}}`, load.Wrong, SaysNotApplicable, model.NotApplicable},
		{"monitoring", 200, `{"policies":{},"status":"error"}`, load.Wrong, SaysNotApplicable, model.NotApplicable},
		{"monitoring", 200, `{"policies":{},"status":"Indeterminate"}`, load.Wrong, SaysIndeterminate, model.Indeterminate},
		{"monitoring", 200, `{"policies":{},"status":"Deny"}`, load.Wrong, SaysDeny, model.Deny},
		{"monitoring", 200, failed, load.Wrong, SaysIndeterminate, model.Indeterminate},
		{"monitoring-absent", 200, failed, load.Wrong, SaysIndeterminate, model.Indeterminate},
		{"monitoring", 200, `{"status":"error","message":null,"policies":{}}`, load.Wrong, SaysNotApplicable, model.NotApplicable},
		{"monitoring", 200, `{"status":"error","message":"cannot be converted"}`, load.Wrong, SchemaError, model.None},
		{"monitoring", 500, `{"url":"/policy/pdpx/v1/decision","status":"500","message":"Server Error"}`, load.Failed, Fine, model.None},
		{"monitoring", 415, `{"url":"/policy/pdpx/v1/decision","status":"415","message":"Unsupported Media Type"}`, load.Wrong, SchemaError, model.None},
		{"monitoring", 200, `{"policies":[]}`, load.Wrong, NotJSON, model.None},
		{"monitoring", 200, `{"policies":{"onap.restart.tca":{"type":"t"}}`, load.Wrong, NotJSON, model.None},
		{"monitoring", 200, `{}`, load.Wrong, NoDecision, model.None},
		{"monitoring", 200, ``, load.Wrong, NoDecision, model.None},
		{"monitoring", 400, refused, load.Wrong, SchemaError, model.None},
		{"monitoring", 401, ``, load.Wrong, WrongCredentials, model.None},
		{"monitoring", 409, ``, load.Refused, NotReady, model.None},
		{"monitoring", 500, refused, load.Failed, Fine, model.None},
		{"monitoring", 404, `<html>`, load.Wrong, NoSuchPolicy, model.None},
		{"monitoring-absent", 200, `{"policies":{}}`, load.Denied, Fine, model.NotApplicable},
		{"monitoring-absent", 200, `{"policies":{},"status":"error"}`, load.Denied, Fine, model.NotApplicable},
		{"monitoring-absent", 200, onePolicy, load.Wrong, SaysPermit, model.Permit},

		{"guard-minmax", 200, `{"status":"Permit"}`, load.OK, Fine, model.Permit},
		{"guard-minmax", 200, `{"status":"Deny"}`, load.Wrong, SaysDeny, model.Deny},
		{"guard-minmax", 200, `{"status":"Indeterminate"}`, load.Wrong, SaysIndeterminate, model.Indeterminate},
		{"guard-minmax", 200, `{"status":"Indeterminate{DP}"}`, load.Wrong, SaysIndeterminate, model.Indeterminate},
		{"guard-minmax", 200, `{"status":"NotApplicable"}`, load.Wrong, SaysNotApplicable, model.NotApplicable},
		{"guard-minmax", 200, `{"status":"error","message":"Failed to decode vfCount"}`, load.Wrong, SchemaError, model.None},
		{"guard-minmax", 200, `{"status":"permit"}`, load.Wrong, NoDecision, model.None},
		{"guard-minmax", 200, `{"status":true}`, load.Wrong, NotJSON, model.None},
		{"guard-minmax", 200, `{"status":null}`, load.Wrong, NoDecision, model.None},
		{"guard-minmax", 200, `{"status":"Permit","status":"Deny"}`, load.Wrong, NotJSON, model.None},
		{"guard-minmax", 200, refused, load.Wrong, NoDecision, model.None},
		{"guard-minmax", 503, `{"status":"Permit"}`, load.Refused, Fine, model.None},
		{"guard-minmax-deny", 200, `{"status":"Deny"}`, load.Denied, Fine, model.Deny},
		{"guard-minmax-deny", 200, `{"status":"Permit"}`, load.Wrong, SaysPermit, model.Permit},
		{"guard-frequency-deny", 200, `{"status":"Indeterminate"}`, load.Wrong, SaysIndeterminate, model.Indeterminate},

		{"healthcheck", 200, `{"name":"xacml-1","url":"self","healthy":true,"code":200,"message":"alive"}`, load.OK, Fine, model.None},
		{"healthcheck", 200, `{"healthy":false,"code":500}`, load.Wrong, NotHealthy, model.None},
		{"healthcheck", 500, `{"healthy":false,"code":500}`, load.Wrong, NotHealthy, model.None},
		{"healthcheck", 200, `{"healthy":"true"}`, load.Wrong, NotHealthy, model.None},
		{"healthcheck", 200, `alive`, load.Wrong, NotJSON, model.None},
		{"healthcheck", 401, ``, load.Wrong, WrongCredentials, model.None},
		{"statistics", 200, `{"permitDecisionsCount":1,"denyDecisionsCount":0,"notApplicableDecisionsCount":0,"indeterminantDecisionsCount":0}`, load.OK, Fine, model.None},
		{"statistics", 200, `{"permitDecisionsCount":-1,"denyDecisionsCount":0,"notApplicableDecisionsCount":0,"indeterminantDecisionsCount":0}`, load.Wrong, NoStatistics, model.None},
		{"statistics", 200, `{"permitDecisionsCount":1}`, load.Wrong, NoStatistics, model.None},
		{"statistics", 200, ``, load.Wrong, NoDecision, model.None},
		{"xacml", 200, `{"Response":[{"Decision":"NotApplicable"}]}`, load.Denied, Fine, model.NotApplicable},
		{"xacml", 200, `{"Response":[{"Decision":"Permit"}]}`, load.Wrong, SaysPermit, model.Permit},
	} {
		j := judgeOf(t, pdpxQuestion(t, questions, c.question))
		o, v, d := j(c.status, []byte(c.body))
		if o != c.outcome || v != c.verdict || d != c.decision {
			t.Errorf("%s, %d %s: %v, %v, %v; want %v, %v, %v", c.question, c.status, c.body, o, v, d, c.outcome, c.verdict,
				c.decision)
		}
		if n := testing.AllocsPerRun(10, func() { j(c.status, []byte(nil)); j(c.status, body(c.body)) }); n != 0 {
			t.Errorf("%s, %s: judging allocates %g times", c.question, c.body, n)
		}
	}
}

// body is a text as bytes, without a copy that would count as an allocation of the judge's.
var bodies = map[string][]byte{}

func body(text string) []byte {
	if b, ok := bodies[text]; ok {
		return b
	}
	bodies[text] = []byte(text)
	return bodies[text]
}

// FuzzPDPXJudges checks the judges with encoding/json: a body without Permit is never a Permit.
func FuzzPDPXJudges(f *testing.F) {
	for _, seed := range []string{onePolicy, `{"status":"Permit"}`, `{"status":"Deny"}`, `{"policies":{}}`, `{"policies":{},"status":"error"}`, `{"\u0073tatus":"Permit"}`, `{"healthy":true}`, `{"permitDecisionsCount":1,"denyDecisionsCount":0,"notApplicableDecisionsCount":0,"indeterminantDecisionsCount":0}`} {
		f.Add(200, []byte(seed))
	}
	questions := PDPXQuestions(PDPX{}, model.Set{N: 1}, model.First)
	judges := map[string]judge{}
	for _, q := range questions {
		c, err := pdpx().call(&Session{Host: "h"}, q)
		if err != nil {
			f.Fatal(err)
		}
		judges[q.Name] = c.judge
	}
	f.Fuzz(func(t *testing.T, status int, b []byte) {
		defer memtest.Bound(t, len(b))()
		var doc struct {
			Status   *string                    `json:"status"`
			Policies map[string]json.RawMessage `json:"policies"`
			Healthy  *bool                      `json:"healthy"`
		}
		valid := json.Unmarshal(b, &doc) == nil
		for name, j := range judges {
			o, v, d := j(status, b)
			good := o == load.OK || o == load.Denied
			if good && (status != 200 || v != Fine || !json.Valid(b)) {
				t.Fatalf("%s: status %d, %q is %v, %v, %v", name, status, b, o, v, d)
			}
			if good && (d == model.Permit) != (o == load.OK) && d != model.None {
				t.Fatalf("%s: %q is %v and %v", name, b, o, d)
			}
			if v >= 0 && Causes()[v] == "" {
				t.Fatalf("%s: verdict %d has no words", name, v)
			}
			if !valid || !utf8Names(b) {
				continue
			}
			switch {
			case name == pdpxMinMax && good && (doc.Status == nil || *doc.Status != "Permit"):
				t.Fatalf("%q is a permit", b)
			case name == pdpxMonitoring && good && doc.Policies["onap.restart.tca"] == nil:
				t.Fatalf("%q is a permit", b)
			case name == pdpxAbsent && good && len(doc.Policies) != 0:
				t.Fatalf("%q holds no policies", b)
			case name == pdpxHealthcheck && good && (doc.Healthy == nil || !*doc.Healthy):
				t.Fatalf("%q is healthy", b)
			}
		}
	})
}

// utf8Names reports whether encoding/json reads the members that it should: it takes other cases of a name for it as
// well.
func utf8Names(b []byte) bool {
	var names map[string]json.RawMessage
	if json.Unmarshal(b, &names) != nil {
		return false
	}
	for name := range names {
		for _, known := range []string{"status", "policies", "healthy"} {
			if name != known && strings.EqualFold(name, known) {
				return false
			}
		}
	}
	return true
}

// TestPDPXRequestsAreNumbered: requests differ only in the call's number, and keep their length.
func TestPDPXRequestsAreNumbered(t *testing.T) {
	s := &Session{Host: "pdp:6969", Base: "/gateway", Username: "u", Password: "p"}
	numbered := 0
	for _, q := range PDPXQuestions(PDPX{}, model.Set{N: 5}, model.Last) {
		op := operations(t, pdpx(), s, 1, q)[0]
		first := string(op.Wire.Render(nil, 1))
		path := "/gateway/policy/pdpx/v1/decision "
		if q.Want == model.None {
			path = "/gateway/policy/pdpx/v1/" + q.Name + " "
		}
		if !strings.Contains(first, path) || !strings.Contains(first, "Authorization: Basic ") ||
			strings.Contains(first, load.CallMark) {
			t.Errorf("%s: request lacks its path or credentials, or holds the call's mark: %s", q.Name, first)
		}
		for _, i := range []uint64{1, 2, 1<<64 - 1} {
			raw := op.Wire.Render([]byte("before"), i)
			text := strings.TrimPrefix(string(raw), "before")
			if len(text) != len(first) {
				t.Errorf("%s: call %d has %d bytes, call 1 has %d", q.Name, i, len(text), len(first))
			}
			head, body, _ := strings.Cut(text, "\r\n\r\n")
			if q.Want != model.None && !strings.Contains(head, fmt.Sprintf("Content-Length: %d", len(body))) {
				t.Errorf("%s: %s of %d bytes", q.Name, head, len(body))
			}
			if strings.Contains(body, "requestId") {
				if !strings.Contains(body, fmt.Sprintf(`"tare-%016x"`, i)) {
					t.Errorf("%s, call %d: %s", q.Name, i, body)
				}
				numbered++
			}
		}
		room := make([]byte, 0, 4096)
		if n := testing.AllocsPerRun(10, func() { op.Wire.Render(room, 7) }); n != 0 {
			t.Errorf("%s: rendering allocates %g times", q.Name, n)
		}
	}
	if numbered != 3*4 {
		t.Errorf("%d requests have a number, want those of the four guard questions", numbered)
	}
	at := &Session{Host: "h", Base: "/policy/pdpx/v1"}
	op := operations(t, pdpx(), at, 1, model.Question{Name: pdpxHealthcheck})[0]
	if raw := string(op.Wire.Render(nil, 0)); !strings.HasPrefix(raw, "GET /policy/pdpx/v1/healthcheck HTTP/1.1\r\n") {
		t.Errorf("got request %s, want the health check", raw)
	}
}

func TestPDPXValidate(t *testing.T) {
	ask := func(body string) []model.Question {
		return []model.Question{{Name: "q", Body: json.RawMessage(body), Want: model.Permit}}
	}
	for _, c := range []struct {
		name      string
		o         PDPX
		questions []model.Question
		want      string
	}{
		{"good", PDPX{}, ask(`{"action":"guard"}`), ""},
		{"native", PDPX{}, ask(`{"Request":{}}`), ""},
		{"no body", PDPX{}, []model.Question{model.Set{N: 1}.Ask(model.Last)}, "is missing"},
		{"no action", PDPX{}, ask(`{}`), "neither action nor Request"},
		{"action of another form", PDPX{}, ask(`{"action":7}`), "no request for a decision"},
		{"no object", PDPX{}, ask(`7`), "no JSON object"},
		{"want", PDPX{FrequencyWant: "perhaps"}, nil, "frequency_want"},
		{"permits and denies", PDPX{Permits: new(3), Denies: new(3)}, nil, "denies"},
		{"permits what is denied by default", PDPX{Permits: new(6)}, nil, "denies"},
		{"negative", PDPX{Permits: new(-1)}, nil, "permits"},
		{"permits none", PDPX{Permits: new(0), Denies: new(2)}, nil, ""},
		{"a limiter that is never seen to refuse", PDPX{Frequency: "Restart"}, nil, "frequency_over"},
		{"a limiter that is not asked", PDPX{Frequency: "Restart", Operations: []string{pdpxMinMax}}, nil, ""},
		{"a limiter that always refuses", PDPX{Frequency: "Restart", FrequencyWant: "deny"}, nil, ""},
		{"another operation over its limit", PDPX{Frequency: "Restart", FrequencyOver: "Rebuild"}, nil, ""},
		{"another target over its limit", PDPX{Frequency: "Restart", OverTarget: "t2"}, nil, ""},
		{"within and over", PDPX{Frequency: "Restart", Target: "t", OverTarget: "t"}, nil, "within its limit and over it"},
		// The published test's guards have the same operation: its Permit is the min/max policy's.
		{
			"one operation",
			PDPX{Frequency: model.MinMaxOperation, FrequencyOver: "Rebuild"},
			nil,
			"does not show that there is a limiter",
		},
		{
			"one operation, which it denies",
			PDPX{Frequency: "scale", Operation: "scale", FrequencyWant: "deny"},
			nil,
			"which of both denies",
		},
		{"one operation, over its limit elsewhere", PDPX{Frequency: model.MinMaxOperation, OverTarget: "t2"}, nil, ""},
	} {
		err := pdpx().Validate(Options{Section: &c.o}, c.questions)
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if names := PDPXQuestions(PDPX{Frequency: "scale", FrequencyWant: "deny"}, model.Set{}, model.First); len(names) != 7 {
		t.Errorf("with a frequency limiter of one's own that always denies: %d questions, want 7 without %s",
			len(names), pdpxFrequencyDeny)
	}
}

// TestPDPXUnseenLimiter: another operation's refusal does not show that this one's limiter acts.
func TestPDPXUnseenLimiter(t *testing.T) {
	if got := (PDPX{Frequency: "Restart", FrequencyOver: "Rebuild"}).UnseenLimiter(); got != "Restart" {
		t.Errorf("%q, want Restart", got)
	}
	for _, o := range []PDPX{
		{},
		{Frequency: "Restart", OverTarget: "t2"},
		{FrequencyOver: "Rebuild"},
		{Frequency: "Restart", FrequencyWant: "deny"},
		{Frequency: "Restart", FrequencyOver: "Rebuild", Operations: []string{pdpxMinMax}},
	} {
		if got := o.UnseenLimiter(); got != "" {
			t.Errorf("%+v: %q is asked and not seen", o, got)
		}
	}
}

// TestPDPXGuardRequests: what the options name stands in the requests, and what is over its limit is asked so that a
// min/max policy about the same operation would permit it.
func TestPDPXGuardRequests(t *testing.T) {
	o := PDPX{
		Operation: "scale", Frequency: "scale", Target: "t1", OverTarget: "t2", ControlLoop: "loop", Permits: new(0),
		Denies: new(2),
	}
	questions := PDPXQuestions(o, model.Set{}, model.First)
	for name, want := range map[string]guardRequest{
		pdpxMinMax:        {Actor: "SO", Operation: "scale", Loop: "loop", Target: "t1", VFCount: "0"},
		pdpxMinMaxDeny:    {Actor: "SO", Operation: "scale", Loop: "loop", Target: "t1", VFCount: "2"},
		pdpxFrequency:     {Actor: "APPC", Operation: "scale", Loop: "loop", Target: "t1", VFCount: "0"},
		pdpxFrequencyDeny: {Actor: "APPC", Operation: "scale", Loop: "loop", Target: "t2", VFCount: "0"},
	} {
		r, err := readPDPXRequest(pdpxQuestion(t, questions, name).Body)
		if err != nil || r.Resource.Guard != want {
			t.Errorf("%s: asks %+v, %v; want %+v", name, r.Resource.Guard, err, want)
		}
	}
}

// TestPDPXOverTLS: the same requests are answered over TLS.
func TestPDPXOverTLS(t *testing.T) {
	serverTLS, clientTLS := testTLS(t)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/policy/pdpx/v1/decision" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"status":"Deny"}`)
	}))
	srv.TLS = serverTLS
	srv.StartTLS()
	defer srv.Close()
	s := &Session{Addr: srv.Listener.Addr().(*net.TCPAddr).AddrPort(), Host: "pdp", TLS: clientTLS}
	q := pdpxQuestion(t, PDPXQuestions(PDPX{}, model.Set{}, model.First), pdpxMinMaxDeny)
	if got, err := pdpx().Ask(t.Context(), s, q); err != nil || got.Outcome != load.Denied {
		t.Errorf("got %+v, %v; want Denied", got, err)
	}
	if seen := runOperations(t, s, load.Auto, operations(t, pdpx(), s, 1, q)); seen["deny"] < 500 {
		t.Errorf("got answers %v, want at least 500 denials", seen)
	}
}

func FuzzPDPXRequest(f *testing.F) {
	for _, q := range PDPXQuestions(PDPX{XACML: true}, model.Set{N: 1}, model.First) {
		f.Add(string(q.Body))
	}
	f.Add(`{"action":"guard","resource":{"guard":{"actor":7}}}`)
	f.Add(`{"action":"configure","resource":{"policy-id":["a","{n}"]}}`)
	f.Fuzz(func(t *testing.T, body string) {
		defer memtest.Bound(t, len(body))()
		q := model.Question{Name: "q", Body: json.RawMessage(body), Want: model.Permit}
		valid := pdpx().Validate(Options{}, []model.Question{q}) == nil
		op, err := pdpx().Operation(&Session{Host: "h"}, q, 1)
		if valid && err != nil {
			t.Fatalf("%q is valid, and then %v", body, err)
		}
		if err != nil {
			return
		}
		raw := op.Wire.Render(nil, 3)
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			t.Fatalf("read back %q: %v", raw, err)
		}
		sent, err := io.ReadAll(r.Body)
		if err != nil || int64(len(sent)) != r.ContentLength {
			t.Fatalf("%q: %d bytes of %d, %v", raw, len(sent), r.ContentLength, err)
		}
		if want := strings.ReplaceAll(body, placeholder, "0000000000000003"); string(sent) != want &&
			!strings.Contains(body, load.CallMark) {
			t.Fatalf("it sends %q, want %q", sent, want)
		}
	})
}

// TestPDPXReveals the published trap: without guard policies all answers are Permit, and the statistics count
// NotApplicable.
func TestPDPXReveals(t *testing.T) {
	const trap = `, target "vf-module-id-1", vfCount 1: the PDP counts NotApplicable and answers Permit`
	for _, c := range []struct {
		planted string
		q       string
		counted model.Decision
		text    string
	}{
		{"", pdpxMinMax, model.Permit, "the PDP counts Permit"},
		{"", pdpxFrequency, model.Permit, "the PDP counts Permit"},
		{"", pdpxMonitoring, model.Permit, "the PDP counts Permit"},
		{"always-permit", pdpxMinMaxDeny, model.Permit, "the PDP counts Permit"},
		{"not-applicable-as-permit", pdpxMinMax, model.NotApplicable, `no policy is deployed for actor "SO", operation "VF Module Create"` + trap},
		{"not-applicable-as-permit", pdpxFrequency, model.NotApplicable, `no policy is deployed for actor "APPC", operation "Restart"` + trap},
		{"", pdpxMinMaxDeny, model.None, `the PDP answered Deny (actor "SO"`},
		{"indeterminate", pdpxMinMax, model.Indeterminate, `the policies for actor "SO"`},
		{"indeterminate", pdpxMonitoring, model.None, "the PDP answered Indeterminate"},
	} {
		s := startPDPX(t, engine.Config{N: 1, Username: "u", Password: "p", Answer: c.planted})
		q := pdpxQuestion(t, PDPXQuestions(PDPX{}, model.Set{N: 1}, model.First), c.q)
		got, err := pdpx().CheckCounts(t.Context(), s, q)
		if err != nil {
			t.Fatal(err)
		}
		if got.Counted != c.counted || !strings.HasPrefix(got.Text, c.text) {
			t.Errorf("%s, %s: %+v, want %v, %s", c.planted, c.q, got, c.counted, c.text)
		}
		s.Password = "wrong"
		if _, err := pdpx().CheckCounts(t.Context(), s, q); err == nil || !strings.Contains(err.Error(), "401") {
			t.Errorf("with a wrong password: %v", err)
		}
	}
}

// TestRevealAmongOthers: other callers are counted too, so only a count that is too small proves something.
func TestRevealAmongOthers(t *testing.T) {
	for _, c := range []struct {
		name  string
		added counts
		want  model.Decision
		text  string
	}{
		{"ours alone", counts{permit: countedAsks}, model.Permit, "counts Permit"},
		{"the trap", counts{notApplicable: countedAsks}, model.NotApplicable, "no policy is deployed"},
		{"others' denies", counts{notApplicable: countedAsks, deny: 7}, model.NotApplicable, "no policy is deployed"},
		{
			"few permits of others",
			counts{notApplicable: countedAsks, permit: countedAsks - 1},
			model.NotApplicable,
			"no policy is deployed",
		},
		{"perhaps the trap", counts{notApplicable: countedAsks, permit: countedAsks}, model.None, "not conclusive"},
		{"many permits of others", counts{permit: 1000}, model.None, "not conclusive"},
		{"not evaluated", counts{indeterminate: countedAsks}, model.Indeterminate, "could not be evaluated"},
		{"denied and permitted", counts{deny: countedAsks}, model.Deny, "counts Deny"},
		{"not counted here", counts{}, model.None, "several behind this address"},
		{"half counted here", counts{notApplicable: 1}, model.None, "several behind this address"},
		{"restarted", counts{permit: -100}, model.None, "went back"},
	} {
		got := judgeCounts("x", c.added)
		if got.Counted != c.want || !strings.Contains(got.Text, c.text) {
			t.Errorf("%s: %+v, want %v and %q", c.name, got, c.want, c.text)
		}
	}
}

// statistics is an answer with counts of permits, denies, requests that no policy was about, and others.
const statistics = `{"permitDecisionsCount":%v,"denyDecisionsCount":%v,"notApplicableDecisionsCount":%v,"indeterminantDecisionsCount":%v}`

// TestBadPDPXStatistics: the error of unexpected statistics says what is wrong, without the password.
func TestBadPDPXStatistics(t *testing.T) {
	var answer atomic.Pointer[string]
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, *answer.Load())
	}))
	defer srv.Close()
	s := &Session{Addr: srv.Listener.Addr().(*net.TCPAddr).AddrPort(), Host: "h", Username: "u", Password: "s3cret"}
	for _, c := range []struct{ body, want string }{
		{`{}`, Causes()[NoStatistics]},
		{`s3cret`, Causes()[NotJSON]},
		{fmt.Sprintf(statistics, 1.5, 0, 0, 0), Causes()[NoStatistics]},
	} {
		answer.Store(&c.body)
		_, err := pdpx().Counted(t.Context(), s)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("statistics %s: error %v, want %q without the password", c.body, err, c.want)
		}
	}
	body := fmt.Sprintf(statistics, 12345678901, 2, 3, 4)
	answer.Store(&body)
	got, err := pdpx().Counted(t.Context(), s)
	if err != nil || got["permit"] != 12345678901 || got["deny"] != 2 || got["not-applicable"] != 3 ||
		got["indeterminate"] != 4 {
		t.Errorf("got counts %v, %v", got, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pdpx().Counted(gone, s); err == nil {
		t.Error("after the context's end there is no error")
	}
}

// TestPDPXRevealsNothingFalse: whatever others ask meanwhile, a question that a policy permits is never reported as
// having no policy.
func TestPDPXRevealsNothingFalse(t *testing.T) {
	s := startPDPX(t, engine.Config{N: 1})
	questions := PDPXQuestions(PDPX{}, model.Set{N: 1}, model.First)
	others := []model.Question{
		pdpxQuestion(t, questions, pdpxAbsent), pdpxQuestion(t, questions, pdpxMinMaxDeny),
		pdpxQuestion(t, questions, pdpxMonitoring),
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, q := range others {
		wg.Go(func() {
			for ctx.Err() == nil {
				_, _ = pdpx().Ask(ctx, s, q) // it ends with the test, in the middle of anything
			}
		})
	}
	defer wg.Wait()
	defer cancel()
	for range 40 {
		got, err := pdpx().CheckCounts(t.Context(), s, pdpxQuestion(t, questions, pdpxMinMax))
		if err != nil {
			t.Fatal(err)
		}
		if got.Counted != model.Permit && got.Counted != model.None {
			t.Fatalf("got %+v, want Permit or nothing counted", got)
		}
	}
}

// TestPDPXThatClosesConnections after each answer is asked on new ones.
func TestPDPXThatClosesConnections(t *testing.T) {
	permits := 0
	var mu sync.Mutex
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodPost {
			permits++
			_, _ = io.WriteString(w, `{"status":"Permit"}`)
			return
		}
		_, _ = fmt.Fprintf(w, statistics, 0, 0, permits, 0)
	}))
	defer srv.Close()
	s := &Session{Addr: srv.Listener.Addr().(*net.TCPAddr).AddrPort(), Host: "h"}
	q := pdpxQuestion(t, PDPXQuestions(PDPX{}, model.Set{}, model.First), pdpxMinMax)
	got, err := pdpx().CheckCounts(t.Context(), s, q)
	if err != nil || got.Counted != model.NotApplicable || permits != countedAsks {
		t.Errorf("%+v, %v, asked %d times", got, err, permits)
	}
}
