package protocol

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"testing"

	"tare/areas/decision/model"
	"tare/internal/load"
)

// set is what tests ask about.
var set = model.Set{N: 10}

// questions are a permit, a deny and a not-applicable.
var questions = map[model.Decision]model.Question{
	model.Permit: set.Ask(model.Last), model.Deny: set.Forbidden(model.Last),
	model.NotApplicable: wantsNothing(set.Ask(model.Absent)),
}

func wantsNothing(q model.Question) model.Question {
	q.Want = model.NotApplicable
	return q
}

// store is a store that tests name.
const store = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

// sessionTo is a session with a test server.
func sessionTo(t *testing.T, server *httptest.Server) *Session {
	t.Helper()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	addr, err := netip.ParseAddrPort(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	return &Session{Addr: addr, Host: u.Host, Options: Options{Section: &OpenFGA{Store: store}}}
}

// startAnswering serves the same answer to every request.
func startAnswering(t *testing.T, status int, body string) *Session {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return sessionTo(t, server)
}

// findAdapter is Find in tests.
func findAdapter(t testing.TB, name string) Adapter {
	t.Helper()
	a, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// render returns the request of an operation as net/http reads it back.
func render(t *testing.T, op load.Operation) (*http.Request, []byte) {
	t.Helper()
	raw := op.Wire.Render(nil, 7)
	if again := op.Wire.Render([]byte("x"), 8); !bytes.Equal(again, append([]byte("x"), raw...)) {
		t.Errorf("rendered into a buffer: %q", again)
	}
	in := bufio.NewReader(bytes.NewReader(raw))
	r, err := http.ReadRequest(in)
	if err != nil {
		t.Fatalf("%v in %q", err, raw)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if in.Buffered() > 0 {
		t.Errorf("%d bytes behind the request", in.Buffered())
	}
	return r, body
}

// newOperation returns the operation of a question.
func newOperation(t *testing.T, name string, s *Session, q model.Question, n int) load.Operation {
	t.Helper()
	op, err := findAdapter(t, name).Operation(s, q, n)
	if err != nil {
		t.Fatal(err)
	}
	return op
}

// judgeAnswer returns what the operation's wire says of an answer.
func judgeAnswer(op load.Operation, status int, body string) (load.Outcome, Verdict) {
	o := op.Wire.Check(0, status, []byte(body))
	if o == load.OK || o == load.Denied {
		return o, Fine
	}
	return o, Verdict(op.Wire.Explain(0, status, []byte(body)))
}

func TestFind(t *testing.T) {
	for _, name := range []string{"authzen", "opa", "xacml", "openfga", "k8s-sar"} {
		if a := findAdapter(t, name); a.Name != name || len(a.Schemes) == 0 || !slices.Contains(Names(), name) {
			t.Errorf("%s is %q with schemes %q", name, a.Name, a.Schemes)
		}
	}
	if _, err := Find("opal"); err == nil {
		t.Error("opal is found")
	}
	for _, name := range []string{"opa", "openfga"} {
		if a := findAdapter(t, name); a.Load == nil || a.Unload == nil {
			t.Errorf("%s loads no policies", name)
		}
	}
}

// TestEveryAdapterIsComplete: each has what Operation, Ask and Validate need, and a test judges its answers.
func TestEveryAdapterIsComplete(t *testing.T) {
	elsewhere := []string{"pdpx", "ext-authz"} // TestPDPXJudges, TestExtAuthzAnswers
	for _, a := range adapters() {
		if a.title == "" || len(a.decisions) == 0 || len(a.Schemes) == 0 {
			t.Errorf("%s: title %q, decisions %v, schemes %q", a.Name, a.title, a.decisions, a.Schemes)
		}
		if own := a.operation != nil && a.ask != nil; own == (a.call != nil) {
			t.Errorf("%s is rendered in two ways, or in none", a.Name)
		}
		if len(answerCases()[a.Name]) == 0 && !slices.Contains(elsewhere, a.Name) {
			t.Errorf("no test judges answers to %s", a.Name)
		}
	}
}

func TestCausesHaveWords(t *testing.T) {
	for v, words := range Causes() {
		if words == "" {
			t.Errorf("verdict %d has no words", v)
		}
	}
	if len(CauseAnswers()) != len(Causes()) {
		t.Errorf("%d answers for %d causes", len(CauseAnswers()), len(Causes()))
	}
	for d := model.Permit; d <= model.Indeterminate; d++ {
		if got := CauseAnswers()[Says(d)]; got != d.String() {
			t.Errorf("an answer that says %v counts as %q", d, got)
		}
	}
}

// TestRequestsMatchPublishedExamples by their meaning, not their bytes.
func TestRequestsMatchPublishedExamples(t *testing.T) {
	const subject = `{"type":"User","id":"alice","properties":{"role":"role9","dept":"d9"}}`
	const question = `{"subject":` + subject + `,"action":{"name":"read"},"resource":{"type":"Doc","id":"doc9"}}`
	for _, c := range []struct {
		adapter     string
		options     Options
		n           int
		path, media string
		body        string
	}{
		{"authzen", Options{}, 1, "/access/v1/evaluation", "application/json", question},
		{
			"authzen",
			Options{Path: "/stores/x/access/v1/evaluation/"},
			1, "/stores/x/access/v1/evaluation",
			"application/json", question,
		},
		{"authzen", Options{}, 3, "/access/v1/evaluations", "application/json", `{"evaluations":[` + question + `,` + question + `,` + question + `]}`},
		{"authzen", Options{Path: "own/evaluation"}, 2, "/own/evaluations", "application/json", `{"evaluations":[` + question + `,` + question + `]}`},
		{"opa", Options{}, 1, "/v1/data/authz/allow", "application/json", `{"input":` + question + `}`},
		{"opa", Options{Section: &OPA{Path: "a/b"}}, 1, "/v1/data/a/b", "application/json", `{"input":` + question + `}`},
		{
			"openfga",
			Options{Section: &OpenFGA{Store: store}},
			1, "/stores/" + store + "/check", "application/json",
			`{"tuple_key":{"user":"User:alice","relation":"read","object":"Doc:doc9"},"context":{"role":"role9","dept":"d9"}}`,
		},
		{
			"openfga",
			Options{Section: &OpenFGA{Store: store, Model: store, Relation: "viewer"}},
			1, "/stores/" + store + "/check", "application/json",
			`{"tuple_key":{"user":"User:alice","relation":"viewer","object":"Doc:doc9"},"authorization_model_id":"` + store + `","context":{"role":"role9","dept":"d9"}}`,
		},
		{"k8s-sar", Options{}, 1, "/", "application/json", `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"alice",
			"groups":["role9"],"extra":{"dept":["d9"]},"resourceAttributes":{"verb":"read","resource":"Doc","name":"doc9"}}}`},
		{"k8s-sar", Options{Path: "authorize"}, 1, "/authorize", "application/json", `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview",
			"spec":{"user":"alice","groups":["role9"],"extra":{"dept":["d9"]},"resourceAttributes":{"verb":"read","resource":"Doc","name":"doc9"}}}`},
		{"xacml", Options{}, 1, "/services/pdp", "application/xacml+json", `{"Request":{"Category":[
			{"CategoryId":"urn:oasis:names:tc:xacml:1.0:subject-category:access-subject","Attribute":[
				{"AttributeId":"urn:oasis:names:tc:xacml:1.0:subject:subject-id","DataType":"http://www.w3.org/2001/XMLSchema#string","Value":"alice"},
				{"AttributeId":"urn:tare:attribute:dept","DataType":"http://www.w3.org/2001/XMLSchema#string","Value":"d9"},
				{"AttributeId":"urn:tare:attribute:role","DataType":"http://www.w3.org/2001/XMLSchema#string","Value":"role9"}]},
			{"CategoryId":"urn:oasis:names:tc:xacml:3.0:attribute-category:action","Attribute":[
				{"AttributeId":"urn:oasis:names:tc:xacml:1.0:action:action-id","DataType":"http://www.w3.org/2001/XMLSchema#string","Value":"read"}]},
			{"CategoryId":"urn:oasis:names:tc:xacml:3.0:attribute-category:resource","Attribute":[
				{"AttributeId":"urn:oasis:names:tc:xacml:1.0:resource:resource-id","DataType":"http://www.w3.org/2001/XMLSchema#string","Value":"doc9"}]}]}}`},
	} {
		s := &Session{Host: "pdp:1", Options: c.options}
		op := newOperation(t, c.adapter, s, questions[model.Permit], c.n)
		r, body := render(t, op)
		if r.Method != "POST" || r.URL.Path != c.path || r.Host != "pdp:1" || r.Header.Get("Content-Type") != c.media ||
			r.Header.Get("Accept") != c.media {
			t.Errorf("%s: %s %s to %s with %v", c.adapter, r.Method, r.URL, r.Host, r.Header)
		}
		wantSameJSON(t, c.adapter, body, c.body)
		if op.Name != "permit" || op.Weight < 1 || op.Answer != "permit" || op.Expect == "" {
			t.Errorf("%s: operation %+v", c.adapter, op)
		}
	}
}

// wantSameJSON compares two JSON documents by their meaning.
func wantSameJSON(t *testing.T, what string, got []byte, want string) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal(got, &a); err != nil {
		t.Errorf("%s: %v in %s", what, err, got)
		return
	}
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatalf("%s: the test's own JSON: %v", what, err)
	}
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	if !bytes.Equal(x, y) {
		t.Errorf("%s: rendered\n%s, want\n%s", what, x, y)
	}
}

func TestQuestionsOfTheFile(t *testing.T) {
	for name, c := range map[string]struct {
		adapter string
		q       model.Question
		body    string
	}{
		"a body of the file's own": {"opa", model.Question{Name: "x", Want: model.Permit, Body: json.RawMessage(`{"input": 7}`)}, `{"input":7}`},
		"a context": {
			"authzen",
			model.Question{Name: "x", Action: "a", Context: map[string]string{"k": "v"}},
			`{"subject":{"type":"","id":""},"action":{"name":"a"},"resource":{"type":"","id":""},"context":{"k":"v"}}`,
		},
		"a context of conditions": {
			"openfga",
			model.Question{
				Subject: model.Entity{Type: "u", ID: "1", Properties: map[string]string{"k": "subject", "l": "s"}},
				Action:  "a", Resource: model.Entity{Type: "r", ID: "2"}, Context: map[string]string{"k": "context"},
			},
			`{"tuple_key":{"user":"u:1","relation":"a","object":"r:2"},"context":{"k":"context","l":"s"}}`,
		},
		"a path of the API": {
			"k8s-sar",
			model.Question{
				Subject: model.Entity{ID: "bob", Properties: map[string]string{"groups": "a,b"}}, Action: "get",
				Resource: model.Entity{Type: "url", ID: "/healthz"},
			},
			`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"bob","groups":["a","b"],"nonResourceAttributes":{"path":"/healthz","verb":"get"}}}`,
		},
		"an object in a namespace": {
			"k8s-sar",
			model.Question{Subject: model.Entity{ID: "bob"}, Action: "get", Resource: model.Entity{
				Type: "pods", ID: "p",
				Properties: map[string]string{"namespace": "n", "group": "g", "version": "v1", "subresource": "log"},
			}},
			`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"bob","resourceAttributes":
			{"namespace":"n","verb":"get","group":"g","version":"v1","resource":"pods","subresource":"log","name":"p"}}}`,
		},
		"an environment": {
			"xacml",
			model.Question{
				Subject: model.Entity{ID: "s"}, Action: "a", Resource: model.Entity{ID: "r"},
				Context: map[string]string{"urn:x:y": "v"},
			},
			`{"Request":{"Category":[
			{"CategoryId":"` + model.XACMLSubject + `","Attribute":[{"AttributeId":"` + model.XACMLSubjectID + `","DataType":"` + model.XACMLString + `","Value":"s"}]},
			{"CategoryId":"` + model.XACMLAction + `","Attribute":[{"AttributeId":"` + model.XACMLActionID + `","DataType":"` + model.XACMLString + `","Value":"a"}]},
			{"CategoryId":"` + model.XACMLResource + `","Attribute":[{"AttributeId":"` + model.XACMLResourceID + `","DataType":"` + model.XACMLString + `","Value":"r"}]},
			{"CategoryId":"` + model.XACMLEnvironment + `","Attribute":[{"AttributeId":"urn:x:y","DataType":"` + model.XACMLString + `","Value":"v"}]}]}}`,
		},
	} {
		op := newOperation(t, c.adapter, &Session{Host: "h", Options: Options{Section: &OpenFGA{Store: store}}}, c.q, 1)
		_, body := render(t, op)
		wantSameJSON(t, name, body, c.body)
	}
}

func TestCredentialsAndHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		s    Session
		want map[string]string
	}{
		"nothing": {Session{}, map[string]string{"Authorization": ""}},
		"basic": {
			Session{Username: "Aladdin", Password: "open sesame"},
			map[string]string{"Authorization": "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="},
		},
		"bearer": {Session{Token: "abc"}, map[string]string{"Authorization": "Bearer abc"}},
		"headers": {
			Session{Headers: map[string]string{"X-Key": "k"}},
			map[string]string{"X-Key": "k", "Content-Type": "application/json"},
		},
		"replaced": {
			Session{Token: "abc", Headers: map[string]string{"authorization": "Own 1"}},
			map[string]string{"Authorization": "Own 1"},
		},
	} {
		c.s.Host, c.s.Base = "pdp", "/base"
		r, _ := render(t, newOperation(t, "authzen", &c.s, questions[model.Permit], 1))
		for h, want := range c.want {
			if got := r.Header.Get(h); got != want || len(r.Header.Values(h)) > 1 {
				t.Errorf("%s: header %s is %q, want %q", name, h, r.Header.Values(h), want)
			}
		}
		if r.URL.Path != "/base/access/v1/evaluation" {
			t.Errorf("%s: path %s", name, r.URL.Path)
		}
	}
}

// closedPort returns an address where nobody listens.
func closedPort(t *testing.T) netip.AddrPort {
	t.Helper()
	server := httptest.NewServer(nil)
	defer server.Close()
	return sessionTo(t, server).Addr
}

func TestOpenFGANeedsAStore(t *testing.T) {
	if _, err := findAdapter(t, "openfga").Operation(&Session{}, questions[model.Permit], 1); err == nil {
		t.Error("no store, no error")
	}
	if _, err := findAdapter(t, "openfga").Ask(context.Background(), &Session{}, questions[model.Permit]); err == nil {
		t.Error("no store, no error")
	}
}
