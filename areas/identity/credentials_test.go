package identity

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/kit"
	"tare/internal/load"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// TestSecretsOf: secrets are found by their type, so an adapter cannot forget one.
func TestSecretsOf(t *testing.T) {
	e := func(name string) area.Secret { return area.Secret{Env: name} }
	s := &Spec{
		SecretHeaders: map[string]area.Secret{"A": e("A")}, OIDC: &OIDC{ClientSecret: e("B")},
		Callers: []Caller{{Token: e("C"), SecretHeaders: map[string]area.Secret{"D": e("D")}}},
		K8s:     &K8s{Token: e("E"), ReviewToken: e("A")}, TLS: &kit.TLS{Key: e("of TLS")},
	}
	var names []string
	for _, x := range kit.SentSecrets(s) {
		names = append(names, x.Env)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"A", "B", "C", "D", "E"}) {
		t.Errorf("found secrets %v, want A to E", names)
	}
}

// TestRotatedSecretFile: requests that were already rendered follow a file that changes, and keep the last value when
// it is removed.
func TestRotatedSecretFile(t *testing.T) {
	x := secretFile(t, "token", "first")
	spec := &Spec{HTTP: &HTTP{Bearer: x}}
	creds, err := newCredentials(spec, nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	s := fakeSession(opToken, 2)
	s.spec, s.creds = spec, creds
	w := httpToken().wire(s)
	has := func(want string) {
		t.Helper()
		for i := range uint64(2) {
			if got := w.Render(nil, i); !bytes.Contains(got, []byte("Authorization: Bearer "+want+"\r\n")) {
				t.Errorf("call %d does not show %q", i, want)
			}
		}
	}
	has("first")
	r := renewer{creds: creds, clock: clock.NewFake(time.Unix(1000, 0)), log: slog.New(slog.DiscardHandler)}
	if !r.needed() {
		t.Error("a secret file has a renewal")
	}
	for _, text := range []string{"second\n", "", "a\r\nInjected: header"} { // the last two are no secrets
		if err := os.WriteFile(x.File, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r.readFiles()
		has("second")
	}
	if err := os.Remove(x.File); err != nil {
		t.Fatal(err)
	}
	r.readFiles()
	has("second")
}

// TestLeaseIsRenewed at half of its life, and again soon after a failure; until then calls use the old one.
func TestLeaseIsRenewed(t *testing.T) {
	fake := clock.NewFake(time.Unix(1000, 0))
	creds, err := newCredentials(&Spec{}, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	creds.set(0, lease{value: "one", lives: 100 * time.Second}, fake.Now())
	s := fakeSession(opToken, 1)
	s.creds = creds
	reqs := s.requests(func(key int) []byte { return []byte("lease=" + s.lease(key) + ";") })
	renewals := make(chan time.Duration, 10)
	fails := 1
	r := renewer{
		creds: creds, clock: fake, log: slog.New(slog.DiscardHandler),
		login: func(ctx context.Context, _ int) error {
			select {
			case renewals <- fake.Now().Sub(time.Unix(1000, 0)):
			case <-ctx.Done(): // the clock moves as fast as the renewer sleeps: it may be far ahead of the test
				return ctx.Err()
			}
			if fails--; fails >= 0 {
				return errors.New("not now")
			}
			creds.set(0, lease{value: "two", lives: 100 * time.Second}, fake.Now())
			creds.renderOf(0)
			return nil
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.run(ctx) }()
	defer func() { cancel(); <-done }()
	var seen []time.Duration
	for len(seen) < 3 {
		select {
		case x := <-renewals:
			seen = append(seen, x)
		case <-time.After(time.Millisecond):
			fake.Advance(time.Second)
		}
	}
	if seen[0] < 50*time.Second || seen[0] > 60*time.Second {
		t.Errorf("renewed at %v, want half of 100s", seen[0])
	}
	if again := seen[1] - seen[0]; again < renewRetry || again > 12*time.Second {
		t.Errorf("tried again after %v, want about %v", again, renewRetry)
	}
	if next := seen[2] - seen[1]; next < 45*time.Second || next > 62*time.Second {
		t.Errorf("renewed again after %v, want half of 100s", next)
	}
	if got := string(reqs.appendTo(nil, 0)); got != "lease=two;" {
		t.Errorf("calls use %q", got)
	}
}

func TestExpiredCredentials(t *testing.T) {
	creds, err := newCredentials(&Spec{}, nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Unix(1000, 0)
	creds.set(0, lease{value: "for ever"}, start)
	if creds.expired(start.Add(1e6 * time.Hour)) {
		t.Error("a lease without an end has ended")
	}
	creds.set(1, lease{value: "a while", lives: time.Minute}, start)
	if creds.expired(start.Add(59*time.Second)) || !creds.expired(start.Add(time.Minute)) {
		t.Error("a lease ends at the wrong time")
	}
}

// TestNumbersInTemplates: a request keeps its length, and no two calls are alike.
func TestNumbersInTemplates(t *testing.T) {
	s := fakeSession(opToken, 1)
	b := s.request(0, "POST", s.unique("/x/{n}?a={n}"), []byte(s.unique(`{"a":"{n}"}`)))
	tmpl := load.NewTemplate(b)
	if n := bytes.Count(b, []byte(load.CallMark)); n != 3 {
		t.Fatalf("the template has %d holes", n)
	}
	if _, fixed := tmpl.Fixed(); fixed {
		t.Fatal("a template with holes is the same for all calls")
	}
	seen := map[string]bool{}
	for _, i := range []uint64{0, 1, 15, 16, 1 << 32, ^uint64(0)} {
		got := tmpl.AppendTo([]byte("before"), i)
		if len(got) != len("before")+len(b) || !bytes.HasPrefix(got, []byte("before")) ||
			bytes.Contains(got, []byte(load.CallMark)) || seen[string(got)] {
			t.Errorf("call %d: %q", i, got)
		}
		seen[string(got)] = true
	}
	if got := string(tmpl.AppendTo(nil, 255)); strings.Count(got, "n1-00000000000000ff") != 3 {
		t.Errorf("call 255: %q", got)
	}
}

// TestTLS: preflight reports bad certificates, and calls succeed with good ones.
func TestTLS(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	later := time.Now().Add(time.Hour)
	good, named, old := issueCertificates(t, "localhost", later), issueCertificates(t, "idp.example", later),
		issueCertificates(t, "localhost", time.Now().Add(-time.Hour))
	srv := &oauthServer{clients: map[string]string{"robot": planted}}
	secret := secretFile(t, "secret", planted)
	open, strict := serveTLS(t, good, false, srv), serveTLS(t, good, true, srv)
	other, expired := serveTLS(t, named, false, srv), serveTLS(t, old, false, srv)
	plain := serve(t, srv)
	for _, c := range []struct {
		name, url string
		tls       *kit.TLS
		path      string // of the finding; empty: calls go through
		hint      string
	}{
		{"good", open, &kit.TLS{CA: good.ca}, "", ""},
		{"client certificate", strict, &kit.TLS{CA: good.ca, Cert: good.cert, Key: area.Secret{File: good.key}}, "", ""},
		{"server name", other, &kit.TLS{CA: named.ca, ServerName: "idp.example"}, "", ""},
		{"unknown authority", open, nil, "tls.ca", "tls: {ca:"},
		{"another authority", open, &kit.TLS{CA: named.ca}, "tls.ca", "tls: {ca:"},
		{"another name", other, &kit.TLS{CA: named.ca}, "tls.server_name", "tls: {server_name:"},
		{"expired", expired, &kit.TLS{CA: old.ca}, "url", "renew"},
		{"no client certificate", strict, &kit.TLS{CA: good.ca}, "tls.cert", "tls: {cert:"},
		{
			"foreign client certificate", strict, &kit.TLS{CA: good.ca, Cert: named.cert, Key: area.Secret{File: named.key}},
			"tls.cert", "",
		},
		{"plaintext", strings.Replace(plain, "http:", "https:", 1), &kit.TLS{CA: good.ca}, "url", "http://"},
		{"key of another", strict, &kit.TLS{CA: good.ca, Cert: good.cert, Key: area.Secret{File: named.key}}, "tls", "PEM"},
		{"invalid key", strict, &kit.TLS{CA: good.ca, Cert: good.cert, Key: secret}, "tls", "PEM"},
		{"invalid authority", open, &kit.TLS{CA: good.key}, "tls", "PEM"},
	} {
		spec := clientSpec(c.url, secret)
		spec.TLS = c.tls
		f := Area{}.Preflight(t.Context(), spec, testEnv(t))
		if c.path == "" {
			if len(f) > 0 {
				t.Errorf("%s: got findings %v, want none", c.name, f)
				continue
			}
			if end := endpointOf(t, served(t, spec, 2), standard); end.TLS == nil {
				t.Errorf("%s: endpoint %+v", c.name, end)
			}
			continue
		}
		if len(f) != 1 || f[0].Path != c.path || f[0].Severity != area.Error || !strings.Contains(f[0].Hint, c.hint) ||
			f[0].Hint == "" || strings.Contains(f[0].Message, planted) {
			t.Errorf("%s: %+v, want %q with a hint on %q", c.name, f, c.path, c.hint)
		}
	}
}

func TestInsecureIsNoted(t *testing.T) {
	p := issueCertificates(t, "elsewhere", time.Now().Add(-time.Hour))
	spec := clientSpec(serveTLS(t, p, false, &oauthServer{clients: map[string]string{"robot": planted}}),
		secretFile(t, "secret", planted))
	spec.TLS = &kit.TLS{Insecure: true}
	if f := (Area{}).Preflight(t.Context(), spec, testEnv(t)); len(f) != 1 || f[0].Severity != area.Warning {
		t.Errorf("preflight: %v", f)
	}
	tg, _ := prepared(t, spec, standard)
	if got := tg.Notes(); !slices.Contains(got, kit.NoteInsecure) {
		t.Errorf("notes: %v", got)
	}
}

// TestNoSecretInErrors: no error repeats a secret or token that a server sends back.
func TestNoSecretInErrors(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	secret := secretFile(t, "secret", planted)
	for name, answer := range map[string]func(w http.ResponseWriter, got string){
		"as a body": func(w http.ResponseWriter, got string) { _, _ = w.Write([]byte(got)) },
		"as an error": func(w http.ResponseWriter, got string) {
			w.WriteHeader(400)
			_, _ = w.Write([]byte(`{"error":"` + got + `"}`))
		},
		"as no HTTP":  func(w http.ResponseWriter, got string) { writeRaw(t, w, got+"\r\n\r\n") },
		"as a status": func(w http.ResponseWriter, got string) { writeRaw(t, w, "HTTP/1.1 "+got+" x\r\n\r\n") },
		"as a header": func(w http.ResponseWriter, got string) { writeRaw(t, w, "HTTP/1.1 200 OK\r\n"+got+"\r\n\r\n") },
		"as a length": func(w http.ResponseWriter, got string) {
			writeRaw(t, w, "HTTP/1.1 200 OK\r\nContent-Length: "+got+"\r\n\r\n")
		},
		"as an encoding": func(w http.ResponseWriter, got string) {
			writeRaw(t, w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: "+got+"\r\n\r\n")
		},
		"as a chunk": func(w http.ResponseWriter, got string) {
			writeRaw(t, w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+got+"\r\n")
		},
		"as a redirect": func(w http.ResponseWriter, got string) {
			w.Header().Set("Location", "http://"+got+"/")
			w.WriteHeader(302)
		},
	} {
		url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, planted) }))
		for _, spec := range []*Spec{
			clientSpec(url, secret),
			{Adapter: "vault-login", URL: url, Vault: &Vault{Role: "r", JWT: secret}},
			{Adapter: "http-token", URL: url, HTTP: &HTTP{Bearer: secret, Path: "/", Expires: "x"}},
		} {
			var log bytes.Buffer
			env := testEnv(t)
			env.Log = slog.New(slog.NewTextHandler(&log, nil))
			tg, j := areatest.Open[*target](t, Area{}, spec, env)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			err := tg.Prepare(ctx, standard, j)
			cancel()
			if err == nil || strings.Contains(err.Error(), planted) || strings.Contains(log.String(), planted) {
				t.Errorf("%s, %s: error or log: %v %s", spec.Adapter, name, err, log.String())
			}
		}
	}
	missing := clientSpec("http://127.0.0.1:1", area.Secret{Env: "TARE_TEST_UNSET"})
	f := Area{}.Preflight(t.Context(), missing, area.Env{})
	if len(f) != 1 || !strings.Contains(f[0].Message, "TARE_TEST_UNSET") || f[0].Hint == "" {
		t.Errorf("a secret that is not there: %v", f)
	}
}

// writeRaw answers with raw bytes.
func writeRaw(t testing.TB, w http.ResponseWriter, text string) {
	t.Helper()
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = c.Write([]byte(text))
	_ = c.Close()
}

// TestLoadUsesCredentials makes calls in plaintext, and over TLS with a client certificate.
func TestLoadUsesCredentials(t *testing.T) {
	p := issueCertificates(t, "localhost", time.Now().Add(time.Hour))
	srv := &oauthServer{clients: map[string]string{"robot": planted}}
	for _, c := range []struct {
		url string
		tls *kit.TLS
	}{{serve(t, srv), nil}, {serveTLS(t, p, true, srv), &kit.TLS{CA: p.ca, Cert: p.cert, Key: area.Secret{File: p.key}}}} {
		spec := clientSpec(c.url, secretFile(t, "secret", planted))
		spec.TLS = c.tls
		spec.OIDC.Audience, spec.Expect.Audience = "a/{n}", "a/{n}"
		tg, _ := prepared(t, spec, standard)
		all := offer(t, tg, 100, 300*time.Millisecond, 20*time.Second, 8, 0)
		if good, stuck, other := countShape(all); good != 30 || stuck+other != 0 {
			t.Errorf("%s: %d good calls, %d stuck, %d others, want 30 good ones", c.url, good, stuck, other)
		}
	}
}
