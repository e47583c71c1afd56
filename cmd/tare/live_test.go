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
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tare/internal/analyze"
	"tare/internal/cli"
	"tare/internal/report"
	"tare/rigs/hosttest"
)

// attempts is how often a live test may try: the host may be busy with something else, and then a run is rightly
// invalid or inconclusive.
const attempts = 3

// runUntilAccepted runs an experiment with the real binary until judge accepts its report. It skips the test on a host
// too busy to measure on.
func runUntilAccepted(t *testing.T, bin, experiment string, judge func(*report.Report) error) {
	t.Helper()
	var last error
	valid := false
	for range attempts {
		rep, out := runOnce(t, bin, experiment)
		if rep.Verdict == report.Invalid || rep.Verdict == report.Inconclusive {
			t.Logf("this host is too busy to measure on:\n%s", out)
			continue
		}
		valid = true
		if last = judge(rep); last == nil {
			return
		}
		t.Logf("%v\n%s", last, out)
	}
	if !valid {
		hosttest.Missing(t, fmt.Sprintf("no answer in %d attempts: the host is busy", attempts), hosttest.Quiet)
	}
	t.Errorf("%d attempts, the last: %v", attempts, last)
}

func runOnce(t *testing.T, bin, experiment string) (*report.Report, string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.yaml"), []byte(experiment), 0o600); err != nil {
		t.Fatal(err)
	}
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

// A liveSearch is a subtest that runs one search with the real binary.
type liveSearch struct {
	name string
	run  func(*testing.T)
}

// TestSearches searches the reference endpoint in each preset, and a real rate limiter. All run at once, on however
// few processors, since they mostly wait.
func TestSearches(t *testing.T) {
	needsAreas(t, "identity")
	hosttest.SkipIfShort(t)
	bin := buildTare(t)
	var searches sync.WaitGroup
	for _, s := range append(presetSearches(bin), nginxSearches(bin)...) {
		searches.Go(func() { t.Run(s.name, s.run) })
	}
	searches.Wait()
}

// presetSearches search the reference endpoint in each preset, and expect its signature.
func presetSearches(bin string) (all []liveSearch) {
	for _, c := range []struct {
		preset, timeout string
		maxRate         int
		want            []string // acceptable classes; nil: nothing breaks
	}{
		{"blog-2020", "4s", 2000, []string{"accept-queue"}},
		{"cpu-only", "4s", 2000, []string{"queue"}},
		{"sts-quota-reject", "4s", 2000, []string{"token-bucket"}},
		{"sts-quota-queue", "4s", 2000, []string{"queue"}},
		{"sts-quota-tarpit", "4s", 2000, []string{"quota-hang"}},
		{"healthy", "4s", 300, nil},
	} {
		all = append(all, liveSearch{"preset/" + c.preset, func(t *testing.T) {
			runUntilAccepted(t, bin, fmt.Sprintf("name: live\narea: identity\nquestion: capacity\nseed: 1\n"+
				"target: {adapter: gce-metadata, embedded: {preset: %s}}\nload: {timeout: %s, max_rate: %d/s}\n",
				c.preset, c.timeout, c.maxRate),
				func(rep *report.Report) error { return wantClass(rep, c.want) })
		}})
	}
	return all
}

// wantClass returns an error unless the target broke in one of the given ways; with none it must not break.
func wantClass(rep *report.Report, want []string) error {
	got := rep.Capacity[0]
	switch {
	case got.Broke != (want != nil):
		return fmt.Errorf("broke: %v, want %v", got.Broke, want != nil)
	case want != nil && !slices.Contains(want, string(got.Failure.Class)):
		return fmt.Errorf("failure %+v, want one of %v", got.Failure, want)
	}
	return nil
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

// nginxSearches search nginx's rate limiter, which is not ours, in both of its modes.
func nginxSearches(bin string) (all []liveSearch) {
	for name, c := range map[string]struct {
		limit string
		want  []string
	}{
		"reject": {"burst=20 nodelay", []string{"token-bucket"}},
		"delay":  {"burst=20000", []string{"queue"}},
	} {
		all = append(all, liveSearch{"nginx/" + name, func(t *testing.T) {
			url := startNginx(t, c.limit)
			runUntilAccepted(t, bin, "name: nginx\narea: identity\nquestion: capacity\nseed: 1\n"+
				"target: {adapter: gce-metadata, url: "+url+"}\nload: {timeout: 10s, max_rate: 3000/s}\n",
				func(rep *report.Report) error {
					if r := rep.Capacity[0].Rate; r == nil || math.Abs(*r-100) > 2 {
						return fmt.Errorf("capacity %v, the limiter is set to 100/s", r)
					}
					return wantClass(rep, c.want)
				})
		}})
	}
	return all
}
