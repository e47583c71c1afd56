package model_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tare/areas/decision/model"
	"tare/rigs/hosttest"
)

// opaPath returns the path of an Open Policy Agent in PATH. It skips the test if there is none.
func opaPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("opa")
	if err != nil {
		hosttest.Missing(t, "opa is not on PATH", "have it there")
	}
	return path
}

// opaInput returns OPA's input: an AuthZEN evaluation request.
func opaInput(t *testing.T, q model.Question) string {
	t.Helper()
	entity := func(e model.Entity) map[string]any {
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

// evalOPA runs opa eval; evals is the number of evaluated expressions.
func evalOPA(t *testing.T, opa, file, in string) (allowed bool, evals int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), opa, "eval", "--format", "json", "--profile", "--profile-limit", "100000",
		"--stdin-input", "--data", file, "data.authz.allow")
	cmd.Stdin = strings.NewReader(in)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("opa eval: %v\n%s", err, out)
	}
	var answer struct {
		Result []struct {
			Expressions []struct{ Value bool }
		}
		Profile []struct {
			NumEval int `json:"num_eval"`
		}
	}
	if err := json.Unmarshal(out, &answer); err != nil || len(answer.Result) != 1 ||
		len(answer.Result[0].Expressions) != 1 {
		t.Fatalf("opa eval answered %s (%v)", out, err)
	}
	for _, p := range answer.Profile {
		evals += p.NumEval
	}
	return answer.Result[0].Expressions[0].Value, evals
}

func TestRegoDecides(t *testing.T) {
	opa := opaPath(t)
	for _, n := range []int{1, 10, 200} {
		set := model.Set{N: n}
		file := written(t, set.Rego(model.RegoPackage))
		for name, q := range questionsOf(set) {
			allowed, _ := evalOPA(t, opa, file, opaInput(t, q))
			if want := q.Want == model.Permit; allowed != want {
				t.Errorf("N=%d %s: allowed %v, want %v", n, name, allowed, want)
			}
		}
	}
}

func written(t *testing.T, module []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policies.rego")
	if err := os.WriteFile(file, module, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestRegoIsIndexed: a question evaluates as many expressions with many policies as with few. Control: if the same
// equalities are about a function of the input, which no index covers, the number grows.
func TestRegoIsIndexed(t *testing.T) {
	opa := opaPath(t)
	work := func(n int, hide bool) int {
		set := model.Set{N: n}
		module := set.Rego(model.RegoPackage)
		if hide {
			module = regexp.MustCompile(`(input[.a-z]+) ==`).ReplaceAll(module, []byte("trim_space($1) =="))
		}
		allowed, evals := evalOPA(t, opa, written(t, module), opaInput(t, set.Ask(model.Last)))
		if !allowed {
			t.Fatalf("N=%d, hidden %v: denied", n, hide)
		}
		return evals
	}
	if few, many := work(10, false), work(200, false); few == 0 || many != few {
		t.Errorf("expressions that one question evaluates: %d with 10 policies, %d with 200; the rules are not indexed",
			few, many)
	}
	if few, many := work(10, true), work(200, true); many < few+100 {
		t.Errorf("control: %d with 10 policies, %d with 200; this test cannot see an index", few, many)
	}
}
