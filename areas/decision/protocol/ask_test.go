package protocol

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"tare/areas/decision/model"
	"tare/internal/load"
)

func TestAsk(t *testing.T) {
	const sar = `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":`
	for _, c := range []struct {
		adapter string
		want    model.Decision
		status  int
		body    string
		d       model.Decision
		o       load.Outcome
		text    string // all of it
	}{
		{"authzen", model.Permit, 200, `{"decision":true}`, model.Permit, load.OK, "the PDP answered Permit"},
		{"authzen", model.Deny, 200, `{"decision":true}`, model.Permit, load.Wrong, "the PDP answered Permit"},
		{"authzen", model.Deny, 200, `{"decision":false,"context":{"reason":"x"}}`, model.Deny, load.Denied, `the PDP answered Deny (context {"reason":"x"})`},
		{
			"xacml", model.Permit, 200, `{"Response":[{"Decision":"Indeterminate","Status":{"StatusMessage":"no attribute role",
			"StatusCode":{"Value":"urn:oasis:names:tc:xacml:1.0:status:missing-attribute"}}}]}`, model.Indeterminate, load.Wrong,
			"the PDP answered Indeterminate (status urn:oasis:names:tc:xacml:1.0:status:missing-attribute: no attribute role)",
		},
		{
			"xacml", model.Permit, 200, `{"Response":{"Decision":"Indeterminate","Status":{"StatusCode":{"Value":"urn:oasis:names:tc:xacml:1.0:status:processing-error"}}}}`,
			model.Indeterminate, load.Wrong, "the PDP answered Indeterminate (status " +
				"urn:oasis:names:tc:xacml:1.0:status:processing-error)",
		},
		{"xacml", model.Permit, 200, `{"Response":[{"Decision":"Indeterminate"}]}`, model.Indeterminate, load.Wrong, "the PDP answered Indeterminate"},
		{"opa", model.Deny, 200, `{}`, model.NotApplicable, load.Wrong, "the PDP answered NotApplicable (/v1/data/authz/allow is not defined for this input)"},
		{
			"opa", model.Deny, 200, `{"code":"internal_error","message":"x"}`, model.None, load.Wrong,
			`status 200: a good status without a decision, it says: {"code":"internal_error","message":"x"}`,
		},
		{
			"opa", model.Permit, 200, `{"result":["no"]}`, model.None, load.Wrong,
			`status 200: a good status without a decision, it says: {"result":["no"]} (/v1/data/authz/allow gives a set or a ` +
				"list: opa.messages: true takes it for the reasons to refuse)",
		},
		{"opa", model.NotApplicable, 200, `{}`, model.NotApplicable, load.Denied, "the PDP answered NotApplicable (/v1/data/authz/allow is not defined for this input)"},
		{
			"k8s-sar", model.Deny, 200, sar + `{"allowed":false,"evaluationError":"no such role","reason":"r"}}`, model.Indeterminate, load.Wrong,
			"the PDP answered Indeterminate (evaluationError: no such role, reason: r)",
		},
		{
			"openfga", model.Permit, 400, `{"code":"validation_error","message":"relation not found"}`, model.None, load.Wrong,
			`status 400 Bad Request: the request was refused as invalid, it says: {"code":"validation_error","message":"relation not found"}`,
		},
		{
			"openfga", model.Permit, 401, ``, model.None, load.Wrong,
			"status 401 Unauthorized: the credentials were refused (401): check username, password or token, with an empty body",
		},
		{"authzen", model.Permit, 200, ``, model.None, load.Wrong, "status 200: a good status without a decision, with an empty body"},
		{
			"authzen", model.Permit, 503, "try\n\tlater\x00", model.None, load.Refused,
			"status 503 Service Unavailable, it says: try later\uFFFD",
		},
	} {
		a, err := findAdapter(t, c.adapter).Ask(t.Context(), startAnswering(t, c.status, c.body), questions[c.want])
		if err != nil {
			t.Errorf("ask %s: %v", c.adapter, err)
			continue
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
		s := &Session{
			Addr: l.Addr().(*net.TCPAddr).AddrPort(), Host: "pdp", Base: "/b", Token: "t0ken",
			Options: Options{Section: &OpenFGA{Store: store}},
		}
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
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"decision":true}`) }))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)
	u := strings.TrimPrefix(server.URL, "https://")
	plain := httptest.NewServer(nil)
	t.Cleanup(plain.Close)
	s := sessionTo(t, plain)
	s.Addr = server.Listener.Addr().(*net.TCPAddr).AddrPort()
	s.Host = u
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	s.TLS = &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12}
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
		s := startRaw(t, raw)
		a, err := authZEN().Ask(t.Context(), s, questions[model.Permit])
		if err == nil || a.Outcome == load.OK && a.Decision == model.Permit {
			t.Errorf("%s: got %+v, %v; want an error", name, a, err)
			continue
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v quotes the answer", name, err)
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

func TestTextsHoldNoSecrets(t *testing.T) {
	s := startAnswering(t, 401, `you sent cGRwOmh1c2gtaHVzaA== that is hush-hush, and bearer tok-123 with k-456`)
	s.Username, s.Password, s.Headers = "pdp", "hush-hush", map[string]string{"X-Key": "k-456"}
	a, err := authZEN().Ask(t.Context(), s, questions[model.Permit])
	if err != nil {
		t.Fatal(err)
	}
	s.Token = "tok-123"
	b, err := authZEN().Ask(t.Context(), s, questions[model.Permit])
	if err != nil {
		t.Fatal(err)
	}
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
	a, err := authZEN().Ask(t.Context(), s, questions[model.Permit])
	if err != nil {
		t.Fatal(err)
	}
	if n := utf8.RuneCountInString(a.Text); n > maxQuote+100 || !utf8.ValidString(a.Text) || a.Outcome != load.Failed {
		t.Errorf("%d characters: %+v", n, a)
	}
}
