package plane

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestVerified has a server with a plane's certificate asked by clients that know its authority, or another one.
func TestVerified(t *testing.T) {
	ours, err := newAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := newAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := ours.server(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	// that a client does not trust it is as wanted
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	defer s.Close()
	for _, c := range []struct {
		ca []byte
		ok bool
	}{{ours.pem, true}, {theirs.pem, false}} {
		client, err := newClient(c.ca)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Get(s.URL)
		if (err == nil) != c.ok {
			t.Errorf("error %v, want one: %v", err, !c.ok)
		}
		if err == nil {
			_ = res.Body.Close()
		}
		client.CloseIdleConnections()
	}
	if _, err := newClient([]byte("no certificate")); err == nil {
		t.Error("a client without an authority")
	}
}

func TestCertificates(t *testing.T) {
	now := time.Now()
	a, err := newAuthority(now)
	if err != nil {
		t.Fatal(err)
	}
	text, key, err := a.server(now)
	if err != nil {
		t.Fatal(err)
	}
	cert := parse(t, text)
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	for _, c := range []struct {
		name string
		at   time.Time
		ok   bool
	}{
		{"127.0.0.1", now, true},
		{"localhost", now, true},
		{"kubernetes.default.svc", now, true},
		{"127.0.0.2", now, false},
		{"example.org", now, false},
		{"127.0.0.1", now.Add(20 * 24 * time.Hour), true},
		{"127.0.0.1", now.Add(40 * 24 * time.Hour), false},
		{"127.0.0.1", now.Add(-2 * time.Hour), false},
	} {
		_, err := cert.Verify(x509.VerifyOptions{DNSName: c.name, Roots: roots, CurrentTime: c.at})
		if (err == nil) != c.ok {
			t.Errorf("%s at %v: %v, want an error: %v", c.name, c.at.Sub(now), err, !c.ok)
		}
	}
	if cert.IsCA || !a.cert.IsCA || cert.SerialNumber.Cmp(a.cert.SerialNumber) == 0 {
		t.Error("a server's certificate is that of an authority, or has its number")
	}
	b, _ := pem.Decode(key)
	private, err := x509.ParseECPrivateKey(b.Bytes)
	if err != nil || !private.PublicKey.Equal(cert.PublicKey) {
		t.Errorf("the key does not belong to the certificate: %v", err)
	}
}

func parse(t *testing.T, text []byte) *x509.Certificate {
	t.Helper()
	b, rest := pem.Decode(text)
	if b == nil || len(rest) != 0 {
		t.Fatalf("%q is no certificate", text)
	}
	cert, err := x509.ParseCertificate(b.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestServiceAccountKey(t *testing.T) {
	key, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	text, err := encodePublic(key)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := pem.Decode(text)
	got, err := x509.ParsePKIXPublicKey(b.Bytes)
	if p, ok := got.(*ecdsa.PublicKey); err != nil || !ok || !p.Equal(&key.PublicKey) {
		t.Errorf("another key: %v, %v", got, err)
	}
}
