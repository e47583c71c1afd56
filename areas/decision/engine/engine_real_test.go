package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// testHost is this machine. Builds stay in the user's cache folder, so a second run of the tests builds nothing.
func testHost(t *testing.T) engine.Host {
	t.Helper()
	return engine.Host{Self: os.Args[0], Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Getenv: os.LookupEnv}
}

// findEngine skips the test if the host lacks the engine, unless TARE_ENGINES names it.
func findEngine(t *testing.T, k engine.Kind) engine.Launch {
	t.Helper()
	if testing.Short() && !strings.HasPrefix(t.Name(), "TestEnginesDecide") {
		hosttest.SkipIfShort(t)
	}
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

func start(t *testing.T, l engine.Launch, n int, plant func(*engine.Config)) point {
	t.Helper()
	dir := t.TempDir()
	cfg, err := l.Prepare(dir, model.Set{N: n})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Token = testToken
	if plant != nil {
		plant(&cfg)
	}
	child, err := proc.Start(t.Context(), proc.Spec{
		Name: string(l.Kind), Path: l.Path, Args: l.Args, Config: cfg, LogFile: filepath.Join(dir, "log"),
		ReadyWithin: 5 * time.Minute,
	})
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
	if p.kind == engine.OPA {
		path, body = "/v1/data/authz/allow", map[string]any{"input": authzenRequest(q)}
	}
	if p.kind == engine.OpenFGA {
		path, body = "/stores/"+p.ready.Store+"/check", openFGARequest(q)
	}
	status, answer := p.post(t, path, body)
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, answer)
	}
	if p.kind == engine.OpenFGA {
		switch string(answer) {
		case `{"allowed":true, "resolution":""}`, `{"allowed":true,"resolution":""}`:
			return model.Permit, string(answer)
		case `{"allowed":false, "resolution":""}`, `{"allowed":false,"resolution":""}`:
			return model.Deny, string(answer)
		}
		t.Fatalf("answer %s", answer)
	}
	if p.kind == engine.OPA {
		var out struct {
			Result *bool `json:"result"`
		}
		if err := json.Unmarshal(answer, &out); err != nil || out.Result == nil {
			t.Fatalf("answer %s: %v", answer, err)
		}
		if *out.Result {
			return model.Permit, string(answer)
		}
		return model.Deny, string(answer)
	}
	var out struct{ Response []struct{ Decision string } }
	if err := json.Unmarshal(answer, &out); err != nil || len(out.Response) != 1 {
		t.Fatalf("answer %s: %v", answer, err)
	}
	words := map[string]model.Decision{
		"Permit": model.Permit, "Deny": model.Deny, "NotApplicable": model.NotApplicable,
		"Indeterminate": model.Indeterminate,
	}
	return words[out.Response[0].Decision], string(answer)
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

var external = []engine.Kind{engine.ATT, engine.AuthzForce, engine.OPA, engine.OpenFGA}

// TestEnginesDecideLikeTheModel: every engine gives the known answers, at every position of the policy.
func TestEnginesDecideLikeTheModel(t *testing.T) {
	hosttest.SkipIfShort(t)
	for _, k := range external {
		t.Run(string(k), func(t *testing.T) {
			l := findEngine(t, k)
			for _, n := range []int{1, 100} {
				began := time.Now()
				p, set := start(t, l, n, nil), model.Set{N: n}
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
			}
		})
	}
}
