package admission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/areas/admission/mechanism"
)

// TestNobodyElsesRequestsAreJudged: manifests that would judge requests in all namespaces of somebody's cluster are
// refused, unless the file agrees.
func TestNobodyElsesRequestsAreJudged(t *testing.T) {
	const (
		binding = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n" +
			"metadata: {name: no-latest}\nspec:\n  policyName: no-latest\n  validationActions: [Deny]\n"
		webhook = "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\n" +
			"metadata: {name: sidecar}\nwebhooks:\n- name: a.example.com\n  clientConfig: {url: https://127.0.0.1:1}\n"
		own = "{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: $(TARE_NAMESPACE)}}}"
	)
	for name, c := range map[string]struct {
		manifest       string
		foreign, agree bool
		want           string // in the error
	}{
		"a binding for all": {binding, true, false, "PolicyBinding no-latest would judge requests in other"},
		"a binding for a label": {
			binding + "  matchResources: {namespaceSelector: {matchLabels: {environment: test}}}\n", true, false, "no-latest",
		},
		"a binding for the run":    {binding + "  matchResources: " + own + "\n", true, false, ""},
		"a binding on a plane":     {binding, false, false, ""},
		"a binding that is agreed": {binding, true, true, ""},
		"a webhook for all":        {webhook, true, false, "MutatingWebhookConfiguration sidecar would judge"},
		"one webhook of two": {
			webhook + "- name: b.example.com\n  " + strings.Trim(own, "{}") + "}}\n", true, false, "sidecar",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(c.manifest), 0o600); err != nil {
				t.Fatal(err)
			}
			p := &plan{
				kind: mechanism.Manifests, foreign: c.foreign, copies: 1,
				spec: &Spec{Manifests: &Manifests{Before: dir, Bad: "testdata/manifests/bad.yaml", ClusterWide: c.agree}},
			}
			_, err := p.manifests(anyScope)
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if found := checkManifests([]plan{*p}); (len(found) > 0) != (c.want != "") {
				t.Errorf("preflight: %v", found)
			}
		})
	}
}
