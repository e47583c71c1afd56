package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tare/rigs/hosttest"
)

// What is planted. None of it may be found anywhere but in memory and on the wire.
const (
	plantedEnv    = "Pl4nted-env-secret-c0ffee&+/%"
	plantedFile   = "Pl4nted-file-secret-decade"
	plantedAnswer = "Pl4nted-access-token-facade"
)

// secretForms returns the secrets in the forms that they take on the wire and in its encodings.
func secretForms() []string {
	out := []string{plantedEnv, plantedFile, plantedAnswer, url.QueryEscape(plantedEnv)}
	for _, userinfo := range []string{"weigher:" + plantedEnv, "weigher:" + url.QueryEscape(plantedEnv)} {
		out = append(out, base64.StdEncoding.EncodeToString([]byte(userinfo)))
	}
	for _, s := range []string{plantedEnv, plantedFile, plantedAnswer} {
		out = append(out, base64.StdEncoding.EncodeToString([]byte(s))[:12], fmt.Sprintf("%x", s)[:24])
	}
	return append(out, "Pl4nted") // the rest of a truncated secret
}

// A leakyEndpoint is a token endpoint that sends every secret back in the way that its mode says. seen counts requests
// with the right secrets.
type leakyEndpoint struct {
	mode string
	seen atomic.Int64
	good int64 // answers that are good before the mode begins
}

func (l *leakyEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	dump, _ := httputil.DumpRequest(r, true)
	_, secret, _ := r.BasicAuth()
	if s, err := url.QueryUnescape(secret); err != nil || s != plantedEnv || r.Header.Get("X-Api-Key") != plantedFile {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":"invalid_client"}`))
		return
	}
	mode := l.mode
	if l.seen.Add(1) <= l.good {
		mode = "good"
	}
	echo := string(dump) + plantedAnswer
	switch mode {
	case "good":
		_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":300}`, plantedAnswer)
	case "echo":
		w.Header().Set("Www-Authenticate", "Bearer realm="+plantedAnswer)
		http.Error(w, echo, http.StatusInternalServerError)
	case "redirect":
		w.Header().Set("Location", "http://127.0.0.1:1/"+plantedAnswer+"?secret="+url.QueryEscape(plantedEnv))
		w.WriteHeader(http.StatusFound)
	case "no-json":
		_, _ = w.Write([]byte(echo))
	case "not-http":
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_, _ = conn.Write([]byte(plantedAnswer + " " + plantedEnv + "\r\n\r\n" + echo))
			_ = conn.Close()
		}
	}
}

const secretExperiment = `name: secret
area: identity
question: capacity
target:
  adapter: oidc-token
  url: %s
  secret_headers: {X-Api-Key: {file: key}}
  oidc: {client_id: weigher, client_secret: {env: PLANTED}}
load: {rates: [20/s, 40/s], duration: 2s, timeout: 2s}
budget: ["response.p99 <= 500ms at 20/s"]
seed: 1
`

// TestNoSecretIsWritten runs against endpoints that send secrets back in every way, and looks for them in everything
// that the runs leave.
func TestNoSecretIsWritten(t *testing.T) {
	hosttest.SkipIfShort(t)
	needsAreas(t, "identity")
	t.Parallel()
	bin := tareBinary(t)
	// Each mostly waits for an endpoint that stays broken, so they run in parallel.
	var all sync.WaitGroup
	defer all.Wait()
	for _, x := range []struct {
		mode string
		good int64 // answers before that: 0 is broken from the beginning, otherwise under load only
	}{{"good", 0}, {"echo", 0}, {"echo", 12}, {"redirect", 12}, {"no-json", 12}, {"not-http", 0}, {"not-http", 12}} {
		secrets := func(t *testing.T) {
			l := &leakyEndpoint{mode: x.mode, good: x.good}
			server := httptest.NewServer(l)
			defer server.Close()
			dir := secretDir(t, fmt.Sprintf(secretExperiment, server.URL))
			said := secretRun(t, bin, dir, "-v", "run", "x.yaml", "-o", "text", "-o", "json=r.json", "-o", "yaml=r.yaml", "-o",
				"markdown=r.md",
				"-o", "html=r.html", "-o", "junit=r.xml", "-o", "sarif=r.sarif", "-o", "openmetrics=r.prom")
			if l.seen.Load() == 0 {
				t.Fatalf("no call with the secrets reached the endpoint, so nothing was tested\n%s", said)
			}
			for _, args := range [][]string{{"validate", "x.yaml"}, {"plan", "--try", "x.yaml"}, {"list", "runs"}} {
				said = append(said, secretRun(t, bin, dir, args...)...)
			}
			records, _ := filepath.Glob(filepath.Join(dir, "results", "*"))
			if len(records) != 1 {
				t.Fatalf("%d records, want 1\n%s", len(records), said)
			}
			said = append(said, secretRun(t, bin, dir, "report", records[0], "-o", "json")...)
			said = append(said, secretRun(t, bin, dir, "undo", records[0])...)
			noSecret(t, "output", said)
			noSecretBelow(t, dir)
		}
		all.Go(func() { t.Run(fmt.Sprintf("%s after %d", x.mode, x.good), secrets) })
	}
}

// TestNoSecretInACoreDump crashes a run in a way that makes Go leave a core dump.
func TestNoSecretInACoreDump(t *testing.T) {
	needsAreas(t, "identity")
	bin := tareBinary(t)
	l := &leakyEndpoint{mode: "good"}
	server := httptest.NewServer(l)
	defer server.Close()
	dir := secretDir(t, fmt.Sprintf(secretExperiment, server.URL))
	run := exec.CommandContext(t.Context(), "sh", "-c", "ulimit -c unlimited; exec "+bin+" run x.yaml")
	run.Dir, run.Env = dir, append(os.Environ(), "PLANTED="+plantedEnv, "GOTRACEBACK=crash")
	var said bytes.Buffer
	run.Stdout, run.Stderr = &said, &said
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); l.seen.Load() < 20 && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	if err := run.Process.Signal(syscall.SIGABRT); err != nil {
		t.Fatal(err)
	}
	err := run.Wait()
	if l.seen.Load() < 20 || err == nil || !strings.Contains(said.String(), "SIGABRT") {
		t.Fatalf("the run did not crash under load (%d calls, %v):\n%s", l.seen.Load(), err, said.String())
	}
	if state, ok := run.ProcessState.Sys().(syscall.WaitStatus); ok && state.CoreDump() {
		t.Error("the crash left a core dump")
	}
	noSecret(t, "output", said.Bytes())
	noSecretBelow(t, dir)
}

func secretDir(t *testing.T, experiment string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"x.yaml": experiment, "key": plantedFile + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// secretRun runs tare and returns everything that it printed.
func secretRun(t *testing.T, bin, dir string, args ...string) []byte {
	t.Helper()
	c := exec.CommandContext(t.Context(), bin, args...)
	c.Dir, c.Env = dir, append(os.Environ(), "PLANTED="+plantedEnv)
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return out
}

func noSecret(t *testing.T, where string, b []byte) {
	t.Helper()
	for _, s := range secretForms() {
		if i := bytes.Index(b, []byte(s)); i >= 0 {
			t.Errorf("%s holds a secret: …%s…", where, b[max(0, i-80):min(len(b), i+80)])
			return
		}
	}
}

// noSecretBelow reads every file below dir except the one that holds the secret.
func noSecretBelow(t *testing.T, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == filepath.Join(dir, "key") {
			return err
		}
		b, err := os.ReadFile(path)
		noSecret(t, path, b)
		files++
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 3 {
		t.Errorf("only %d files were read", files)
	}
}

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
		dir := secretDir(t, fmt.Sprintf(secretBodyExperiment, server.URL))
		said := secretRun(t, bin, dir, "-v", "run", "x.yaml", "-o", "text", "-o", "json=r.json", "-o", "html=r.html")
		server.Close()
		if seen.Load() < 12 {
			t.Errorf("the endpoint saw %d calls with the secrets\n%s", seen.Load(), said)
		}
		noSecret(t, "output", said)
		noSecretBelow(t, dir)
	}
}

// TestExposedSecretsAreReported: whoever runs tare is warned, and so is whoever reads the report. A secret file that
// others can write stops the run.
func TestExposedSecretsAreReported(t *testing.T) {
	hosttest.SkipIfShort(t)
	needsAreas(t, "identity")
	t.Parallel()
	bin := tareBinary(t)
	l := &leakyEndpoint{mode: "good"}
	server := httptest.NewServer(l)
	defer server.Close()
	dir := secretDir(t, strings.NewReplacer("[20/s, 40/s]", "[20/s]", "duration: 2s", "duration: 1s").Replace(
		fmt.Sprintf(secretExperiment, server.URL)))
	key := filepath.Join(dir, "key")
	mode := func(m os.FileMode) {
		if err := os.Chmod(key, m); err != nil {
			t.Fatal(err)
		}
	}
	mode(0o622)
	if said := string(secretRun(t, bin, dir, "run", "x.yaml")); !strings.Contains(said, "other users can write key") ||
		!strings.Contains(said, "chmod 600 key") || l.seen.Load() > 0 {
		t.Errorf("%d calls were made with a secret file that others can write:\n%s", l.seen.Load(), said)
	}
	mode(0o644)
	said := string(secretRun(t, bin, dir, "run", "x.yaml", "-o", "text", "-o", "json=r.json"))
	if !strings.Contains(said, "warning  other users can read the file with secrets key") ||
		!strings.Contains(said, "next: chmod 600 key") {
		t.Errorf("no warning:\n%s", said)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "r.json")); err != nil ||
		!strings.Contains(string(b), "other users can read the file with secrets key") {
		t.Errorf("the report lacks the warning: %v\n%s", err, b)
	}
	noSecretBelow(t, dir)
}
