package protocol

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/areas/decision/reference"
	"tare/internal/load"
	"tare/rigs/hosttest"
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

// withMessages stands in answerCases for an OPA whose rule gives the reasons to refuse.
const withMessages = "opa with messages"

// sessionOf is the session of an entry of answerCases.
func sessionOf(name string) *Session {
	s := &Session{Host: "pdp", Options: Options{Section: &OpenFGA{Store: store}}}
	if name == withMessages {
		s.Options.Section = &OPA{Path: "main/deny", Messages: true}
	}
	return s
}

// findAdapter finds that of an entry of answerCases.
func findAdapter(t testing.TB, name string) Adapter {
	t.Helper()
	name, _, _ = strings.Cut(name, " ")
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
func newOperation(t testing.TB, name string, s *Session, q model.Question, n int) load.Operation {
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
	if _, err := Find("opal"); err == nil {
		t.Error("opal is found")
	}
	for _, a := range adapters() {
		if got := findAdapter(t, a.Name); got.Name != a.Name || !slices.Contains(Names(), a.Name) {
			t.Errorf("%s is %q", a.Name, got.Name)
		}
		if loads := a.Name == "opa" || a.Name == "openfga"; loads != (a.Load != nil) || loads != (a.Unload != nil) {
			t.Errorf("%s loads policies: %v", a.Name, !loads)
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
	const tuple, condition = `{"tuple_key":{"user":"User:alice","relation":`, `"context":{"role":"role9","dept":"d9"}}`
	const review = `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"alice",
		"groups":["role9"],"extra":{"dept":["d9"]},"resourceAttributes":{"verb":"read","resource":"Doc","name":"doc9"}}}`
	const plain = "application/json"
	fga := func(o OpenFGA) Options { return Options{Section: &o} }
	for _, c := range []struct {
		adapter     string
		options     Options
		n           int
		path, media string
		body        string
	}{
		{"authzen", Options{}, 1, "/access/v1/evaluation", plain, question},
		{"authzen", Options{Path: "/stores/x/access/v1/evaluation/"}, 1, "/stores/x/access/v1/evaluation", plain, question},
		{"authzen", Options{}, 3, "/access/v1/evaluations", plain, `{"evaluations":[` + question + `,` + question + `,` + question + `]}`},
		{"authzen", Options{Path: "own/evaluation"}, 2, "/own/evaluations", plain, `{"evaluations":[` + question + `,` + question + `]}`},
		{"opa", Options{}, 1, "/v1/data/authz/allow", plain, `{"input":` + question + `}`},
		{"opa", Options{Section: &OPA{Path: "a/b"}}, 1, "/v1/data/a/b", plain, `{"input":` + question + `}`},
		{"openfga", fga(OpenFGA{Store: store}), 1, "/stores/" + store + "/check", plain, tuple + `"read","object":"Doc:doc9"},` + condition},
		{
			"openfga", fga(OpenFGA{Store: store, Model: store, Relation: "viewer"}), 1, "/stores/" + store + "/check", plain,
			tuple + `"viewer","object":"Doc:doc9"},"authorization_model_id":"` + store + `",` + condition,
		},
		{"k8s-sar", Options{}, 1, "/", plain, review},
		{"k8s-sar", Options{Path: "authorize"}, 1, "/authorize", plain, review},
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
	category := func(id, attribute, value string) string {
		return `{"CategoryId":"` + id + `","Attribute":[{"AttributeId":"` + attribute + `","DataType":"` + model.XACMLString + `","Value":"` + value + `"}]}`
	}
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
			`{"Request":{"Category":[` + category(model.XACMLSubject, model.XACMLSubjectID, "s") + `,` +
				category(model.XACMLAction, model.XACMLActionID, "a") + `,` +
				category(model.XACMLResource, model.XACMLResourceID, "r") + `,` +
				category(model.XACMLEnvironment, "urn:x:y", "v") + `]}}`,
		},
	} {
		op := newOperation(t, c.adapter, sessionOf(c.adapter), c.q, 1)
		_, body := render(t, op)
		wantSameJSON(t, name, body, c.body)
	}
}

func TestCredentialsAndHeaders(t *testing.T) {
	type m = map[string]string
	for name, c := range map[string]struct {
		s    Session
		want m
	}{
		"nothing":  {Session{}, m{"Authorization": ""}},
		"basic":    {Session{Username: "Aladdin", Password: "open sesame"}, m{"Authorization": "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="}},
		"bearer":   {Session{Token: "abc"}, m{"Authorization": "Bearer abc"}},
		"headers":  {Session{Headers: m{"X-Key": "k"}}, m{"X-Key": "k", "Content-Type": "application/json"}},
		"replaced": {Session{Token: "abc", Headers: m{"authorization": "Own 1"}}, m{"Authorization": "Own 1"}},
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

func TestMain(m *testing.M) { hosttest.Main(m) }

func TestAsk(t *testing.T) {
	const sar = `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":`
	const code = "urn:oasis:names:tc:xacml:1.0:status:"
	const undefined = " (/v1/data/authz/allow is not defined for this input)"
	for _, c := range []struct {
		adapter string
		want    model.Decision
		status  int
		body    string
		d       model.Decision
		o       load.Outcome
		text    string // all of it, behind the decision, if there is one
	}{
		{"authzen", model.Permit, 200, `{"decision":true}`, model.Permit, load.OK, ""},
		{"authzen", model.Deny, 200, `{"decision":true}`, model.Permit, load.Wrong, ""},
		{"authzen", model.Deny, 200, `{"decision":false,"context":{"reason":"x"}}`, model.Deny, load.Denied, ` (context {"reason":"x"})`},
		{
			"xacml", model.Permit, 200, `{"Response":[{"Decision":"Indeterminate","Status":{"StatusMessage":"no role","StatusCode":{"Value":"` +
				code + `missing-attribute"}}}]}`, model.Indeterminate, load.Wrong, " (status " + code + "missing-attribute: no role)",
		},
		{
			"xacml", model.Permit, 200, `{"Response":{"Decision":"Indeterminate","Status":{"StatusCode":{"Value":"` + code +
				`processing-error"}}}}`, model.Indeterminate, load.Wrong, " (status " + code + "processing-error)",
		},
		{"xacml", model.Permit, 200, `{"Response":[{"Decision":"Indeterminate"}]}`, model.Indeterminate, load.Wrong, ""},
		{"opa", model.Deny, 200, `{}`, model.NotApplicable, load.Wrong, undefined},
		{"opa", model.NotApplicable, 200, `{}`, model.NotApplicable, load.Denied, undefined},
		{"opa", model.Deny, 200, `{"code":"x"}`, model.None, load.Wrong, `status 200: a good status without a decision, it says: {"code":"x"}`},
		{
			"opa", model.Permit, 200, `{"result":["no"]}`, model.None, load.Wrong,
			`status 200: a good status without a decision, it says: {"result":["no"]} (/v1/data/authz/allow gives a set or a ` +
				"list: opa.messages: true takes it for the reasons to refuse)",
		},
		{
			"k8s-sar", model.Deny, 200, sar + `{"allowed":false,"evaluationError":"no such role","reason":"r"}}`,
			model.Indeterminate, load.Wrong, " (evaluationError: no such role, reason: r)",
		},
		{
			"openfga", model.Permit, 400, `{"code":"validation_error"}`, model.None, load.Wrong,
			`status 400 Bad Request: the request was refused as invalid, it says: {"code":"validation_error"}`,
		},
		{
			"openfga", model.Permit, 401, ``, model.None, load.Wrong,
			"status 401 Unauthorized: the credentials were refused (401): check username, password or token, with an empty body",
		},
		{"authzen", model.Permit, 200, ``, model.None, load.Wrong, "status 200: a good status without a decision, with an empty body"},
		{"authzen", model.Permit, 503, "try\n\tlater\x00", model.None, load.Refused, "status 503 Service Unavailable, it says: try later\uFFFD"},
	} {
		a, err := findAdapter(t, c.adapter).Ask(t.Context(), startAnswering(t, c.status, c.body), questions[c.want])
		if err != nil {
			t.Errorf("ask %s: %v", c.adapter, err)
			continue
		}
		if word := map[model.Decision]string{
			model.Permit: "Permit", model.Deny: "Deny", model.NotApplicable: "NotApplicable", model.Indeterminate: "Indeterminate",
		}[c.d]; word != "" {
			c.text = "the PDP answered " + word + c.text
		}
		if want := (Answer{c.d, c.o, c.status, c.text, nil}); !reflect.DeepEqual(a, want) {
			t.Errorf("%s, %d %s:\ngot  %+v\nwant %+v", c.adapter, c.status, c.body, a, want)
		}
	}
}

// TestAskSendsWhatTheLoadSends compares the bytes on the wire.
func TestAskSendsWhatTheLoadSends(t *testing.T) {
	for name := range answerCases() {
		var d net.ListenConfig
		l, err := d.Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := sessionOf(name)
		s.Addr, s.Base, s.Token = l.Addr().(*net.TCPAddr).AddrPort(), "/b", "t0ken"
		want := newOperation(t, name, s, questions[model.Permit], 1).Wire.Render(nil, 0)
		got := make(chan []byte, 1)
		go func() {
			conn, err := l.Accept()
			if err != nil {
				got <- nil
				return
			}
			b := make([]byte, len(want))
			n, _ := io.ReadFull(conn, b)
			_, _ = io.WriteString(conn, "HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n")
			_ = conn.Close()
			got <- b[:n]
		}()
		if _, err := findAdapter(t, name).Ask(t.Context(), s, questions[model.Permit]); err != nil {
			t.Errorf("ask %s: %v", name, err)
		}
		if b := <-got; string(b) != string(want) {
			t.Errorf("%s: asked\n%s, the load sends\n%s", name, b, want)
		}
		_ = l.Close()
	}
}

func TestAskOverTLS(t *testing.T) {
	serverTLS, clientTLS := testTLS(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"decision":true}`)
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.TLS = serverTLS
	server.StartTLS()
	t.Cleanup(server.Close)
	s := &Session{Addr: server.Listener.Addr().(*net.TCPAddr).AddrPort(), Host: "pdp", TLS: clientTLS}
	if a, err := authZEN().Ask(t.Context(), s, questions[model.Permit]); err != nil || a.Outcome != load.OK {
		t.Errorf("got %+v, %v; want OK", a, err)
	}
	s.TLS.ServerName = "other.example"
	if a, err := authZEN().Ask(t.Context(), s, questions[model.Permit]); err == nil {
		t.Errorf("a certificate of another name: %+v", a)
	}
}

func TestAskHostileAnswers(t *testing.T) {
	for name, raw := range map[string]string{
		"nothing":         "",
		"no HTTP":         "SSH-2.0-secret\r\n",
		"a short body":    "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"decision\":true}",
		"a broken header": "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
	} {
		a, err := authZEN().Ask(t.Context(), startRaw(t, raw), questions[model.Permit])
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %+v, %v; want an error that does not quote the answer", name, a, err)
		}
	}
	s := startRaw(t, "HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n"+strings.Repeat(" ", 9000000))
	if a, err := authZEN().Ask(t.Context(), s, questions[model.Permit]); err != nil || a.Outcome != load.Failed ||
		!strings.Contains(a.Text, "longer than") {
		t.Errorf("a huge body: %+v, %v", a, err)
	}
}

// startRaw serves bytes to one connection.
func startRaw(t *testing.T, raw string) *Session {
	t.Helper()
	var d net.ListenConfig
	l, err := d.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Read(make([]byte, 4096))
		_, _ = io.WriteString(conn, raw)
		_ = conn.Close()
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return &Session{Addr: l.Addr().(*net.TCPAddr).AddrPort(), Host: "h"}
}

func TestAskHonoursItsContext(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(func() { close(release); server.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if a, err := authZEN().Ask(ctx, sessionTo(t, server), questions[model.Permit]); err == nil {
		t.Errorf("got %+v after the context ended, want an error", a)
	}
}

// askedOnce is the answer to a question of AuthZEN.
func askedOnce(t *testing.T, s *Session) Answer {
	t.Helper()
	a, err := authZEN().Ask(t.Context(), s, questions[model.Permit])
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestTextsHoldNoSecrets(t *testing.T) {
	s := startAnswering(t, 401, `you sent cGRwOmh1c2gtaHVzaA== that is hush-hush, and bearer tok-123 with k-456`)
	s.Username, s.Password, s.Headers = "pdp", "hush-hush", map[string]string{"X-Key": "k-456"}
	a := askedOnce(t, s)
	s.Token = "tok-123"
	b := askedOnce(t, s)
	for _, secret := range []string{"cGRwOmh1c2gtaHVzaA", "hush-hush", "k-456"} {
		if strings.Contains(a.Text+b.Text, secret) {
			t.Errorf("%q and %q hold %s", a.Text, b.Text, secret)
		}
	}
	if strings.Contains(b.Text, "tok-123") {
		t.Errorf("%q holds the token", b.Text)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, s) + fmt.Sprintf(verb, *s); strings.Contains(text, "hush") ||
			strings.Contains(text, "tok-") {
			t.Errorf("printed with %s: %s", verb, text)
		}
	}
}

func TestTextsAreShort(t *testing.T) {
	s := startAnswering(t, 500, strings.Repeat("ä", 5000)+"\xff")
	a := askedOnce(t, s)
	if n := utf8.RuneCountInString(a.Text); n > maxQuote+100 || !utf8.ValidString(a.Text) || a.Outcome != load.Failed {
		t.Errorf("%d characters: %+v", n, a)
	}
}

// startReference serves a reference decision point until the test ends.
func startReference(t *testing.T, cfg engine.Config,
	run func(ctx context.Context, cfg engine.Config, ready func(engine.Ready) error) error,
) *Session {
	t.Helper()
	cfg.Addr = "127.0.0.1:0"
	ctx, cancel := context.WithCancel(context.Background())
	addr, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- run(ctx, cfg, func(r engine.Ready) error { addr <- r.Addr; return nil }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the reference ended with %v", err)
		}
	})
	select {
	case a := <-addr:
		return &Session{Addr: netip.MustParseAddrPort(a), Host: a, Username: cfg.Username, Password: cfg.Password}
	case err := <-done:
		done <- context.Canceled
		t.Fatalf("the reference did not start: %v", err)
		return nil
	}
}

// startCedar serves a set behind AuthZEN until the test ends.
func startCedar(t *testing.T, set model.Set, answer string) *Session {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policies.cedar")
	if err := os.WriteFile(file, set.Cedar(), 0o600); err != nil {
		t.Fatal(err)
	}
	return startReference(t, engine.Config{File: file, N: set.N, Answer: answer}, reference.RunCedar)
}

// knownQuestions returns questions about a set, at all its positions.
func knownQuestions(set model.Set) []model.Question {
	return []model.Question{
		set.Ask(model.First), set.Ask(model.Last), set.Ask(model.Absent), set.Forbidden(model.First),
		set.Forbidden(model.Last),
	}
}

// wantAllAnswers asks every question once, and then as the load asks, one and several at a time.
func wantAllAnswers(t *testing.T, a Adapter, s *Session, set model.Set) {
	t.Helper()
	for _, q := range knownQuestions(set) {
		want := Answer{Decision: q.Want, Outcome: load.Denied, Status: 200}
		if q.Want == model.Permit {
			want.Outcome = load.OK
		}
		got, err := a.Ask(t.Context(), s, q)
		text := got.Text
		got.Text = ""
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("N=%d, %s of %s: %+v %s, %v", set.N, q.Name, q.Resource.ID, got, text, err)
		}
	}
	batch := []int{1}
	if a.Batches() {
		batch = append(batch, 7)
	}
	for _, n := range batch {
		for _, kind := range []load.Engine{load.Fast, load.Std} {
			ops := operations(t, a, s, n, set.Ask(model.Last), set.Forbidden(model.Last))
			if seen := runOperations(t, s, kind, ops); seen["permit"] == 0 || seen["deny"] == 0 {
				t.Errorf("%d at once on %s: %v", n, kind, seen)
			}
		}
	}
}

func TestCedarAnswers(t *testing.T) {
	for _, n := range []int{1, 30} {
		wantAllAnswers(t, authZEN(), startCedar(t, model.Set{N: n}, ""), model.Set{N: n})
	}
}

func TestAlwaysPermitIsDetected(t *testing.T) {
	set := model.Set{N: 3}
	s := startCedar(t, set, "always-permit")
	for _, q := range knownQuestions(set) {
		got, err := authZEN().Ask(t.Context(), s, q)
		if err != nil || got.Decision != model.Permit || (got.Outcome == load.OK) != (q.Want == model.Permit) {
			t.Errorf("%s: got %+v, %v; want Permit, which is OK only if it is the known answer", q.Name, got, err)
		}
	}
}

// TestJavaEnginesAnswer runs if TARE_ENGINES names the engines, which may have to be fetched and built.
func TestJavaEnginesAnswer(t *testing.T) {
	if os.Getenv("TARE_ENGINES") == "" {
		hosttest.Missing(t, "TARE_ENGINES is not set", "set it to the engines, separated by commas")
	}
	host := engine.Host{Self: os.Args[0], Log: slog.New(slog.DiscardHandler), Getenv: os.LookupEnv}
	for _, kind := range []engine.Kind{engine.ATT, engine.AuthzForce} {
		t.Run(string(kind), func(t *testing.T) {
			l, err := engine.Find(t.Context(), kind, host)
			if err != nil {
				t.Fatal(err)
			}
			wantAllAnswers(t, xacml(), startEngine(t, l, model.Set{N: 30}), model.Set{N: 30})
		})
	}
}

// TestSecretsInRequests replace their names on the wire and nowhere else: an answer that sends them back is quoted
// without them.
func TestSecretsInRequests(t *testing.T) {
	const secret = `hun"ter2{b}`
	s := &Session{Host: "pdp", Secrets: map[string]string{"a": secret, "b": "other"}}
	for name, q := range map[string]model.Question{
		"body":    {Body: json.RawMessage(`{"input": {"token": "{a}", "x": "{b}{c}"}}`)},
		"context": {Context: map[string]string{"token": "{a}", "x": "{b}{c}"}},
	} {
		r, err := opa().call(s, q)
		if err != nil {
			t.Fatal(err)
		}
		sent := string(r.render(s))
		_, body, _ := strings.Cut(sent, "\r\n\r\n")
		var got struct{ Input map[string]any }
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatalf("%s: request is not JSON: %v: %s", name, err, body)
		}
		at := got.Input
		if c, ok := at["context"].(map[string]any); ok {
			at = c
		}
		if at["token"] != secret || at["x"] != "other{c}" {
			t.Errorf("%s: sent %s", name, body)
		}
		if !strings.Contains(sent, "Content-Length: "+strconv.Itoa(len(body))+"\r\n") {
			t.Errorf("%s: another length than %d: %s", name, len(body), sent)
		}
		for _, answer := range []string{body, secret} {
			if said := s.describe(500, NotJSON, model.None, "", []byte(answer)); strings.Contains(said, "hun") ||
				strings.Contains(said, "other") {
				t.Errorf("%s: the description contains a secret: %s", name, said)
			}
		}
	}
}

// TestAnswersThatRepeatSecrets are quoted without them: also where one secret begins with another, and where the server
// escapes what it repeats in a way of its own.
func TestAnswersThatRepeatSecrets(t *testing.T) {
	s := &Session{
		Token: "team-key", Username: "jane", Password: "pass/word",
		Headers: map[string]string{"X-My-Key": "team-key-SECRETTAIL77qzz", "X-Odd": `p"w\secr<et>77`},
	}
	for answer, want := range map[string]string{
		"token team-key, X-My-Key team-key-SECRETTAIL77qzz":           "token …, X-My-Key …",
		`{"error": "no p\"w\\secr<et>77"}`:                            `{"error": "no …"}`,
		`{"error": "no p\"w\\secr\u003cet\u003E77"}`:                  `{"error": "no …"}`,
		`{"error": "no Basic amFuZTpwYXNzL3dvcmQ\u003d, pass\/word"}`: `{"error": "no Basic …, …"}`,
	} {
		if said := s.describe(500, NotJSON, model.None, "", []byte(answer)); !strings.HasSuffix(said, "it says: "+want) {
			t.Errorf("%s, want it to end with %s", said, want)
		}
	}
}

func TestValidate(t *testing.T) {
	all := []model.Question{questions[model.Permit], questions[model.Deny]}
	with := func(q model.Question) []model.Question { return append(all[:2:2], q) }
	for _, c := range []struct {
		adapter string
		o       Options
		q       []model.Question
		want    string // beginning of the error; empty: none
	}{
		{"authzen", Options{}, all, ""},
		{"authzen", Options{Path: "/stores/x/access/v1/evaluation"}, all, ""},
		{"authzen", Options{Path: "a?b=c"}, all, "path: "},
		{"authzen", Options{Path: "ä"}, all, "path: "},
		{"authzen", Options{Path: "a b"}, all, "path: "},
		{"authzen", Options{Path: "http://x/y"}, all, "path: "},
		{"authzen", Options{}, with(questions[model.NotApplicable]), "requests: "},
		{"opa", Options{Section: &OPA{Path: "authz/allow"}}, with(questions[model.NotApplicable]), ""},
		{"opa", Options{Section: &OPA{Path: "a\r\nX: y"}}, all, "opa.path: "},
		{"opa", Options{}, with(model.Question{Name: "own", Want: model.Permit, Body: json.RawMessage(`{"input":1}`)}), ""},
		{"opa", Options{}, with(model.Question{Name: "own", Want: model.Permit, Body: json.RawMessage(`[1]`)}), "requests: "},
		{"opa", Options{}, with(model.Question{Name: "own", Want: model.Permit, Body: json.RawMessage(`null`)}), "requests: "},
		{"opa", Options{}, with(model.Question{Name: "own", Want: model.Permit, Body: json.RawMessage(`{`)}), "requests: "},
		{"xacml", Options{}, with(questions[model.NotApplicable]), ""},
		{"xacml", Options{}, with(model.Question{Name: "x", Want: model.Indeterminate}), "requests: "},
		{"xacml", Options{Path: "x#y"}, all, "path: "},
		{"openfga", Options{Section: &OpenFGA{Store: store, Model: store}}, all, ""},
		{"openfga", Options{}, all, ""},
		{"openfga", Options{Section: &OpenFGA{Store: "shop"}}, all, "openfga.store: "},
		{"openfga", Options{Section: &OpenFGA{Store: store, Model: strings.ToLower(store)}}, all, "openfga.model: "},
		{"openfga", Options{Section: &OpenFGA{Store: store}}, with(questions[model.NotApplicable]), "requests: "},
		{"k8s-sar", Options{Path: "authorize"}, with(questions[model.NotApplicable]), ""},
		{"k8s-sar", Options{Path: "\x00"}, all, "path: "},
	} {
		err := findAdapter(t, c.adapter).Validate(c.o, c.q)
		if c.want == "" && err != nil {
			t.Errorf("%s %+v: got %v, want no error", c.adapter, c.o, err)
		}
		if c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s %+v: %v, want an error about %s", c.adapter, c.o, err, c.want)
		}
	}
}
