package own

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// guarding is a bundle of all languages.
const guarding = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  failurePolicy: Fail
  matchConditions: [{name: c, expression: "request.userInfo.username != 'root'"}]
  matchConstraints:
    resourceRules:
    - apiGroups: ['', apps]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [pods, pods/ephemeralcontainers]
    objectSelector: {matchLabels: {location: eu}}
  validations: [{expression: 'true', message: never}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b}
spec:
  policyName: p
  validationActions: [Deny]
  matchResources:
    namespaceSelector: {matchExpressions: [{key: environment, operator: In, values: [production, staging]}]}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: k}
spec:
  background: true
  rules:
  - name: a
    match:
      any:
      - resources: {kinds: [Pod, apps/v1/Deployment], namespaces: [a, b]}
        subjects: [{kind: User, name: x}]
    exclude: {any: [{resources: {namespaces: [kube-system]}}]}
    validate: {failureAction: Enforce, message: never, pattern: {spec: {hostPID: false}}}
  - name: z
    match: {any: [{resources: {kinds: [Service]}}]}
    validate: {failureAction: Enforce, message: never, pattern: {spec: {type: ClusterIP}}}
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: Ban
metadata: {name: c}
spec: {match: {kinds: [{apiGroups: [''], kinds: [Pod]}], excludedNamespaces: [team-a]}, parameters: {x: 1}}
---
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: ban}
spec:
  crd: {spec: {names: {kind: Ban}}}
  targets: [{target: admission.k8s.gatekeeper.sh, rego: package ban}]
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: e, namespace: team}
spec: {exceptions: [{policyName: k, ruleNames: [a]}]}
`

// another begins another rule.
const another = "  - {name: c, match: {any: [{resources: {kinds: [Pod]}}]}, "

// shownAll is shown of guarding by requests for two kinds.
func shownAll() Shown {
	out := Shown{Policies: map[string]bool{}, Kinds: map[string]map[string]bool{}}
	for _, name := range []string{"p", "k", RuleName("k", "a"), RuleName("k", "z"), "c"} {
		out.Policies[name] = true
		out.Kinds[name] = map[string]bool{
			"Pod": true, "pods": true, "": true, "Deployment": true, "deployments": true, "apps": true, "Service": true,
		}
	}
	return out
}

// unasked is what is said, without what each sentence has.
func unasked(is, base *Set, by Shown) string {
	const each = ", and tare's requests do not show what that permits"
	return strings.ReplaceAll(strings.Join(is.Unasked(base, by), "\n"), each, "")
}

// TestUnasked: a change that tare's requests do not show is named with its place in the policy, before the policy was
// narrowed; what requests try is left to them, and what means the same is no change.
func TestUnasked(t *testing.T) {
	const (
		policy  = "ValidatingAdmissionPolicy p (spec."
		binding = "ValidatingAdmissionPolicyBinding b (spec."
		rule    = "ClusterPolicy k (rule a) ("
		missing = "policies of the baseline's are missing: "
	)
	for name, c := range map[string]struct{ was, is, want string }{
		"a selector of namespaces": {
			"[production, staging]", "[staging]",
			"which namespaces policies are about differs: " + binding + "matchResources.namespaceSelector)",
		},
		"an exemption": {
			"operator: In, values: [production, staging]", "operator: NotIn, values: [team-a]",
			"which namespaces policies are about differs: " + binding + "matchResources.namespaceSelector)",
		},
		"a list of namespaces": {
			"namespaces: [a, b]", "namespaces: [a]",
			"which namespaces policies are about differs: " + rule + "match.any[0].resources.namespaces)",
		},
		"excluded namespaces": {
			"[kube-system]", "[kube-system, team-a]",
			"which namespaces policies are about differs: " + rule + "exclude.any[0].resources.namespaces)",
		},
		"excluded namespaces of a constraint": {
			"[team-a]", "[team-a, team-b]",
			"which namespaces policies are about differs: Ban c (spec.match.excludedNamespaces)",
		},
		"operations": {
			"[CREATE, UPDATE]", "[CREATE]",
			"which operations policies are about differs: " + policy + "matchConstraints.resourceRules[0].operations)",
		},
		"a label with the name of a field": {
			"{location: eu}", "{location: us}",
			"which objects policies are about differs: " + policy + "matchConstraints.objectSelector)",
		},
		"a subresource": {
			"[pods, pods/ephemeralcontainers]", "[pods]",
			"what else policies say of their requests differs: " + policy + "matchConstraints.resourceRules[0].resources)",
		},
		"a condition": {
			"!= 'root'", "!= 'ci'",
			"whose requests policies are about, or under which conditions, differs: " + policy + "matchConditions)",
		},
		"subjects": {
			"name: x}]", "name: y}]",
			"whose requests policies are about, or under which conditions, differs: " + rule + "match.any[0].subjects)",
		},
		"ignored failures": {
			"failurePolicy: Fail", "failurePolicy: Ignore",
			"what becomes of requests that policies cannot decide differs: " + policy + "failurePolicy)",
		},
		"a binding that only audits": {
			"[Deny]", "[Audit]",
			"what policies do about what they object to differs: " + binding + "validationActions)",
		},
		"a rule that only audits": {
			"Enforce", "Audit",
			"what policies do about what they object to differs: " + rule + "validate.failureAction)",
		},
		"a constraint that only warns": {
			"parameters: {x: 1}", "enforcementAction: warn",
			"what policies do about what they object to differs: Ban c (spec.enforcementAction)",
		},
		"not at requests": {
			"background: true", "admission: false", "when policies are evaluated differs: ClusterPolicy k (spec.admission)",
		},
		"an exception": {"ruleNames: [a]", "ruleNames: [z]", "what tare leaves aside differs: PolicyException team/e"},
		"another exception": {
			"{name: e,", "{name: f,", "what tare leaves aside differs: PolicyException team/e, PolicyException team/f",
		},
		"a rule that changes": {
			"  - name: a\n", another + "mutate: {patchStrategicMerge: {}}}\n" +
				"  - name: a\n", "policies that change or make objects are new: ClusterPolicy k (rule c)",
		},
		"a policy that changes": {
			"---\napiVersion: templates", "---\n" + changing + "---\n" +
				strings.Replace(changingBinding, "name: b", "name: mb", 1) +
				"---\napiVersion: templates", "policies that change or make objects are new: MutatingAdmissionPolicy m, " +
				"MutatingAdmissionPolicyBinding mb",
		},
		"a rule more": {
			"  - name: z\n", another + "validate: {deny: {}}}\n  - name: z\n", "",
		},
		"another rule":    {"- name: z", "- name: y", missing + "ClusterPolicy k (rule z)"},
		"another binding": {"{name: b}", "{name: d}", missing + "ValidatingAdmissionPolicyBinding b"},

		"an order":                 {"[production, staging]", "[staging, production]", ""},
		"a kind that is asked for": {"resources: [pods, ", "resources: [pods, deployments, ", ""},
		"a default":                {"  failurePolicy: Fail\n", "", ""},
		"a default of Kyverno's":   {"  background: true\n", "", ""},
		"an expression":            {"expression: 'true'", "expression: 'false'", ""},
		"a pattern":                {"hostPID: false", "hostPID: true", ""},
		"a parameter":              {"{x: 1}", "{x: 2}", ""},
		"Rego":                     {"rego: package ban", "rego: package other", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(guarding, c.was) {
				t.Fatalf("no policy has %q", c.was)
			}
			base := read(t, map[string]string{"a.yaml": guarding})
			is := read(t, map[string]string{"b.yaml": strings.Replace(guarding, c.was, c.is, 1)})
			if d := cmp.Diff(c.want, unasked(is, base, shownAll())); d != "" {
				t.Errorf("differences (-want +got):\n%s", d)
			}
		})
	}
}

// TestUnaskedBesideFields: what is no field of its own is named, too: kinds that change places, what an engine reads from
// annotations and labels, audit annotations, which may fail, labels of namespaces, and what tests compare with.
func TestUnaskedBesideFields(t *testing.T) {
	const (
		kinds  = "what else policies say of their requests differs: "
		assert = "apiVersion: kyverno.io/v2\nkind: PolicyException\nmetadata: {name: e}\nspec: {exceptions: []}\n"
	)
	two := strings.Replace(guarding, "    objectSelector", "    - {apiGroups: [apps], apiVersions: [v1], "+
		"operations: [CREATE], resources: [deployments]}\n    objectSelector", 1)
	any2 := strings.Replace(guarding, "      - resources: {kinds: [Pod,", "      - resources: {kinds: [Service], "+
		"operations: [UPDATE]}\n      - resources: {kinds: [Pod,", 1)
	named := strings.Replace(guarding, "metadata: {name: k}", "metadata: {name: k, annotations: {team: x, "+
		"pod-policies.kyverno.io/autogen-controllers: none, policies.kyverno.io/title: T}, labels: {"+
		"cleanup.kyverno.io/ttl: 1h}}", 1)
	for name, c := range map[string]struct{ base, was, is, want string }{
		"resources change places": {
			strings.Replace(two, "[pods, pods/ephemeralcontainers]", "[pods]", 1), "[pods]", "[deployments]",
			kinds + "ValidatingAdmissionPolicy p (spec.matchConstraints.resourceRules[0].resources)",
		},
		"kinds change places": {
			any2, "kinds: [Service], operations", "kinds: [Pod], operations",
			kinds + "ClusterPolicy k (rule a) (match.any[0].resources.kinds)",
		},
		"rules that are made of a rule": {
			named, "controllers: none", "controllers: Job",
			kinds + `ClusterPolicy k (metadata.annotations."pod-policies.kyverno.io/autogen-controllers")`,
		},
		"an end": {
			named, "ttl: 1h", "ttl: 1m", kinds + `ClusterPolicy k (metadata.labels."cleanup.kyverno.io/ttl")`,
		},
		"a title":          {named, "title: T", "title: U", ""},
		"a label of one's": {named, "team: x,", "team: z,", ""},
		"an audit annotation": {
			strings.Replace(guarding, "  validations:", "  auditAnnotations: [{key: a, valueExpression: x}]\n  validations:", 1),
			"  auditAnnotations: [{key: a, valueExpression: x}]\n", "",
			kinds + "ValidatingAdmissionPolicy p (spec.auditAnnotations[0].key, spec.auditAnnotations[0].valueExpression)",
		},
		"a label of a namespace": {
			guarding + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: ns, labels: {environment: staging}}\n",
			"{environment: staging}", "{environment: test}",
			"what policies read beside the request differs: Namespace ns",
		},
	} {
		t.Run(name, func(t *testing.T) {
			base := read(t, map[string]string{"a.yaml": c.base})
			is := read(t, map[string]string{"b.yaml": strings.Replace(c.base, c.was, c.is, 1)})
			if d := cmp.Diff(c.want, unasked(is, base, shownAll())); d != "" {
				t.Errorf("differences (-want +got):\n%s", d)
			}
		})
	}
	const test = "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}\n" +
		"spec: {steps: [{try: [{assert: {file: assert.yaml}}]}]}\n"
	files := map[string]string{"a.yaml": guarding, "chainsaw-test.yaml": test}
	base := read(t, files)
	files["assert.yaml"] = assert
	is := read(t, files)
	if got := unasked(is, base, shownAll()); got != "what tare leaves aside differs: PolicyException e" {
		t.Errorf("an exception with which a test compares: %q", got)
	}
}

// TestUnaskedPolicies: policies that the base alone has are named, and so is one that is only left aside; a policy more
// permits nothing.
func TestUnaskedPolicies(t *testing.T) {
	base := read(t, map[string]string{"a.yaml": guarding})
	more := strings.Replace(clusterPolicy, "patterns", "more", 1)
	if got := read(t, map[string]string{"a.yaml": guarding, "more.yaml": more}).Unasked(base, shownAll()); got != nil {
		t.Errorf("a policy more: %q", got)
	}
	const context = "    context: [{name: i, imageRegistry: {reference: x}}]\n"
	reaching := strings.Replace(guarding, "  - name: z\n", "  - name: z\n"+context, 1)
	got := read(t, map[string]string{"a.yaml": reaching}).Unasked(base, shownAll())
	want := []string{
		"policies of the baseline's are missing, and tare's requests do not show what that permits: ClusterPolicy k, " +
			"ClusterPolicy k (rule a), ClusterPolicy k (rule z)",
		"what tare leaves aside differs, and tare's requests do not show what that permits: ClusterPolicy k",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("a policy that asks a registry (-want +got):\n%s", d)
	}
}

// TestUnaskedOfWhatIsNotShown: what no request shows of a policy, of a rule or of a kind is compared as it stands, too.
func TestUnaskedOfWhatIsNotShown(t *testing.T) {
	const (
		decide = "what policies decide that requests do not show in force differs: "
		kinds  = "what else policies say of their requests differs: "
		policy = "ValidatingAdmissionPolicy p (spec."
		rule   = "ClusterPolicy k (rule z) ("
	)
	for name, c := range map[string]struct{ without, was, is, want string }{
		"a validation": {"p", "'true'", "'false'", decide + "" + policy + "validations[0].expression)"},
		"its message":  {"p", "message: never}]", "message: other}]", ""},
		"a rule":       {"k/z", "ClusterIP", "NodePort", decide + "" + rule + "validate.pattern)"},
		"another rule": {"k/a", "ClusterIP", "NodePort", ""},
		"a constraint": {"c", "{x: 1}", "{x: 2}", decide + "Ban c (spec.parameters)"},
		"a template":   {"c", "package ban", "package b", decide + "ConstraintTemplate ban (spec.targets[0].rego)"},
		"a kind": {
			"p", "resources: [pods, ", "resources: [services, ",
			kinds + "" + policy + "matchConstraints.resourceRules[0].resources)",
		},
		"a kind of a rule": {"k/z", "[Service]", "[Secret]", kinds + "" + rule + "match.any[0].resources.kinds)"},
	} {
		t.Run(name, func(t *testing.T) {
			by := shownAll()
			delete(by.Policies, c.without)
			delete(by.Kinds, c.without)
			base := read(t, map[string]string{"a.yaml": guarding})
			is := read(t, map[string]string{"a.yaml": strings.Replace(guarding, c.was, c.is, 1)})
			if d := cmp.Diff(c.want, unasked(is, base, by)); d != "" {
				t.Errorf("differences (-want +got):\n%s", d)
			}
			if got := base.Unasked(base, Shown{}); got != nil {
				t.Errorf("of equal ones differs %q", got)
			}
		})
	}
}

// reading is a bundle whose policies read other objects.
const reading = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec: {paramKind: {apiVersion: x.example/v1, kind: Limits}, validations: [{expression: 'true'}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: b}
spec: {policyName: p, validationActions: [Deny], paramRef: {name: limits, parameterNotFoundAction: Allow}}
---
apiVersion: x.example/v1
kind: Limits
metadata: {name: limits, namespace: prod, labels: {of: p}}
data: {most: '3'}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: prod}
data: {allowed: a}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: k}
spec:
  rules:
  - name: a
    match: {any: [{resources: {kinds: [Pod]}}]}
    context:
    - {name: c, configMap: {name: settings, namespace: prod}}
    - {name: v, variable: {value: 1}}
    validate:
      failureAction: Enforce
      foreach:
      - list: request.object.spec.containers
        preconditions: {all: [{key: '{{ element.name }}', operator: NotEquals, value: istio}]}
        foreach: [{list: element.ports, context: [{name: d, apiCall: {urlPath: /api/v1/namespaces/x}}], deny: {}}]
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: e, namespace: team}
spec: {exceptions: [{policyName: k, ruleNames: [a]}]}
`

// TestUnaskedReads: where policies look beside the request is compared, and so are conditions of a part of a rule. What
// stands in parameters is left to requests, if these show the policies.
func TestUnaskedReads(t *testing.T) {
	const (
		reads  = "what policies read beside the request differs: "
		rule   = "ClusterPolicy k (rule a) ("
		within = "validate.foreach[0].foreach[0]."
	)
	for name, c := range map[string]struct{ was, is, want, unshown string }{
		"a parameter's namespace": {
			"namespace: prod, labels", "namespace: dev, labels", reads + "Limits dev/limits, Limits prod/limits", "",
		},
		"its labels":                 {"{of: p}", "{of: q}", reads + "Limits prod/limits", ""},
		"its value":                  {"'3'", "'9'", "", reads + "Limits prod/limits"},
		"a ConfigMap of an engine's": {"allowed: a", "allowed: '*'", reads + "ConfigMap prod/settings", ""},
		"its reference": {"{name: limits, parameter", "{name: most, parameter", reads +
			"ValidatingAdmissionPolicyBinding b (spec.paramRef.name)", ""},
		"no parameter": {
			"Action: Allow", "Action: Deny", "what becomes of requests that policies cannot decide differs: " +
				"ValidatingAdmissionPolicyBinding b (spec.paramRef.parameterNotFoundAction)", "",
		},
		"a source": {
			"settings, namespace: prod}}", "settings, namespace: dev}}", reads + rule + "context[0].configMap)", "",
		},
		"a source within":    {"spaces/x", "spaces/y", reads + rule + within + "context[0].apiCall)", ""},
		"a variable":         {"value: 1}", "value: 2}", "", ""},
		"a name of a source": {"{name: c,", "{name: z,", "", ""},
		"a condition within": {
			"value: istio", "value: '*'", "whose requests policies are about, or under which conditions, differs: " + rule +
				"validate.foreach[0].preconditions)", "",
		},
		"another list": {"spec.containers", "spec.initContainers", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			by := shownAll()
			base := read(t, map[string]string{"a.yaml": reading})
			is := read(t, map[string]string{"a.yaml": strings.Replace(reading, c.was, c.is, 1)})
			if d := cmp.Diff(c.want, unasked(is, base, by)); d != "" {
				t.Errorf("differences (-want +got):\n%s", d)
			}
			delete(by.Policies, "p")
			if got := unasked(is, base, by); c.unshown != "" && got != c.unshown {
				t.Errorf("of a policy that is not shown differs %q, want %q", got, c.unshown)
			}
		})
	}
}

// TestUnaskedExceptions: of two that have one name, in two groups, both are compared.
func TestUnaskedExceptions(t *testing.T) {
	other := strings.Replace(reading[strings.LastIndex(reading, "---\n")+4:], "kyverno.io/v2", "policies.kyverno.io/v1", 1)
	base := read(t, map[string]string{"a.yaml": strings.Replace(reading, "kyverno.io/v2", "policies.kyverno.io/v1", 1)})
	is := read(t, map[string]string{"a.yaml": reading, "z.yaml": other})
	const want = "what tare leaves aside differs: PolicyException team/e"
	if d := cmp.Diff(want, unasked(is, base, shownAll())); d != "" {
		t.Errorf("an exception more (-want +got):\n%s", d)
	}
}

// TestUnaskedFiles: what kubectl reads and tare does not is compared by the objects that decide, wherever they stand; a
// document that tare refuses, and a link out of the folder, as a whole.
func TestUnaskedFiles(t *testing.T) {
	at := strings.LastIndex(reading, "---\n")
	exception := reading[at:]
	type files = map[string]string
	const broken = "apiVersion: kyverno.io/v2\nkind: [\n"
	for name, c := range map[string]struct {
		was, is, links files
		want           string
	}{
		"hidden":           {nil, files{".z.yaml": exception}, nil, "PolicyException team/e"},
		"in another place": {files{".z.yaml": exception}, files{".x/e.yml": exception}, nil, ""},
		"a link":           {nil, files{"z": exception}, files{"z.yaml": "z"}, "PolicyException team/e"},
		"a link outside":   {nil, nil, files{"z.json": "/dev/null"}, "file z.json"},
		"refused":          {files{".z.yaml": broken}, files{".z.yaml": broken + "#"}, nil, "file .z.yaml"},
		"no policy":        {nil, files{".github/z.yml": "on: push", ".pod.yaml": "apiVersion: v1\nkind: Pod\n"}, nil, ""},
		"of tests":         {nil, files{".chainsaw-test/00-assert.yaml": exception}, nil, "PolicyException team/e"},
	} {
		t.Run(name, func(t *testing.T) {
			with := func(more files) files {
				out := files{"a.yaml": reading[:at]}
				maps.Copy(out, more)
				return out
			}
			base, dir := read(t, with(c.was)), written(t, with(c.is))
			for link, to := range c.links {
				if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
					t.Fatal(err)
				}
			}
			is, err := Read(dir, false)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.TrimPrefix(unasked(is, base, shownAll()), "what tare leaves aside differs: ")
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("differences (-want +got):\n%s", d)
			}
		})
	}
}

// TestUnaskedOrder: where only the first rule counts that matches, their order is compared, and so is one more.
func TestUnaskedOrder(t *testing.T) {
	one := strings.Replace(guarding, "  background: true\n", "  applyRules: One\n", 1)
	more := strings.Replace(one, "  - name: a\n", another+"validate: {deny: {}}}\n  - name: a\n", 1)
	const want = "what else policies say of their requests differs: ClusterPolicy k (spec.rules)"
	base, is := read(t, map[string]string{"a.yaml": one}), read(t, map[string]string{"a.yaml": more})
	if got := unasked(is, base, shownAll()); got != want {
		t.Errorf("differences %q, want %q", got, want)
	}
}

// TestUnaskedExpressions: of several expressions of one policy each needs a request of its own that shows it.
func TestUnaskedExpressions(t *testing.T) {
	policy := func(variables string, validations ...string) *Set {
		text := "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\nspec:\n" +
			"  matchConstraints: {resourceRules: [{apiGroups: [\"\"], apiVersions: [v1], operations: [CREATE], " +
			"resources: [pods]}]}\n  variables: [{name: v, expression: \"" + variables + "\"}]\n  validations:\n"
		for _, v := range validations {
			text += "  - " + v + "\n"
		}
		text += "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n" +
			"metadata: {name: b}\nspec: {policyName: p, validationActions: [Deny]}\n"
		return read(t, map[string]string{"p.yaml": text})
	}
	const (
		a       = "{expression: 'object.a', message: no a}"
		b       = "{expression: 'object.b', message: no b}"
		c       = "{expression: 'object.c'}"
		differs = "what policies decide that requests do not show in force differs: ValidatingAdmissionPolicy p ("
	)
	base := policy("1", a, b)
	said := func(denial string) []string {
		return (&InForce{Policies: []*Policy{base.named("p")}}).Expressions("p", denial)
	}
	const denied = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "
	if got := said(denied + "no b"); !slices.Equal(got, []string{"object.b"}) {
		t.Errorf("a denial for b is due to %q", got)
	}
	if got := said(denied + "no b, or so"); got != nil {
		t.Errorf("a denial in other words is due to %q", got)
	}
	for name, x := range map[string]struct {
		is    *Set
		shown []string
		want  string
	}{
		"nothing":                      {base, nil, ""},
		"the order":                    {policy("1", b, a), nil, ""},
		"a message":                    {policy("1", "{expression: 'object.a', message: x}", b), nil, ""},
		"one more":                     {policy("1", a, b, c), nil, ""},
		"one less":                     {policy("1", a), nil, differs + `spec.validations: "object.b")`},
		"one less that is shown":       {policy("1", a), []string{"object.b"}, ""},
		"another":                      {policy("1", a, c), []string{"object.a"}, differs + `spec.validations: "object.b")`},
		"a variable":                   {policy("2", a, b), []string{"object.a"}, differs + `spec.variables)`},
		"a variable, with both shown":  {policy("2", a, b), []string{"object.a", "object.b"}, ""},
		"a variable and one that goes": {policy("2", a), []string{"object.a", "object.b"}, ""},
	} {
		by := shownAll()
		for _, expression := range x.shown {
			by.Policies[ExpressionName("p", expression)] = true
		}
		if got := unasked(x.is, base, by); got != x.want {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}
