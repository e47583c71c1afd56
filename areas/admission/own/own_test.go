package own

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/areas/admission/engine"
	"tare/areas/admission/mechanism"
	"tare/areas/bundle"
	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// written writes a bundle: the content of files by their names.
func written(t *testing.T, content map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t *testing.T, content map[string]string) *Set {
	t.Helper()
	s, err := Read(written(t, content), false)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const (
	header = "apiVersion: admissionregistration.k8s.io/v1\n"
	onPods = "  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], " +
		"resources: [pods]}]}\n"
	isTrue  = "  validations: [{expression: 'true'}]\n"
	binding = header + "kind: ValidatingAdmissionPolicyBinding\nmetadata: {name: b}\nspec:\n  policyName: p\n" +
		"  validationActions: [Deny]\n"
)

// bomb stands for 9^9 nodes.
var bomb = func() string {
	text := "a0: &a0 [x]\n"
	for i := range 9 {
		text += fmt.Sprintf("a%d: &a%d [*a%d%s]\n", i+1, i+1, i, strings.Repeat(fmt.Sprintf(", *a%d", i), 8))
	}
	return text
}()

// longBomb stands for 20 MB of text.
var longBomb = "x: &a " + strings.Repeat("x", 4_000) + "\ny: [" + strings.Repeat("*a,", 5_000) + "]\n"

func policy(name, rest string) string {
	return header + "kind: ValidatingAdmissionPolicy\nmetadata: {name: " + name + "}\nspec:\n" + onPods + rest
}

var scope = mechanism.Scope{Run: "run", Namespace: "tare-run-0"}

// TestReadFindsPoliciesAmongOthers: what is no policy is left aside, wherever it stands.
func TestReadFindsPoliciesAmongOthers(t *testing.T) {
	s := read(t, map[string]string{
		"deep/er/p.yaml":          "# a comment\n---\n" + policy("p", isTrue) + "---# b\n" + binding,
		"q.json":                  `{"apiVersion":"v1","kind":"List","items":[` + `{"apiVersion":"admissionregistration.k8s.io/v1beta1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"q"},"spec":{"validations":[{"expression":"true"}]}}]}`,
		"app.yaml":                "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app}\n",
		"tests.json":              "[1, 2]",
		"chart/templates/x.yaml":  "{{ if .Values.x }}\nkind: X\n{{ end }}",
		"README.md":               policy("readme", isTrue),
		".github/workflow.yaml":   policy("hidden", isTrue),
		"deep/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\npatches: [{path: x}]\n",
	})
	var names []string
	for _, p := range s.Policies {
		names = append(names, p.Name)
	}
	if d := cmp.Diff([]string{"p", "q"}, names); d != "" || len(s.Bindings) != 1 {
		t.Errorf("policies (-want +got):\n%s%d bindings", d, len(s.Bindings))
	}
	if d := cmp.Diff(map[string]int{"Deployment": 1, "Kustomization": 1}, s.Left); d != "" {
		t.Errorf("left aside (-want +got):\n%s", d)
	}
	if len(s.Untaken) != 1 || !strings.Contains(s.Untaken[0], "chart/templates/x.yaml:1: ") ||
		!strings.Contains(s.Untaken[0], "it is a template of Helm's") {
		t.Errorf("what is no YAML is not named: %q", s.Untaken)
	}
	if at := s.Policies[0].At(); at.Line != 3 || !strings.HasSuffix(at.File, "deep/er/p.yaml") {
		t.Errorf("p stands at %v", at)
	}
}

func TestReadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"nothing": {map[string]string{"a.yaml": "a: 1"}, "holds no ValidatingAdmissionPolicy"},
		"a name twice": {
			map[string]string{"a.yaml": policy("p", isTrue), "b.yaml": policy("p", isTrue)},
			"b.yaml:1: ValidatingAdmissionPolicy p stands at",
		},
		"a binding twice": {
			map[string]string{"a.yaml": policy("p", isTrue) + "---\n" + binding + "---\n" + binding},
			"ValidatingAdmissionPolicyBinding b stands at",
		},
		"a binding of none": {
			map[string]string{"a.yaml": policy("q", isTrue) + "---\n" + binding},
			`a.yaml:8: ValidatingAdmissionPolicyBinding b binds ValidatingAdmissionPolicy "p", which the bundle does not hold`,
		},
		"aliases of aliases": {
			map[string]string{"a.yaml": policy("p", isTrue) + bomb}, "a.yaml:1: its aliases stand for more",
		},
		"aliases of a long text": {
			map[string]string{"a.yaml": policy("p", isTrue) + longBomb},
			"a.yaml:1: its aliases stand for more than 10000 nodes, or 256 KiB",
		},
		"aliases that one parser alone reads": {
			map[string]string{"a.yaml": policy("p", isTrue) + bomb + "x: \"a\"#b\n"},
			"a.yaml:17: found a comment without preceding whitespace",
		},
		"an alias of itself": {map[string]string{"a.yaml": policy("p", isTrue) + "x: &a [*a]\n"}, "a.yaml:1: "},
		"an unknown field":   {map[string]string{"a.yaml": policy("p", "  validation: []\n")}, `unknown field "spec.validation"`},
		"a broken policy":    {map[string]string{"a.yaml": "\n" + policy("p", "  validations: [\n")}, "a.yaml:"},
		"a broken constraint": {
			map[string]string{"a.yaml": policy("p", isTrue), "b.yaml": constraintOf("{a", "{}")}, "b.yaml:",
		},
		"a broken policy of Kyverno's, in JSON": {
			map[string]string{"a.yaml": policy("p", isTrue), "b.json": `{"apiVersion": "policies.kyverno.io/v1", "kind"}`},
			"b.json:",
		},
		"a broken policy in a list": {
			map[string]string{
				"a.yaml": policy("p", isTrue),
				"b.yaml": "kind: List\nitems:\n- apiVersion: admissionregistration.k8s.io/v1\n  spec: {a: 1\n- b: 2\n",
			}, "b.yaml:",
		},
		"a broken list alone": {map[string]string{"b.json": `{"items": [{"apiVersion": "kyverno.io/v1"`}, "b.json:"},
		"a version without a colon": {
			map[string]string{"a.yaml": policy("p", isTrue), "b.yaml": strings.Replace(policy("q", isTrue), ":", "", 1)},
			"b.yaml:",
		},
		"a template's value": {
			map[string]string{"a.yaml": policy("p", "  x:\n    y: {{ .Values.x }}\n")},
			"a.yaml:7:9: a map stands as a key, as {{ }} without quotes does: it is a template of Helm's",
		},
		"a version that is none": {
			map[string]string{"a.yaml": strings.Replace(policy("p", isTrue), "/v1", "/v2", 1)},
			"a.yaml:1: ValidatingAdmissionPolicy p: admissionregistration.k8s.io has no version v2",
		},
		"a field within a list": {
			map[string]string{"a.yaml": policy("p", "  validations:\n  - expresion: 'true'\n")},
			"a.yaml:7:5: ValidatingAdmissionPolicy p: unknown field \"spec.validations[0].expresion\"\n    7 |   - expresion: " +
				"'true'\n            ^",
		},
		"aliases of what could be a policy": {
			map[string]string{"a.yaml": policy("p", isTrue), "b.yaml": "{kind: PolicyException, apiVersion: kyverno.io/v2, " +
				strings.ReplaceAll(strings.TrimSuffix(bomb, "\n"), "\n", ", ") + "}"}, "b.yaml:1: its aliases stand for more",
		},
		"objects in JSON one after the other": {
			map[string]string{"a.yaml": policy("p", isTrue), "b.json": `{"kind": "PolicyException"} {"kind": "Pod"}`},
			"b.json:1: the document goes on behind its first object",
		},
		"an object in YAML behind one in JSON, which kubectl reads from 1.33 on": {
			map[string]string{"b.yaml": "{\"kind\": \"ConfigMap\", \"apiVersion\": \"v1\"}\n# y\n" + policy("p", isTrue)},
			"b.yaml:1: the document goes on behind its first object",
		},
		"an object behind one in braces": {
			map[string]string{"b.yaml": "{kind: ConfigMap, apiVersion: v1}\n" + policy("p", isTrue)},
			"b.yaml:1: the document goes on behind its first object",
		},
		"an object on the line of a separator, which kubectl leaves out": {
			map[string]string{"b.yaml": policy("p", isTrue) + "--- {kind: PolicyException, apiVersion: kyverno.io/v2}\n"},
			"b.yaml:1: the document goes on behind its first object",
		},
		"a first object on the line of a separator": {
			map[string]string{"b.yaml": "# x\n--- {kind: PolicyException, apiVersion: kyverno.io/v2}\n"},
			"b.yaml:2: kubectl refuses a separator that goes on",
		},
		"a policy behind such a one": {
			map[string]string{"b.yaml": "--- {kind: Pod, apiVersion: v1}\n---\n" + policy("p", isTrue)},
			"b.yaml:1: kubectl refuses a separator that goes on",
		},
		"an item of no kind": {
			map[string]string{
				"a.yaml": policy("p", isTrue), "b.yaml": "{apiVersion: v1, kind: List, items: [{metadata: {name: x}}]}",
			},
			"b.yaml:1 (item 1): an item of List without a kind or an apiVersion",
		},
		"no kind": {
			map[string]string{"a.yaml": policy("p", isTrue), "b.yaml": "apiVersion: kyverno.io/v1\nknd: ClusterPolicy\n"},
			"b.yaml:1: an object of kyverno.io/v1 without a kind",
		},
		"no version": {
			map[string]string{"a.yaml": policy("p", isTrue) + "---\nkind: ClusterPolicy\nmetadata: {name: q}\n"},
			"a ClusterPolicy without an apiVersion",
		},
		"a template": {
			map[string]string{
				"a.yaml": policy("p", isTrue), "b.yaml": "{{- if .Values.x }}\n" + policy("q", isTrue) + "{{- end }}\n",
			},
			"it is a template of Helm's, and tare renders none",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Read(written(t, c.files), false); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestHungryExpressionsAreGivenUp: each type of these variables has twice the length of the one before.
func TestHungryExpressionsAreGivenUp(t *testing.T) {
	rest := "  variables:\n  - {name: v0, expression: '{1: 1}'}\n"
	for i := range 40 {
		rest += fmt.Sprintf("  - {name: v%d, expression: '{variables.v%d: variables.v%d}'}\n", i+1, i, i)
	}
	p := read(t, map[string]string{"p.yaml": policy("p", rest+isTrue)}).Policies[0]
	for name, limit := range map[string]bundle.Limit{
		"time": {Within: 100 * time.Millisecond, Most: math.MaxUint64}, "memory": {Within: time.Minute},
	} {
		const want = "p.yaml:1: whether its expressions are valid takes more than"
		if err := p.compile(limit); !errors.Is(err, bundle.ErrTooMuch) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCompileShowsThePlace: an expression that kube-apiserver would refuse is shown where it stands in the user's file,
// however YAML writes it.
func TestCompileShowsThePlace(t *testing.T) {
	for name, c := range map[string]struct{ policy, want string }{
		"plain": {
			policy("p", "  variables: [{name: containers, expression: object.spec.containers}]\n  validations:\n"+
				"  - expression: variables.contianers.all(c, c.image != '')\n"),
			"p.yaml:8:26: undefined field 'contianers'\n    8 |   - expression: variables.contianers.all(c, c.image != '')\n" +
				"                                 ^",
		},
		"literal": {
			policy("p", "  validations:\n  - expression: |\n      object.spec.x == 1 &&\n        foo(object.y)\n"),
			"p.yaml:9:12: undeclared reference to 'foo'\n    9 |         foo(object.y)\n                   ^",
		},
		"folded": {
			policy("p", "  validations:\n  - expression: >-\n      object.spec.x == 1 &&\n\n"+
				"      object.spec.y == 2 &&,, true\n"),
			"p.yaml:10:28: Syntax error",
		},
		"quoted": {
			policy("p", "  validations:\n  - expression: \"true\"\n    messageExpression: 'size(1)'\n"),
			"p.yaml:8:29: found no matching overload for 'size' applied to '(int)'",
		},
		"escaped": {
			policy("p", "  validations:\n  - expression: \"foo(\\\"a\\\")\"\n"),
			"p.yaml:7: undeclared reference to 'foo'",
		},
		"without a parameter": {
			policy("p", "  matchConditions: [{name: m, expression: params.x == 1}]\n"+isTrue),
			"p.yaml:6:43: undeclared reference to 'params'",
		},
		"an operation": {
			strings.Replace(policy("p", isTrue), "[CREATE]", "[CREAT]", 1), `p.yaml:5:88: "CREAT" is not one of [* CREATE`,
		},
		"an action": {
			policy("p", isTrue) + "---\n" + strings.Replace(binding, "[Deny]", "[deny]", 1),
			`p.yaml:13:23: "deny" is not one of [Deny Warn Audit]`,
		},
		"no boolean": {policy("p", "  validations: [{expression: \"'yes'\"}]\n"), "must evaluate to bool"},
		"after another document": {
			policy("q", isTrue) + "---\n" + policy("p", "  validations: [{expression: foo()}]\n"),
			"p.yaml:13:33: undeclared reference to 'foo'",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := read(t, map[string]string{"p.yaml": c.policy})
			if err := s.Compile(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got\n%v\nwant\n%s", err, c.want)
			}
		})
	}
	s := read(t, map[string]string{"p.yaml": policy("p", "  variables:\n"+
		"  - {name: count, expression: size(object.spec.containers)}\n  validations:\n"+
		"  - {expression: variables.count < 3, messageExpression: \"string(variables.count) + ' is too many'\"}\n",
	)})
	if err := s.Compile(); err != nil {
		t.Error(err)
	}
}

// TestRenderActsInTheRunsNamespace: whatever bindings select, they act in the run's namespace and on nothing outside.
func TestRenderActsInTheRunsNamespace(t *testing.T) {
	for name, c := range map[string]struct {
		binding string // its matchResources
		labels  map[string]string
	}{
		"everywhere": {"", nil},
		"a label": {
			"{namespaceSelector: {matchLabels: {environment: test}}}", map[string]string{"environment": "test"},
		},
		"expressions": {
			"{namespaceSelector: {matchExpressions: [{key: tier, operator: In, values: [a, b]}, {key: x, operator: Exists}," +
				" {key: no-such, operator: DoesNotExist}," +
				" {key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}]}}",
			map[string]string{"tier": "a", "x": "true"},
		},
		"another namespace": {"{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: production}}}", nil},
		"rules": {
			"{resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods], scope: '*'}]}", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			of := binding
			if c.binding != "" {
				of += "  matchResources: " + c.binding + "\n"
			}
			f, err := read(t, map[string]string{"p.yaml": policy("p", isTrue) + "---\n" + of}).Render(Where{Scope: scope})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.labels, f.NamespaceLabels); d != "" && len(c.labels)+len(f.NamespaceLabels) > 0 {
				t.Errorf("labels (-want +got):\n%s", d)
			}
			for _, o := range f.Objects {
				if !mechanism.Confined(o, scope.Namespace) || !strings.HasPrefix(o.GetName(), scope.Namespace+".") ||
					o.GetLabels()[mechanism.RunLabel] != scope.Run {
					t.Errorf("not confined: %v", o.Object)
				}
				if o.GetKind() != bindingKind {
					continue
				}
				spec, _ := o.Object["spec"].(map[string]any)
				resources, _ := spec["matchResources"].(map[string]any)
				rules, _ := resources["resourceRules"].([]any)
				for _, r := range rules {
					if r, ok := r.(map[string]any); !ok || r["scope"] != "Namespaced" {
						t.Errorf("a rule about objects without a namespace: %v", r)
					}
				}
				if len(rules) == 0 {
					t.Error("no rule keeps it from objects without a namespace")
				}
			}
		})
	}
}

// TestRenderNamesWhatIsIdle: policies that cannot act in the run's namespace are named, with the reason.
func TestRenderNamesWhatIsIdle(t *testing.T) {
	named := func(name, policy, selector string) string {
		return strings.NewReplacer("name: b", "name: "+name, "policyName: p", "policyName: "+policy).Replace(binding) +
			"  matchResources: {namespaceSelector: {matchLabels: {" + selector + "}}}\n---\n"
	}
	s := read(t, map[string]string{"p.yaml": policy("p", isTrue) + "---\n" + policy("q", isTrue) + "---\n" +
		policy("r", isTrue) + "---\n" + named("b", "p", "tier: a") + named("c", "q", "tier: b")})
	f, err := s.Render(Where{Scope: scope})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"q": `the label tier of the namespace is "a" for another`, "r": "no binding names it"}
	if d := cmp.Diff(want, f.Idle); d != "" || len(f.Policies) != 1 {
		t.Errorf("idle (-want +got):\n%s%d in force", d, len(f.Policies))
	}
	if f, err = s.Render(Where{Scope: scope, BindAll: true}); err != nil || !slices.Equal(f.Bound, []string{"r"}) {
		t.Errorf("bound: %+v, %v", f, err)
	}
	s = read(t, map[string]string{"p.yaml": policy("p", isTrue)})
	if _, err := s.Render(Where{Scope: scope}); err == nil || !strings.Contains(err.Error(), "bind_all: true") ||
		!strings.Contains(err.Error(), "--set target.bind_all=true") {
		t.Errorf("nothing bound: %v", err)
	}
}

// TestRenderBringsParameters: what policies take as a parameter comes with them, is defined where nothing does, and
// stands in the run's namespace.
func TestRenderBringsParameters(t *testing.T) {
	const (
		param = "  paramKind: {apiVersion: rules.example.com/v1, kind: Limit}\n"
		limit = "apiVersion: rules.example.com/v1\nkind: Limit\nmetadata: {name: l, namespace: policies}\n" +
			"spec: {most: 3}\n---\n"
		ref = "  paramRef: {name: l, namespace: policies, parameterNotFoundAction: Deny}\n"
	)
	all := policy("p", param+isTrue) + "---\n" + binding + ref + "---\n" + limit
	f, err := read(t, map[string]string{"p.yaml": all}).Render(Where{Scope: scope, Ours: true})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, o := range f.Objects {
		kinds = append(kinds, o.GetKind()+" "+o.GetNamespace())
	}
	want := []string{
		"CustomResourceDefinition ", "Limit " + scope.Namespace, "ValidatingAdmissionPolicy ",
		"ValidatingAdmissionPolicyBinding ",
	}
	if d := cmp.Diff(want, kinds); d != "" || !slices.Equal(f.Defined, []string{"Limit"}) {
		t.Errorf("objects (-want +got):\n%sdefined %v", d, f.Defined)
	}
	spec, _ := f.Objects[3].Object["spec"].(map[string]any)
	if at, _ := spec["paramRef"].(map[string]any); at["namespace"] != scope.Namespace {
		t.Errorf("the binding looks for its parameter in %v", at)
	}
	if _, err := read(t, map[string]string{"p.yaml": all}).Render(Where{Scope: scope}); err == nil ||
		!strings.Contains(err.Error(), "the cluster has no kind Limit") {
		t.Errorf("on a cluster without the kind: %v", err)
	}
	s := read(t, map[string]string{"p.yaml": all})
	standing := []schema.GroupKind{s.ParamKinds()[0].GroupKind()}
	if f, err = s.Render(Where{Scope: scope, Standing: standing}); err != nil || len(f.Defined) != 0 {
		t.Errorf("on a cluster with the kind: %v", err)
	}
	for namespace, want := range map[string]string{
		"others": "stands there for two namespaces", "policies": "stands there twice",
	} {
		twice := all + strings.Replace(limit, "namespace: policies", "namespace: "+namespace, 1)
		if _, err := read(t, map[string]string{"p.yaml": twice}).Render(Where{Scope: scope, Ours: true}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("a parameter twice, once in %s: %v, want %q", namespace, err, want)
		}
	}
}

// TestCatalogueIsAboutWhatPoliciesSee: only kinds that some policy sees, and each pod differs from the measured one.
func TestCatalogueIsAboutWhatPoliciesSee(t *testing.T) {
	pod := mechanism.Pod{Name: "x", Namespace: scope.Namespace, Model: true}.JSON()
	f, err := read(t, map[string]string{"p.yaml": policy("p", isTrue) + "---\n" + binding}).Render(Where{Scope: scope})
	if err != nil {
		t.Fatal(err)
	}
	all, err := Catalogue(f.Policies, pod, scope.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	seen, images := map[string]string{}, map[string]string{}
	for _, r := range all {
		if r.Kind != "Pod" || r.Path("n") != "/api/v1/namespaces/n/pods" {
			t.Errorf("%s: a %s at %s", r.Name, r.Kind, r.Path("n"))
		}
		if other := seen[string(r.Body)]; other != "" {
			t.Errorf("%q is %q", r.Name, other)
		}
		seen[string(r.Body)] = r.Name
		var of tree
		if err := json.Unmarshal(r.Body, &of); err != nil {
			t.Fatal(err)
		}
		for _, c := range below(of, "spec")["containers"].([]any) {
			text, _ := c.(tree)["image"].(string)
			images[strings.TrimPrefix(r.Name, "pod ")] = text
		}
	}
	// One thing is changed in each, so that a policy about registries does not hide one about tags.
	for name, want := range map[string]string{
		plainPod: "registry.k8s.io/pause:3.10", "of the tag latest": "registry.k8s.io/pause:latest",
		"without a tag": "registry.k8s.io/pause", "of an unknown registry": "registry.odd.example/pause:3.10",
		"of Docker's registry": "docker.io/pause:3.10", "without a registry": "pause:3.10",
		"of an unknown repository": "registry.k8s.io/odd:3.10",
		"of a digest":              "registry.k8s.io/pause@sha256:" + strings.Repeat("0", 64),
		"of the tag latest that pulls if it is absent": "registry.k8s.io/pause:latest",
		"with a bare second container":                 "registry.k8s.io/pause:3.10",
		"with a bare init container":                   "registry.k8s.io/pause:3.10",
	} {
		if images[name] != want {
			t.Errorf("a pod %s has the image %q, want %q", name, images[name], want)
		}
	}
	for text, want := range map[string]image{
		"localhost:5000/a/b:1@sha256:0": {"localhost:5000/", "a/b", ":1@sha256:0"}, "a/b": {"", "a/b", ""},
		"localhost/a": {"localhost/", "a", ""}, "a:1": {"", "a", ":1"}, "": {},
	} {
		if got := imageOf(text); got != want || got.String() != text {
			t.Errorf("%s is %+v, want %+v", text, got, want)
		}
	}
	if len(all) < 50 {
		t.Errorf("%d requests", len(all))
	}
}

// TestCatalogueNamesEachRequestOnce: treatments are compared by the names of what they were asked.
func TestCatalogueNamesEachRequestOnce(t *testing.T) {
	s := read(t, map[string]string{"p.yaml": header + "kind: ValidatingAdmissionPolicy\nmetadata: {name: p}\nspec:\n" +
		"  matchConstraints: {resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], " +
		"resources: ['*']}]}\n" + isTrue})
	all, err := Catalogue([]*Policy{&s.Policies[0]}, mechanism.Pod{Name: "x", Model: true}.JSON(), scope.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range all {
		if seen[r.Name] {
			t.Errorf("%q stands there twice", r.Name)
		}
		seen[r.Name] = true
	}
	if len(all) < 100 {
		t.Errorf("%d requests", len(all))
	}
}

// TestEvaluates: what a binding leaves out is not evaluated, whatever its policy selects.
func TestEvaluates(t *testing.T) {
	for resources, want := range map[string]bool{
		"": true, "{objectSelector: {matchLabels: {app: x}}}": true, "{objectSelector: {matchLabels: {app: z}}}": false,
		"{resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}":      true,
		"{resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [UPDATE], resources: [pods]}]}":      false,
		"{excludeResourceRules: [{apiGroups: [''], apiVersions: ['*'], operations: ['*'], resources: [pods]}]}": false,
	} {
		of := binding
		if resources != "" {
			of += "  matchResources: " + resources + "\n"
		}
		f, err := read(t, map[string]string{"p.yaml": policy("p", isTrue) + "---\n" + of}).Render(Where{Scope: scope})
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Evaluates(f.Policies[0], "", "v1", "pods", "CREATE", map[string]string{"app": "x"}); got != want {
			t.Errorf("%s: %v", resources, got)
		}
		if f.Evaluates(f.Policies[0], "", "v1", "services", "CREATE", nil) {
			t.Errorf("%s: it evaluates a Service", resources)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(policy("p", isTrue) + "---\n" + binding))
	f.Add([]byte(policy("p", "  validations: [{expression: \"a(\\\"\"}]\n")))
	f.Add([]byte(policy("p", "  validations:\n  - expression: >\n\n      a &&\n      b\n")))
	f.Add([]byte("kind: List\napiVersion: v1\nitems: [{kind: ValidatingAdmissionPolicy}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(t.TempDir(), "p.yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Read(file, false)
		if err != nil {
			return
		}
		for i := range s.Policies { // without the compiler, which is not ours, and slow under a fuzzer
			p := &s.Policies[i]
			for _, e := range append(p.variables(), p.expressions()...) {
				_ = p.at.within(2, 3, e.path...).Show(p.at.all, "wrong") // any place will do; a panic will not
			}
		}
		if in, err := s.Render(Where{Scope: scope, BindAll: true, Ours: true}); err == nil {
			for _, o := range in.Objects {
				if o.GetKind() == bindingKind && !mechanism.Confined(o, scope.Namespace) {
					t.Errorf("not confined: %v", o.Object)
				}
			}
			if _, err := Catalogue(in.Policies, mechanism.Pod{Model: true}.JSON(), scope.Namespace); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestMain lets this test binary be its own child, as tare's binary is.
func TestMain(m *testing.M) {
	if slices.Equal(os.Args[1:], []string{"serve", "admission", Builder}) {
		if err := proc.Serve(context.Background(), os.Stdin, os.Stdout, ServeBuild); err != nil {
			panic(err)
		}
		return
	}
	hosttest.Main(m)
}

// TestFieldsOfKyvernoAreKnown: each field that the definitions of Kyverno's policies in YAML have is known to ask
// nobody, or to ask somebody.
func TestFieldsOfKyvernoAreKnown(t *testing.T) {
	host := engine.Host{Log: slog.New(slog.DiscardHandler), Getenv: os.LookupEnv}
	program, there, err := engine.Kyverno.Seek(t.Context(), engine.Kyverno.Default, host)
	if !there || err != nil {
		hosttest.Missing(t, "Kyverno "+engine.Kyverno.Default+" is not built", hosttest.Plane)
	}
	definitions, err := ReadObjects(program.Definitions)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	var walk func(p part, schema tree, at string)
	walk = func(p part, schema tree, at string) {
		if items, ok := schema["items"].(tree); ok {
			schema = items
		}
		fields, _ := schema["properties"].(tree)
		for name, in := range fields {
			parts, known := p[name]
			if seen++; !known && asking[name] == "" {
				t.Errorf("nobody knows whether %s.%s asks another server", at, name)
			}
			if field, _ := in.(tree); parts != nil {
				walk(parts, field, at+"."+name)
			}
		}
	}
	for _, o := range definitions {
		if k := definedBy(o); k.Group != kyvernoGroup || k.Kind != "ClusterPolicy" && k.Kind != "Policy" {
			continue
		}
		versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
		for _, v := range versions {
			version, _ := v.(tree)
			spec, ok, err := unstructured.NestedMap(version, "schema", "openAPIV3Schema", "properties", "spec")
			if !ok || err != nil {
				t.Fatalf("%s: %v, %v", o.GetName(), ok, err)
			}
			name, _ := version["name"].(string)
			walk(quiet, spec, strings.Join([]string{o.GetName(), name, "spec"}, " "))
		}
	}
	if seen < 300 {
		t.Errorf("%d fields were seen", seen)
	}
}

// TestSecretsStayBehind: a record has no Secret of the bundle's, and the policies beside it keep their places.
func TestSecretsStayBehind(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData:\n  a: hidden\n"
	first, second := policy("p", isTrue), policy("q", isTrue)
	list := `{"apiVersion": "v1", "kind": "List", "items": [` +
		`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "l"}, "data": {"a": "hidden"}},` +
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}]}` + "\n"
	content := map[string]string{
		"several.yaml": "# Secret\n" + first + "---\n" + secret + "---\n" + second + "---\n" + list,
		"only.yml":     secret, "a/list.json": list, "a/.env": "hidden", "a/key.pem": "hidden", ".git/config": "hidden",
		"policy-about-secrets.yaml": policy("r", "  validations: [{expression: \"object.kind != 'Secret'\"}]\n"),
	}
	from := written(t, content)
	build := written(t, map[string]string{
		"p.yaml": first, "kustomization.yaml": "resources: [p.yaml]\nsecretGenerator: [{name: g, literals: [a=hidden]}]\n",
	})
	for _, bundled := range []string{from, filepath.Join(from, "several.yaml"), build} {
		to := t.TempDir()
		if err := Copy(to, "copy"+Ext(bundled), bundled); err != nil {
			t.Fatal(err)
		}
		err := bundle.Each(to, func(name string, text []byte) error {
			if strings.Contains(string(text), "hidden") || strings.Contains(string(text), "aGlkZGVu") {
				t.Errorf("%s of %s holds the secret:\n%s", name, bundled, text)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		was, err := Read(bundled, false)
		if err != nil {
			t.Fatal(err)
		}
		is, err := Read(filepath.Join(to, "copy"+Ext(bundled)), false)
		if err != nil || len(is.Policies) != len(was.Policies) || is.Left["ConfigMap"] != was.Left["ConfigMap"] {
			t.Fatalf("%+v, %v, want %+v", is, err, was)
		}
		for i := range is.Policies {
			if a, b := is.Policies[i].At(), was.Policies[i].At(); a.Line != b.Line && bundled != build {
				t.Errorf("%s stands at %v, and stood at %v", is.Policies[i].Name, a, b)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(from, "a/key.pem")); err != nil {
		t.Error(err)
	}
}

// TestTemplatesOfHelmAreRefused: what Helm would put a value into is no policy, also where it is YAML.
func TestTemplatesOfHelmAreRefused(t *testing.T) {
	for says, isHelms := range map[string]bool{
		`"object.x == '{{ .Values.registry }}'"`:                 true,
		`"object.x == '{{- $.Values.registry -}}'"`:              true,
		`"object.x == '{{ default 1 .Release.Name }}'"`:          true,
		`"object.x == '{{ include \"registry\" . }}'"`:           true,
		`"object.x == '{{ request.object.spec.Values.image }}'"`: false,
	} {
		dir := written(t, map[string]string{"a.yaml": policy("p", "  validations: [{expression: "+says+"}]\n")})
		_, err := Read(dir, false)
		if (err != nil) != isHelms || isHelms && !strings.Contains(err.Error(), "a.yaml:1: it is a template of Helm's") {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// TestPoliciesThatJudge: Kyverno evaluates some policies when no request comes, so that these deny none.
func TestPoliciesThatJudge(t *testing.T) {
	const actions = "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: v}\n" +
		"spec: {validationActions: [Deny], matchConstraints: {}, evaluation: "
	for spec, want := range map[string]bool{
		"{}":                                true,
		"{mode: Kubernetes}":                true,
		"{mode: JSON}":                      false,
		"{admission: {enabled: false}}":     false,
		"{background: {enabled: false}}":    true,
		"{admission: {enabled: true}}":      true,
		"{mode: JSON, admission: {x: 1}}":   false,
		"{admission: {}, background: null}": true,
	} {
		s := read(t, map[string]string{"a.yaml": actions + spec + "}\n"})
		if got := (&InForce{}).Denies(&s.Policies[0]); got != want || s.Policies[0].Judges() != want {
			t.Errorf("%s: denies %t", spec, got)
		}
	}
	s := read(t, map[string]string{"a.yaml": strings.Replace(clusterPolicy, "spec:\n", "spec:\n  admission: false\n", 1)})
	if s.Policies[0].Judges() || (&InForce{}).Denies(&s.Policies[0]) {
		t.Errorf("a policy about what exists denies")
	}
}
