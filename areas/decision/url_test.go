package decision

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tare/area"
	"tare/areas/decision/engine"
	"tare/areas/decision/protocol"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/files"
	"tare/internal/probe"
	"tare/internal/ratelimit"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// fakeOPA is the part of OPA's REST API that Load, Unload and questions use. It evaluates the model's policies itself.
type fakeOPA struct {
	token string

	mu      sync.Mutex
	modules map[string]string
	puts    int
}

func (f *fakeOPA) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer "+f.token {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	name, isModule := strings.CutPrefix(r.URL.Path, "/v1/policies/")
	switch {
	case isModule && r.Method == http.MethodPut:
		b, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		f.modules[name] = string(b)
		f.puts++
	case isModule && r.Method == http.MethodDelete:
		if _, ok := f.modules[name]; !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		delete(f.modules, name)
	case strings.HasPrefix(r.URL.Path, "/v1/data/tare/p_") && r.Method == http.MethodPost:
		f.decide(w, r)
		return
	}
	fmt.Fprint(w, "{}") //nolint:errcheck // the client sees it
}

func (f *fakeOPA) decide(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Input struct {
			Subject  struct{ Properties map[string]string }
			Resource struct{ ID string }
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil || len(f.modules) == 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	i := strings.TrimPrefix(q.Input.Resource.ID, "doc")
	p := q.Input.Subject.Properties
	rule := fmt.Sprintf("%q", q.Input.Resource.ID)
	if !slices.ContainsFunc(slices.Collect(maps.Values(f.modules)), func(m string) bool {
		return strings.Contains(m, rule)
	}) {
		fmt.Fprint(w, "{}") //nolint:errcheck // not defined
		return
	}
	fmt.Fprintf(w, `{"result":%v}`, p["role"] == "role"+i && p["dept"] == "d"+i) //nolint:errcheck // the client sees it
}

func (f *fakeOPA) loaded() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.modules))
}

const plantedSecret = "tok-3f9a7c-very-secret"

func opaSpec(url string) *Spec {
	return &Spec{Adapter: "opa", URL: url, Token: area.Secret{Env: "OPA_TOKEN"}, Load: true, Policies: 4}
}

// startFakeOPA starts one that holds a policy of others, and returns a section that loads more into it.
func startFakeOPA(t *testing.T) (*fakeOPA, *Spec) {
	t.Helper()
	f := &fakeOPA{token: plantedSecret, modules: map[string]string{"theirs": "package theirs"}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return f, opaSpec(server.URL)
}

// TestLoadPolicies loads policies into an external decision point, verifies them, and removes them; other policies
// stay.
func TestLoadPolicies(t *testing.T) {
	f, spec := startFakeOPA(t)
	env := testEnv(t, "OPA_TOKEN", plantedSecret)
	if found := (Area{}).Preflight(t.Context(), spec, env); len(found) > 0 {
		t.Errorf("preflight: %v", found)
	}
	look := env
	look.Look = true
	if found := (Area{}).Preflight(t.Context(), spec, look); len(found) != 1 || found[0].Severity != area.Info ||
		!strings.Contains(found[0].Message, "no request of the experiment was sent") {
		t.Errorf("a look: %v", found)
	}
	tg, j := verifiedIn(t, spec, env)
	if n := len(f.loaded()); n != 2 {
		t.Fatalf("modules %v", f.loaded())
	}
	journal, err := json.Marshal(j.Changes())
	if err != nil || !bytes.Contains(journal, []byte("OPA_TOKEN")) || bytes.Contains(journal, []byte(plantedSecret)) {
		t.Errorf("the journal is to name the place of the token, and not hold it: %s, %v", journal, err)
	}
	if err := tg.Close(t.Context()); err != nil || len(j.Pending()) > 0 {
		t.Errorf("close: %v, %d changes left", err, len(j.Pending()))
	}
	if got := f.loaded(); !slices.Equal(got, []string{"theirs"}) {
		t.Errorf("after the run the decision point holds %v", got)
	}
	noSecret(t, env.Dir, plantedSecret)
}

// TestUndoLoadedPolicies: undo after kill −9 reads the secrets again, may be repeated, keeps to the run's max_rate, and
// without the secret its error says where the secret is expected.
func TestUndoLoadedPolicies(t *testing.T) {
	f, spec := startFakeOPA(t)
	env := testEnv(t, "OPA_TOKEN", plantedSecret)
	now := clock.NewFake(time.Unix(1, 0))
	const rate = 2
	env.Clock, env.Limit = now, ratelimit.New(now, rate)
	_, j := preparedIn(t, spec, env)
	env.Limit = nil
	changes := j.Pending()
	if err := (Area{}).Undo(t.Context(), changes, testEnv(t)); err == nil || !strings.Contains(err.Error(), "OPA_TOKEN") ||
		len(f.loaded()) != 2 {
		t.Errorf("undo without the secret: %v, modules %v", err, f.loaded())
	}
	areatest.UndoTwice(t, Area{}, changes, env)
	if got := f.loaded(); !slices.Equal(got, []string{"theirs"}) {
		t.Errorf("after undo the decision point holds %v", got)
	}
	begin, many := now.Now(), slices.Repeat(changes, 9)
	if err := (Area{}).Undo(t.Context(), many, env); err != nil {
		t.Fatal(err)
	}
	if took, least := now.Now().Sub(begin), time.Duration(len(many)-1)*time.Second/rate; took < least {
		t.Errorf("%d requests to undo took %v, want at least %v at %d/s", len(many), took, least, rate)
	}
	changes[0].Data["max_rate"] = "fast"
	if err := (Area{}).Undo(t.Context(), changes, env); err == nil || !strings.Contains(err.Error(), `"fast" is no rate`) {
		t.Errorf("of a journal with a wrong rate: %v", err)
	}
}

// TestUndoLeavesOtherRuns: two runs whose records have the same path load policies into one decision point at the same
// instant; undoing one run leaves the policies of the other.
func TestUndoLeavesOtherRuns(t *testing.T) {
	f, spec := startFakeOPA(t)
	dir, now := t.TempDir(), clock.NewFake(time.Unix(1, 0))
	var changes [2][]area.Change
	for i := range changes {
		env := testEnv(t, "OPA_TOKEN", plantedSecret)
		env.Dir, env.Clock = dir, now
		_, j := preparedIn(t, spec, env)
		changes[i] = j.Changes()
	}
	before := f.loaded()
	if err := (Area{}).Undo(t.Context(), changes[0], testEnv(t, "OPA_TOKEN", plantedSecret)); err != nil {
		t.Fatal(err)
	}
	if after := f.loaded(); len(before) != 3 || len(after) != 2 {
		t.Errorf("the decision point held %v, and then %v: want theirs and one of each run, then one less", before, after)
	}
}

// TestWrongCredentials are named as the cause, without the secret.
func TestWrongCredentials(t *testing.T) {
	f, spec := startFakeOPA(t)
	f.token = "another"
	tg, j := opened(t, spec, testEnv(t, "OPA_TOKEN", plantedSecret))
	err := tg.Prepare(t.Context(), standard, j)
	if err == nil || !strings.Contains(err.Error(), "401") || strings.Contains(err.Error(), plantedSecret) {
		t.Errorf("prepare: %v", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.token = plantedSecret // so that Close looks for loaded policies
}

// startXACML starts an XACML decision point that always returns the same decision.
func startXACML(t *testing.T, decision string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/xacml+json")
		fmt.Fprintf(w, `{"Response":[{"Decision":%q}]}`, decision) //nolint:errcheck // the client sees it
	}))
	t.Cleanup(server.Close)
	return server
}

func xacmlSpec(url string) *Spec {
	who := Entity{ID: "alice"}
	return &Spec{Adapter: "xacml", URL: url, Requests: []Request{
		{Name: "read", Subject: who, Action: "read", Resource: Entity{ID: "doc"}, Expect: "permit"},
		{Name: "steal", Subject: who, Action: "steal", Resource: Entity{ID: "doc"}, Expect: "deny"},
	}}
}

// TestVerifyChecksExpectedAnswers: requests about external policies must get the answers that the file expects.
func TestVerifyChecksExpectedAnswers(t *testing.T) {
	for decision, want := range map[string]string{
		"Permit":        `canary "steal": the decision point permits a request that must be refused`,
		"Deny":          `canary "read": this request is denied, although a policy should permit it`,
		"NotApplicable": `canary "steal": the decision is not-applicable, and deny was expected`,
		"Indeterminate": `answered with Indeterminate, which is neither yes nor no`,
	} {
		tg, _ := prepared(t, xacmlSpec(startXACML(t, decision).URL))
		if err := tg.Verify(t.Context(), standard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %q", decision, err, want)
		}
	}
}

// TestProcessBehindURLIsFound finds the process behind a loopback URL.
func TestProcessBehindURLIsFound(t *testing.T) {
	// An embedded decision point stands in for an external one.
	theirs, _ := prepared(t, embedded(engine.Cedar, Planted{}))
	p := theirs.arm(standard.ID)
	c, _ := p.latest()
	request := func(name, dept, expect string) string {
		return "{name: " + name + ", expect: " + expect + ", action: read, resource: {type: Doc, id: doc0}, " +
			"subject: {type: User, id: alice, properties: {role: role0, dept: " + dept + "}}}, "
	}
	at := "http://" + p.addr().String()
	spec := specOf(t, "adapter: authzen, url: '"+at+"', metrics: {url: '"+at+"/metrics'}, requests: ["+
		request("yes", "d0", "permit")+request("no", "d1", "deny")+"]")
	tg, _ := verifiedIn(t, spec, testEnv(t))
	seen := sampled(t, tg, standard)
	if seen[probe.Started.Name] != float64(c.StartTicks) || seen[probe.CPU.Name] <= 0 {
		t.Errorf("attached to a process started at tick %v, not %d; CPU %v", seen[probe.Started.Name], c.StartTicks,
			seen[probe.CPU.Name])
	}
	if _, ok := seen[probe.GCCount.Name]; !ok {
		t.Error("the endpoint of metrics gave nothing")
	}
	for what, process := range map[string]*Process{
		"a process that is not there": {PID: 1 << 22}, "a port at which nobody listens": {Port: 1},
		"a group that is not there": {Cgroup: "/no/such/group"},
		"the root group":            {Cgroup: "/"},
	} {
		spec.Process = process
		tg, j := opened(t, spec, testEnv(t))
		if err := tg.Prepare(t.Context(), standard, j); err == nil || !strings.HasPrefix(err.Error(), "process: ") {
			t.Errorf("%s: Prepare returned %v, want an error about the process", what, err)
		}
	}
}

// TestMissingSecret is found before the run.
func TestMissingSecret(t *testing.T) {
	found := (Area{}).Preflight(t.Context(), opaSpec("http://127.0.0.1:1"), testEnv(t))
	if len(found) != 1 || !strings.Contains(found[0].Message, "OPA_TOKEN") || found[0].Hint == "" {
		t.Errorf("preflight: %v", found)
	}
}

// noSecret fails the test if a file below dir contains the secret.
func noSecret(t *testing.T, dir, secret string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(secret)) {
			t.Errorf("%s holds the secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestTrim drops what the host lacks, and says how to install it.
func TestTrim(t *testing.T) {
	arm := areatest.Treatment
	base := arm("engine", "cedar")
	base.Baseline = true
	aa := design.Treatment{ID: design.AAArm, Control: design.AA, Levels: base.Levels, Of: base.ID}
	all := []design.Treatment{
		base, arm("engine", "att", "policies", "1"), arm("engine", "att", "policies", "2"),
		arm("engine", "pdpx"), aa,
	}
	env := testEnv(t, "TARE_CACHE", t.TempDir(), "PATH", t.TempDir()) // nothing is installed, and nothing was built
	kept, found := (Area{}).Trim(t.Context(), &Spec{}, all, env)
	if len(kept) != 3 || kept[0].ID != base.ID || kept[2].ID != design.AAArm {
		t.Errorf("kept %v", kept)
	}
	if len(found) != 1 || found[0].Severity != area.Warning ||
		!strings.Contains(found[0].Message, "left out: engine=att policies=1; engine=att policies=2") || found[0].Hint == "" {
		t.Errorf("findings %+v", found)
	}
	java := arm("engine", "att")
	java.Baseline = true
	kept, found = (Area{}).Trim(t.Context(), &Spec{}, []design.Treatment{java, arm("engine", "cedar")}, env)
	if len(kept) != 2 || len(found) != 1 || found[0].Severity != area.Error || found[0].Hint == "" {
		t.Errorf("without the baseline's engine: kept %v, findings %+v", kept, found)
	}
	kept, found = (Area{}).Trim(t.Context(), embedded(engine.ATT, Planted{}), []design.Treatment{standard}, env)
	if len(kept) != 1 || len(found) != 1 || found[0].Severity != area.Error {
		t.Errorf("with nothing left: kept %v, findings %+v", kept, found)
	}
	if kept, found = (Area{}).Trim(t.Context(), &Spec{}, []design.Treatment{base, aa}, env); len(kept) != 2 ||
		len(found) != 0 {
		t.Errorf("with everything there: kept %v, findings %+v", kept, found)
	}
}

// TestPlanBuildsNothing: a plan reports, and remembers, what a run would build.
func TestPlanBuildsNothing(t *testing.T) {
	bin := t.TempDir()
	for name, says := range map[string]string{"java": "echo 'openjdk version \"17.0.15\"' >&2", "javac": "exit 1"} {
		if err := files.WriteProgram(filepath.Join(bin, name), []byte("#!/bin/sh\n"+says+"\n")); err != nil {
			t.Fatal(err)
		}
	}
	var fetched atomic.Bool // a build begins with that
	repository := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetched.Store(true)
		http.Error(w, "there is none", http.StatusNotFound)
	}))
	defer repository.Close()
	env := testEnv(t, "TARE_CACHE", t.TempDir(), "PATH", bin, engine.Repository, repository.URL)
	env.Look = true
	spec := embedded(engine.ATT, Planted{})
	found := (Area{}).Preflight(t.Context(), spec, env)
	if len(found) != 1 || found[0].Severity != area.Info ||
		!strings.Contains(found[0].Message, "engine att is not there yet: a run builds it") {
		t.Errorf("findings %+v", found)
	}
	if kept, found := (Area{}).Trim(t.Context(), spec, []design.Treatment{standard}, env); len(kept) != 1 ||
		len(found) != 0 {
		t.Errorf("kept %v, findings %+v", kept, found)
	}
	if fetched.Load() {
		t.Error("something was to be built")
	}
	env.Look = false
	if found = (Area{}).Preflight(t.Context(), spec, env); len(found) != 1 || found[0].Severity != area.Error {
		t.Errorf("a run whose build fails: %+v", found)
	}
	if !fetched.Load() {
		t.Error("the run did not try to build")
	}
}

// TestPDPXBehindURL measures an external PDP with basic authentication and its own counts, with questions about its
// policies.
func TestPDPXBehindURL(t *testing.T) {
	theirs, _ := prepared(t, embedded(engine.PDPX, Planted{}))
	p := theirs.arm(standard.ID)
	spec := &Spec{
		Adapter: "pdpx", URL: "http://" + p.addr().String() + "/policy/pdpx/v1/", Username: p.session.Username,
		Password: area.Secret{Env: "PDP_PASSWORD"},
		PDPX:     &protocol.PDPX{Operations: []string{"healthcheck", "monitoring", "guard-minmax"}},
	}
	right := testEnv(t, "PDP_PASSWORD", p.session.Password)
	tg, _ := verifiedIn(t, spec, right)
	if counts, err := tg.Counted(t.Context(), standard); err != nil || counts["permit"] == 0 || counts["deny"] == 0 {
		t.Errorf("counts %v, %v", counts, err)
	}
	ops, err := tg.Operations(standard)
	if err != nil || len(ops) != 3 || ops[0].Weight != 25 || ops[2].Weight != 17 {
		t.Errorf("operations %v, %v", ops, err)
	}
	noSecret(t, right.Dir, p.session.Password)
	for what, pdpx := range map[string]*protocol.PDPX{
		"no policy is deployed for": {Operation: "Something Else", Operations: []string{"guard-minmax"}},
		"no policy applies":         {PolicyID: "no.such.policy", Operations: []string{"monitoring"}},
	} {
		spec.PDPX = pdpx
		tg, _ := preparedIn(t, spec, right)
		if err := tg.Verify(t.Context(), standard); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %q", err, what)
		}
	}
	wrong, _ := preparedIn(t, spec, testEnv(t, "PDP_PASSWORD", plantedSecret))
	if err := wrong.Verify(t.Context(), standard); err == nil || !strings.Contains(err.Error(), "401") ||
		strings.Contains(err.Error(), plantedSecret) {
		t.Errorf("with a wrong password: %v", err)
	}
}

// TestMaxRateLimitsLoadingAndCanaries: loading policies, canaries and the rehearsal also stay below max_rate.
func TestMaxRateLimitsLoadingAndCanaries(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	f := &fakeOPA{token: plantedSecret, modules: map[string]string{}}
	var mu sync.Mutex
	var came []time.Time
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		came = append(came, time.Now())
		mu.Unlock()
		f.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close) // after the target has taken its policies out
	env := testEnv(t, "OPA_TOKEN", plantedSecret)
	const rate = 20
	env.Limit = ratelimit.New(env.Clock, rate)
	begin := time.Now()
	verifiedIn(t, opaSpec(server.URL), env)
	took := time.Since(begin)
	mu.Lock()
	defer mu.Unlock()
	// The rehearsal has its own limit beside that of single requests, so one request may be early between the two.
	if most := rate*took.Seconds() + 2; float64(len(came)) > most || len(came) < 8 {
		t.Errorf("%d requests in %v, want at most %.0f", len(came), took, most)
	}
}

// TestMetricsGetNoCredentialsInTheClear if the decision point itself is reached over TLS.
func TestMetricsGetNoCredentialsInTheClear(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		_, _ = w.Write([]byte("# TYPE x gauge\nx 1\n"))
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	for _, scheme := range []string{"http", "https"} {
		p := &arm{plan: plan{
			spec: &Spec{Metrics: &Metrics{URL: server.URL, Series: []string{"x"}}},
			url:  &url.URL{Scheme: scheme, Host: host},
		}}
		p.session = &protocol.Session{Token: "hunter2"}
		if err := p.attachMetrics(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"Bearer hunter2", ""}; !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
}

// TestExposedSecretsAreNoted: the report says that the experiment file allowed secrets to be sent in the clear.
func TestExposedSecretsAreNoted(t *testing.T) {
	for text, want := range map[string]string{
		"http://pdp.example": "secrets were sent to pdp.example over http://", "https://pdp.example": "",
		"http://127.0.0.1:8080": "",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		p := &arm{plan: plan{url: u, spec: &Spec{ExposeSecrets: true, Token: area.Secret{Env: "TOKEN"}}}}
		if got := strings.Join(p.notes(), "; "); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
