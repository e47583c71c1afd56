package reference

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/cedar-policy/cedar-go"

	"tare/areas/decision/cedarset"
	"tare/areas/decision/engine"
	"tare/internal/clock"
	"tare/rigs/memtest"
)

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

// cedarOf is a decision point with these files.
func cedarOf(f *testing.F, files map[string]string) http.Handler {
	f.Helper()
	dir := f.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			f.Fatal(err)
		}
	}
	d, err := newCedar(clock.System{}, engine.Config{File: dir})
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
