package own

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	banTemplate = `apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: ban}
spec: {crd: {spec: {names: {kind: Ban}}}, targets: [{target: admission.k8s.gatekeeper.sh, rego: "package ban"}]}
`
	constraint = `apiVersion: constraints.gatekeeper.sh/v1beta1
kind: Ban
metadata: {name: NAME}
spec: {match: MATCH}
`
)

func constraintOf(name, match string) string {
	return strings.NewReplacer("NAME", name, "MATCH", match).Replace(constraint)
}

// TestConstraintsAreTaken with their templates, which come before them, and the run's namespace stands for those that
// they name.
func TestConstraintsAreTaken(t *testing.T) {
	s := read(t, map[string]string{
		"a.yaml": constraintOf("pods", `{kinds: [{apiGroups: [""], kinds: [Pod]}], namespaces: [production]}`) + "---\n" +
			constraintOf("everything", "{namespaceSelector: {matchLabels: {team: blue}}}") + "---\n" +
			constraintOf("elsewhere", "{namespaceSelector: {matchLabels: {team: red}}}"),
		"b.yaml": banTemplate + "---\n" + strings.NewReplacer("name: ban", "name: idle", "kind: Ban", "kind: Idle").
			Replace(banTemplate),
		"suite.yaml": "apiVersion: test.gatekeeper.sh/v1alpha1\nkind: Suite\nmetadata: {name: s}\n",
		"mutation.yaml": "apiVersion: mutations.gatekeeper.sh/v1\nkind: Assign\nmetadata: {name: m}\nspec: {applyTo: " +
			"[{groups: [apps], versions: [v1], kinds: [Deployment]}], match: {namespaces: [production]}}\n",
		"expansion.yaml": "apiVersion: expansion.gatekeeper.sh/v1alpha1\nkind: ExpansionTemplate\nmetadata: {name: e}\n",
	})
	in, err := s.Render(Where{Scope: scope, Ours: true})
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, o := range in.Objects {
		order = append(order, o.GetKind()+" "+o.GetName())
		if _, ok := in.At(o); !ok {
			t.Errorf("nobody knows where %s stands", o.GetName())
		}
		if o.GetName() != "pods" && o.GetName() != "m" {
			continue
		}
		if names, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "match", "namespaces"); len(names) != 1 ||
			names[0] != scope.Namespace {
			t.Errorf("it is about %v", names)
		}
	}
	if d := cmp.Diff([]string{"ConstraintTemplate ban", "Ban elsewhere", "Assign m", "Ban pods"}, order); d != "" {
		t.Errorf("objects (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]string{"team": "red"}, in.NamespaceLabels); d != "" {
		t.Errorf("labels (-want +got):\n%s", d)
	}
	if in.Idle["everything"] == "" || in.Idle["template idle"] != "no constraint is of its kind" {
		t.Errorf("not in force: %v", in.Idle)
	}
	if d := cmp.Diff([]string{"ExpansionTemplate e"}, in.Untaken); d != "" {
		t.Errorf("left aside (-want +got):\n%s", d)
	}
	pods := s.named("pods")
	if !in.Evaluates(pods, "", "v1", "pods", "UPDATE", nil) || in.Evaluates(pods, "", "v1", "services", "CREATE", nil) ||
		!in.Evaluates(s.named("elsewhere"), "", "v1", "services", "CREATE", nil) ||
		!in.Evaluates(s.named("m"), "apps", "v1", "deployments", "CREATE", nil) ||
		in.Evaluates(s.named("m"), "", "v1", "pods", "CREATE", nil) {
		t.Error("what constraints are about is not what they say")
	}
	if mutating := in.Mutating(); len(mutating) != 1 || mutating[0].Name != "m" || mutating[0].Words(scope) != nil {
		t.Errorf("%d mutate", len(mutating))
	}
	words := []string{"[pods] ", "with binding 'gatekeeper-ban-pods' denied"}
	if d := cmp.Diff(words, pods.Words(scope)); d != "" || pods.Engine() != "gatekeeper" {
		t.Errorf("%s; words (-want +got):\n%s", pods.Engine(), d)
	}
}

func TestConstraintsAreChecked(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no template": {
			constraintOf("a", "{}"), "a.yaml:1: Ban a: the bundle holds no ConstraintTemplate that defines its kind",
		},
		"a kind twice": {
			banTemplate + "---\n" + strings.Replace(banTemplate, "name: ban", "name: other", 1) + "---\n" +
				constraintOf("a", "{}"),
			"ConstraintTemplate other defines Ban, as that at ",
		},
		"a kind twice, in another case": {
			banTemplate + "---\n" + strings.Replace(banTemplate, "kind: Ban", "kind: BAN", 1) + "---\n" +
				constraintOf("a", "{}"),
			"ConstraintTemplate ban defines BAN, as that at ",
		},
		"a template's name twice": {
			banTemplate + "---\n" + strings.Replace(banTemplate, "kind: Ban", "kind: Other", 1) + "---\n" +
				constraintOf("a", "{}"),
			"ConstraintTemplate ban stands at ",
		},
		"a name in two kinds": {
			banTemplate + "---\n" + strings.NewReplacer("name: ban", "name: other", "kind: Ban", "kind: Other").
				Replace(banTemplate) + "---\n" + constraintOf("a", "{}") + "---\n" +
				strings.Replace(constraintOf("a", "{}"), "kind: Ban", "kind: Other", 1),
			"a.yaml:16: Other a has the name of Ban a at ",
		},
		"a name twice": {
			banTemplate + "---\n" + constraintOf("a", "{}") + "---\n" + constraintOf("a", "{}"), "a.yaml:11: Ban a stands at ",
		},
		"no name": {banTemplate + "---\n" + constraintOf("''", "{}"), "Ban without a metadata.name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(written(t, map[string]string{"a.yaml": c.text}), false)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	cel := read(t, map[string]string{"a.yaml": celTemplate + "---\n" + banTemplate + "---\n" + constraintOf("a", "{}")})
	in, err := cel.Render(Where{Scope: scope, Ours: true})
	if err != nil {
		t.Fatal(err)
	}
	if in.MakesPolicies() {
		t.Error("a template without a constraint is made a policy of the API server's")
	}
	for name, c := range map[string]struct {
		status string
		ready  bool
		says   string
	}{
		"Ban without a status": {"{}", false, ""},
		"Ban enforced":         {`{byPod: [{id: x, enforced: true}]}`, true, ""},
		"Cel enforced":         {`{byPod: [{id: x, enforced: true}]}`, false, ""},
		"Cel waiting": {
			`{byPod: [{enforced: true, enforcementPointsStatus: [{enforcementPoint: vap.k8s.io, state: waiting, message: soon}]}]}`,
			false, "soon",
		},
		"Cel generated": {
			`{byPod: [{enforced: true, enforcementPointsStatus: [{enforcementPoint: vap.k8s.io, state: generated}]}]}`, true, "",
		},
		"Ban refused":                  {`{byPod: [{id: x, errors: [{message: no such field}]}]}`, false, "no such field"},
		"ConstraintTemplate created":   {`{created: true}`, true, ""},
		"ConstraintTemplate with Rego": {`{byPod: [{errors: [{message: rego_parse_error}]}]}`, false, "rego_parse_error"},
	} {
		kind, _, _ := strings.Cut(name, " ")
		group := map[string]string{"Ban": ConstraintGroup, "Cel": ConstraintGroup, "ConstraintTemplate": templateGroup}[kind]
		text := "apiVersion: " + group + "/v1\nkind: " + kind + "\nmetadata: {name: x}\nstatus: " + c.status
		d := document{text: text, item: -1}
		objects, err := d.objects()
		if err != nil || len(objects) != 1 {
			t.Fatal(err)
		}
		if ready, says := in.Ready(objects[0].Unstructured); ready != c.ready || says != c.says {
			t.Errorf("%s: %v %q", name, ready, says)
		}
	}
}

// TestBindingsMadeOfConstraints: the API server counts for a constraint only once Gatekeeper says that it has made a
// binding of it, and not where it evaluates the constraint itself.
func TestBindingsMadeOfConstraints(t *testing.T) {
	cel := strings.Replace(constraintOf("a", "{}"), "kind: Ban", "kind: Cel", 1)
	in, err := read(t, map[string]string{"a.yaml": celTemplate + "---\n" + cel}).Render(Where{Scope: scope, Ours: true})
	if err != nil {
		t.Fatal(err)
	}
	o := in.Objects[len(in.Objects)-1].DeepCopy()
	for _, c := range []struct{ state, want string }{
		{"", ""},
		{"generated", "gatekeeper-cel-a"},
		{"error", ""},
	} {
		o.Object["status"] = tree{"byPod": []any{tree{"enforced": true, "enforcementPointsStatus": []any{
			tree{"enforcementPoint": "vap.k8s.io", "state": c.state},
		}}}}
		in.Ready(o)
		if got := in.BindingMadeOf(in.Policies[0]); got != c.want {
			t.Errorf("%q: %q, want %q", c.state, got, c.want)
		}
	}
}
