package protocol

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tare/areas/decision/model"
	"tare/internal/load"
	"tare/rigs/memtest"
)

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
		op, err := pdpx().Operation(s, q, 1)
		if err != nil {
			t.Fatal(err)
		}
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
	op, err := pdpx().Operation(at, model.Question{Name: pdpxHealthcheck}, 1)
	if err != nil {
		t.Fatal(err)
	}
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
	for want, o := range map[string]PDPX{
		"Restart": {Frequency: "Restart", FrequencyOver: "Rebuild"},
		"":        {Frequency: "Restart", OverTarget: "t2"},
	} {
		if got := o.UnseenLimiter(); got != want {
			t.Errorf("%+v: %q, want %q", o, got, want)
		}
	}
	for _, o := range []PDPX{
		{},
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
	op, err := pdpx().Operation(s, q, 1)
	if err != nil {
		t.Fatal(err)
	}
	if seen := runOperations(t, s, load.Auto, []load.Operation{op}); seen["deny"] < 500 {
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
