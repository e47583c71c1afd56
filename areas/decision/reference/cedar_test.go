package reference

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cedar-policy/cedar-go"
	"github.com/google/go-cmp/cmp"

	"tare/areas/decision/cedarset"
	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/internal/clock"
	"tare/rigs/hosttest"
	"tare/rigs/memtest"
)

// A cedarServer is a running Cedar server with n policies of the model.
type cedarServer struct {
	ready engine.Ready
	url   string
}

func startCedar(t *testing.T, cfg engine.Config, n int) cedarServer {
	t.Helper()
	cfg.N, cfg.File = n, filepath.Join(t.TempDir(), "policies.cedar")
	if err := os.WriteFile(cfg.File, (model.Set{N: n}).Cedar(), 0o600); err != nil {
		t.Fatal(err)
	}
	ready, _ := running(t, cfg, RunCedar)
	return cedarServer{ready: ready, url: "http://" + ready.Addr}
}

func (s cedarServer) post(t *testing.T, path, body string) (int, string, http.Header) {
	t.Helper()
	return s.do(t, http.MethodPost, path, body)
}

func (s cedarServer) get(t *testing.T, path string) (int, string, http.Header) {
	t.Helper()
	return s.do(t, http.MethodGet, path, "")
}

func (s cedarServer) do(t *testing.T, method, path, body string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-ID", "the-one")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // read to its end below
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(b)), resp.Header
}

// authzenOf returns the model's question as an AuthZEN request.
func authzenOf(t *testing.T, q model.Question) string {
	t.Helper()
	entity := func(e model.Entity) any {
		return map[string]any{"type": e.Type, "id": e.ID, "properties": e.Properties}
	}
	b, err := json.Marshal(map[string]any{
		"subject": entity(q.Subject), "resource": entity(q.Resource), "action": map[string]any{"name": q.Action},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestCedarMatchesTheModel(t *testing.T) {
	for _, n := range []int{1, 2, 100} {
		s, set := startCedar(t, engine.Config{}, n), model.Set{N: n}
		if s.ready.LoadSeconds <= 0 {
			t.Errorf("%d policies were loaded in %v s", n, s.ready.LoadSeconds)
		}
		for _, q := range []model.Question{
			set.Ask(model.First), set.Ask(model.Last), set.Ask(model.Absent), set.Forbidden(model.First),
			set.Forbidden(model.Last),
		} {
			want := fmt.Sprintf(`{"decision":%v}`, q.Want == model.Permit)
			status, got, header := s.post(t, evaluationPath, authzenOf(t, q))
			if status != http.StatusOK || got != want {
				t.Errorf("%d policies, %s of %s: %d %s, want %s", n, q.Name, q.Resource.ID, status, got, want)
			}
			if header.Get("X-Request-ID") != "the-one" || header.Get("Content-Type") != "application/json" {
				t.Errorf("headers %v", header)
			}
		}
	}
}

// TestCedarBatch follows AuthZEN 1.0, "Access Evaluations API".
func TestCedarBatch(t *testing.T) {
	s := startCedar(t, engine.Config{}, 2)
	alice := `{"type":"User","id":"alice","properties":{"role":["role0","role1"],"dept":"d0"}}`
	const yes, no, broken = `{"resource":{"type":"Doc","id":"doc0"}}`, `{"resource":{"type":"Doc","id":"doc1"}}`, `{"resource":{"type":"Doc"}}`
	batch := func(semantic string, items ...string) string {
		options := ""
		if semantic != "" {
			options = fmt.Sprintf(`,"options":{"evaluations_semantic":%q}`, semantic)
		}
		return fmt.Sprintf(`{"subject":%s,"action":{"name":"read"},"evaluations":[%s]%s}`, alice, strings.Join(items, ","), options)
	}
	const t1, f1 = `{"decision":true}`, `{"decision":false}`
	const e1 = `{"decision":false,"context":{"error":{"status":400,"message":"resource: type and id are needed"}}}`
	for name, c := range map[string]struct{ body, want string }{
		"all by default":      {batch("", yes, no, yes), t1 + "," + f1 + "," + t1},
		"all":                 {batch(executeAll, no, yes), f1 + "," + t1},
		"up to the deny":      {batch(denyOnFirstDeny, yes, no, yes), t1 + "," + f1},
		"no deny":             {batch(denyOnFirstDeny, yes, yes), t1 + "," + t1},
		"up to the permit":    {batch(permitOnFirstTrue, no, yes, no), f1 + "," + t1},
		"an error is its own": {batch("", yes, broken, yes), t1 + "," + e1 + "," + t1},
		"an error is a deny":  {batch(denyOnFirstDeny, broken, yes), e1},
		"own parts come first": {
			batch("", `{"resource":{"type":"Doc","id":"doc0"},"action":{"name":"write"}}`, yes), f1 + "," + t1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			status, got, _ := s.post(t, evaluationsPath, c.body)
			if want := `{"evaluations":[` + c.want + `]}`; status != http.StatusOK || got != want {
				t.Errorf("%d %s\nwant %s", status, got, want)
			}
		})
	}
	// Without evaluations it is one evaluation.
	one := fmt.Sprintf(`{"subject":%s,"action":{"name":"read"},"resource":{"type":"Doc","id":"doc0"}`, alice)
	for _, body := range []string{one + "}", one + `,"evaluations":[]}`} {
		if status, got, _ := s.post(t, evaluationsPath, body); status != http.StatusOK || got != t1 {
			t.Errorf("batch %s: got %d %s, want 200 true", body, status, got)
		}
	}
	if status, got, _ := s.post(t, evaluationsPath, batch("first_come", yes)); status != http.StatusBadRequest ||
		!strings.Contains(got, "evaluations_semantic") {
		t.Errorf("unknown semantic: %d %s", status, got)
	}
	many := strings.TrimSuffix(strings.Repeat(yes+",", maxEvaluations+1), ",")
	if status, got, _ := s.post(t, evaluationsPath, batch("", many)); status != http.StatusBadRequest ||
		!strings.Contains(got, "at most") {
		t.Errorf("too many: %d %s", status, got)
	}
}

func TestCedarRefuses(t *testing.T) {
	s := startCedar(t, engine.Config{}, 1)
	const subject, action, resource = `"subject":{"type":"User","id":"a"}`, `"action":{"name":"read"}`, `"resource":{"type":"Doc","id":"doc0"}`
	const good = "{" + subject + "," + action + "," + resource
	for name, c := range map[string]struct {
		body   string
		status int
		says   string
	}{
		"nothing":       {"", 400, "no JSON object"},
		"null":          {"null", 400, "no JSON object"},
		"a list":        {"[]", 400, "no JSON object"},
		"half":          {`{"subject":`, 400, "no JSON object"},
		"two":           {good + "} {}", 400, "more than one"},
		"no subject":    {"{" + action + "," + resource + "}", 400, "subject: type and id"},
		"no type":       {`{"subject":{"id":"a"},` + action + "," + resource + "}", 400, "subject: type and id"},
		"no action":     {"{" + subject + "," + resource + "}", 400, "action: name"},
		"no resource":   {"{" + subject + "," + action + "}", 400, "resource: type and id"},
		"odd type":      {`{"subject":"alice",` + action + "," + resource + "}", 400, "no JSON object"},
		"odd context":   {good + `,"context":7}`, 400, "context: not a JSON object"},
		"fraction":      {good + `,"context":{"a":1.5}}`, 400, `context: "a": 1.5 is no whole number`},
		"deep":          {good + `,"context":{"a":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + "}}", 400, "nested deeper"},
		"deep objects":  {good + `,"context":` + strings.Repeat(`{"a":`, 99) + "1" + strings.Repeat("}", 99) + "}", 400, "nested deeper"},
		"null in a set": {good + `,"context":{"a":[null]}}`, 400, "null in a set"},
		"large":         {`{"a":"` + strings.Repeat("x", maxBody) + `"}`, 413, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			status, got, header := s.post(t, evaluationPath, c.body)
			if status != c.status || !strings.Contains(got, c.says) {
				t.Errorf("%d %s, want %d with %q", status, got, c.status, c.says)
			}
			if header.Get("X-Request-ID") != "the-one" {
				t.Error("the request's ID was not sent back")
			}
		})
	}
	if status, _, _ := s.get(t, evaluationPath); status != http.StatusMethodNotAllowed {
		t.Errorf("GET: status %d", status)
	}
	if status, _, _ := s.post(t, "/elsewhere", "{}"); status != http.StatusNotFound {
		t.Errorf("another path: status %d", status)
	}
	// What it does not know is ignored, and null properties are no properties.
	body := `{"subject":{"type":"User","id":"a","properties":null,"more":[1]},` + action + "," + resource + `,"context":{"n":null,"l":[1,"x",true,{"a":{}}]},"new":{}}`
	if status, got, _ := s.post(t, evaluationPath, body); status != http.StatusOK || got != `{"decision":false}` {
		t.Errorf("unknown members: %d %s", status, got)
	}
}

func TestCedarPlantedAnswers(t *testing.T) {
	set := model.Set{N: 3}
	type answers struct{ Permit, Deny, Absent string }
	const yes, no = `200 {"decision":true}`, `200 {"decision":false}`
	const failed = "500 indeterminate: the policies could not be evaluated"
	for fault, want := range map[string]answers{
		"":                    {yes, no, no},
		alwaysPermit:          {yes, yes, yes},
		notApplicableAsPermit: {yes, no, yes},
		indeterminate:         {failed, failed, failed},
	} {
		t.Run(fault, func(t *testing.T) {
			s := startCedar(t, engine.Config{Answer: fault}, set.N)
			ask := func(q model.Question) string {
				status, text, _ := s.post(t, evaluationPath, authzenOf(t, q))
				return fmt.Sprint(status, " ", text)
			}
			got := answers{ask(set.Ask(model.Last)), ask(set.Forbidden(model.Last)), ask(set.Ask(model.Absent))}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCedarRefusesItsConfig(t *testing.T) {
	dir := cedarFiles(t, map[string]string{"broken.cedar": "permit(principal, action, resource) when", "empty.cedar": ""})
	for says, cfg := range map[string]engine.Config{
		"planted answer":   {Addr: "127.0.0.1:0", File: dir + "/broken.cedar", Answer: "maybe"},
		"no such file":     {Addr: "127.0.0.1:0", File: dir + "/none"},
		"broken.cedar":     {Addr: "127.0.0.1:0", File: dir + "/broken.cedar"},
		"cedar: listen":    {Addr: "192.0.2.1:1", File: dir + "/empty.cedar"},
		"cedar: not today": {Addr: "127.0.0.1:0", File: dir + "/empty.cedar"},
	} {
		err := RunCedar(t.Context(), cfg, func(engine.Ready) error { return errors.New("cedar: not today") })
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want %q", err, says)
		}
	}
}

// TestCedarIsReadyAfterItsDelay on a fake clock.
func TestCedarIsReadyAfterItsDelay(t *testing.T) {
	c := clock.NewFake(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	d, err := newCedar(c, engine.Config{File: cedarFiles(t, map[string]string{"empty.cedar": ""}), Delay: 2})
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"subject":{"type":"U","id":"a"},"action":{"name":"x"},"resource":{"type":"D","id":"b"}}`
	for _, want := range []int{http.StatusServiceUnavailable, http.StatusServiceUnavailable, http.StatusOK} {
		w := newRecorder(t, d.handler(), http.MethodPost, evaluationPath, body)
		if w.Code != want {
			t.Errorf("at %v: status %d, want %d", c.Now(), w.Code, want)
		}
		c.Advance(time.Second)
	}
}

// TestCedarMetrics: its metrics count the questions that were asked.
func TestCedarMetrics(t *testing.T) {
	s, set := startCedar(t, engine.Config{}, 2), model.Set{N: 2}
	for range 3 {
		s.post(t, evaluationPath, authzenOf(t, set.Ask(model.First)))
	}
	s.post(t, evaluationPath, authzenOf(t, set.Forbidden(model.First)))
	s.post(t, evaluationPath, "{")
	status, text, header := s.get(t, "/metrics")
	if status != http.StatusOK || !strings.HasPrefix(header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Fatalf("metrics: got status %d, headers %v", status, header)
	}
	values := map[string]float64{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(line, "#") {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Errorf("line %q: %v", line, err)
			}
			values[name] = v
		}
	}
	for name, want := range map[string]float64{
		`authzen_decisions_total{decision="permit"}`: 3, `authzen_decisions_total{decision="deny"}`: 1,
		"authzen_request_errors_total": 1, "cedar_policy_errors_total": 0,
	} {
		if got, ok := values[name]; !ok || got != want {
			t.Errorf("%s is %v (%v), want %v", name, got, ok, want)
		}
	}
	for _, name := range []string{"go_memstats_heap_alloc_bytes", "go_memstats_heap_inuse_bytes", "go_goroutines"} {
		if values[name] <= 0 {
			t.Errorf("%s is %v", name, values[name])
		}
	}
	if _, ok := values["go_gc_duration_seconds_sum"]; !ok {
		t.Errorf("no pauses in\n%s", text)
	}
}

func TestCedarReportsItsAddress(t *testing.T) {
	s := startCedar(t, engine.Config{}, 1)
	_, text, _ := s.get(t, metadataPath)
	var got map[string]string
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"policy_decision_point": s.url, "access_evaluation_endpoint": s.url + evaluationPath,
		"access_evaluations_endpoint": s.url + evaluationsPath,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMain(m *testing.M) { hosttest.Main(m) }

// FuzzCedarRequest: the answer to any request is a decision or an error with a text, never a panic; a permitted request
// names the one subject, action and resource of the policy.
func FuzzCedarRequest(f *testing.F) {
	for _, seed := range []string{
		`{"subject":{"type":"User","id":"alice","properties":{"role":"r"}},"action":{"name":"read"},"resource":{"type":"Doc","id":"d"}}`,
		`{"subject":{"type":"User","id":"alice","properties":{"role":["r",1]}},"action":{"name":"read","properties":{"a":1}},"resource":{"type":"Doc","id":"d"},"context":{"a":{"b":[1,true,"x"]}}}`,
		`{"subject":{"type":"U","id":"a"},"evaluations":[{"action":{"name":"read"}},{}],"options":{"evaluations_semantic":"deny_on_first_deny"}}`,
		`{"subject":{"type":"User","id":"alice","properties":{"boss":{"__entity":{"type":"User","id":"bob"}}}},"action":{"name":"X::Action::\"read\""},"resource":{"type":"Doc","id":"d"},"context":{"at":{"__extn":{"fn":"datetime","arg":"2026-01-01"}}}}`,
		`{"evaluations":[]}`, `{"subject":{"type":"a::b\"","id":"\u0000"}}`, `null`, `[1e99]`, "\xff", "",
	} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	const policy = `permit(principal in Role::"r", action == Action::"read", resource == Doc::"d") when { principal has role };`
	plain := cedarOf(f, map[string]string{"p.cedar": policy})
	// With a schema and entities, too, each request is answered or refused.
	typed := cedarOf(f, map[string]string{
		"p.cedar": policy,
		"s.cedarschema": `entity Role; entity Doc { at?: datetime, from?: Set<ipaddr> };
			entity User in [Role] { role?: String, boss?: User };
			action read appliesTo { principal: User, resource: Doc, context: { at?: datetime, a?: { b?: decimal } } };`,
		"entities.json": `[{"uid": {"type": "User", "id": "alice"}, "attrs": {}, "parents": []}]`,
	})
	f.Fuzz(func(t *testing.T, body string, batch bool) {
		if w := newRecorder(t, typed, http.MethodPost, evaluationPath, body); w.Code != http.StatusOK &&
			w.Code != http.StatusBadRequest {
			t.Errorf("with a schema: status %d: %s", w.Code, w.Body)
		}
		defer memtest.Bound(t, len(body))()
		path := evaluationPath
		if batch {
			path = evaluationsPath
		}
		w := newRecorder(t, plain, http.MethodPost, path, body)
		switch w.Code {
		case http.StatusOK:
			checkAnswer(t, w.Body.Bytes(), body)
		case http.StatusBadRequest:
			if w.Body.Len() < 3 {
				t.Errorf("status 400 without a word about %q", body)
			}
		default:
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
	})
}

// cedarFiles writes files into a new folder.
func cedarFiles(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// cedarOf is a decision point with these files.
func cedarOf(f *testing.F, files map[string]string) http.Handler {
	f.Helper()
	d, err := newCedar(clock.System{}, engine.Config{File: cedarFiles(f, files)})
	if err != nil {
		f.Fatal(err)
	}
	return d.handler()
}

func checkAnswer(t *testing.T, answer []byte, body string) {
	t.Helper()
	var out struct {
		Decision    *bool
		Evaluations []struct{ Decision *bool }
	}
	if err := json.Unmarshal(answer, &out); err != nil {
		t.Fatalf("answer %s: %v", answer, err)
	}
	if out.Decision == nil && len(out.Evaluations) == 0 {
		t.Fatalf("%s holds no decision", answer)
	}
	if out.Decision == nil || !*out.Decision {
		return
	}
	var asked struct {
		Subject  struct{ Properties map[string]any }
		Action   struct{ Name string }
		Resource struct{ Type, ID string }
	}
	if err := json.Unmarshal([]byte(body), &asked); err != nil {
		t.Fatalf("permitted though %v: %q", err, body)
	}
	if cedarset.Action(asked.Action.Name) != cedar.NewEntityUID("Action", "read") ||
		asked.Resource.Type != "Doc" || asked.Resource.ID != "d" ||
		asked.Subject.Properties["role"] == nil {
		t.Errorf("permitted: %q", body)
	}
}

// TestEnforcerHandsOnTheQuestionOnly: a decision point that knows tare by a certificate would take every other user who
// connects to the enforcement point for tare.
func TestEnforcerHandsOnTheQuestionOnly(t *testing.T) {
	pair, err := engine.NewPair()
	if err != nil {
		t.Fatal(err)
	}
	known, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	point := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Method + " " + r.RequestURI))
	}))
	point.TLS = &tls.Config{
		Certificates: known.Certificates, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: known.RootCAs,
	}
	point.StartTLS()
	defer point.Close()
	enforcer, _ := running(t, engine.Config{
		Upstream: point.Listener.Addr().String(), Pair: pair, Path: "/v1/data/a/b", Within: 60,
	}, RunEnforcer)
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{http.MethodPost, "/v1/data/a/b", http.StatusOK},
		{http.MethodGet, "/v1/data/a/b", http.StatusForbidden},
		{http.MethodPost, "/v1/data/a/b?explain=full", http.StatusForbidden},
		{http.MethodPost, "/v1/data/a%2Fb", http.StatusForbidden},
		{http.MethodPost, "/v1/data/", http.StatusForbidden},
		{http.MethodPost, "/v1/query", http.StatusForbidden},
		{http.MethodGet, "/v1/policies", http.StatusForbidden},
		{http.MethodGet, "/metrics", http.StatusForbidden},
	} {
		status, said, _ := cedarServer{url: "http://" + enforcer.Addr}.do(t, c.method, c.path, "{}")
		if isHandedOn := said == c.method+" "+c.path; status != c.status || isHandedOn != (c.status == http.StatusOK) {
			t.Errorf("%s %s: got status %d, %s; want %d", c.method, c.path, status, said, c.status)
		}
	}
}

func newRecorder(t *testing.T, h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	return w
}

// anonymousMemory returns the memory of this process that no file backs, in bytes: RssAnon of proc_pid_status(5).
func anonymousMemory(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "RssAnon:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no RssAnon")
	return 0
}

// TestLeakGrowsAtItsRate: over each of ten hours of a fake clock the process grows by the leak of that hour, also
// across the end of a chunk. The test itself allocates far less.
func TestLeakGrowsAtItsRate(t *testing.T) {
	const perSec, hour = 4096, 3600 // 14 MiB an hour
	c := clock.NewFake(time.Unix(0, 0))
	l := &leak{clock: c, began: c.Now(), perSec: perSec, cancel: func() {}}
	before := anonymousMemory(t)
	for i := int64(1); i <= 10; i++ {
		c.Advance(hour * time.Second)
		if err := l.grow(); err != nil {
			t.Fatal(err)
		}
		want := i * perSec * hour
		if l.touched != want {
			t.Errorf("after %d h %d bytes are kept, want %d", i, l.touched, want)
		}
		if got := anonymousMemory(t) - before; got < want-(4<<20) || got > want+(8<<20) {
			t.Errorf("after %d h the process has grown by %d bytes, want %d", i, got, want)
		}
	}
	if len(l.kept) != 3 {
		t.Errorf("%d chunks of 64 MiB for 141 MiB", len(l.kept))
	}
	if err := l.stop(); err != nil {
		t.Error(err)
	}
	if got := anonymousMemory(t) - before; got > 16<<20 {
		t.Errorf("after the end %d bytes are left", got)
	}
}

// TestLeakRuns: the goroutine keeps up with the machine's clock and stops when told to.
func TestLeakRuns(t *testing.T) {
	l := startLeak(clock.System{}, 100<<20)
	before, deadline := anonymousMemory(t), time.Now().Add(30*time.Second)
	for anonymousMemory(t)-before < 20<<20 {
		if time.Now().After(deadline) {
			t.Fatal("the process does not grow")
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := l.stop(); err != nil {
		t.Error(err)
	}
}
