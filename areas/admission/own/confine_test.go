package own

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/areas/admission/mechanism"
)

// foreign is the scope of a run in a cluster that others use.
var foreign = mechanism.Scope{Run: "r1", Namespace: "tare-r1-0", Foreign: true}

// mutating is a policy of Kyverno's in CEL that mutates.
func mutating(name, more string) string {
	to := strings.NewReplacer("ValidatingPolicy", "MutatingPolicy", "name: cel", "name: "+name)
	return to.Replace(validatingPolicy) + more
}

// conditions are match conditions of a ClusterPolicy, and celTemplate is a template that Gatekeeper makes a
// ValidatingAdmissionPolicy of.
const (
	conditions  = "{matchConditions: [{name: c, expression: 'true'}]}"
	celTemplate = `apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: cel}
spec:
  crd: {spec: {names: {kind: Cel}}}
  targets: [{target: admission.k8s.gatekeeper.sh, code: [{engine: K8sNativeValidation, source: {validations: []}}]}]
`
)

// TestEnginesAreConfined: in a cluster that others use, everything that an engine evaluates is named for the run, and
// acts in its namespace only.
func TestEnginesAreConfined(t *testing.T) {
	long := strings.Repeat("x", 60)
	s := read(t, map[string]string{
		"k.yaml": clusterPolicy + "---\n" + strings.Replace(validatingPolicy, "/v1", "/v1alpha1", 1) + "---\n" +
			strings.Replace(clusterPolicy, "name: patterns", "name: "+long, 1) + "---\n" +
			strings.NewReplacer("ClusterPolicy", "Policy", "name: patterns", "name: own, namespace: team").
				Replace(clusterPolicy),
		"g.yaml": banTemplate + "---\n" + constraintOf("pods", `{kinds: [{apiGroups: [""], kinds: [Pod]}]}`) + "---\n" +
			constraintOf("nodes", `{scope: Cluster}`),
		"z.yaml": celTemplate + "---\n" + strings.Replace(constraintOf("in-cel", "{}"), "Ban", "Cel", 1),
		"m.yaml": "apiVersion: mutations.gatekeeper.sh/v1\nkind: Assign\nmetadata: {name: assigns}\nspec: {}\n",
		"changes.yaml": strings.NewReplacer("name: patterns", "name: changes", "validate: {message: no, deny: {}}",
			"mutate: {targets: [{kind: Pod, namespace: production}]}").Replace(clusterPolicy) + "---\n" +
			strings.Replace(mutating("sets", ""), "resourceRules:", "namespaceSelector: {matchLabels: {a: b}}\n    "+
				"resourceRules:", 1) + "---\n" + mutating("exists", "  evaluation: {mutateExisting: {enabled: true}}\n") +
			"---\n" + mutating("targets", "  targetMatchConstraints: {resourceRules: []}\n") + "---\n" +
			strings.NewReplacer("name: patterns", "name: generates", "validate: {message: no, deny: {}}",
				"generate: {apiVersion: v1, kind: Secret}").Replace(clusterPolicy) + "---\n" +
			strings.NewReplacer("name: patterns", "name: conditions", "  rules:", "  webhookConfiguration: "+conditions+
				"\n  rules:").Replace(clusterPolicy) + "---\n" +
			strings.NewReplacer("name: patterns", "name: waits", "  rules:", "  webhookTimeoutSeconds: 30\n  rules:").
				Replace(clusterPolicy) + "---\n" +
			mutating("waits-in-cel", "  webhookConfiguration: {timeoutSeconds: 30}\n") + "---\n" +
			strings.Replace(mutating("selects", ""), "resourceRules:", "objectSelector: {matchLabels: {a: b}}\n    "+
				"resourceRules:", 1) + "---\n" +
			mutating("conditions-in-cel", "  matchConditions: [{name: c, expression: 'true'}]\n") + "---\n" +
			strings.NewReplacer("name: patterns", "name: all", "[Pod, apps/v1/StatefulSet]", "['*']").Replace(clusterPolicy) +
			"---\n" + strings.NewReplacer("name: patterns", "name: policies", "[Pod, apps/v1/StatefulSet]",
			"[kyverno.io/v1/ClusterPolicy]").Replace(clusterPolicy) + "---\n" +
			strings.NewReplacer("name: patterns", "name: roles", "apps/v1/StatefulSet", "ClusterRole", "pattern: {spec: "+
				`{=(hostNetwork): "false"}}`, "cel: {expressions: []}").Replace(clusterPolicy) + "---\n" +
			strings.Replace(mutating("scope", ""), "resources: [services]", "resources: [namespaces], scope: Cluster",
				1) + "---\n" + strings.Replace(mutating("all-in-cel", ""), "[services]", "[pods, '*']", 1),
	})
	in, err := s.Render(Where{Scope: foreign, Ours: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range in.Objects {
		got = append(got, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
		if !Confined(o, foreign.Namespace) || Confined(o, "other") && o.GetKind() != "ConstraintTemplate" {
			t.Errorf("%s %s is not confined: %v", o.GetKind(), o.GetName(), o.Object["spec"])
		}
		if v := o.GroupVersionKind().Version; v == "v1alpha1" {
			t.Errorf("%s is of %s", o.GetKind(), v)
		}
		if _, ok := in.At(o); !ok {
			t.Errorf("nobody knows where %s stands", o.GetName())
		}
	}
	enforced := &unstructured.Unstructured{Object: tree{"status": tree{"byPod": []any{tree{"enforced": true}}}}}
	enforced.SetGroupVersionKind(schema.GroupVersionKind{Group: ConstraintGroup, Version: "v1", Kind: "TareR10Cel"})
	if ready, _ := in.Ready(enforced); !ready || in.MakesPolicies() || !in.TemplatesInCEL() {
		t.Error("a template in CEL is made a policy of the API server's, which others notice")
	}
	want := []string{
		"ConstraintTemplate /tarer10ban", "ConstraintTemplate /tarer10cel", "Assign /tare-r1-0.assigns",
		"NamespacedValidatingPolicy tare-r1-0/tare-r1-0.cel", "TareR10Cel /tare-r1-0.in-cel",
		"Policy tare-r1-0/tare-r1-0.own", "ClusterPolicy /tare-r1-0.patterns", "TareR10Ban /tare-r1-0.pods",
		"NamespacedMutatingPolicy tare-r1-0/tare-r1-0.sets",
		"ClusterPolicy /tare-r1-0." + long[:46] + "-",
	}
	for i, w := range want {
		if i >= len(got) || !strings.HasPrefix(strings.ToLower(got[i]), strings.ToLower(w)) {
			t.Fatalf("objects %q, want them to begin as %q", got, want)
		}
	}
	idle := map[string]string{
		"nodes":     "it is about objects that are in no namespace",
		"changes":   "a rule of it has mutate.targets, and may change what is in other namespaces",
		"exists":    "it changes what exists, and may change what is in other namespaces",
		"targets":   "it changes what exists, and may change what is in other namespaces",
		"generates": "a rule of it has generate, and may change what is in other namespaces",

		"conditions": "it has match conditions, and where one fails the API server refuses requests in other namespaces",
		"conditions-in-cel": "it has match conditions, and where one fails the API server refuses requests in other " +
			"namespaces",
		"waits": "it sets a webhook's time-out, for which requests in other namespaces wait, too, if Kyverno does not answer",
		"waits-in-cel": "it sets a webhook's time-out, for which requests in other namespaces wait, too, if Kyverno does " +
			"not answer",
		"selects": "it has an objectSelector, and Kyverno before 1.19 may evaluate policies of others for no other " +
			"objects",
		"all":        "a rule of it is about *: if Kyverno did not answer, nobody could mend the cluster",
		"all-in-cel": "it is about *: if Kyverno did not answer, nobody could mend the cluster",
		"policies": "a rule of it is about kyverno.io/v1/ClusterPolicy: if Kyverno did not answer, nobody could mend the " +
			"cluster",
		"roles": "the API server may evaluate it in Kyverno's place, and for objects that are in no namespace, too: " +
			"clusterroles",
		"scope": "it is about objects that are in no namespace",
	}
	if d := cmp.Diff(idle, in.Idle); d != "" {
		t.Errorf("not in force (-want +got):\n%s", d)
	}
	_, err = read(t, map[string]string{"a.yaml": mutating("a", "  matchConditions: []\n")}).
		Render(Where{Scope: foreign, Ours: true})
	if err == nil || !strings.HasPrefix(err.Error(), "none of the 1 policies can be in force, such as a, since it has ") {
		t.Errorf("a bundle of which everything is left out: %v", err)
	}
	if d := cmp.Diff([]string{"[tare-r1-0.pods] ", "with binding 'gatekeeper-tarer10ban-tare-r1-0.pods' denied"},
		s.named("pods").Words(foreign)); d != "" {
		t.Errorf("words (-want +got):\n%s", d)
	}
}

// TestUnconfined: what acts elsewhere, too, is not said to be confined.
func TestUnconfined(t *testing.T) {
	const ns = "tare-r1-0"
	const here, everywhere = "{resources: {namespaces: [tare-r1-0]}}", "{resources: {kinds: [Pod]}}"
	clusterPolicy := func(spec string) string {
		return "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec: " + spec + "\n"
	}
	rule := func(match string) string { // the second of two
		return clusterPolicy("{rules: [{name: a, match: {any: [" + here + "]}, validate: {}}, {name: b, " + match +
			", validate: {}}]}")
	}
	namespaced := func(apiVersion, kind, namespace string) string {
		return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: p, namespace: '" + namespace + "'}\n" +
			"spec: {rules: [{name: a, validate: {}}]}\n"
	}
	about := func(kinds, rest string) string {
		return clusterPolicy("{rules: [{name: a, match: {any: [{resources: {namespaces: [tare-r1-0], kinds: " + kinds +
			"}}]}, validate: {" + rest + "}}]}")
	}
	inCEL := func(spec string) string {
		return "apiVersion: policies.kyverno.io/v1\nkind: NamespacedValidatingPolicy\nmetadata: {name: p, namespace: " + ns +
			"}\nspec: {matchConstraints: {resourceRules: [" + spec + "}\n"
	}
	for name, c := range map[string]struct {
		text     string
		confined bool
	}{
		"match conditions": {
			clusterPolicy("{webhookConfiguration: " + conditions + ", rules: [{name: a, match: " + here + "}]}"), false,
		},
		"match conditions of a policy of the namespace": {
			strings.Replace(namespaced("kyverno.io/v1", "Policy", ns), "{rules", "{webhookConfiguration: "+conditions+", rules",
				1), false,
		},
		"kinds":                          {about("['*/Ingress', Pod/exec]", ""), true},
		"all kinds":                      {about("[Pod, '*']", ""), false},
		"some kinds":                     {about("['Cluster*']", ""), false},
		"policies":                       {about("[ClusterPolicy]", ""), false},
		"constraints":                    {about("[constraints.gatekeeper.sh/*/Ban]", ""), false},
		"webhooks of any group":          {about("['*/*/ValidatingWebhookConfiguration']", ""), false},
		"kinds in no namespace":          {about("[ClusterRole]", ""), true},
		"those in CEL":                   {about("[ClusterRole]", "cel: {}"), false},
		"kinds in namespaces in CEL":     {about("[Pod, apps/v1/Deployment]", "cel: {}"), true},
		"a kind of another group in CEL": {about("[config.openshift.io/v1/Ingress]", "cel: {}"), false},
		"a ValidatingPolicy of it":       {inCEL("{resources: [pods]}]}"), true},
		"one of any group":               {inCEL("{apiGroups: ['*'], resources: [pods/exec]}]}"), true},
		"one of all kinds":               {inCEL("{apiGroups: [apps], resources: ['*']}]}"), false},
		"one of nodes":                   {inCEL("{apiGroups: [''], resources: [nodes/status]}]}"), false},
		"one of policies":                {inCEL("{apiGroups: ['*'], resources: [clusterpolicies]}]}"), false},
		"one that ends Kyverno":          {inCEL("{resources: [pods]}, {scope: Namespaced}]}"), false},
		"one with match conditions":      {inCEL("]}, matchConditions: []"), false},
		"one with a time-out":            {inCEL("]}, webhookConfiguration: {timeoutSeconds: 1}"), false},
		"one for some objects":           {inCEL("], objectSelector: {matchLabels: {a: b}}}"), false},
		"one for all objects":            {inCEL("], objectSelector: {}}"), true},
		"one for some namespaces":        {inCEL("], namespaceSelector: {}}"), false},
		"a time-out": {
			clusterPolicy("{webhookTimeoutSeconds: 1, rules: [{match: " + here + "}]}"), false,
		},
		"a template that makes a policy": {celTemplate, false},
		"a template that makes no policy": {
			strings.Replace(celTemplate, "{validations", "{generateVAP: false, validations", 1), true,
		},
		"each alternative":  {rule("match: {any: [" + here + "]}"), true},
		"all of them":       {rule("match: {all: [" + everywhere + ", " + here + "]}"), true},
		"directly":          {rule("match: " + here), true},
		"an alternative":    {rule("match: {any: [" + here + ", " + everywhere + "]}"), false},
		"by its user":       {rule("match: {any: [" + here + ", {subjects: [{kind: User, name: a}]}]}"), false},
		"no match":          {rule("exclude: {}"), false},
		"an empty match":    {rule("match: {}"), false},
		"no alternative":    {rule("match: {any: []}"), false},
		"two namespaces":    {rule("match: {any: [{resources: {namespaces: [tare-r1-0, production]}}]}"), false},
		"a pattern":         {rule("match: {any: [{resources: {namespaces: ['tare-*']}}]}"), false},
		"two ways at once":  {rule("match: {any: [" + here + "], resources: {kinds: [Pod]}}"), false},
		"it generates":      {rule("match: {any: [" + here + "]}, generate: {kind: Secret}"), false},
		"it mutates":        {rule("match: {any: [" + here + "]}, mutate: {patchesJson6902: ''}"), true},
		"it mutates others": {rule("match: {any: [" + here + "]}, mutate: {targets: [{kind: Pod}]}"), false},
		"a policy that mutates others": {
			strings.Replace(namespaced("kyverno.io/v1", "Policy", ns), "validate: {}", "mutate: {targets: []}", 1), false,
		},
		"no rules":                      {clusterPolicy("{}"), false},
		"rules that are no map":         {clusterPolicy("{rules: [a]}"), false},
		"a policy of the namespace":     {namespaced("kyverno.io/v1", "Policy", "tare-r1-0"), true},
		"a policy of another":           {namespaced("kyverno.io/v1", "Policy", "production"), false},
		"a policy of no namespace":      {namespaced("policies.kyverno.io/v1", "ValidatingPolicy", ""), false},
		"a GeneratingPolicy of it":      {namespaced("policies.kyverno.io/v1", "NamespacedGeneratingPolicy", ns), false},
		"a constraint":                  {constraintOf("p", "{namespaces: [tare-r1-0], scope: Namespaced}"), true},
		"a constraint of all":           {constraintOf("p", "{}"), false},
		"a constraint of another":       {constraintOf("p", "{namespaces: [production], scope: Namespaced}"), false},
		"a constraint of nodes as well": {constraintOf("p", "{namespaces: [tare-r1-0]}"), false},
	} {
		objects, err := document{text: c.text, item: -1}.objects()
		if err != nil || len(objects) != 1 {
			t.Fatalf("%s: %v", name, err)
		}
		if got := Confined(objects[0].Unstructured, ns); got != c.confined {
			t.Errorf("%s: confined %t, want %t", name, got, c.confined)
		}
	}
}
