package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"tare/rigs/hosttest"
)

const secretBodyExperiment = `name: secret-body
area: identity
question: capacity
target:
  adapter: http-token
  url: %s
  http:
    body: '{"user": "weigher", "password": "{pw}", "otp": "{otp}"}'
    secrets: {pw: {env: PLANTED}, otp: {file: key}}
load: {rates: [20/s], duration: 1s, timeout: 2s}
seed: 1
`

// TestNoSecretOfABodyIsWritten: a secret in a body reaches the endpoint and nothing else, even if the endpoint sends it
// back.
func TestNoSecretOfABodyIsWritten(t *testing.T) {
	hosttest.SkipIfShort(t)
	needsAreas(t, "identity")
	t.Parallel()
	bin := tareBinary(t)
	for _, echoes := range []bool{false, true} {
		var seen atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if !strings.Contains(string(body), `"`+plantedEnv+`"`) && !strings.Contains(string(body), `"`+strings.ReplaceAll(plantedEnv, "&", `\u0026`)+`"`) || !strings.Contains(string(body), plantedFile) {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			if seen.Add(1) > 12 && echoes {
				http.Error(w, string(body), http.StatusInternalServerError)
				return
			}
			_, _ = fmt.Fprintf(w, `{"access_token":%q}`, plantedAnswer)
		}))
		dir := secretDir(t, server.URL)
		if err := os.WriteFile(filepath.Join(dir, "x.yaml"), fmt.Appendf(nil, secretBodyExperiment, server.URL),
			0o600); err != nil {
			t.Fatal(err)
		}
		said := secretRun(t, bin, dir, "-v", "run", "x.yaml", "-o", "text", "-o", "json=r.json", "-o", "html=r.html")
		server.Close()
		if seen.Load() < 12 {
			t.Errorf("the endpoint saw %d calls with the secrets\n%s", seen.Load(), said)
		}
		noSecret(t, "output", said)
		noSecretBelow(t, dir)
	}
}

// TestLiteralSecretsStopARun before there is a record, and without printing them.
func TestLiteralSecretsStopARun(t *testing.T) {
	needsAreas(t, "identity")
	bin := tareBinary(t)
	for name, change := range map[string]func(string) string{
		"in a body": func(s string) string { return strings.Replace(s, "{pw}", plantedEnv, 1) },
		"in a JWT":  func(s string) string { return strings.Replace(s, `"password": "{pw}"`, `"jwt": "`+plantedEnv+`"`, 1) },
		"in a header": func(s string) string {
			return strings.Replace(s, "  http:\n", "  headers: {X-Api-Key: "+plantedEnv+"}\n  http:\n", 1)
		},
		"in a cookie": func(s string) string {
			return strings.Replace(s, "  http:\n", "  headers:\n    Cookie: "+plantedEnv+"\n  http:\n", 1)
		},
		"in the query": func(s string) string {
			return strings.Replace(s, "    body:", "    path: /?code="+plantedFile+"&api_key="+plantedFile+"\n    body:", 1)
		},
		"for a place": func(s string) string { return strings.Replace(s, "{env: PLANTED}", plantedFile, 1) },
	} {
		dir := secretDir(t, "http://127.0.0.1:1")
		if err := os.WriteFile(filepath.Join(dir, "x.yaml"),
			[]byte(change(fmt.Sprintf(secretBodyExperiment, "http://127.0.0.1:1"))), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"validate", "x.yaml"}, {"plan", "--try", "x.yaml"}, {"run", "x.yaml"}} {
			said := secretRun(t, bin, dir, args...)
			if !strings.Contains(string(said), "secret") && !strings.Contains(string(said), "must not hold one") {
				t.Errorf("%s: %v printed no rejection of the secret: %s", name, args, said)
			}
			noSecret(t, name+": "+args[0], said)
		}
		if records, _ := filepath.Glob(filepath.Join(dir, "results", "*")); len(records) > 0 {
			t.Errorf("%s: the rejected experiment has a record: %v", name, records)
		}
	}
}
