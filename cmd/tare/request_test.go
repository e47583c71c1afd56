package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"tare/internal/cli"
	"tare/rigs/hosttest"
)

// requested starts a server behind TLS that answers one request only, and refuses whoever lacks its credentials.
func requested() *httptest.Server {
	return httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.Header.Get("Authorization") != "Bearer hunter2-token" || r.Header.Get("X-Api-Key") != "hunter2-key":
			w.WriteHeader(http.StatusUnauthorized)
		case r.Method != http.MethodPut || r.Header.Get("Accept") != "text/x" || string(body) != "a=1&{b}" ||
			r.Header.Get("Content-Type") != "application/x-www-form-urlencoded":
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
}

// certified starts a server that talks only to clients with a certificate.
func certified() *httptest.Server {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	return s
}

// writeCertificate writes the certificate of a server to NAME.pem, and its key to NAME.key.
func writeCertificate(ts *testscript.TestScript, s *httptest.Server, name string) {
	key, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	ts.Check(err)
	for file, block := range map[string]*pem.Block{
		name + ".pem": {Type: "CERTIFICATE", Bytes: s.Certificate().Raw},
		name + ".key": {Type: "PRIVATE KEY", Bytes: key},
	} {
		ts.Check(os.WriteFile(ts.MkAbs(file), pem.EncodeToMemory(block), 0o600))
	}
}

// TestNoSecretOfACommandLineIsWritten: secrets that a command line names by their place reach the server and nothing
// else, even if the server sends them back. A literal one is refused before there is a record.
func TestNoSecretOfACommandLineIsWritten(t *testing.T) {
	hosttest.SkipIfShort(t)
	needsAreas(t, "identity")
	t.Parallel()
	for _, mode := range append([]string{"good"}, echoModes...) {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newSecretRoom(t, "")
			var seen atomic.Int64
			echo := r.echoServer(mode)
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				body, _ := io.ReadAll(q.Body)
				if q.Header.Get("Authorization") != "Bearer "+r.secret || q.Header.Get("X-Api-Key") != r.secret ||
					string(body) != `x=1&{"password": "`+r.secret+`"}` {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				seen.Add(1)
				q.Body = io.NopCloser(strings.NewReader(string(body)))
				echo.ServeHTTP(w, q)
			}))
			defer server.Close()
			r.writeSecretFile("body", fmt.Sprintf("{\"password\": \"%s\"}\n", r.secret))
			args := []string{
				"-v", "capacity", server.URL, "-k", "-H", "Authorization: Bearer @given/key", "-H", "X-Api-Key: env:PLANTED",
				"-d", "x=1", "-d", "@given/body", "--set", "load.rates=[10/s]", "--set", "load.duration=1s",
				"--set", "load.timeout=1s", "--write", "kept.yaml", "-o", "text", "-o", "json=r.json", "-o", "html=r.html",
			}
			if code := r.tareUntil(func() bool { return seen.Load() > 20 }, args...); code == cli.ExitUsage {
				t.Errorf("the command line was rejected, so nothing was tested\n%s", &r.said)
			}
			if seen.Load() == 0 {
				t.Errorf("no call had the secrets, so nothing was tested\n%s", &r.said)
			}
			if _, err := os.Stat(filepath.Join(r.dir, "kept.yaml")); err != nil {
				t.Error(err)
			}
			r.runReaders()
			r.searchSecret()
		})
	}
	r := newSecretRoom(t, "")
	for _, flags := range [][]string{
		{"-H", "Authorization: Bearer " + r.secret},
		{"-H", "X-Api-Key:" + r.secret},
		{"-H", "Cookie: session=" + r.secret},
		{"-d", `{"password": "` + r.secret + `"}`},
		{"-d", "user=me", "-d", "client_secret=" + r.secret},
	} {
		line := []string{"capacity", "http://127.0.0.1:1", "--max-rate", "10/s", "--write", "kept.yaml"}
		c := r.command(t.Context(), append(line, flags...)...)
		said, _ := c.CombinedOutput()
		r.said.Write(said)
		if code := c.ProcessState.ExitCode(); code != cli.ExitUsage || !strings.Contains(string(said), "@FILE") {
			t.Errorf("%s with a literal secret: exit %d, want a rejection that names @FILE\n%s", flags[0], code, said)
		}
	}
	r.searchSecret()
}
