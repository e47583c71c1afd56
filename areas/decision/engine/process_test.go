package engine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/internal/files"
	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// TestEnginesEndWithTheirParent even if that is killed with SIGKILL.
func TestEnginesEndWithTheirParent(t *testing.T) {
	hosttest.SkipIfShort(t)
	for _, k := range external {
		t.Run(string(k), func(t *testing.T) {
			findEngine(t, k)
			cmd := exec.CommandContext(t.Context(), os.Args[0], string(k), t.TempDir())
			cmd.Env = append(os.Environ(), role+"=parent")
			in, err1 := cmd.StdinPipe()
			out, err2 := cmd.StdoutPipe()
			if err := errors.Join(err1, err2, cmd.Start()); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = in.Close() }() // the parent is gone by then
			line, err := bufio.NewReader(out).ReadString('\n')
			pid, err3 := strconv.Atoi(strings.TrimSpace(line))
			if err := errors.Join(err, err3); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // says that it was killed
			awaitEnd(t, pid)
		})
	}
}

// awaitEnd waits for the end of a process, however busy the machine is.
func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) || strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("process %d lives on", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL) // it is ours
			return
		}
	}
}

// TestEnginesEndWithStandardInput: the second safeguard, without a signal.
func TestEnginesEndWithStandardInput(t *testing.T) {
	hosttest.SkipIfShort(t)
	for _, k := range external {
		t.Run(string(k), func(t *testing.T) {
			l := findEngine(t, k)
			cfg, err := l.Prepare(t.TempDir(), model.Set{N: 1})
			if err != nil {
				t.Fatal(err)
			}
			cfg.Token = testToken
			line, err := json.Marshal(cfg)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, l.Path, l.Args...)
			in, err1 := cmd.StdinPipe()
			out, err2 := cmd.StdoutPipe()
			if err := errors.Join(err1, err2, cmd.Start()); err != nil {
				t.Fatal(err)
			}
			if _, err := in.Write(append(line, '\n')); err != nil {
				t.Fatal(err)
			}
			r := bufio.NewReader(out)
			if said, err := r.ReadString('\n'); err != nil || !strings.HasPrefix(said, `{"ready":{"addr":"127.0.0.1:`) {
				t.Fatalf("got first line %q, %v; want the address", said, err)
			}
			if err := in.Close(); err != nil {
				t.Fatal(err)
			}
			rest, err := io.ReadAll(r)
			if err != nil || len(rest) > 0 {
				t.Errorf("more was said: %q (%v)", rest, err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("ended with %v", err)
			}
		})
	}
}

// TestOpenFGAIsToldNoPort: where the kernel has one port for servers, it listens at that for gRPC and for HTTP. A port
// that it was told, since it was free, could be another user's by the time that it listens there.
func TestOpenFGAIsToldNoPort(t *testing.T) {
	hosttest.SkipIfShort(t)
	hosttest.NeedsRoot(t)
	l := findEngine(t, engine.OpenFGA)
	cfg, err := l.Prepare(t.TempDir(), model.Set{N: 1})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Token = testToken
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], l.Path)
	cmd.Env, cmd.Stderr = append(os.Environ(), role+"=narrow"), t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start(), json.NewEncoder(in).Encode(cfg)); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if want := fmt.Sprintf(`{"ready":{"addr":"127.0.0.1:%d"`, onePort); err != nil || !strings.HasPrefix(said, want) {
		t.Errorf("got first line %q, %v; want %s", said, err, want)
	}
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Error(err)
	}
}

// TestEnginesRejectInvalidRequests with status 400 and a text, and keep running.
func TestEnginesRejectInvalidRequests(t *testing.T) {
	hosttest.SkipIfShort(t)
	for _, k := range external {
		t.Run(string(k), func(t *testing.T) {
			p := start(t, findEngine(t, k), 1, nil)
			path := "/services/pdp"
			switch k { //nolint:exhaustive // the others are of XACML
			case engine.OPA:
				path = "/v1/data/authz/allow"
			case engine.OpenFGA:
				path = "/stores/" + p.ready.Store + "/check"
			}
			for _, body := range []string{`{"Request":`, `{]`, "\xff\xfe"} {
				if status, text := p.post(t, path, body); status != http.StatusBadRequest || len(text) == 0 {
					t.Errorf("request %q: got status %d, %s; want 400 with a text", body, status, text)
				}
			}
			if k.Adapter() == "xacml" {
				deep := `{"Request":{"Category":` + strings.Repeat("[", 200_000) + `}`
				if status, text := p.post(t, path, deep); status == http.StatusInternalServerError {
					t.Errorf("deep: %d %.300s", status, text)
				}
				if status, _ := p.post(t, path, strings.Repeat(" ", 2<<20)); status != http.StatusRequestEntityTooLarge {
					t.Errorf("large: status %d", status)
				}
				if status, _ := p.post(t, "/services/pdpx", "{}"); status != http.StatusNotFound {
					t.Errorf("another path: status %d", status)
				}
			}
			if got, answer := p.ask(t, model.Set{N: 1}.Ask(model.First)); got != model.Permit {
				t.Errorf("afterwards: %s", answer)
			}
		})
	}
}

// TestPoliciesAreLoadedBeforeReady: an engine that loads them with its first request would report a wrong load time,
// and answer that request late. So the policies are removed before the first request.
func TestPoliciesAreLoadedBeforeReady(t *testing.T) {
	hosttest.SkipIfShort(t)
	for _, k := range external {
		t.Run(string(k), func(t *testing.T) {
			var file string
			p := start(t, findEngine(t, k), 1, func(c *engine.Config) { file = c.File })
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if got, answer := p.ask(t, model.Set{N: 1}.Ask(model.First)); got != model.Permit {
				t.Errorf("without the file: %s", answer)
			}
		})
	}
}

// TestBrokenPoliciesAreNotServed, which one of the engines would do.
func TestBrokenPoliciesAreNotServed(t *testing.T) {
	for _, k := range external {
		t.Run(string(k), func(t *testing.T) {
			l, dir := findEngine(t, k), t.TempDir()
			cfg, err := l.Prepare(dir, model.Set{N: 3})
			if err != nil {
				t.Fatal(err)
			}
			cfg.Token = testToken
			text, err := os.ReadFile(cfg.File)
			if err == nil {
				err = os.WriteFile(cfg.File, text[:len(text)*2/3], 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			spec := proc.Spec{
				Name: string(k), Path: l.Path, Args: l.Args, Config: cfg, LogFile: filepath.Join(dir, "log"),
				ReadyWithin: 5 * time.Minute,
			}
			if child, err := proc.Start(t.Context(), spec); err == nil {
				t.Error("policies that end in the middle are served", child.Stop(t.Context()))
			} else if !strings.Contains(err.Error(), "exit status") {
				t.Error(err)
			}
		})
	}
}

// TestPlantedFaultsInXACML: the same faults as in the embedded decision points.
func TestPlantedFaultsInXACML(t *testing.T) {
	hosttest.SkipIfShort(t)
	for _, k := range []engine.Kind{engine.ATT, engine.AuthzForce} {
		t.Run(string(k), func(t *testing.T) {
			l := findEngine(t, k)
			for answer, want := range map[string]model.Decision{
				"always-permit": model.Permit,
				"indeterminate": model.Indeterminate,
			} {
				p := start(t, l, 1, func(c *engine.Config) { c.Answer = answer })
				if got, text := p.ask(t, model.Set{N: 1}.Forbidden(model.First)); got != want {
					t.Errorf("planted %s: got answer %s", answer, text)
				}
			}
			p := start(t, l, 1, func(c *engine.Config) { c.Delay = 3600 })
			if status, text := p.post(t, "/services/pdp", "{}"); status != http.StatusServiceUnavailable {
				t.Errorf("delay: %d %s", status, text)
			}
		})
	}
}

// TestLeakInXACML: a JVM's memory grows by the planted amount, and none of it is collected.
func TestLeakInXACML(t *testing.T) {
	hosttest.SkipIfShort(t)
	const perSec = 64 << 20
	p := start(t, findEngine(t, engine.ATT), 1, func(c *engine.Config) { c.Leak = perSec })
	before, began := resident(t, p.PID), time.Now()
	for deadline := began.Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		grown := resident(t, p.PID) - before
		if most := perSec * time.Since(began).Seconds(); float64(grown) > most+(128<<20) {
			t.Fatalf("grown by %d bytes, more than %g", grown, most)
		}
		if grown > 600<<20 {
			return // more than the heap is allowed to have
		}
		if time.Now().After(deadline) {
			t.Fatalf("grown by %d bytes in two minutes", grown)
		}
	}
}

// resident is VmRSS of proc_pid_status(5), in bytes.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

func TestNothingIsPlantedInOPA(t *testing.T) {
	l := findEngine(t, engine.OPA)
	dir := t.TempDir()
	cfg, err := l.Prepare(dir, model.Set{N: 1})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Answer = "always-permit"
	_, err = proc.Start(t.Context(), proc.Spec{
		Name: "opa", Path: l.Path, Args: l.Args, Config: cfg,
		LogFile: filepath.Join(dir, "log"), ReadyWithin: time.Minute,
	})
	if err == nil || !strings.Contains(err.Error(), "no fault can be planted in OPA") {
		t.Errorf("error %v", err)
	}
}

// supervised starts an opa that does not speak tare's protocol: the one in PATH, or else a fake of it.
func supervised(t *testing.T, bin string, cfg engine.Config) (proc.Spec, *http.Client) {
	t.Helper()
	var err error
	if cfg.Pair, err = engine.NewPair(); err != nil {
		t.Fatal(err)
	}
	secure, err := cfg.Pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: secure, DisableKeepAlives: true}}
	return proc.Spec{
		Name: "opa", Path: os.Args[0], Env: append(os.Environ(), role+"=supervisor", "PATH="+bin), Config: cfg,
		LogFile: filepath.Join(t.TempDir(), "log"), ReadyWithin: time.Minute,
	}, client
}

// fakeInPATH returns a folder with a fake of opa.
func fakeInPATH(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	script := "#!/bin/sh\n" + role + "=opa exec '" + os.Args[0] + "' \"$@\"\n"
	if err := files.WriteProgram(filepath.Join(bin, "opa"), []byte(script)); err != nil {
		t.Fatal(err)
	}
	return bin
}

// TestSupervisedOPA: an opa without tare's supervision runs as a child of a child, and ends with it.
func TestSupervisedOPA(t *testing.T) {
	cfg, err := engine.Launch{Kind: engine.OPA}.Prepare(t.TempDir(), model.Set{N: 1})
	if err != nil {
		t.Fatal(err)
	}
	spec, client := supervised(t, fakeInPATH(t), cfg)
	for name, end := range map[string]func(*proc.Child) error{
		"asked":  func(c *proc.Child) error { return c.Stop(t.Context()) },
		"killed": func(c *proc.Child) error { return syscall.Kill(c.PID, syscall.SIGKILL) },
	} {
		child, err := proc.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		var ready engine.Ready
		if err := json.Unmarshal(child.Ready, &ready); err != nil || ready.LoadSeconds <= 0 {
			t.Fatalf("ready line %s: %v; want the load time", child.Ready, err)
		}
		pid, err := strconv.Atoi(get(t, client, "https://"+ready.Addr))
		if err != nil || pid == child.PID {
			t.Fatalf("%d (%v) is not another process than %d", pid, err, child.PID)
		}
		if err := end(child); err != nil {
			t.Errorf("end of %s: %v", name, err)
		}
		<-child.Exited()
		awaitEnd(t, pid)
	}
	broken := cfg
	broken.File = filepath.Join(t.TempDir(), "policies.rego")
	spec, _ = supervised(t, fakeInPATH(t), broken)
	if _, err := proc.Start(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("broken policies: %v", err)
	}
}

func get(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // read to its end below
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(said)
}

// TestOtherUsersCannotAskTheOPAInPATH: its REST API shows policies and data, and runs queries that read files and ask
// servers with the rights of who started it. So it talks to who has the certificate of the run.
func TestOtherUsersCannotAskTheOPAInPATH(t *testing.T) {
	hosttest.NeedsRoot(t)
	for name, find := range map[string]func(t *testing.T) string{
		"fake": fakeInPATH,
		"real": func(t *testing.T) string {
			t.Helper()
			path, err := exec.LookPath("opa")
			if err != nil {
				hosttest.Missing(t, "no opa in PATH", "put an opa into PATH")
			}
			return filepath.Dir(path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bin := find(t)
			cfg, err := engine.Launch{Kind: engine.OPA}.Prepare(t.TempDir(), model.Set{N: 1})
			if err != nil {
				t.Fatal(err)
			}
			spec, client := supervised(t, bin, cfg)
			child, err := proc.Start(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = child.Stop(context.WithoutCancel(t.Context())) })
			var ready engine.Ready
			if err := json.Unmarshal(child.Ready, &ready); err != nil {
				t.Fatal(err)
			}
			if said := get(t, client, "https://"+ready.Addr+"/v1/data/authz/allow"); said == "" {
				t.Error("the run got no answer")
			}
			const noTLS = "400 Client sent an HTTP request to an HTTPS server."
			for _, x := range []struct{ method, path, body string }{
				{http.MethodGet, "/v1/policies", ""},
				{http.MethodGet, "/v1/data", ""},
				{http.MethodGet, "/metrics", ""},
				{http.MethodGet, "/health", ""},
				{http.MethodPost, "/v1/data/authz/allow", "{}"},
				{http.MethodPost, "/v1/query", `{"query": "x := net.lookup_ip_addr(\"localhost\")"}`},
			} {
				for _, scheme := range []string{"http://", "https://"} {
					said := answerToStranger(t, x.method, scheme+ready.Addr+x.path, x.body)
					if !strings.HasPrefix(said, "no answer: ") && strings.TrimSpace(said) != noTLS {
						t.Errorf("%s %s%s: got %.300s, want no answer", x.method, scheme, x.path, said)
					}
				}
			}
		})
	}
}

// TestOtherUsersCannotReachOPAsPolicies: every user of the host can connect to loopback, so an API there must be of no
// use to them, but for the question that the run asks.
func TestOtherUsersCannotReachOPAsPolicies(t *testing.T) {
	hosttest.NeedsRoot(t)
	p := start(t, findEngine(t, engine.OPA), 1, nil)
	set := model.Set{N: 1}
	before, _ := p.ask(t, set.Forbidden(model.Last))
	for _, x := range []struct{ method, path, body string }{
		{http.MethodPut, "/v1/policies/x", "package authz\n\ndefault allow := true"},
		{http.MethodPut, "/v1/policies/system", "package system.authz\n\ndefault allow := false"},
		{http.MethodGet, "/v1/policies", ""},
		{http.MethodDelete, "/v1/policies/policies.rego", ""},
		{http.MethodPut, "/v1/data/x", "{}"},
		{http.MethodPatch, "/v1/data", `[{"op": "add", "path": "/x", "value": 1}]`},
		{http.MethodGet, "/v1/data", ""},
		{http.MethodGet, "/v1/data/authz/allow", ""},
		{http.MethodPost, "/v1/data", "{}"},
		{http.MethodPost, "/v1/data/", "{}"},
		{http.MethodPost, "/v1/data/authz", "{}"},
		{http.MethodPost, "/v1/data/authz%2Fallow", "{}"},
		{http.MethodPost, "/v1/data/authz/allow?explain=full", "{}"},
		{http.MethodPost, "/v1/data/authz/allow?metrics", "{}"},
		{http.MethodPost, "/v0/data/authz/allow", "{}"},
		{http.MethodDelete, "/v1/data/authz", ""},
		{http.MethodGet, "/v1/config", ""},
		{http.MethodGet, "/metrics", ""},
		{http.MethodGet, "/metrics/alloc_bytes", ""},
		{http.MethodGet, "/health?bundles", ""},
		{http.MethodPost, "/v1/query", `{"query": "x := opa.runtime()"}`},
		{http.MethodPost, "/v1/compile", `{"query": "data.authz.allow"}`},
		{http.MethodPost, "/", `{}`},
		{http.MethodPost, "/v1/data/../policies", `{}`},
	} {
		if said := answerToStranger(t, x.method, "http://"+p.ready.Addr+x.path, x.body); !strings.HasPrefix(said, "403 ") {
			t.Errorf("%s %s: got %s, want 403", x.method, x.path, said)
		}
	}
	const undefined = `200 {"result":false`
	said := answerToStranger(t, http.MethodPost, "http://"+p.ready.Addr+"/v1/data/authz/allow", "{}")
	if !strings.HasPrefix(said, undefined) {
		t.Errorf("the question of the run: got %s, want %s", said, undefined)
	}
	if after, said := p.ask(t, set.Forbidden(model.Last)); after != before {
		t.Errorf("was %v, is %v: %s", before, after, said)
	}
}

// answerToStranger returns the answer to a request of another user.
func answerToStranger(t *testing.T, method, url, body string) string {
	t.Helper()
	self, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = self.Close() }()                                           // only read
	cmd := exec.CommandContext(t.Context(), "/proc/self/fd/3", method, url, body) // the test's folder is closed to others
	cmd.Env, cmd.ExtraFiles, cmd.Dir = []string{role + "=stranger"}, []*os.File{self}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", method, url, err, out)
	}
	return string(out)
}
