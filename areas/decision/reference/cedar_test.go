package reference

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/internal/clock"
)

// A cedarServer is a running Cedar server with n policies of the model.
type cedarServer struct {
	ready engine.Ready
	url   string
}

func startCedar(t *testing.T, cfg engine.Config, n int) cedarServer {
	t.Helper()
	if cfg.File == "" {
		cfg.File = filepath.Join(t.TempDir(), "policies.cedar")
		if err := os.WriteFile(cfg.File, (model.Set{N: n}).Cedar(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg.Addr, cfg.N = "127.0.0.1:0", n
	ctx, cancel := context.WithCancel(context.Background())
	readies, ended := make(chan engine.Ready, 1), make(chan error, 1)
	go func() {
		ended <- RunCedar(ctx, cfg, func(r engine.Ready) error { readies <- r; return nil })
	}()
	select {
	case err := <-ended:
		cancel()
		t.Fatal(err)
		return cedarServer{}
	case r := <-readies:
		t.Cleanup(func() {
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("ended with %v", err)
			}
		})
		return cedarServer{ready: r, url: "http://" + r.Addr}
	}
}

func (s cedarServer) post(t *testing.T, path, body string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-ID", "the-one")
	return do(t, req)
}

func (s cedarServer) get(t *testing.T, path string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, s.url+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, req)
}

func do(t *testing.T, req *http.Request) (int, string, http.Header) {
	t.Helper()
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
		"subject": entity(q.Subject), "resource": entity(q.Resource),
		"action": map[string]any{"name": q.Action},
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
	for name, c := range map[string]struct {
		body   string
		status int
		says   string
	}{
		"nothing":       {"", 400, "no JSON object"},
		"null":          {"null", 400, "no JSON object"},
		"a list":        {"[]", 400, "no JSON object"},
		"half":          {`{"subject":`, 400, "no JSON object"},
		"two":           {"{" + subject + "," + action + "," + resource + "} {}", 400, "more than one"},
		"no subject":    {"{" + action + "," + resource + "}", 400, "subject: type and id"},
		"no type":       {`{"subject":{"id":"a"},` + action + "," + resource + "}", 400, "subject: type and id"},
		"no action":     {"{" + subject + "," + resource + "}", 400, "action: name"},
		"no resource":   {"{" + subject + "," + action + "}", 400, "resource: type and id"},
		"odd type":      {`{"subject":"alice",` + action + "," + resource + "}", 400, "no JSON object"},
		"odd context":   {"{" + subject + "," + action + "," + resource + `,"context":7}`, 400, "context: not a JSON object"},
		"fraction":      {"{" + subject + "," + action + "," + resource + `,"context":{"a":1.5}}`, 400, `context: "a": 1.5 is no whole number`},
		"deep":          {"{" + subject + "," + action + "," + resource + `,"context":{"a":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + "}}", 400, "nested deeper"},
		"deep objects":  {"{" + subject + "," + action + "," + resource + `,"context":` + strings.Repeat(`{"a":`, 99) + "1" + strings.Repeat("}", 99) + "}", 400, "nested deeper"},
		"null in a set": {"{" + subject + "," + action + "," + resource + `,"context":{"a":[null]}}`, 400, "null in a set"},
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

func emptyPolicies(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "empty.cedar")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCedarRefusesItsConfig(t *testing.T) {
	dir := t.TempDir()
	broken, empty := filepath.Join(dir, "broken.cedar"), emptyPolicies(t)
	if err := os.WriteFile(broken, []byte("permit(principal, action, resource) when {"), 0o600); err != nil {
		t.Fatal(err)
	}
	for says, cfg := range map[string]engine.Config{
		"planted answer":   {Addr: "127.0.0.1:0", File: broken, Answer: "maybe"},
		"no such file":     {Addr: "127.0.0.1:0", File: filepath.Join(dir, "none")},
		"broken.cedar":     {Addr: "127.0.0.1:0", File: broken},
		"cedar: listen":    {Addr: "192.0.2.1:1", File: empty},
		"cedar: not today": {Addr: "127.0.0.1:0", File: empty},
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
	d, err := newCedar(c, engine.Config{File: emptyPolicies(t), Delay: 2})
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
