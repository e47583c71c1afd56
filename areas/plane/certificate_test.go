package plane

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/csv"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
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

func written(t *testing.T) *secrets {
	t.Helper()
	s := &secrets{dir: filepath.Join(t.TempDir(), "s")}
	if err := s.write(time.Now()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTokens(t *testing.T) {
	s := written(t)
	file, err := os.Open(s.path(tokenFile))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()       //nolint:errcheck // nothing that could be lost
	r := csv.NewReader(file) // as kube-apiserver reads it
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	groups, seen := map[string]string{}, map[string]bool{}
	for _, row := range rows {
		if len(row[0]) < 26 || seen[row[0]] || seen[row[2]] {
			t.Errorf("token or uid of %s is short, or another's", row[1])
		}
		seen[row[0]], seen[row[2]] = true, true
		groups[row[1]] = strings.Join(row[3:], ",")
	}
	want := map[string]string{
		AdminUser: masters, NodesUser: masters, CallerUser: "", "system:kube-scheduler": "",
		"system:kube-controller-manager": "",
	}
	if d := cmp.Diff(want, groups); d != "" {
		t.Error(d)
	}
	other := written(t)
	if other.admin == s.admin || other.caller == s.caller {
		t.Error("two planes have the same token")
	}
}

func TestKubeconfigs(t *testing.T) {
	s := written(t)
	if err := s.kubeconfigs("https://127.0.0.1:12345"); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string][2]string{
		adminFile:      {AdminUser, s.admin},
		schedulerFile:  {"system:kube-scheduler", s.scheduler},
		controllerFile: {"system:kube-controller-manager", s.controller},
	} {
		text, err := os.ReadFile(s.path(file))
		if err != nil {
			t.Fatal(err)
		}
		var got connection
		if err := yaml.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		var name string
		for _, c := range got.Contexts {
			if c.Name == got.Current {
				name = c.Context.User
			}
			if c.Context.Cluster != got.Clusters[0].Name {
				t.Errorf("%s: cluster %q is not there", file, c.Context.Cluster)
			}
		}
		if name != want[0] || got.Users[0].Name != name || got.Users[0].User.Token != want[1] {
			t.Errorf("%s is for %q with token %q, want %v", file, name, got.Users[0].User.Token, want)
		}
		ca, err := base64.StdEncoding.DecodeString(got.Clusters[0].Cluster.CA)
		if err != nil || !parse(t, ca).Equal(s.ca.cert) {
			t.Errorf("%s: not the plane's authority: %v", file, err)
		}
		if got.Clusters[0].Cluster.Server != "https://127.0.0.1:12345" || strings.Contains(string(text), "insecure") {
			t.Errorf("%s: %s", file, text)
		}
		if info, err := os.Stat(s.path(file)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: mode %v, %v", file, info.Mode(), err)
		}
	}
}

func TestSecretFolderIsNobodyElses(t *testing.T) {
	s := written(t)
	if err := (&secrets{dir: s.dir}).write(time.Now()); err == nil {
		t.Error("a folder that was there already was taken for one's own")
	}
	a, b := secretFolder(), secretFolder()
	if a == b || !isPlaneFolder(a) || filepath.Dir(a) != filepath.Dir(b) {
		t.Errorf("folders %q and %q", a, b)
	}
}
