package admission

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/area"
	"tare/areas/admission/mechanism"
	"tare/areas/admission/own"
)

// TestSamplesAreToldApart: requests of one kind and one name, of the user's or of the policies' tests, have names of
// their own, which say where they stand. What two bundles have in common is asked once.
func TestSamplesAreToldApart(t *testing.T) {
	t.Chdir(t.TempDir())
	const (
		policy = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec: {rules: [{name: r, match: " +
			"{any: [{resources: {kinds: [Pod]}}]}, validate: {message: no, pattern: {spec: {hostPID: false}}}}]}\n"
		test   = "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}\nresources: [r.yaml]\n"
		pod    = "apiVersion: v1\nkind: Pod\nmetadata: {name: nginx}\n"
		inList = "{apiVersion: v1, kind: Pod, metadata: {name: nginx}}"
	)
	for name, text := range map[string]string{
		"samples/bad.yaml": pod + "spec: {hostPID: true}\n", "samples/good.yaml": "# admitted\n" + pod + "---\n" + pod,
		"samples/list.yaml": "apiVersion: v1\nkind: List\nitems: [" + inList + ", " + inList + "]\n",
		"main/p.yaml":       policy, "main/kyverno-test.yaml": test, "main/r.yaml": pod + "---\n" + pod + "spec: {a: 1}\n",
		"pr/p.yaml": policy, "pr/kyverno-test.yaml": test, "pr/r.yaml": pod + "---\n" + pod + "spec: {a: 2}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keeper := fakeKeeper(t, map[string]apiAnswer{"GET /api/v1": {Body: map[string]any{
		"kind": "APIResourceList", "groupVersion": "v1",
		"resources": []any{map[string]any{"name": "pods", "kind": "Pod", "namespaced": true, "verbs": []any{"create"}}},
	}}})
	env := testEnv(t)
	env.Treatments = []area.Treatment{treatment("bundle", "main"), treatment("bundle", "pr")}
	p := renderingArm(t)
	p.env, p.declared, p.policies.keeper = env, &Spec{Requests: "samples"}, keeper
	set, err := own.Read("pr", false)
	if err == nil {
		p.plan, err = p.declared.plan(env.Treatments[1])
	}
	if err == nil {
		p.policies.own, err = p.anywhere(set)
	}
	if err != nil {
		t.Fatal(err)
	}
	yours, err := p.requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tested, err := p.tested(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range append(yours, tested...) {
		got = append(got, r.Name)
	}
	want := []string{
		"your Pod nginx of samples/bad.yaml:1", "your Pod nginx of samples/good.yaml:2",
		"your Pod nginx of samples/good.yaml:6",
		"your Pod nginx of samples/list.yaml:1 (item 1)", "your Pod nginx of samples/list.yaml:1 (item 2)",
		"Pod nginx of main/r.yaml:1", "Pod nginx of main/r.yaml:5", "Pod nginx of pr/r.yaml:5",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("names (-want +got):\n%s", d)
	}
}

// TestEachBundleHasTheKindsOfAll: a change that drops the only policy about a kind does not drop the kind, and all
// treatments are asked about what any policy is about, in force or not; what the change lacks is named, and so is what
// it hides.
func TestEachBundleHasTheKindsOfAll(t *testing.T) {
	const pods = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: NAME}\nspec: {rules: [{name: r, " +
		"match: {any: [{resources: {kinds: [KIND]}}]}, validate: {message: no, deny: {}}}]}\n"
	about := func(name, kind string) string { return strings.NewReplacer("NAME", name, "KIND", kind).Replace(pods) }
	const unbound = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\n" +
		"metadata: {name: idle}\nspec: {validations: [{expression: 'true'}], matchConstraints: {resourceRules: " +
		"[{apiGroups: [batch], apiVersions: [v1], operations: [CREATE], resources: [jobs]}]}}\n"
	dir := t.TempDir()
	env := testEnv(t)
	for _, bundle := range []string{"main", "pr"} {
		at := filepath.Join(dir, bundle)
		text := about("a", "Pod") + "---\n" + unbound
		if bundle == "main" {
			text = about("a", "Pod") + "---\n" + about("b", "delivery.example.com/v2/Release")
		}
		files := map[string]string{"p.yaml": text}
		if bundle == "pr" {
			files[".z.yaml"] = "apiVersion: kyverno.io/v2\nkind: PolicyException\nmetadata: {name: e}\n"
		}
		if err := os.Mkdir(at, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		env.Treatments = append(env.Treatments, treatment("bundle", at))
	}
	missing := apiAnswer{Status: http.StatusNotFound}
	keeper := fakeKeeper(t, map[string]apiAnswer{
		"GET /apis/kyverno.io/v1": missing, "GET /apis/apiextensions.k8s.io/v1": missing,
	})
	env.Treatments[0].Baseline = true
	var arms []*arm
	for i, tr := range env.Treatments {
		p := renderingArm(t)
		p.treatment, arms = tr, append(arms, p)
		p.env, p.declared, p.policies.keeper, p.index = env, &Spec{}, keeper, i
		var err error
		if p.plan, err = p.declared.plan(tr); err != nil {
			t.Fatal(err)
		}
		if err := p.withBundle(t.Context()); err != nil {
			t.Fatal(err)
		}
		kinds := mechanism.Defined(p.policies.rendered.Objects)
		if _, ok := kinds[schema.GroupVersionKind{Group: "delivery.example.com", Version: "v2", Kind: "Release"}]; !ok {
			t.Errorf("%s: the kinds are %v", p.spec.Bundle, kinds)
		}
		var names []string
		for _, one := range p.everyPolicy() {
			names = append(names, one.Name)
		}
		if d := cmp.Diff([]string{"a", "b", "a", "idle"}, names); d != "" {
			t.Errorf("%s: asked about (-want +got):\n%s", p.spec.Bundle, d)
		}
	}
	all := differences(arms)
	of := all[arms[1].treatment.ID]
	if len(of) != 2 || !strings.HasSuffix(of[0], "permits: ClusterPolicy b, ClusterPolicy b (rule r)") ||
		!strings.HasSuffix(of[1], "permits: PolicyException e") {
		t.Errorf("differences %q", of)
	}
	if of := all[arms[0].treatment.ID]; of != nil {
		t.Errorf("the baseline's differences %q", of)
	}
}
