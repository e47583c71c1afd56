package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tare/area"
	"tare/internal/load"
	"tare/rigs/areatest"
)

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// TestAdaptersAreDescribed: each has all the texts that people need.
func TestAdaptersAreDescribed(t *testing.T) {
	for _, a := range adapters() {
		if a.section != "" && !slices.Contains(sectionNames(), a.section) {
			t.Errorf("%s: the file has no section %q", a.name, a.section)
		}
		if a.help == "" {
			t.Errorf("%s has no help", a.name)
		}
		for _, o := range a.operations {
			if o.expect == "" {
				t.Errorf("%s: what %s expects is not said", a.name, o.name)
			}
		}
	}
	for i, text := range causes() {
		if text == "" {
			t.Errorf("cause %d has no words", i)
		}
	}
}

// TestAdaptersAreDocumented compares the documentation with the list of adapters: order, operations, answers and
// options.
func TestAdaptersAreDocumented(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var first, second []string // the rows of the tables of adapters and of answers
	quoted := func(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }
	for _, a := range adapters() {
		first = append(first, "| `"+a.name+"` | "+quoted(a.offers())+" |")
		second = append(second, "| `"+a.name+"` | ")
		if a.section != "" && !strings.Contains(string(page), "\n| `"+a.section+"` | ") {
			t.Errorf("the options of %s are not in the table of sections", a.name)
		}
	}
	operations, answers, _ := strings.Cut(string(page), "## What is a good answer")
	for text, rows := range map[string][]string{operations: first, answers: second} {
		at := 0
		for _, row := range rows {
			i := strings.Index(text[at:], "\n"+row)
			if i < 0 {
				t.Errorf("README.md has no row %q, or not in the order of the adapters", row)
				continue
			}
			at += i
		}
	}
}

func sectionNames() []string {
	var out []string
	for f := range reflect.TypeFor[Spec]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		out = append(out, name)
	}
	return out
}

// clientSpec is a client_credentials experiment.
func clientSpec(url string, secret area.Secret) *Spec {
	return &Spec{
		Adapter: "oidc-token", URL: url + "/realms/x/token",
		OIDC:   &OIDC{ClientID: "robot", ClientSecret: secret, Audience: "vault"},
		Expect: &Expect{Audience: "vault", Issuer: "http://issuer", Subject: "subject-of-robot"},
	}
}

func TestOIDCClientCredentials(t *testing.T) {
	var mu sync.Mutex
	audiences := map[string]bool{}
	srv := &oauthServer{clients: map[string]string{"robot": planted}, audit: func(r *http.Request) {
		if r.URL.Path != "/realms/x/token" {
			t.Errorf("path %s", r.URL.Path)
		}
		if b, err := io.ReadAll(r.Body); err == nil {
			r.Body = io.NopCloser(strings.NewReader(string(b)))
			mu.Lock()
			defer mu.Unlock()
			for pair := range strings.SplitSeq(string(b), "&") {
				if a, ok := strings.CutPrefix(pair, "audience="); ok {
					audiences[a] = true
				}
			}
		}
	}}
	url := serve(t, srv)
	for _, auth := range []string{"", authBasic, authPost} {
		spec := clientSpec(url, secretFile(t, "secret", planted))
		spec.OIDC.Auth = auth
		served(t, spec, 3)
	}
	if len(audiences) != 1 {
		t.Errorf("audiences %v", audiences)
	}
	cold := clientSpec(url, secretFile(t, "secret", planted))
	cold.OIDC.Audience, cold.Expect.Audience = "cold/{n}", "cold/{n}"
	tg, _ := prepared(t, cold, standard)
	clear(audiences)
	wantGoodCalls(t, tg, 3)
	wantGoodCalls(t, tg, 3)
	if len(audiences) != 6 {
		t.Errorf("six calls asked for %d audiences: %v", len(audiences), audiences)
	}
	srv.lax = true
	if err := tg.Verify(t.Context(), standard); err == nil ||
		!strings.Contains(err.Error(), "a client with a wrong secret must be refused") {
		t.Errorf("a server that refuses nobody: %v", err)
	}
}

// TestOIDCWrongTokens: a prepared target rejects bad answers with status 200.
func TestOIDCWrongTokens(t *testing.T) {
	srv := &oauthServer{clients: map[string]string{"robot": planted}}
	tg, _ := prepared(t, clientSpec(serve(t, srv), secretFile(t, "secret", planted)), standard)
	text := func(s string) func(http.ResponseWriter) bool {
		return func(w http.ResponseWriter) bool { _, _ = io.WriteString(w, s); return true }
	}
	code := func(status int, body string) func(http.ResponseWriter) bool {
		return func(w http.ResponseWriter) bool { w.WriteHeader(status); _, _ = io.WriteString(w, body); return true }
	}
	claim := func(name string, value any) func(map[string]any) {
		return func(c map[string]any) { c[name] = value }
	}
	for _, c := range []struct {
		name   string
		claims func(map[string]any)
		answer func(http.ResponseWriter) bool
		want   load.Outcome
		why    string
	}{
		{"expired", claim("exp", time.Now().Unix()-1), nil, load.Wrong, "the token has expired"},
		{"somebody else's", claim("sub", "subject-of-eve"), nil, load.Wrong, "for somebody else"},
		{"another audience", claim("aud", "x"), nil, load.Wrong, "for another audience"},
		{"another issuer", claim("iss", "x"), nil, load.Wrong, "from another issuer"},
		{"opaque", nil, text(`{"access_token":"opaque","expires_in":300,"token_type":"Bearer"}`), load.Wrong, "no signed JWT"},
		{"no token", nil, text(`{"expires_in":300,"token_type":"Bearer"}`), load.Wrong, "without a token"},
		{"page", nil, text("<html>"), load.Wrong, "no JSON"},
		{"of another type", nil, text(`{"access_token":"a","expires_in":300,"token_type":"DPoP"}`), load.Wrong, "another type"},
		{"no number as expires_in", nil, text(`{"access_token":"a","expires_in":"soon","token_type":"Bearer"}`), load.Wrong, "how long the token lives"},
		{"expires_in 0", nil, text(`{"access_token":"a","expires_in":0,"token_type":"Bearer"}`), load.Wrong, "has expired"},
		{"slow down", nil, code(400, `{"error":"slow_down"}`), load.Refused, "slow down"},
		{"unavailable", nil, code(400, `{"error":"temporarily_unavailable"}`), load.Refused, "temporarily unavailable"},
		{"invalid grant", nil, code(400, `{"error":"invalid_grant"}`), load.Wrong, "credential was refused"},
		{"invalid target", nil, code(400, `{"error":"invalid_target"}`), load.Wrong, "request was refused"},
		{"server error", nil, code(400, `{"error":"server_error"}`), load.Failed, "status 400"},
		{"too many", nil, code(429, ""), load.Refused, "status 429"},
		{"bad gateway", nil, code(502, "<html>"), load.Failed, "status 502"},
		{"redirect", nil, code(302, ""), load.Wrong, "redirect"},
	} {
		srv.claims, srv.answer = c.claims, c.answer
		out, why := calls(t, tg, 1)
		if out[0] != c.want || !strings.Contains(why[0], c.why) {
			t.Errorf("%s: %v: %q, want %v with %q", c.name, out[0], why[0], c.want, c.why)
		}
	}
}

// TestOIDCCallers: each caller exchanges a token of its own and must get its own back.
func TestOIDCCallers(t *testing.T) {
	srv := &oauthServer{
		clients: map[string]string{"gateway": planted},
		tokens:  map[string]string{planted + "-a": "alice", planted + "-b": "bob"},
	}
	spec := &Spec{
		Adapter: "oidc-token", URL: serve(t, srv),
		OIDC: &OIDC{Grant: grantExchange, ClientID: "gateway", ClientSecret: secretFile(t, "secret", planted)},
		Callers: []Caller{
			{Token: secretFile(t, "a", planted+"-a"), Address: "127.1.0.1"},
			{Token: secretFile(t, "b", planted+"-b"), Address: "127.1.0.2", Audience: "mine"},
		},
	}
	tg := served(t, spec, 4)
	if end := endpointOf(t, tg, standard); end.Keys != 2 || end.Local(1).String() != "127.1.0.2" {
		t.Errorf("endpoint %+v", end)
	}
	srv.claims = func(c map[string]any) { c["sub"] = "alice" } // every caller gets Alice's token
	out, why := calls(t, tg, 2)
	if out[0] != load.OK || out[1] != load.Wrong || !strings.Contains(why[1], "somebody else") {
		t.Errorf("Bob with Alice's token: %v, %q", out, why)
	}
	srv.claims, srv.answer = nil, func(w http.ResponseWriter) bool {
		_, _ = io.WriteString(w, `{"access_token":"`+rawJWT([]byte(`{"sub":"","exp":9999999999}`))+`","token_type":"Bearer"}`)
		return true
	}
	if out, _ := calls(t, tg, 1); out[0] != load.Wrong {
		t.Errorf("a token without a subject, where there was one: %v", out)
	}
}

// TestSharedToken: two callers with credentials of their own must not get one opaque token.
func TestSharedToken(t *testing.T) {
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"access_token":"the-only-one"}`)
	}))
	spec := &Spec{Adapter: "http-token", URL: url, Callers: []Caller{
		{Token: secretFile(t, "a", "a")}, {Token: secretFile(t, "b", "b")},
	}}
	tg, j := areatest.Open[*target](t, Area{}, spec, testEnv(t))
	err := tg.Prepare(t.Context(), standard, j)
	if err != nil && strings.Contains(err.Error(), "another identity has got") {
		return
	}
	// Both callers are warmed up at the same time, so it may take a later call to find it.
	p := tg.arm(standard.ID)
	w, one := p.adapter.wire(p.session("x")), []byte(`{"access_token":"one"}`)
	if a, b := w.Check(0, 200, one), w.Check(1, 200, one); a != load.OK || b != load.Wrong {
		t.Errorf("one token for two: %v, %v", a, b)
	}
}

func TestVaultMethods(t *testing.T) {
	srv := &vaultServer{lease: 300}
	url := serve(t, srv)
	for _, c := range []struct {
		base string
		o    Vault
	}{
		{"", Vault{Role: "robot", JWT: secretFile(t, "jwt", planted)}},
		{"", Vault{Method: "jwt", Role: "robot", JWT: secretFile(t, "jwt", planted)}},
		{"/prefix/", Vault{Method: "approle", Mount: "/apps/", RoleID: "robot", SecretID: secretFile(t, "id", planted)}},
		{"", Vault{Method: "userpass", Username: "robot", Password: secretFile(t, "pw", planted)}},
	} {
		served(t, &Spec{Adapter: "vault-login", URL: url + c.base, Vault: &c.o}, 3)
	}
}

func TestVaultWrongAnswers(t *testing.T) {
	srv := &vaultServer{lease: 300}
	spec := &Spec{
		Adapter: "vault-login", URL: serve(t, srv),
		Vault: &Vault{Role: "robot", JWT: secretFile(t, "jwt", planted)},
	}
	tg, _ := prepared(t, spec, standard)
	srv.entity = func(string) string { return "entity-eve" }
	if out, why := calls(t, tg, 1); out[0] != load.Wrong || !strings.Contains(why[0], "somebody else") {
		t.Errorf("another entity's token: %v, %q", out, why)
	}
	srv.entity, srv.lease = nil, 0
	if out, why := calls(t, tg, 1); out[0] != load.Wrong || !strings.Contains(why[0], "expired") {
		t.Errorf("a lease of 0: %v, %q", out, why)
	}
	srv.lease, srv.lax = 300, true
	if err := tg.Verify(t.Context(), standard); err == nil || !strings.Contains(err.Error(), "must be refused") {
		t.Errorf("a Vault that refuses nobody: %v", err)
	}
	w := vaultLogin().wire(fakeSession(opLogin, 1))
	for status, want := range map[int]load.Outcome{
		400: load.Wrong, 403: load.Wrong, 404: load.Wrong, 429: load.Refused,
		472: load.Refused, 473: load.Refused, 500: load.Failed, 503: load.Refused,
	} {
		if got := w.Check(0, status, nil); got != want {
			t.Errorf("status %d: %v, want %v", status, got, want)
		}
	}
}

func TestHTTPToken(t *testing.T) {
	var mu sync.Mutex
	paths := map[string]bool{}
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		paths[r.URL.Path] = true
		mu.Unlock()
		if r.Header.Get("X-Api-Key") != planted || r.Header.Get("X-Plain") != "y" || !strings.Contains(string(body), `"token":"`+planted+`-2"`) {
			w.WriteHeader(403)
			return
		}
		w.WriteHeader(201)
		_, _ = io.WriteString(w, `{"data":{"token":"opaque","until":"`+time.Now().Add(time.Minute).Format(time.RFC3339)+`"}}`)
	}))
	spec := &Spec{
		Adapter: "http-token", URL: url + "/base",
		SecretHeaders: map[string]area.Secret{"X-Api-Key": secretFile(t, "key", planted)},
		Headers:       map[string]string{"X-Plain": "y"},
		HTTP:          &HTTP{Path: "/t/{n}", Body: `{"token":"{token}","n":"{n}"}`, Token: "data.token", Expires: "data.until", Status: 201},
		Callers:       []Caller{{Token: secretFile(t, "token", planted+"-2")}},
	}
	tg := served(t, spec, 0)
	clear(paths)
	wantGoodCalls(t, tg, 4)
	if len(paths) != 4 {
		t.Errorf("four cold calls went to %v", paths)
	}
}

// TestHTTPStatusOnly: a page that is no token is good by its status, and the report says that nothing else was judged.
func TestHTTPStatusOnly(t *testing.T) {
	s := fakeSession(opToken, 1)
	s.spec = &Spec{HTTP: &HTTP{StatusOnly: true}}
	w := httpToken().wire(s)
	for status, want := range map[int]load.Outcome{
		200: load.OK, 204: load.Wrong, 404: load.Wrong, 429: load.Refused, 500: load.Failed,
	} {
		if got := w.Check(0, status, []byte("<p>a page\n")); got != want {
			t.Errorf("status %d: %v, want %v", status, got, want)
		}
	}
	page := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<p>a page\n")
	}))
	tg, _ := prepared(t, &Spec{Adapter: "http-token", URL: page, HTTP: &HTTP{StatusOnly: true}}, standard)
	wantGoodCalls(t, tg, 2)
	if notes := strings.Join(tg.Notes(), "\n"); !strings.Contains(notes, "status 200 is good, whatever its body is") {
		t.Errorf("no note says that bodies are not judged:\n%s", notes)
	}
}

// TestNoTokenHasANextStep: where http-token expects a token and gets a page, the error says what to set.
func TestNoTokenHasANextStep(t *testing.T) {
	page := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<p>a page\n")
	}))
	for adapter, want := range map[AdapterName]bool{"http-token": true, "gce-metadata": false} {
		err := unprepared(t, &Spec{Adapter: adapter, URL: page})
		if hint := area.HintOf(err); strings.Contains(hint, "target.http.status_only=true") != want {
			t.Errorf("%s: %v, next: %q", adapter, err, hint)
		}
	}
}

func TestLifetime(t *testing.T) {
	const now = 1_800_000_000
	for value, want := range map[string]verdict{
		"300": noCause, "0": hasExpired, "-1": hasExpired, "1800000001": noCause, "1800000000": hasExpired, `"300"`: noCause, "300.5": noCause, "0.5": noCause, "-0.5": hasExpired, "-0": hasExpired, "3e2": noCause, `"3.5e2"`: noCause, "1e999": noLifetime,
		"99999999999999999999": noCause, "-99999999999999999999": hasExpired, "18e8": hasExpired, "0300": noLifetime,
		"1799999999.5": hasExpired, "1800000000.5": noCause,
		`"2027-01-15T08:00:01Z"`: noCause, `"2027-01-15T08:00:00Z"`: hasExpired, `"2027-01-15T09:00:01+01:00"`: noCause, `"soon"`: noLifetime, "null": noLifetime, "{}": noLifetime, "": noLifetime,
	} {
		if got := lifetime([]byte(value), now); got != want {
			t.Errorf("%s: %d, want %d", value, got, want)
		}
	}
}

// planted must be in no error, finding, note or print.
const planted = "s3cr3t-planted-in-the-test"

// An oauthServer issues tokens to clients that prove themselves.
type oauthServer struct {
	clients map[string]string // secret by client
	tokens  map[string]string // subject by token that may be exchanged
	audit   func(r *http.Request)
	// claims changes what a token says; answer replaces a good answer. Either may be nil.
	claims func(c map[string]any)
	answer func(w http.ResponseWriter) bool
	lax    bool // everybody gets a token
	issued atomic.Int64
}

func (o *oauthServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if o.audit != nil {
		o.audit(r)
	}
	refuse := func(status int, code string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"error":%q,"error_description":"no"}`, code)
	}
	if r.Method != http.MethodPost || r.ParseForm() != nil ||
		r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		refuse(400, "invalid_request")
		return
	}
	client, secret, basic := r.BasicAuth()
	if !basic {
		client, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	subject := "subject-of-" + client
	if want, ok := o.clients[client]; !o.lax && (!ok || want != secret) {
		refuse(401, "invalid_client")
		return
	}
	if r.PostForm.Get("grant_type") != "client_credentials" {
		var ok bool
		if subject, ok = o.tokens[r.PostForm.Get("subject_token")]; !ok ||
			r.PostForm.Get("subject_token_type") != "urn:ietf:params:oauth:token-type:access_token" {
			refuse(400, "invalid_grant")
			return
		}
	}
	if o.answer != nil && o.answer(w) {
		return
	}
	claims := map[string]any{
		"iss": "http://issuer", "sub": subject, "aud": []string{"other", r.PostForm.Get("audience")},
		"exp": time.Now().Add(5 * time.Minute).Unix(),
		"jti": o.issued.Add(1),
	}
	if o.claims != nil {
		o.claims(claims)
	}
	b, _ := json.Marshal(claims)
	_, _ = fmt.Fprintf(w, `{"access_token":%q,"expires_in":300,"token_type":"Bearer","scope":"x"}`, rawJWT(b))
}

// rawJWT is a JWT with a signature that nobody checks.
func rawJWT(claims []byte) string {
	return encode([]byte(`{"alg":"RS256"}`)) + "." + encode(claims) + "." + encode([]byte("signature"))
}

// A vaultServer has one user per method.
type vaultServer struct {
	entity func(name string) string
	lax    bool
	lease  int
	issued atomic.Int64
}

func (v *vaultServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var form map[string]string
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&form) != nil {
		w.WriteHeader(405)
		return
	}
	name, secret := form["role"], form["jwt"]
	user, isUser := strings.CutPrefix(r.URL.Path, "/v1/auth/userpass/login/")
	switch r.URL.Path {
	case "/prefix/v1/auth/apps/login":
		name, secret = form["role_id"], form["secret_id"]
	case "/v1/auth/userpass/login/" + user:
		name, secret = user, form["password"]
		if user == "" || !isUser {
			secret = ""
		}
	case "/v1/auth/kubernetes/login", "/v1/auth/jwt/login":
	default:
		w.WriteHeader(404)
		return
	}
	if !v.lax && (name != "robot" && name != "other" || secret != planted && secret != planted+"-2") {
		w.WriteHeader(400)
		_, _ = fmt.Fprintf(w, `{"errors":["invalid %s"]}`, secret)
		return
	}
	entity := "entity-" + name
	if v.entity != nil {
		entity = v.entity(name)
	}
	_, _ = fmt.Fprintf(w, `{"lease_duration":0,"data":null,"auth":{"client_token":"hvs.%d","entity_id":%q,"lease_duration":%d,"renewable":true}}`, v.issued.Add(1), entity, v.lease)
}

// A certificates folder holds an authority, and a server's and a client's certificate.
type certificates struct {
	ca, cert, key string // files; cert and key are the client's
	server        tls.Certificate
	pool          *x509.CertPool
}

// issueCertificates issues certificates; the server's is for name and the loopback address, until expires.
func issueCertificates(t testing.TB, name string, expires time.Time) certificates {
	t.Helper()
	dir := t.TempDir()
	write := func(file, kind string, der []byte) string {
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	newKey := func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	rootKey, serverKey, clientKey := newKey(), newKey(), newKey()
	issue := func(serial int64, tmpl *x509.Certificate, key *ecdsa.PrivateKey) []byte {
		tmpl.SerialNumber, tmpl.NotBefore = big.NewInt(serial), time.Now().Add(-48*time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, tmpl, root, &key.PublicKey, rootKey)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	p := certificates{pool: x509.NewCertPool()}
	ca := issue(1, root, rootKey)
	p.ca = write("ca.pem", "CERTIFICATE", ca)
	parsed, err := x509.ParseCertificate(ca)
	if err != nil {
		t.Fatal(err)
	}
	p.pool.AddCert(parsed)
	server := &x509.Certificate{
		DNSNames: []string{name}, NotAfter: expires, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if name == "localhost" {
		server.IPAddresses = []net.IP{net.ParseIP("127.0.0.1")}
	}
	p.server = tls.Certificate{PrivateKey: serverKey, Certificate: [][]byte{issue(2, server, serverKey)}}
	p.cert = write("client.pem", "CERTIFICATE", issue(3, &x509.Certificate{
		Subject: pkix.Name{CommonName: "robot"}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, clientKey))
	der, err := x509.MarshalECPrivateKey(clientKey)
	if err != nil {
		t.Fatal(err)
	}
	p.key = write("client.key", "EC PRIVATE KEY", der)
	return p
}

// serveTLS serves h over TLS; strict requires a client certificate.
func serveTLS(t testing.TB, p certificates, strict bool, h http.Handler) string {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{p.server}, MinVersion: tls.VersionTLS12, ClientCAs: p.pool}
	if strict {
		srv.TLS.ClientAuth = tls.RequireAndVerifyClientCert
	}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv.URL
}
