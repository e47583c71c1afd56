package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/internal/analyze"
	"tare/internal/cli"
	"tare/internal/report"
	"tare/internal/signature"
	"tare/rigs/hosttest"
)

func runOnce(t *testing.T, bin, experiment string) (*report.Report, string) {
	t.Helper()
	dir := folderWith(t, experiment)
	cmd := exec.CommandContext(t.Context(), bin, "run", "x.yaml", "-o", "json=report.json", "-o", "text")
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); err != nil && code != cli.ExitInvalid && code != analyze.ExitInconclusive {
		t.Fatalf("tare run: %v\n%s", err, &out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rep report.Report
	if err := json.Unmarshal(b, &rep); err != nil {
		t.Fatal(err)
	}
	if len(rep.Capacity) != 1 {
		t.Fatalf("capacity has %d results, want 1", len(rep.Capacity))
	}
	return &rep, out.String()
}

// TestSearches searches the reference endpoint in its presets, and a real rate limiter, which is not ours, each once
// and all at the same time. Whether a search finds the truth is decided in virtual time, by rigs/simulation. Here each
// completes against real sockets and, on whatever host, shows nothing that is false; what is only likely may be.
func TestSearches(t *testing.T) {
	needsAreas(t, "identity")
	hosttest.SkipIfShort(t)
	t.Parallel()
	bin := tareBinary(t)
	preset := func(name string) func(*testing.T) string {
		return func(*testing.T) string { return "embedded: {preset: " + name + "}" }
	}
	nginx := func(limit string) func(*testing.T) string {
		return func(t *testing.T) string { t.Helper(); return "url: " + startNginx(t, limit) }
	}
	for _, c := range []struct {
		name     string
		target   func(*testing.T) string
		load     string
		class    signature.Class // of the failure; none if nothing breaks
		capacity float64         // in calls per second, if it is known
		long     bool
	}{
		{name: "blog-2020", target: preset("blog-2020"), load: "timeout: 4s, max_rate: 2000/s", class: "accept-queue"},
		{name: "cpu-only", target: preset("cpu-only"), load: "timeout: 4s, max_rate: 2000/s", class: "queue", long: true},
		{
			name: "sts-quota-reject", target: preset("sts-quota-reject"), load: "timeout: 4s, max_rate: 2000/s",
			class: "token-bucket", long: true, // docs/tutorial/first-answer.md searches it
		},
		{
			name: "sts-quota-queue", target: preset("sts-quota-queue"), load: "timeout: 4s, max_rate: 2000/s", class: "queue",
			long: true,
		},
		{
			name: "sts-quota-tarpit", target: preset("sts-quota-tarpit"), load: "timeout: 4s, max_rate: 2000/s",
			class: "quota-hang", long: true,
		},
		{name: "healthy", target: preset("healthy"), load: "timeout: 4s, max_rate: 300/s"},
		{
			name: "nginx-reject", target: nginx("burst=20 nodelay"), load: "timeout: 10s, max_rate: 3000/s",
			class: "token-bucket", capacity: 100,
		},
		{
			name: "nginx-delay", target: nginx("burst=20000"), load: "timeout: 10s, max_rate: 3000/s", class: "queue",
			capacity: 100, long: true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.long {
				hosttest.SkipUnlessLong(t)
			}
			rep, out := runOnce(t, bin, "name: live\narea: identity\nquestion: capacity\nseed: 1\n"+
				"target: {adapter: gce-metadata, "+c.target(t)+"}\nload: {"+c.load+"}\n")
			got := rep.Capacity[0]
			t.Logf("verdict %s; rate %v; broke %t; failure %+v", rep.Verdict, got.Rate, got.Broke, got.Failure)
			if rep.Verdict == report.Invalid || rep.Verdict == report.Inconclusive {
				return // the host was busy with something else, and the report says so
			}
			if got.Broke != (c.class != "") {
				t.Errorf("broke: %t\n%s", got.Broke, out)
			}
			if got.Failure != nil && got.Failure.Certainty == signature.Shown && got.Failure.Class != c.class {
				t.Errorf("failure %+v, want %q\n%s", got.Failure, c.class, out)
			}
			if c.capacity == 0 {
				return
			}
			// Where the generator may be the limit, tare need not find the rate, and where others have the processors meanwhile,
			// it knows the rate less well: what it says must hold all the same.
			unknown := got.Rate == nil && got.AtLeast != nil && rep.Generator != nil && !rep.Generator.RuledOut()
			switch {
			case unknown && *got.AtLeast <= c.capacity+2:
			case got.Rate != nil && *got.Lo <= c.capacity && c.capacity <= *got.Hi:
			case got.Rate == nil || math.Abs(*got.Rate-c.capacity) > 2:
				t.Errorf("capacity %v, at least %v, the limiter is set to %g/s\n%s", got.Rate, got.AtLeast, c.capacity, out)
			}
		})
	}
}

const nginxConfig = `daemon off; worker_processes 1; pid %[1]s/pid; error_log %[1]s/error.log;
events { worker_connections 8192; }
http {
  access_log off; client_body_temp_path %[1]s/t; proxy_temp_path %[1]s/t; fastcgi_temp_path %[1]s/t; uwsgi_temp_path %[1]s/t; scgi_temp_path %[1]s/t;
  keepalive_requests 1000000;
  limit_req_zone $binary_remote_addr zone=z:1m rate=100r/s;
  limit_req_status 429;
  server {
    listen 127.0.0.1:%[2]d backlog=4096;
    default_type application/json;
    add_header Metadata-Flavor Google always;
    if ($http_metadata_flavor != "Google") { return 403; }
    if ($http_x_forwarded_for != "") { return 403; }
    location / { root %[1]s/www; limit_req zone=z %[3]s; }
  }
}
`

// startNginx serves the token path from a static file, behind a real rate limiter.
func startNginx(t *testing.T, limit string) string {
	t.Helper()
	bin := hosttest.Program(t, "nginx", "nginx-light")
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // nginx's worker runs as another user
		t.Fatal(err)
	}
	path := filepath.Join(dir, "www", "computeMetadata", "v1", "instance", "service-accounts", "default")
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	token := `{"access_token":"made-up","expires_in":3599,"token_type":"Bearer"}`
	if err := os.WriteFile(filepath.Join(path, "token"), []byte(token), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	conf := filepath.Join(dir, "nginx.conf")
	text := "user root;\n" + fmt.Sprintf(nginxConfig, dir, port, limit)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "-c", conf) // not with the test's context: that kills the master before it can end its worker
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGQUIT); _ = cmd.Wait() })
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	for range 100 {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			return "http://" + addr
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("nginx did not start: %s", strings.TrimSpace(log.String()))
	return ""
}
