package engine_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/internal/files"
	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// role makes the test binary something else than the tests.
const role = "TARE_TEST_ROLE"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(role) {
	case "":
		hosttest.Main(m)
	case "opa":
		err = fakeOPA(os.Args[1:])
	case "supervisor":
		err = proc.Serve(context.Background(), os.Stdin, os.Stdout, func(ctx context.Context, raw json.RawMessage,
			ready func(any) error,
		) error {
			var cfg engine.Config
			if err := json.Unmarshal(raw, &cfg); err != nil {
				return err
			}
			return engine.RunOPA(ctx, cfg, func(r engine.Ready) error { return ready(r) })
		})
	case "stranger":
		err = requestAsStranger(os.Args[1], os.Args[2], os.Args[3])
	case "narrow":
		err = runWithOnePort(os.Args[1])
	case "parent":
		err = runParent(engine.Kind(os.Args[1]), os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// onePort is the only one that runWithOnePort's network gives to servers.
const onePort = 40001

// runWithOnePort becomes a program, in a network of its own whose kernel gives clients even ports, and servers one.
func runWithOnePort(program string) error {
	fd, err1 := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	lo, err2 := unix.NewIfreq("lo")
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	const sysctl = "/proc/sys/net/ipv4/"
	return errors.Join(unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo),
		os.WriteFile(sysctl+"ip_local_port_range", fmt.Appendf(nil, "%d %d", onePort-1, onePort+6), 0o600),
		os.WriteFile(sysctl+"ip_local_reserved_ports", fmt.Appendf(nil, "%d,%d,%d", onePort+2, onePort+4, onePort+6), 0o600),
		unix.Exec(program, []string{program}, os.Environ()))
}

// fakeOPA is a fake of opa with the commands that RunOPA uses.
func fakeOPA(args []string) error {
	if slices.Equal(args, []string{"version"}) {
		_, err := fmt.Println("Version: 9.8.7\nBuild Commit: none")
		return err
	}
	if len(args) < 2 || args[len(args)-2] != "--bundle" {
		return fmt.Errorf("%q: not served as a bundle, so that anybody could change the policies", args)
	}
	of := map[string]string{}
	for i, a := range args[1:] {
		of[args[i]] = a
	}
	policies, err := os.ReadFile(filepath.Join(of["--bundle"], "policies.rego"))
	if err != nil {
		return err
	}
	if !strings.HasPrefix(string(policies), "package ") {
		return errors.New("rego_parse_error: package expected")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	l, err := net.Listen("tcp", of["--addr"])
	if err != nil {
		return err
	}
	if of["--authentication"] == "tls" {
		pair, err := tls.LoadX509KeyPair(of["--tls-cert-file"], of["--tls-private-key-file"])
		if err != nil {
			return err
		}
		callers, err := os.ReadFile(of["--tls-ca-cert-file"])
		if err != nil {
			return err
		}
		c := &tls.Config{
			Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool(),
		}
		c.ClientCAs.AppendCertsFromPEM(callers)
		l = tls.NewListener(l, c)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, os.Getpid()) // the test asks who it is
	})}
	go func() { <-ctx.Done(); _ = srv.Close() }()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// requestAsStranger sends one request and prints the status and the body of the answer.
func requestAsStranger(method, url, body string) error {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	anybody := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	resp, err := (&http.Client{Transport: anybody}).Do(req)
	if err != nil {
		fmt.Print("no answer: ", err)
		return nil
	}
	defer func() { _ = resp.Body.Close() }() // read to its end below
	text, err := io.ReadAll(resp.Body)
	fmt.Printf("%d %s", resp.StatusCode, text)
	return err
}

// runParent starts a decision point, prints its PID and waits to be killed.
func runParent(k engine.Kind, dir string) error {
	ctx := context.Background()
	l, err := engine.Find(ctx, k, engine.Host{Self: os.Args[0], Log: slog.New(slog.DiscardHandler), Getenv: os.LookupEnv})
	if err != nil {
		return err
	}
	spec, _, err := programOf(l, dir, 1, nil)
	if err != nil {
		return err
	}
	child, err := proc.Start(ctx, spec)
	if err != nil {
		return err
	}
	fmt.Println(child.PID)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// testHost is this machine. Builds stay in the user's cache folder, so a second run of the tests builds nothing.
func testHost(t *testing.T) engine.Host {
	t.Helper()
	return engine.Host{Self: os.Args[0], Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Getenv: os.LookupEnv}
}

// findEngine skips the test if the host lacks the engine, unless TARE_ENGINES names it.
func findEngine(t *testing.T, k engine.Kind) engine.Launch {
	t.Helper()
	hosttest.SkipIfShort(t)
	l, err := engine.Find(t.Context(), k, testHost(t))
	if missing := new(engine.Missing); errors.As(err, &missing) && os.Getenv("TARE_ENGINES") == "" {
		hosttest.Missing(t, missing.Reason, missing.Next)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// testToken is what openfga wants of callers.
const testToken = "test"

type point struct {
	*proc.Child
	kind  engine.Kind
	ready engine.Ready
}

// programOf is how an engine is started with n policies, its files in dir.
func programOf(l engine.Launch, dir string, n int, plant func(*engine.Config)) (proc.Spec, engine.Config, error) {
	cfg, err := l.Prepare(dir, model.Set{N: n})
	cfg.Token = testToken
	if plant != nil {
		plant(&cfg)
	}
	return proc.Spec{
		Name: string(l.Kind), Path: l.Path, Args: l.Args, Config: cfg, LogFile: filepath.Join(dir, "log"),
		ReadyWithin: 5 * time.Minute,
	}, cfg, err
}

func start(t *testing.T, l engine.Launch, n int, plant func(*engine.Config)) point {
	t.Helper()
	spec, _, err := programOf(l, t.TempDir(), n, plant)
	if err != nil {
		t.Fatal(err)
	}
	child, err := proc.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := child.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	p := point{Child: child, kind: l.Kind}
	if err := json.Unmarshal(child.Ready, &p.ready); err != nil {
		t.Fatal(err)
	}
	if p.ready.Addr == "" || p.ready.LoadSeconds <= 0 {
		t.Errorf("ready: %s", child.Ready)
	}
	return p
}

// ask asks in the engine's own protocol, not through the adapters, which could share a mistake with it.
func (p point) ask(t *testing.T, q model.Question) (model.Decision, string) {
	t.Helper()
	path, body := "/services/pdp", xacmlRequest(q)
	switch p.kind { //nolint:exhaustive // the others are of XACML
	case engine.OPA:
		path, body = "/v1/data/authz/allow", map[string]any{"input": authzenRequest(q)}
	case engine.OpenFGA:
		path, body = "/stores/"+p.ready.Store+"/check", openFGARequest(q)
	}
	status, answer := p.post(t, path, body)
	var out struct {
		Result, Allowed *bool
		Response        []struct{ Decision string }
	}
	if err := json.Unmarshal(answer, &out); err != nil || status != http.StatusOK {
		t.Fatalf("status %d, %v: %s", status, err, answer)
	}
	if p.kind == engine.OpenFGA {
		out.Result = out.Allowed
	}
	if p.kind == engine.OPA || p.kind == engine.OpenFGA {
		if out.Result == nil {
			t.Fatalf("answer %s", answer)
		}
		return map[bool]model.Decision{true: model.Permit, false: model.Deny}[*out.Result], string(answer)
	}
	if len(out.Response) != 1 {
		t.Fatalf("answer %s", answer)
	}
	return map[string]model.Decision{
		"Permit": model.Permit, "Deny": model.Deny, "NotApplicable": model.NotApplicable,
		"Indeterminate": model.Indeterminate,
	}[out.Response[0].Decision], string(answer)
}

func (p point) post(t *testing.T, path string, body any) (int, []byte) {
	t.Helper()
	text, ok := body.(string)
	if !ok {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.ready.Addr+path,
		strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+testToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // read to its end below
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}

func authzenRequest(q model.Question) any {
	entity := func(e model.Entity) any {
		return map[string]any{"type": e.Type, "id": e.ID, "properties": e.Properties}
	}
	return map[string]any{
		"subject": entity(q.Subject), "resource": entity(q.Resource),
		"action": map[string]any{"name": q.Action},
	}
}

func openFGARequest(q model.Question) any {
	return map[string]any{
		"tuple_key": map[string]any{
			"user": q.Subject.Type + ":" + q.Subject.ID, "relation": q.Action, "object": q.Resource.Type + ":" + q.Resource.ID,
		},
		"context": q.Subject.Properties,
	}
}

func xacmlRequest(q model.Question) any {
	attribute := func(id, value string) map[string]any {
		return map[string]any{"AttributeId": id, "Value": value, "DataType": model.XACMLString}
	}
	subject := []any{attribute(model.XACMLSubjectID, q.Subject.ID)}
	for name, value := range q.Subject.Properties {
		subject = append(subject, attribute(model.XACMLAttribute(name), value))
	}
	category := func(id string, attributes ...any) any {
		return map[string]any{"CategoryId": id, "Attribute": attributes}
	}
	return map[string]any{"Request": map[string]any{"Category": []any{
		category(model.XACMLSubject, subject...),
		category(model.XACMLAction, attribute(model.XACMLActionID, q.Action)),
		category(model.XACMLResource, attribute(model.XACMLResourceID, q.Resource.ID)),
	}}}
}

// TestEnginesDecideLikeTheModel: every engine gives the known answers, at every position of the policy. One that loads
// policies with its first request would report a wrong load time, and answer that request late: so they are removed
// before.
func TestEnginesDecideLikeTheModel(t *testing.T) {
	eachEngine(t, func(t *testing.T, l engine.Launch) {
		for _, n := range []int{1, 100} {
			began, file := time.Now(), ""
			p, set := start(t, l, n, func(c *engine.Config) { file = c.File }), model.Set{N: n}
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			t.Logf("%s with %d policies: started in %v, policies loaded in %.3f s", l.Version, n, time.Since(began),
				p.ready.LoadSeconds)
			for _, q := range []model.Question{
				set.Ask(model.First), set.Ask(model.Last), set.Ask(model.Absent), set.Forbidden(model.First),
				set.Forbidden(model.Last),
			} {
				if got, answer := p.ask(t, q); got != q.Want {
					t.Errorf("%d policies, %s of %s: %v, want %v: %s", n, q.Name, q.Resource.ID, got, q.Want, answer)
				}
			}
			if n == 1 {
				t.Run("invalid", func(t *testing.T) { wantInvalidRejected(t, p) })
			}
		}
	})
}

// eachEngine runs do for every engine that this host can have and that is not in this binary.
func eachEngine(t *testing.T, do func(t *testing.T, l engine.Launch)) {
	t.Helper()
	for _, k := range []engine.Kind{engine.ATT, engine.AuthzForce, engine.OPA, engine.OpenFGA} {
		t.Run(string(k), func(t *testing.T) { do(t, findEngine(t, k)) })
	}
}

// launched starts a command, writes input as JSON if there is any, and returns the first line that it says.
func launched(t *testing.T, cmd *exec.Cmd, input any) (in io.Closer, out *bufio.Reader, line string) {
	t.Helper()
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	err := errors.Join(err1, err2, cmd.Start())
	if err == nil && input != nil {
		err = json.NewEncoder(stdin).Encode(input)
	}
	if err != nil {
		t.Fatal(err)
	}
	out = bufio.NewReader(stdout)
	if line, err = out.ReadString('\n'); err != nil {
		t.Fatalf("it said %q: %v", line, err)
	}
	return stdin, out, line
}

// TestEnginesEndWithTheirParent even if that is killed with SIGKILL.
func TestEnginesEndWithTheirParent(t *testing.T) {
	eachEngine(t, func(t *testing.T, l engine.Launch) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], string(l.Kind), t.TempDir())
		cmd.Env = append(os.Environ(), role+"=parent")
		in, _, line := launched(t, cmd, nil)
		defer func() { _ = in.Close() }() // the parent is gone by then
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err := errors.Join(err, cmd.Process.Kill()); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // says that it was killed
		awaitEnd(t, pid)
	})
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
	eachEngine(t, func(t *testing.T, l engine.Launch) {
		_, cfg, err := programOf(l, t.TempDir(), 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, l.Path, l.Args...)
		in, out, line := launched(t, cmd, cfg)
		if !strings.HasPrefix(line, `{"ready":{"addr":"127.0.0.1:`) {
			t.Fatalf("got first line %q; want the address", line)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(out)
		if err != nil || len(rest) > 0 {
			t.Errorf("more was said: %q (%v)", rest, err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("ended with %v", err)
		}
	})
}

// TestOpenFGAIsToldNoPort: where the kernel has one port for servers, it listens at that for gRPC and for HTTP. A port
// that it was told, since it was free, could be another user's by the time that it listens there.
func TestOpenFGAIsToldNoPort(t *testing.T) {
	hosttest.SkipIfShort(t)
	hosttest.NeedsRoot(t)
	l := findEngine(t, engine.OpenFGA)
	_, cfg, err := programOf(l, t.TempDir(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], l.Path)
	cmd.Env, cmd.Stderr = append(os.Environ(), role+"=narrow"), t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	in, _, said := launched(t, cmd, cfg)
	if want := fmt.Sprintf(`{"ready":{"addr":"127.0.0.1:%d"`, onePort); !strings.HasPrefix(said, want) {
		t.Errorf("got first line %q; want %s", said, want)
	}
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Error(err)
	}
}

// wantInvalidRejected: an engine rejects invalid requests with status 400 and a text, and keeps running.
func wantInvalidRejected(t *testing.T, p point) {
	t.Helper()
	path := "/services/pdp"
	switch p.kind { //nolint:exhaustive // the others are of XACML
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
	if p.kind.Adapter() == "xacml" {
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
}

// TestBrokenPoliciesAreNotServed, which one of the engines would do.
func TestBrokenPoliciesAreNotServed(t *testing.T) {
	eachEngine(t, func(t *testing.T, l engine.Launch) {
		spec, cfg, err := programOf(l, t.TempDir(), 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(cfg.File)
		if err := errors.Join(err, os.WriteFile(cfg.File, text[:len(text)*2/3], 0o600)); err != nil {
			t.Fatal(err)
		}
		if child, err := proc.Start(t.Context(), spec); err == nil {
			t.Error("policies that end in the middle are served", child.Stop(t.Context()))
		} else if !strings.Contains(err.Error(), "exit status") {
			t.Error(err)
		}
	})
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
	spec, _, err := programOf(l, t.TempDir(), 1, func(c *engine.Config) { c.Answer = "always-permit" })
	if err != nil {
		t.Fatal(err)
	}
	if _, err = proc.Start(t.Context(), spec); err == nil ||
		!strings.Contains(err.Error(), "no fault can be planted in OPA") {
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
			for _, x := range []string{
				"GET /v1/policies", "GET /v1/data", "GET /metrics", "GET /health", "POST /v1/data/authz/allow {}",
				`POST /v1/query {"query": "x := net.lookup_ip_addr(\"localhost\")"}`,
			} {
				for _, scheme := range []string{"http://", "https://"} {
					said := answerToStranger(t, scheme+ready.Addr, x)
					if !strings.HasPrefix(said, "no answer: ") && strings.TrimSpace(said) != noTLS {
						t.Errorf("%s %s: got %.300s, want no answer", scheme, x, said)
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
	for _, x := range []string{
		"PUT /v1/policies/x package authz\n\ndefault allow := true",
		"PUT /v1/policies/system package system.authz\n\ndefault allow := false",
		"GET /v1/policies", "DELETE /v1/policies/policies.rego", "PUT /v1/data/x {}",
		`PATCH /v1/data [{"op": "add", "path": "/x", "value": 1}]`,
		"GET /v1/data", "GET /v1/data/authz/allow", "POST /v1/data {}", "POST /v1/data/ {}", "POST /v1/data/authz {}",
		"POST /v1/data/authz%2Fallow {}", "POST /v1/data/authz/allow?explain=full {}",
		"POST /v1/data/authz/allow?metrics {}", "POST /v0/data/authz/allow {}", "DELETE /v1/data/authz", "GET /v1/config",
		"GET /metrics", "GET /metrics/alloc_bytes", "GET /health?bundles", `POST /v1/query {"query": "x := opa.runtime()"}`,
		`POST /v1/compile {"query": "data.authz.allow"}`, "POST / {}", "POST /v1/data/../policies {}",
	} {
		if said := answerToStranger(t, "http://"+p.ready.Addr, x); !strings.HasPrefix(said, "403 ") {
			t.Errorf("%s: got %s, want 403", x, said)
		}
	}
	const undefined = `200 {"result":false`
	said := answerToStranger(t, "http://"+p.ready.Addr, "POST /v1/data/authz/allow {}")
	if !strings.HasPrefix(said, undefined) {
		t.Errorf("the question of the run: got %s, want %s", said, undefined)
	}
	if after, said := p.ask(t, set.Forbidden(model.Last)); after != before {
		t.Errorf("was %v, is %v: %s", before, after, said)
	}
}

// answerToStranger returns the answer to a request of another user: its method, path and, if it has one, body.
func answerToStranger(t *testing.T, base, request string) string {
	t.Helper()
	words := append(strings.SplitN(request, " ", 3), "")
	self, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = self.Close() }() // only read
	// the test's folder is closed to others
	cmd := exec.CommandContext(t.Context(), "/proc/self/fd/3", words[0], base+words[1], words[2])
	cmd.Env, cmd.ExtraFiles, cmd.Dir = []string{role + "=stranger"}, []*os.File{self}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", request, err, out)
	}
	return string(out)
}
