package cluster

import (
	"context"
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
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/internal/clock"
	"tare/internal/kit"
)

// certificate returns a self-signed certificate and its key in PEM.
func certificate(t *testing.T) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	x := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "jane"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, x, x, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

func writeFile(t *testing.T, dir, name string, text []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), text, mode); err != nil {
		t.Fatal(err)
	}
}

// TestCredentials: each kind of credential reaches the server, in tare's own requests and in the headers for the load.
func TestCredentials(t *testing.T) {
	cert, key := certificate(t)
	b64 := base64.StdEncoding.EncodeToString
	for _, c := range []struct {
		name, user string
		want       map[string]string
		cert       bool
	}{
		{name: "token", user: "token: abcdef", want: map[string]string{"Authorization": "Bearer abcdef"}},
		{name: "token file", user: "tokenFile: token", want: map[string]string{"Authorization": "Bearer from-a-file"}},
		{name: "password", user: "username: jane, password: passw0rd", want: map[string]string{"Authorization": "Basic " +
			b64([]byte("jane:passw0rd"))}},
		{
			name: "impersonation", user: `token: abcdef, as: john, as-groups: [one, two], as-uid: "7", as-user-extra: {scope: [x]}`,
			want: map[string]string{
				"Authorization": "Bearer abcdef", "Impersonate-User": "john", "Impersonate-Group": "one,two",
				"Impersonate-Uid": "7", "Impersonate-Extra-Scope": "x",
			},
		},
		{name: "certificate", user: fmt.Sprintf("client-certificate-data: %q, client-key-data: %q", b64(cert),
			b64(key)), cert: true},
		{name: "certificate files", user: "client-certificate: cert, client-key: key", cert: true},
		{name: "plugin", user: pluginUser("says-token"), want: map[string]string{"Authorization": "Bearer of-the-plugin"}},
		{name: "plugin with a certificate", user: pluginUser("says-pair"), cert: true},
		{name: "nobody", user: ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startFakeServer(t)
			s.server.TLS.ClientAuth = tls.RequestClientCert
			peers := make(chan int, 8)
			s.first = func(_ http.ResponseWriter, r *http.Request) bool { peers <- len(r.TLS.PeerCertificates); return false }
			path := write(t, kubeconfig(s.server.URL, s.ca(), c.user))
			dir := filepath.Dir(path)
			writeFile(t, dir, "token", []byte("from-a-file\n"), 0o600)
			writeFile(t, dir, "cert", cert, 0o600)
			writeFile(t, dir, "key", key, 0o600)
			writePlugins(t, dir, cert, key)
			k := connect(t, Options{Run: "run-1", Kubeconfig: path})
			if _, err := k.Version(t.Context()); err != nil {
				t.Fatal(err)
			}
			header, err := k.Header(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			secure, err := k.TLS()
			if err != nil {
				t.Fatal(err)
			}
			tr := &http.Transport{TLSClientConfig: secure, ForceAttemptHTTP2: true}
			defer tr.CloseIdleConnections()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.server.URL+"/version", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			r.Header = header
			res, err := tr.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			for i, h := range s.headers {
				for _, name := range []string{
					"Authorization", "Impersonate-User", "Impersonate-Group", "Impersonate-Uid",
					"Impersonate-Extra-Scope",
				} {
					if got := strings.Join(h.Values(name), ","); got != c.want[name] {
						t.Errorf("request %d: %s is %q, want %q", i, name, got, c.want[name])
					}
				}
				if n := <-peers; (n > 0) != c.cert {
					t.Errorf("request %d came with %d certificates, want one: %v", i, n, c.cert)
				}
			}
			if len(s.headers) != 2 {
				t.Errorf("%d requests, want 2", len(s.headers))
			}
		})
	}
}

// pluginUser is a user whose credentials come from a program beside the kubeconfig.
func pluginUser(name string) string {
	return fmt.Sprintf("exec: {apiVersion: client.authentication.k8s.io/v1, command: ./%s, interactiveMode: "+
		"IfAvailable, provideClusterInfo: true, env: [{name: GREETING, value: hello}]}", name)
}

// writePlugins writes programs that answer as plugins do, or fail to.
func writePlugins(t *testing.T, dir string, cert, key []byte) {
	t.Helper()
	pair, err := json.Marshal(map[string]any{
		"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
		"status": map[string]any{"clientCertificateData": string(cert), "clientKeyData": string(key)},
	})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "pair.json", pair, 0o600)
	head := `{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {`
	for name, script := range map[string]string{
		"says-token": `test "$GREETING" = hello && case "$KUBERNETES_EXEC_INFO" in *https://127.0.0.1*) echo '` + head +
			`"token": "of-the-plugin"}}';; esac`,
		"says-pair": "cat " + filepath.Join(dir, "pair.json"),
		"fails":     "echo secret-on-stderr >&2; echo secret-on-stdout; exit 3",
		"garbage":   "echo secret-garbage",
		"empty":     "echo '" + head + "}}'",
		"other":     `echo '{"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential", "status": {"token": "secret"}}'`,
		"half":      "echo '" + head + `"clientCertificateData": "secret-half"}}'`,
		"broken":    "echo '" + head + `"clientCertificateData": "secret-half", "clientKeyData": "secret-key"}}'`,
		"endless":   "yes secret",
		"hangs":     "exec sleep 600",
		"counts": fmt.Sprintf(`echo x >> %s; echo '%s"token": "token-'$(wc -l < %[1]s | tr -d ' ')'", "expirationTimestamp": "2030-01-01T00:00:00Z"}}'`,
			filepath.Join(dir, "count"), head),
	} {
		writeFile(t, dir, name, []byte("#!/bin/sh\n"+script+"\n"), 0o700)
	}
}

func TestPluginsThatFail(t *testing.T) {
	cert, key := certificate(t)
	s := startFakeServer(t)
	for name, want := range map[string]string{
		"fails": "exit status 3", "garbage": "not an ExecCredential", "empty": "neither a token nor",
		"other": "not an ExecCredential of",
		"half":  "without its key", "broken": "do not belong together", "endless": `exec plugin`, "missing": "exec plugin",
	} {
		path := write(t, kubeconfig(s.server.URL, s.ca(), pluginUser(name)))
		writePlugins(t, filepath.Dir(path), cert, key)
		_, err := New(t.Context(), Options{Run: "run-1", Kubeconfig: path})
		wantError(t, err, "here", path, want, name)
		if strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%s: the error contains the secret: %v", name, err)
		}
	}
	path := write(t, kubeconfig(s.server.URL, s.ca(), pluginUser("hangs")))
	writePlugins(t, filepath.Dir(path), cert, key)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := New(ctx, Options{Run: "run-1", Kubeconfig: path})
	wantError(t, err, "in time", "hangs")
	always := strings.Replace(pluginUser("says-token"), "IfAvailable", "Always", 1)
	_, err = New(t.Context(), Options{Run: "run-1", Kubeconfig: write(t, kubeconfig(s.server.URL, s.ca(), always))})
	wantError(t, err, "interactiveMode")
	if n := s.count(""); n > 0 {
		t.Errorf("%d requests without credentials", n)
	}
}

// TestPluginIsAskedAgain when its credential expires or the server rejects it, and not before.
func TestPluginIsAskedAgain(t *testing.T) {
	s := startFakeServer(t)
	path := write(t, kubeconfig(s.server.URL, s.ca(), pluginUser("counts")))
	writePlugins(t, filepath.Dir(path), nil, nil)
	clk := clock.NewFake(time.Date(2029, 12, 31, 0, 0, 0, 0, time.UTC))
	c := connect(t, Options{Run: "run-1", Kubeconfig: path, Clock: clk})
	got := func() string {
		h, err := c.Header(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return h.Get("Authorization")
	}
	for _, want := range []string{"Bearer token-1", "Bearer token-1"} {
		if g := got(); g != want {
			t.Errorf("%q, want %q", g, want)
		}
	}
	clk.Advance(48 * time.Hour)
	if g := got(); g != "Bearer token-2" {
		t.Errorf("%q after the end of the first", g)
	}
	clk.Advance(-48 * time.Hour)
	s.first = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer token-2" {
			status(w, 401, "Unauthorized", "no "+r.Header.Get("Authorization"))
			return true
		}
		return false
	}
	_, err := c.Version(t.Context())
	wantError(t, err, "no Bearer [credential]")
	if _, err := c.Version(t.Context()); err != nil {
		t.Errorf("with a new credential: %v", err)
	}
}

func TestInsecureClustersAreReported(t *testing.T) {
	s := startFakeServer(t)
	text := strings.Replace(kubeconfig(s.server.URL, nil, "token: "+token), `certificate-authority-data: ""`,
		"insecure-skip-tls-verify: true", 1)
	c := connect(t, Options{Run: "run-1", Kubeconfig: write(t, text)})
	if _, err := c.Version(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(c.Notes(), ""); got != kit.NoteInsecure {
		t.Errorf("the notes are %q", got)
	}
	if c.Location().CA != "" {
		t.Errorf("authority %q, and none is trusted", c.Location().CA)
	}
}
