package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tare/internal/cli"
	"tare/internal/clock"
	"tare/internal/report"
	"tare/rigs/hosttest"
)

// A secretRoom is a folder that receives everything that tare writes: results, cache, state, temporary files. Its
// secret is in the environment, in a file, and wherever a test puts it.
type secretRoom struct {
	*testing.T
	bin, dir, secret string
	// allowed are programs that may hold the secret, by what is in their command line.
	allowed string
	caches  string // where tare finds what it has built; empty: a folder of the room's
	said    bytes.Buffer
	pid     int // of the run, whose command line is own
	own     []byte
	seen    map[string]bool // children, by their command
}

// newSecretRoom makes a room with an experiment, in which SECRET stands for the secret and DIR for the folder.
func newSecretRoom(t *testing.T, experiment string) *secretRoom {
	t.Helper()
	r := &secretRoom{T: t, bin: tareBinary(t), dir: t.TempDir(), seen: map[string]bool{}}
	r.secret = "Pl4nted-" + filepath.Base(filepath.Dir(r.dir)) + "-" + strconv.Itoa(os.Getpid())
	for _, folder := range []string{"home", "state", "cache", "tmp", "run", "given"} {
		if err := os.Mkdir(filepath.Join(r.dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(r.awaitEmpty)
	r.writeSecretFile("key", r.secret+"\n")
	r.writeFile("x.yaml", experiment)
	return r
}

// awaitEmpty waits until no process uses the room, which is then removed: the children of a killed run end a moment
// after it and may write until then.
func (r *secretRoom) awaitEmpty() {
	for range 200 {
		if !r.isUsed() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	r.Errorf("processes are still at work in %s", r.dir)
}

// isUsed reports whether a process has the room as its working folder, or in its command line or environment.
func (r *secretRoom) isUsed() bool {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range all {
		cwd, _ := os.Readlink(filepath.Join(p, "cwd"))
		command, _ := os.ReadFile(filepath.Join(p, "cmdline"))
		environment, _ := os.ReadFile(filepath.Join(p, "environ"))
		if strings.HasPrefix(cwd, r.dir) || bytes.Contains(slices.Concat(command, environment), []byte(r.dir)) {
			return true
		}
	}
	return false
}

// writeFile writes a file that tare reads and that holds no secret.
func (r *secretRoom) writeFile(name, text string) {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
}

// writeSecretFile writes a file that holds the secret.
func (r *secretRoom) writeSecretFile(name, text string) {
	r.writeFile(filepath.Join("given", name), text)
}

// command returns a tare command in the room.
func (r *secretRoom) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, r.bin, args...)
	c.Dir = r.dir
	in := func(name string) string { return filepath.Join(r.dir, name) }
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + in("home"), "XDG_STATE_HOME=" + in("state"), "XDG_CACHE_HOME=" +
			cmp.Or(r.caches, in("cache")), "TMPDIR=" + in("tmp"), "XDG_RUNTIME_DIR=" + in("run"),
		"GOGC=" + os.Getenv("GOGC"), "PLANTED=" + r.secret, "AWS_SECRET_ACCESS_KEY=" + r.secret, "GITHUB_TOKEN=" + r.secret,
	}
	return c
}

// tare runs a command until it ends or is signalled, and watches its children. Each of several signals is sent after
// the same pause.
func (r *secretRoom) tare(after time.Duration, signals []syscall.Signal, args ...string) int {
	r.Helper()
	return r.run(func(ctx context.Context, p *os.Process) {
		for _, s := range signals {
			if (clock.System{}).Sleep(ctx, after) != nil {
				return
			}
			_ = p.Signal(s) // it may have ended
		}
	}, args)
}

// tareUntil interrupts tare soon after enough has happened, and after a minute in any case.
func (r *secretRoom) tareUntil(enough func() bool, args ...string) int {
	r.Helper()
	return r.run(func(ctx context.Context, p *os.Process) {
		for began := time.Now(); !enough() && time.Since(began) < time.Minute; {
			if (clock.System{}).Sleep(ctx, 20*time.Millisecond) != nil {
				return
			}
		}
		if (clock.System{}).Sleep(ctx, time.Second) == nil {
			_ = p.Signal(syscall.SIGINT) // it may have ended
		}
	}, args)
}

// run runs tare, and beside it signals until tare has ended.
func (r *secretRoom) run(signals func(context.Context, *os.Process), args []string) int {
	r.Helper()
	limited, cancel := context.WithTimeout(r.Context(), 2*time.Minute)
	defer cancel()
	c := r.command(limited, args...)
	fmt.Fprintf(&r.said, "\n$ tare %s\n", strings.Join(args, " "))
	c.Stdout, c.Stderr = &r.said, &r.said
	if err := c.Start(); err != nil {
		r.Fatal(err)
	}
	running, ended := context.WithCancel(limited)
	var watched sync.WaitGroup
	watched.Go(func() { r.watch(c.Process.Pid, running.Done()) })
	watched.Go(func() { signals(running, c.Process) })
	err := c.Wait()
	ended()
	watched.Wait()
	if c.ProcessState == nil || limited.Err() != nil {
		r.Fatalf("tare %v: %v\n%s", args, err, &r.said)
	}
	return c.ProcessState.ExitCode()
}

// watched are the rooms in which tare runs. All are watched together, by one goroutine.
var watched struct {
	sync.Mutex
	rooms []*secretRoom
	begun bool
}

// watch checks the command line and the environment of every process on the host that is younger than the run, until
// done.
func (r *secretRoom) watch(run int, done <-chan struct{}) {
	watched.Lock()
	r.pid, r.own = run, readAll(fmt.Sprintf("/proc/%d/cmdline", run))
	watched.rooms = append(watched.rooms, r)
	if !watched.begun {
		watched.begun = true
		go watchAll()
	}
	watched.Unlock()
	<-done
	watched.Lock()
	watched.rooms = slices.DeleteFunc(watched.rooms, func(other *secretRoom) bool { return other == r })
	watched.Unlock()
}

// watchAll looks at all processes again and again, until no room is watched.
func watchAll() {
	for {
		time.Sleep(30 * time.Millisecond)
		watched.Lock()
		if watched.begun = len(watched.rooms) > 0; !watched.begun {
			watched.Unlock()
			return
		}
		all, _ := filepath.Glob("/proc/[0-9]*")
		for _, p := range all {
			pid, _ := strconv.Atoi(filepath.Base(p))
			// Older ones are left out; the host may have counted round meanwhile.
			younger := func(r *secretRoom) bool { return pid > r.pid }
			if !slices.ContainsFunc(watched.rooms, younger) {
				continue
			}
			command, environment := readAll(filepath.Join(p, "cmdline")), readAll(filepath.Join(p, "environ"))
			for _, r := range watched.rooms {
				if younger(r) {
					r.look(command, environment)
				}
			}
		}
		watched.Unlock()
	}
}

// look checks a process that is younger than the run.
func (r *secretRoom) look(command, environment []byte) {
	if bytes.Contains(environment, []byte(r.dir)) || bytes.Contains(command, []byte(r.bin)) {
		r.seen[string(bytes.ReplaceAll(command, []byte{0}, []byte{' '}))] = true
	}
	// The run's own image has the secret, before it has become another program.
	if len(command) == 0 || bytes.Equal(command, r.own) || r.allowed != "" && bytes.Contains(command, []byte(r.allowed)) {
		return
	}
	for where, text := range map[string][]byte{"command line": command, "environment": environment} {
		if bytes.Contains(text, []byte(r.secret)) {
			r.Errorf("the %s of a process holds the secret: %q", where, command)
		}
	}
}

// partial are the forms of other tools, which cannot hold every report: a command ends at the first that fails.
var partial = []string{"benchfmt", "hyperfine", "github-action-benchmark"}

// runReaders runs every command that reads an experiment or what runs have left, and then undo.
func (r *secretRoom) runReaders() {
	r.Helper()
	for _, args := range [][]string{
		{"validate", "x.yaml"},
		{"-v", "plan", "--try", "x.yaml"},
		{"run", "--dry-run", "x.yaml"},
		{"list", "runs"},
		{"cache"},
		{"plane", "status"},
		{"version"},
	} {
		r.tare(0, nil, args...)
	}
	r.readRecords()
}

// readRecords runs every command that reads a record, and then undo.
func (r *secretRoom) readRecords() {
	r.Helper()
	records, _ := filepath.Glob(filepath.Join(r.dir, "results", "*", "record.jsonl"))
	for i, record := range records {
		dir := filepath.Dir(record)
		if i == 0 {
			whole := []string{"report", dir, "-o", "html=" + filepath.Join(r.dir, "report.html")}
			for _, form := range slices.Sorted(maps.Keys(report.Encoders())) {
				out := []string{"-o", form + "=" + filepath.Join(r.dir, "report."+form)}
				if slices.Contains(partial, form) {
					r.tare(0, nil, slices.Concat([]string{"report", dir}, out)...)
				} else {
					whole = append(whole, out...)
				}
			}
			r.tare(0, nil, whole...)
			r.tare(0, nil, "diff", dir, dir)
			r.tare(0, nil, "run", "--resume", dir)
		}
		r.tare(0, nil, "check", dir)
		r.tare(0, nil, "-v", "undo", dir)
		r.tare(0, nil, "undo", dir)
	}
}

// searchSecret looks for the secret in everything that was printed and written.
func (r *secretRoom) searchSecret() {
	r.Helper()
	forms := [][]byte{
		[]byte(r.secret), []byte(fmt.Sprintf("%x", r.secret)), base64Of(r.secret),
		base64Of("weigher:" + r.secret),
	}
	look := func(where string, text []byte) {
		for _, f := range forms {
			if i := bytes.Index(text, f); i >= 0 {
				r.Errorf("%s holds the secret: …%q…", where, text[max(0, i-100):min(len(text), i+100)])
				return
			}
		}
	}
	look("what was printed", r.said.Bytes())
	err := filepath.WalkDir(r.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() && path == filepath.Join(r.dir, "given") {
			return orSkip(err)
		}
		if strings.Contains(d.Name(), r.secret) {
			r.Errorf("the name of a file holds the secret: %s", path)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(path)
		look(path, text)
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
}

func orSkip(err error) error {
	if err != nil {
		return err
	}
	return filepath.SkipDir
}

// base64Of returns the part of a text's encoding that does not depend on what follows the text.
func base64Of(s string) []byte {
	text, _ := json.Marshal([]byte(s[:len(s)/3*3]))
	return bytes.Trim(text, `"`)
}

// wantChild fails the test unless a child of tare with such a command line was checked.
func (r *secretRoom) wantChild(what string) {
	r.Helper()
	for command := range r.seen {
		if strings.Contains(command, what) {
			return
		}
	}
	r.Errorf("no child %q was seen, only %v: the test has tried nothing\n%s", what, slices.Sorted(maps.Keys(r.seen)),
		&r.said)
}

// TestNoSecretReachesChildren: the environment of tare's children holds no secret, whether the run completes, is
// interrupted or is killed, and while it is undone.
func TestNoSecretReachesChildren(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	for name, c := range map[string]struct{ experiment, blocks string }{
		"identity": {strings.Replace(killedExperiment, "max_rate: 600/s", "rates: [20/s], duration: 2s", 1), ""},
		"decision": {"name: x\narea: decision\nquestion: capacity\ntarget: {embedded: {engine: cedar}, policies: 10}\n" +
			"load: {rates: [20/s], duration: 2s}\nseed: 1\n", ""},
		"sandbox": {strings.Replace(comparedExperiment, "blocks: 4", "blocks: 8", 1), "--set blocks=2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needsAreas(t, name)
			r := newSecretRoom(t, c.experiment)
			r.tare(0, nil, append([]string{"-v", "run", "x.yaml"}, strings.Fields(c.blocks)...)...)
			r.tare(time.Second, []syscall.Signal{syscall.SIGINT}, "run", "x.yaml")
			r.tare(time.Second, []syscall.Signal{syscall.SIGKILL}, "run", "x.yaml")
			r.runReaders()
			r.searchSecret()
			r.wantChild(" serve ")
		})
	}
}

// echoServer is a server that sends back everything that it was sent, in each of its modes.
func (r *secretRoom) echoServer(mode string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var all bytes.Buffer
		_ = q.Write(&all)
		flat := strings.NewReplacer("\r", " ", "\n", " ").Replace(all.String()) + r.secret
		switch mode {
		case "refuses":
			w.Header().Set("Www-Authenticate", "Bearer error_description=\""+strings.ReplaceAll(flat, `"`, "'")+`"`)
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write(all.Bytes())
		case "status":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(map[string]any{
				"kind": "Status", "apiVersion": "v1", "status": "Failure",
				"message": flat, "reason": "Forbidden", "code": 403,
			})
		case "redirects":
			w.Header().Set("Location", "http://127.0.0.1:1/"+r.secret)
			w.WriteHeader(http.StatusFound)
		case "hangs":
			<-q.Context().Done()
		case "cuts":
			w.Header().Set("Content-Length", "100000")
			_, _ = w.Write(all.Bytes())
			panic(http.ErrAbortHandler)
		case "nonsense":
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_, _ = conn.Write(append([]byte(r.secret+" "+flat+"\r\n"), all.Bytes()...))
				_ = conn.Close()
			}
		}
	})
}

var echoModes = []string{"refuses", "status", "redirects", "hangs", "cuts", "nonsense"}

// TestNoSecretOfCallersIsWritten uses credentials of every kind against servers that echo them in every way.
func TestNoSecretOfCallersIsWritten(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	const load = "load: {rates: [10/s], duration: 1s, timeout: 1s}\nseed: 1\n"
	identity := func(adapter, more string) string {
		return "name: x\narea: identity\nquestion: capacity\ntarget: {adapter: " + adapter + ", url: URL, " + more + "}\n" +
			load
	}
	decision := func(more string) string {
		return "name: x\narea: decision\nquestion: capacity\ntarget:\n  adapter: authzen\n  url: URL\n  " + more + `
  requests:
    - {name: read, subject: {type: user, id: alice}, action: read, resource: {type: record, id: "1"}, expect: permit}
    - {name: drop, subject: {type: user, id: alice}, action: drop, resource: {type: record, id: "1"}, expect: deny}
` + load
	}
	for name, experiment := range map[string]string{
		"http-token":    identity("http-token", "http: {bearer: {env: PLANTED}}"),
		"secret header": identity("gce-metadata", "secret_headers: {X-Key: {file: given/key}}"),
		"vault":         identity("vault-login", "vault: {method: userpass, username: weigher, password: {env: PLANTED}}"),
		"tokenrequest": identity("k8s-tokenrequest",
			"k8s: {namespace: default, service_account: a, token: {file: given/key}}"),
		"bearer": decision("token: {env: PLANTED}"),
		"basic":  decision("username: weigher\n  password: {file: given/key}"),
	} {
		for _, mode := range echoModes {
			t.Run(name+" "+mode, func(t *testing.T) {
				t.Parallel()
				needsAreas(t, areaOf(experiment))
				r := newSecretRoom(t, "")
				server := httptest.NewServer(r.echoServer(mode))
				defer server.Close()
				r.writeFile("x.yaml", strings.Replace(experiment, "URL", server.URL, 1))
				if code := r.tare(3*time.Second, []syscall.Signal{syscall.SIGINT}, "-v", "run", "x.yaml"); code == cli.ExitUsage {
					t.Errorf("the experiment was rejected, so nothing was tested\n%s", &r.said)
				}
				if mode == "status" {
					r.runReaders()
				}
				r.searchSecret()
			})
		}
	}
}

// TestNoSecretOfAKubeconfigIsWritten uses a kubeconfig's token against API servers that echo it in every way.
func TestNoSecretOfAKubeconfigIsWritten(t *testing.T) {
	hosttest.SkipIfShort(t)
	needsAreas(t, "admission")
	t.Parallel()
	for _, mode := range echoModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newSecretRoom(t, `name: x
area: admission
question: compare
target: {kubeconfig: given/kubeconfig}
baseline: {mechanism: none}
treatments: [{mechanism: vap, policies: 1}]
load: {rate: 5/s, operations: [{create-pod-dry-run: 1}], duration: 1s, max_rate: 20/s, timeout: 1s}
blocks: 3
seed: 1
`)
			server := httptest.NewTLSServer(r.echoServer(mode))
			defer server.Close()
			r.writeSecretFile("kubeconfig", fmt.Sprintf(
				"apiVersion: v1\nkind: Config\ncurrent-context: here\ncontexts: [{name: here, "+
					"context: {cluster: c, user: u}}]\n"+
					"clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}]\nusers: [{name: u, user: {token: "+
					"%q}}]\n", server.URL, r.secret))
			interrupt := []syscall.Signal{syscall.SIGINT}
			code := r.tare(3*time.Second, interrupt, "-v", "run", "x.yaml", "--set", "blocks=3")
			if code == cli.ExitUsage {
				t.Errorf("the experiment was rejected, so nothing was tested\n%s", &r.said)
			}
			r.tare(3*time.Second, []syscall.Signal{syscall.SIGINT}, "doctor", "--rbac", "x.yaml")
			r.tare(3*time.Second, []syscall.Signal{syscall.SIGINT}, "doctor", "--rbac", "--kubeconfig", "given/kubeconfig")
			if mode == "status" {
				r.runReaders()
			}
			r.searchSecret()
		})
	}
}

// TestLiteralSecretsAreNotPrinted: secrets that are in a file by mistake are rejected before there is a record, and not
// printed.
func TestLiteralSecretsAreNotPrinted(t *testing.T) {
	needsAreas(t, "identity")
	t.Parallel()
	for name, c := range map[string]struct{ experiment, was, is string }{
		"password in a URL": {secretExperiment, "http://127.0.0.1:1", "http://weigher:SECRET@127.0.0.1:1"},
		"client secret":     {secretExperiment, "{env: PLANTED}", "SECRET"},
		"mapping":           {secretExperiment, "{env: PLANTED}", "{SECRET}"},
		"env":               {secretExperiment, "{env: PLANTED}", "{env: \"SECRET\"}"},
		"misspelt":          {secretExperiment, "{env: PLANTED}", "{enw: SECRET}"},
		"header": {
			secretExperiment, "secret_headers: {X-Api-Key: {file: key}}", "headers: {Authorization: Bearer SECRET}",
		},
		"key beside":            {secretExperiment, "client_id: weigher", "client_id: weigher, api_key: SECRET"},
		"in a body":             {secretBodyExperiment, "{pw}", "SECRET"},
		"in a JWT":              {secretBodyExperiment, `"password": "{pw}"`, `"jwt": "SECRET"`},
		"in a header of a body": {secretBodyExperiment, "  http:\n", "  headers: {X-Api-Key: SECRET}\n  http:\n"},
		"in a cookie":           {secretBodyExperiment, "  http:\n", "  headers:\n    Cookie: SECRET\n  http:\n"},
		"in the query":          {secretBodyExperiment, "    body:", "    path: /?code=SECRET&api_key=SECRET\n    body:"},
		"for a place":           {secretBodyExperiment, "{env: PLANTED}", "SECRET"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newSecretRoom(t, "")
			text := strings.Replace(fmt.Sprintf(c.experiment, "http://127.0.0.1:1"), c.was, c.is, 1)
			if !strings.Contains(text, "SECRET") {
				t.Fatalf("%q is not in the experiment", c.was)
			}
			r.writeSecretFile("x.yaml", strings.ReplaceAll(text, "SECRET", r.secret))
			for _, args := range [][]string{{"validate"}, {"-v", "plan", "--try"}, {"run"}, {"run", "--dry-run"}} {
				said := r.said.Len()
				code, words := r.tare(0, nil, append(args, "given/x.yaml")...), r.said.String()[said:]
				if code != cli.ExitUsage || !strings.Contains(words, "secret") && !strings.Contains(words, "must not hold one") {
					t.Errorf("tare %v: exit %d, want a rejection of the secret\n%s", args, code, words)
				}
			}
			if records, _ := filepath.Glob(filepath.Join(r.dir, "results", "*")); len(records) > 0 {
				t.Errorf("the rejected experiment has a record: %v", records)
			}
			r.searchSecret()
		})
	}
}

// secretDriver is a program of the area exec that prints its secret in the way that its argument says.
func secretDriver() {
	mode, secret := os.Args[1], os.Getenv("PLANTED")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var q struct {
			ID        uint64 `json:"id"`
			Do        string `json:"do"`
			Operation string `json:"operation"`
			Calls     int    `json:"calls"`
		}
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			os.Exit(3)
		}
		if at, how, _ := strings.Cut(mode, "-"); at == q.Do {
			switch how {
			case "dies":
				fmt.Fprintf(os.Stderr, "fatal: bad credential %s\n", secret)
				os.Exit(4)
			case "says":
				fmt.Printf("credential=%s\n", secret)
			case "errs":
				fmt.Printf("{\"id\":%d,\"error\":%q}\n", q.ID, "cannot log in with "+secret)
				continue
			case "unended":
				fmt.Printf("credential=%s", secret)
				os.Exit(5)
			case "logs":
				fmt.Fprintf(os.Stderr, "debug: with %s\n", secret)
			}
		}
		fmt.Printf("{\"id\":%d,\"ok\":%s}\n", q.ID, map[string]string{
			"describe": `{"protocol":1,"name":"leaky","version":"1","operations":[{"name":"call"},{"name":"empty","harness":true}]}`,
			"verify":   `{"checks":["it is there"]}`, "operate": fmt.Sprintf(`{"calls":%d,"total":{"wall":%g}}`, q.Calls, 1.0007e-6*float64(max(q.Calls, 1))),
		}[q.Do]+map[bool]string{true: "{}"}[!slices.Contains([]string{"describe", "verify", "operate"}, q.Do)])
	}
}

// TestNoSecretOfAProgramIsWritten: a program of the area exec receives the secret, and nothing that it prints about it
// is written anywhere.
func TestNoSecretOfAProgramIsWritten(t *testing.T) {
	hosttest.SkipIfShort(t)
	needsAreas(t, "exec")
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{
		"never", "describe-dies", "describe-says", "describe-errs", "prepare-dies", "prepare-unended", "prepare-errs",
		"verify-dies", "verify-errs", "verify-says", "operate-dies",
		"operate-errs", "operate-logs", "operate-unended", "undo-dies", "undo-errs", "undo-logs", "stop-dies", "stop-says",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newSecretRoom(t, fmt.Sprintf("name: x\narea: exec\nquestion: compare\ntarget: {program: [./secretdriver, "+
				"%s], env: [PLANTED], rounds: 3, span: 1ms}\n"+
				"baseline: {a: 1}\ntreatments: [{a: 2}]\nblocks: 3\nseed: 1\n", mode))
			r.allowed = "secretdriver"
			if err := os.Symlink(self, filepath.Join(r.dir, "secretdriver")); err != nil {
				t.Fatal(err)
			}
			r.tare(0, nil, "-v", "run", "x.yaml", "--set", "blocks=2")
			if strings.HasPrefix(mode, "undo") || mode == "operate-errs" {
				r.tare(300*time.Millisecond, []syscall.Signal{syscall.SIGKILL}, "run", "x.yaml", "--set", "blocks=3")
				if mode == "operate-errs" {
					r.runReaders()
				} else {
					r.readRecords()
				}
			}
			r.searchSecret()
			if mode == "never" {
				r.wantChild("secretdriver")
			} else if !strings.HasSuffix(mode, "logs") && !strings.Contains(r.said.String(), "********") {
				t.Errorf("nothing was masked: the program did not print its secret\n%s", &r.said)
			}
		})
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
