package admission

import (
	"os"
	"path/filepath"
	"testing"
)

// TestRunsOfOnePathHaveOwnNames: two runs whose records have the same path use different names and labels on a cluster.
func TestRunsOfOnePathHaveOwnNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"x",
"clusters":[{"name":"x","cluster":{"server":"http://127.0.0.1:1"}}],"users":[{"name":"x","user":{}}],
"contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	seen := map[string]bool{}
	for range 2 {
		env := testEnv(t)
		env.Dir = dir
		p := &arm{plan: plan{spec: &Spec{Kubeconfig: file}, foreign: true}, env: env}
		if err := p.connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{p.namespace, p.admin.Selector(), p.policies.keeper.Selector()} {
			if seen[name] {
				t.Errorf("both runs have %s", name)
			}
			seen[name] = true
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
