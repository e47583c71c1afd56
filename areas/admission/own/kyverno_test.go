package own

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/areas/admission/mechanism"
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

// TestRulesAboutOtherNamespaces: a policy is in force with those of its rules, and of their alternatives, that one
// namespace can meet, and the others are named.
func TestRulesAboutOtherNamespaces(t *testing.T) {
	block := func(selector string) string {
		return "{resources: {kinds: [Pod], namespaceSelector: {matchLabels: {" + selector + "}}}}"
	}
	rules := func(name string, matches ...string) string {
		text := "---\napiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: " + name + "}\nspec:\n  rules:\n"
		for i, match := range matches {
			text += fmt.Sprintf("  - {name: r%d, match: {%s}, validate: {failureAction: Enforce, message: never, deny: {}}}\n",
				i, match)
		}
		return text
	}
	medium, large := block("type: medium"), block("type: large")
	for name, c := range map[string]struct {
		text string
		idle map[string]string
	}{
		"two rules": {
			rules("a", "any: ["+medium+"]", "any: ["+large+"]", "all: ["+block("tier: x")+"]"),
			map[string]string{"a (rule r1)": `the label type of the namespace is "medium" for another`},
		},
		"a rule that is about one of two": {
			rules("a", "any: ["+medium+", "+large+"]"),
			map[string]string{"a (rule r0, match.any[1])": `the label type of the namespace is "medium" for another`},
		},
		"a rule that is about none": {
			rules("a", "any: ["+block("type: medium, tier: x")+"]", "all: ["+block("tier: z")+", "+large+"]",
				"any: ["+block("tier: x")+"]"),
			map[string]string{"a (rule r1)": `the label tier of the namespace is "x" for another`},
		},
		"another policy": {
			rules("a", "any: ["+medium+"]") + rules("b", "any: ["+large+"]", strings.Trim(large, "{}")+"}}}"),
			map[string]string{"b": `the label type of the namespace is "medium" for another`},
		},
		"all rules": {rules("a", "any: ["+medium+"]", "any: ["+medium+"]"), map[string]string{}},
	} {
		f, err := read(t, map[string]string{"a.yaml": c.text}).Render(Where{Scope: scope})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(c.idle, f.Idle); d != "" || f.NamespaceLabels["type"] != "medium" {
			t.Errorf("%s: idle (-want +got):\n%s%v", name, d, f.NamespaceLabels)
		}
	}
}

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

// aboutCustom returns a policy of Kyverno's about a kind.
func aboutCustom(kinds, rest string) string {
	return fmt.Sprintf("apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  rules: "+
		"[{name: r, match: {any: [{resources: {kinds: [%s]}}]}, %s}]\n", kinds, rest)
}

const (
	allDenied = "validate: {message: no, deny: {}}"
	someCRD   = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {kind: Box, plural: boxes}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`
)

// TestCustomKindsAreDefined: kinds that policies of Kyverno's are about, generate or change come with the bundle or are
// made up, and no others.
func TestCustomKindsAreDefined(t *testing.T) {
	const box = "apiVersion: example.com/v1\nkind: Box\nmetadata: {name: a}\n"
	for name, c := range map[string]struct {
		files   []string
		defined string // by tare
		objects int    // definitions in force
	}{
		"a kind with its group":    {[]string{aboutCustom("example.com/v1/Box", allDenied)}, "Box", 1},
		"with a subresource":       {[]string{aboutCustom("example.com/v1/Box/status", allDenied)}, "Box", 1},
		"a kind by its name":       {[]string{aboutCustom("Box", allDenied), box}, "Box", 1},
		"any group":                {[]string{aboutCustom(`"*/v1/Box"`, allDenied), box}, "Box", 1},
		"another version":          {[]string{aboutCustom("v2/Box", allDenied), box}, "", 0},
		"a kind that nobody knows": {[]string{aboutCustom("Box", allDenied)}, "", 0},
		"the bundle's definition":  {[]string{aboutCustom("Box", allDenied), someCRD}, "", 1},
		"one that others convert": {[]string{aboutCustom("Box", allDenied), strings.Replace(someCRD, "  scope: Cluster",
			"  scope: Cluster\n  conversion: {strategy: Webhook}", 1)}, "Box", 1},
		"a definition of no use": {[]string{aboutCustom("Pod", allDenied), someCRD, box}, "", 0},
		"an engine's own": {[]string{
			aboutCustom("kyverno.io/v2/PolicyException, wgpolicyk8s.io/v1alpha2/PolicyReport", allDenied),
		}, "", 0},
		"the server's own": {[]string{
			aboutCustom("networking.k8s.io/v1/Ingress, metrics.k8s.io/v1beta1/NodeMetrics", allDenied),
		}, "", 0},
		"no words for a kind": {[]string{aboutCustom(`"{{ x }}", "a.b/v1/*", "A B/v1/Box"`, allDenied)}, "", 0},
		"generated": {[]string{
			aboutCustom("Pod",
				"generate: {apiVersion: autoscaling.k8s.io/v1, kind: VerticalPodAutoscaler, name: a, data: {}}"),
		}, "VerticalPodAutoscaler", 1},
		"generated from a list": {[]string{
			aboutCustom("Pod",
				"generate: {cloneList: {kinds: [example.com/v1/Box, v1/Secret]}, "+
					"foreach: [{apiVersion: example.com/v1, kind: Lid}]}"),
		}, "Box Lid", 2},
		"changed": {[]string{aboutCustom("Pod", "mutate: {targets: [{apiVersion: example.com/v1, kind: Box}]}")}, "Box", 1},
		"in CEL": {[]string{strings.NewReplacer(`apiGroups: [""]`, `apiGroups: [example.com]`, "services", "boxes").
			Replace(validatingPolicy), someCRD}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			for ours, want := range map[bool]string{true: c.defined, false: ""} {
				s := read(t, map[string]string{"a.yaml": strings.Join(c.files, "---\n")})
				in, err := s.Render(Where{Scope: scope, Ours: ours})
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, strings.Join(in.Defined, " ")); d != "" {
					t.Errorf("ours: %t (-want +got):\n%s", ours, d)
				}
				if n := len(mechanism.Defined(in.Objects)); ours && n != c.objects || !ours && n != 0 {
					t.Errorf("ours: %t: %d definitions, want %d", ours, n, c.objects)
				}
			}
		})
	}
}

// TestKindsOfOtherBundlesAreDefined: what is asked where another bundle is in force can be asked here, too; of a kind
// that both define, versions are added, and none is lost.
func TestKindsOfOtherBundlesAreDefined(t *testing.T) {
	other, err := read(t, map[string]string{"a.yaml": aboutCustom("example.com/v1/Box, example.com/v2/Lid", allDenied)}).
		Render(Where{Scope: scope, Ours: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ kinds, want string }{
		"none of its own":   {"Pod", "Box/v1 Lid/v2"},
		"the same":          {"example.com/v1/Box", "Box/v1 Lid/v2"},
		"an earlier one":    {"example.com/v1beta1/Box", "Box/v1 Box/v1beta1 Lid/v2"},
		"another and these": {"example.com/v1/Tin", "Box/v1 Lid/v2 Tin/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := read(t, map[string]string{"a.yaml": aboutCustom(c.kinds, allDenied)}).
				Render(Where{Scope: scope, Ours: true, Others: append(other.Definitions(), other.Definitions()...)})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for k := range mechanism.Defined(in.Definitions()) {
				got = append(got, k.Kind+"/"+k.Version)
			}
			slices.Sort(got)
			if d := cmp.Diff(c.want, strings.Join(got, " ")); d != "" {
				t.Errorf("kinds (-want +got):\n%s", d)
			}
			for _, o := range in.Definitions() {
				stored := 0
				versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
				for _, v := range versions {
					if version, _ := v.(tree); version["storage"] == true {
						stored++
					}
				}
				if stored != 1 || o.GetLabels()[mechanism.RunLabel] != scope.Run {
					t.Errorf("%s: %d versions are stored; labels %v", o.GetName(), stored, o.GetLabels())
				}
			}
		})
	}
}

// TestCustomKindsAreBounded: a bundle cannot have tare define any number of kinds.
func TestCustomKindsAreBounded(t *testing.T) {
	var kinds []string
	for i := range mostCustom + 5 {
		kinds = append(kinds, fmt.Sprintf("example.com/v1/Box%d", i))
	}
	s := read(t, map[string]string{"a.yaml": aboutCustom(strings.Join(kinds, ", "), allDenied)})
	in, err := s.Render(Where{Scope: scope, Ours: true})
	if err != nil || len(in.Defined) != mostCustom {
		t.Errorf("%d kinds are defined, %v", len(in.Defined), err)
	}
	made := define(schema.GroupVersionKind{Group: "a.k8s.io", Version: "v1", Kind: "X"}, true)
	if len(made.GetAnnotations()) == 0 {
		t.Error("a group of the Kubernetes project's is not said to be unapproved")
	}
}
