package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

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
