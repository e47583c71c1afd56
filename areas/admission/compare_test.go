package admission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestComparePoliciesLeavesToOthers: a bundle without policies is left to other areas, with the reason if it holds
// objects.
func TestComparePoliciesLeavesToOthers(t *testing.T) {
	const template = "apiVersion: templates.gatekeeper.sh/v1\nkind: ConstraintTemplate\nmetadata: {name: ban}\n" +
		"spec: {crd: {spec: {names: {kind: Ban}}}, targets: [{target: admission.k8s.gatekeeper.sh, rego: package ban}]}\n"
	for name, c := range map[string]struct{ text, why string }{
		"a kind that is left aside": {
			"apiVersion: policies.kyverno.io/v1\nkind: DeletingPolicy\nmetadata: {name: d}\n", "left aside is DeletingPolicy d",
		},
		"a template alone": {template, "add a constraint of ConstraintTemplate ban"},
		"no policy":        {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", "holds no ValidatingAdmissionPolicy"},
		"no object":        {"a: b\n", ""},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, ok, err := comparePolicies([]string{dir})
		if ok || (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, %v; want %q", name, ok, err, c.why)
		}
	}
}
