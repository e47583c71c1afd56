package own

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	clusterPolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: patterns}
spec:
  rules:
    - name: pods
      match: {any: [{resources: {kinds: [Pod, apps/v1/StatefulSet]}}]}
      validate: {failureAction: Enforce, message: no, pattern: {spec: {=(hostNetwork): "false"}}}
    - name: ingresses
      match: {all: [{resources: {kinds: [networking.k8s.io/v1/Ingress], operations: [CREATE]}}]}
      validate: {message: no, deny: {}}
status: {ready: true}
`
	validatingPolicy = `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: cel}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [services]}]
  validations: [{expression: "image('x').registry() != 'y'"}]
`
	namespacedPolicy = `apiVersion: kyverno.io/v1
kind: Policy
metadata: {name: inside, namespace: team}
spec:
  rules: [{name: r, match: {resources: {kinds: [Pod/exec, "*"]}}, validate: {message: no, deny: {}}}]
`
	imagePolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: images}
spec:
  rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, verifyImages: [{imageReferences: ["*"]}]}]
`
)

// TestKyvernoPoliciesAreTaken as they stand, beside ValidatingAdmissionPolicies.
func TestKyvernoPoliciesAreTaken(t *testing.T) {
	s := read(t, map[string]string{
		"a.yaml": clusterPolicy + "---\n" + validatingPolicy + "---\n" + namespacedPolicy + "---\n" + imagePolicy,
		"b.yaml": policy("p", isTrue) + "---\n" + binding,
		"c.yaml": "apiVersion: policies.kyverno.io/v1\nkind: DeletingPolicy\nmetadata: {name: d}\n",
		"a2.yaml": strings.NewReplacer("ValidatingPolicy", "MutatingPolicy", "name: cel", "name: m", "services", "pods").
			Replace(validatingPolicy) + "---\n" + strings.NewReplacer("name: patterns", "name: sets",
			"validate: {failureAction: Enforce, message: no, pattern:", "mutate: {patchStrategicMerge:",
			"validate: {message: no, deny:", "mutate: {patchStrategicMerge:").Replace(clusterPolicy),
	})
	if err := s.Compile(); err != nil {
		t.Error(err)
	}
	in, err := s.Render(Where{Scope: scope, Ours: true})
	if err != nil {
		t.Fatal(err)
	}
	names, words := []string{}, map[string]string{}
	for _, p := range in.Policies {
		names = append(names, p.Engine()+" "+p.Name)
		words[p.Name] = p.Words(scope)[0]
	}
	all := []string{"kyverno cel", "kyverno inside", "kyverno m", " p", "kyverno patterns", "kyverno sets"}
	if d := cmp.Diff(all, names); d != "" {
		t.Errorf("in force (-want +got):\n%s", d)
	}
	var mutating []string
	for _, p := range in.Mutating() {
		mutating = append(mutating, p.Name)
	}
	if d := cmp.Diff([]string{"m", "sets"}, mutating); d != "" {
		t.Errorf("policies that change objects (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]string{
		"cel": "Policy cel failed: ", "inside": "\ninside:\n", "patterns": "\npatterns:\n",
		"p": "ValidatingAdmissionPolicy 'tare-run-0.p'", "m": "Policy m failed: ", "sets": "\nsets:\n",
	}, words); d != "" {
		t.Errorf("words of denials (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"ClusterPolicy images, which asks registries about images", "DeletingPolicy d"},
		in.Untaken); d != "" {
		t.Errorf("left aside (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"kyverno"}, in.Engines()); d != "" {
		t.Errorf("engines (-want +got):\n%s", d)
	}
	namespaces := map[string]string{}
	for _, o := range in.Objects {
		namespaces[o.GetName()] = o.GetNamespace()
		if at, ok := in.At(o); (EngineOf(o) != "") != ok || ok && !strings.HasPrefix(filepath.Base(at.File), "a") {
			t.Errorf("%s stands at %v, %v", o.GetName(), at, ok)
		}
		if _, there, _ := unstructured.NestedMap(o.Object, "status"); there {
			t.Errorf("%s has a status", o.GetName())
		}
	}
	if d := cmp.Diff(map[string]string{
		"cel": "", "inside": "tare-run-0", "patterns": "", "tare-run-0.p": "", "tare-run-0.b": "",
		"m": "", "sets": "",
	}, namespaces); d != "" {
		t.Errorf("namespaces (-want +got):\n%s", d)
	}
	for _, c := range []struct {
		policy, group, resource, operation string
		want                               bool
	}{
		{"patterns", "", "pods", "CREATE", true},
		{"patterns", "apps", "statefulsets", "UPDATE", true},
		{"patterns", "apps", "deployments", "CREATE", false},
		{"patterns", "networking.k8s.io", "ingresses", "CREATE", true},
		{"patterns", "networking.k8s.io", "ingresses", "UPDATE", false},
		{"cel", "", "services", "CREATE", true},
		{"cel", "", "pods", "CREATE", false},
		{"inside", "", "configmaps", "CREATE", true},
	} {
		if got := in.Evaluates(s.named(c.policy), c.group, "v1", c.resource, c.operation, nil); got != c.want {
			t.Errorf("%s evaluates %s of %s: %v", c.policy, c.operation, c.resource, got)
		}
	}
}

// TestKyvernoPoliciesWithOneName cannot be told apart by what Kyverno counts, whatever their kinds.
func TestKyvernoPoliciesWithOneName(t *testing.T) {
	_, err := Read(written(t, map[string]string{
		"a.yaml": clusterPolicy, "b.yaml": strings.ReplaceAll(validatingPolicy, "name: cel", "name: patterns"),
	}), false)
	const want = "b.yaml:1: ValidatingPolicy patterns has the name of ClusterPolicy patterns at "
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	_, err = Read(written(t, map[string]string{"a.yaml": validatingPolicy + "  matchConstraints: [\n"}), false)
	if err == nil || !strings.Contains(err.Error(), "a.yaml:") {
		t.Errorf("%v, want the place of broken YAML", err)
	}
	_, err = Read(written(t, map[string]string{
		"a.yaml": strings.Replace(validatingPolicy, "resources: [services]", "resources: 7", 1),
	}), false)
	if err == nil || !strings.Contains(err.Error(), "a.yaml:1: ValidatingPolicy cel: spec.matchConstraints: ") {
		t.Errorf("%v, want the place of malformed constraints", err)
	}
}

// TestReady: only what says of itself that it is ready counts, and the reason is kept.
func TestReady(t *testing.T) {
	for name, c := range map[string]struct {
		status tree
		cel    bool
		ready  bool
		says   string
	}{
		"no status":    {nil, false, false, ""},
		"patterns":     {tree{"conditions": []any{tree{"type": "Ready", "status": "True"}}}, false, true, ""},
		"in CEL":       {tree{"conditionStatus": tree{"ready": true}}, true, true, ""},
		"in CEL alone": {tree{"conditionStatus": tree{"ready": true}}, false, false, ""},
		"why": {tree{"conditionStatus": tree{"ready": false, "conditions": []any{
			tree{"type": "PolicyCached", "status": "True", "message": "fine"},
			tree{"type": "WebhookConfigured", "status": "False", "message": "no webhook"},
		}}}, true, false, "no webhook"},
		"no words": {tree{"conditions": "odd", "conditionStatus": "odd"}, true, false, ""},
	} {
		o := &unstructured.Unstructured{Object: tree{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy"}}
		if c.cel {
			o.Object = tree{"apiVersion": "policies.kyverno.io/v1", "kind": "ValidatingPolicy"}
		}
		if c.status != nil {
			o.Object["status"] = c.status
		}
		if ready, says := new(InForce).Ready(o); ready != c.ready || says != c.says {
			t.Errorf("%s: %v %q", name, ready, says)
		}
	}
}

// TestRulesOfDenials: a denial names the rules that object, those that Kyverno makes for controllers by their origin's.
func TestRulesOfDenials(t *testing.T) {
	s := read(t, map[string]string{"k.yaml": guarding})
	in, err := s.Render(Where{Scope: scope, Ours: true})
	if err != nil {
		t.Fatal(err)
	}
	const said = "resource Pod/n/p was blocked due to the following policies \n\nother:\n  z: no\nk:\n  a: 'not: so'\n" +
		"  autogen-cronjob-b: |-\n    c: no\nlast:\n  z: no\n"
	if d := cmp.Diff([]string{"a", "b"}, in.Rules("k", said)); d != "" {
		t.Errorf("rules (-want +got):\n%s", d)
	}
}

// TestConfigMapsThatPoliciesRead: on a control plane of tare's own the ConfigMaps of the bundle that policies of
// Kyverno's read stand where these look for them.
func TestConfigMapsThatPoliciesRead(t *testing.T) {
	const (
		policy = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec: {rules: [{name: a, " +
			"match: {any: [{resources: {kinds: [Pod]}}]}, context: [{name: x, configMap: {name: c%s}}], " +
			"validate: {deny: {}}}]}\n"
		inCEL = "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: p}\nspec: " +
			"{matchConstraints: {}, " +
			"validations: [{expression: \"resource.Get('v1', 'configmaps', 'team', 'c').data.x == '1'\"}]}\n"
		settings = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%s}\n---\napiVersion: v1\nkind: ConfigMap\n" +
			"metadata: {name: other}\n"
		team = ", namespace: team"
	)
	for name, c := range map[string]struct {
		text string
		ours bool
		want []string
	}{
		"of the default namespace": {fmt.Sprintf(policy+settings, "", ""), true, []string{"ConfigMap default/c"}},
		"of another": {
			fmt.Sprintf(policy+settings, team, team), true, []string{"Namespace /team", "ConfigMap team/c"},
		},
		"in CEL":            {fmt.Sprintf(inCEL+settings, team), true, []string{"Namespace /team", "ConfigMap team/c"}},
		"another namespace": {fmt.Sprintf(policy+settings, "", team), true, nil},
		"of a cluster":      {fmt.Sprintf(policy+settings, "", ""), false, nil},
	} {
		f, err := read(t, map[string]string{"p.yaml": c.text}).Render(Where{Scope: scope, Ours: c.ours})
		if err != nil {
			t.Fatal(name, err)
		}
		var got []string
		for _, o := range f.Objects[:len(f.Objects)-1] {
			got = append(got, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: before the policy come %q, want %q", name, got, c.want)
		}
	}
}
