package own

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
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

// unasked is what is said, without what each sentence has.
func unasked(is, base *Set) string {
	const each = ", and requests cannot show all that this permits"
	return strings.ReplaceAll(strings.Join(is.Unasked(base), "\n"), each, "")
}

// TestUnasked: a change that tare's requests do not show is named with its place in the policy, before the policy was
// narrowed; what requests try is left to them, and what means the same is no change.
func TestUnasked(t *testing.T) {
	const (
		policy  = "ValidatingAdmissionPolicy p (spec."
		binding = "ValidatingAdmissionPolicyBinding b (spec."
		rule    = "ClusterPolicy k (rule a) ("
		missing = "policies of the baseline's are missing: "
		decide  = "what policies decide differs: "
		added   = "rules are new in policies of the baseline's: "
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
			"which namespaces policies are about differs: " + rule + `match.any[0].resources.namespaces: "b")`,
		},
		"excluded namespaces": {
			"[kube-system]", "[kube-system, team-a]",
			"which namespaces policies are about differs: " + rule + `exclude.any[0].resources.namespaces: "team-a")`,
		},
		"excluded namespaces of a constraint": {
			"[team-a]", "[team-a, team-b]",
			"which namespaces policies are about differs: Ban c (spec.match.excludedNamespaces)",
		},
		"excluded namespaces beside a key that looks like their path": {
			"excludedNamespaces: [team-a]},", "excludedNamespaces: [team-a, team-b]}, match.excludedNamespaces: [team-a],",
			"which namespaces policies are about differs: Ban c (spec.match.excludedNamespaces)\n" +
				`what else policies say of their requests differs: Ban c (spec."match.excludedNamespaces")`,
		},
		"a version of a cluster's state": {
			"metadata: {name: b}", "metadata: {name: b, resourceVersion: '1'}",
			"what else policies say of their requests differs: ValidatingAdmissionPolicyBinding b " +
				"(metadata.resourceVersion, metadata.uid)",
		},
		"a version, whose schema may prune parameters": {
			"templates.gatekeeper.sh/v1\n", "templates.gatekeeper.sh/v1beta1\n",
			"what else policies say of their requests differs: ConstraintTemplate ban (apiVersion)",
		},
		"operations": {
			"[CREATE, UPDATE]", "[CREATE]",
			"which operations policies are about differs: " + policy + `matchConstraints.resourceRules[0].operations: "UPDATE")`,
		},
		"a label with the name of a field": {
			"{location: eu}", "{location: us}",
			"which objects policies are about differs: " + policy + "matchConstraints.objectSelector)",
		},
		"a subresource": {
			"[pods, pods/ephemeralcontainers]", "[pods]",
			"what else policies say of their requests differs: " + policy + "matchConstraints.resourceRules[0].resources: " +
				`"pods/ephemeralcontainers")`,
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
			"what policies do about what they object to differs: Ban c (spec.enforcementAction)\n" + decide +
				"Ban c (spec.parameters)",
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
			"  - name: z\n", another + "validate: {deny: {}}}\n  - name: z\n", added + "ClusterPolicy k (rule c)",
		},
		"another rule": {
			"- name: z", "- name: x", missing + "ClusterPolicy k (rule z)\n" + added + "ClusterPolicy k (rule x)",
		},
		"another binding": {
			"{name: b}\nspec:\n", "{name: d}\nspec:\n  paramRef: {name: x}\n", missing + "ValidatingAdmissionPolicyBinding b",
		},

		"an order":               {"[production, staging]", "[staging, production]", ""},
		"a message":              {"'true', message: never", "'true', message: other", ""},
		"a default":              {"  failurePolicy: Fail\n", "", ""},
		"a default of Kyverno's": {"  background: true\n", "", ""},
		"a kind more": { // requests about it may have been converted to one that was named
			"resources: [pods, ", "resources: [pods, deployments, ", "what else policies say of their requests differs: " +
				policy + `matchConstraints.resourceRules[0].resources: "deployments")`,
		},
		"a kind of a constraint more": {"kinds: [Pod]}], excluded", "kinds: [Pod, Service]}], excluded", ""},
		"an operation more":           {"[CREATE, UPDATE]", "[CREATE, UPDATE, DELETE]", ""},
		"a validation more":           {"'true', message: never}", "'true', message: never}, {expression: 'false'}", ""},

		"a kind of a rule more": { // there are no rules about Deployments then
			"kinds: [Service]", "kinds: [Service, Pod]",
			`what else policies say of their requests differs: ClusterPolicy k (rule z) (match.any[0].resources.kinds: "Pod")`,
		},
		"a namespace of a rule more": {
			"namespaces: [a, b]", "namespaces: [a, b, c]",
			"which namespaces policies are about differs: " + rule + `match.any[0].resources.namespaces: "c")`,
		},
		"a namespace where all were meant": {
			"{kinds: [Service]}", "{kinds: [Service], namespaces: [a]}",
			"which namespaces policies are about differs: ClusterPolicy k (rule z) (match.any[0].resources.namespaces, " +
				`match.any[0].resources.namespaces: "a")`,
		},
		"a namespace that is taken away": {
			"namespaces: [a, b]", `namespaces: [a, b, "!c"]`, "which namespaces policies are about differs: " + rule +
				`match.any[0].resources.namespaces: "!c")`,
		},
		"an expression": {"expression: 'true'", "expression: 'false'", decide + policy + `validations: "true")`},
		"a pattern":     {"hostPID: false", "hostPID: true", decide + rule + "validate.pattern)"},
		"a parameter":   {"{x: 1}", "{x: 2}", decide + "Ban c (spec.parameters)"},
		"Rego": {
			"rego: package ban", "rego: package other", decide + "ConstraintTemplate ban (spec.targets[0].rego)",
		},
		"another kind": {
			"resources: [pods, ", "resources: [services, ", "what else policies say of their requests differs: " + policy +
				`matchConstraints.resourceRules[0].resources: "pods", spec.matchConstraints.resourceRules[0].resources: "services")`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(guarding, c.was) {
				t.Fatalf("no policy has %q", c.was)
			}
			base := read(t, map[string]string{"a.yaml": guarding})
			is := read(t, map[string]string{"b.yaml": strings.Replace(guarding, c.was, c.is, 1)})
			if d := cmp.Diff(c.want, unasked(is, base)); d != "" {
				t.Errorf("differences (-want +got):\n%s", d)
			}
			if got := base.Unasked(base); got != nil {
				t.Errorf("of equal ones differs %q", got)
			}
		})
	}
}

// TestUnaskedBesideFields: kinds that change places, what an engine reads from annotations and labels, audit
// annotations, which may fail, labels of namespaces, and what tests compare with are named, too.
func TestUnaskedBesideFields(t *testing.T) {
	const (
		kinds = "what else policies say of their requests differs: "
		role  = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\n" +
			"rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n"
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
			kinds + `ValidatingAdmissionPolicy p (spec.matchConstraints.resourceRules[0].resources: "deployments", ` +
				`spec.matchConstraints.resourceRules[0].resources: "pods")`,
		},
		"kinds change places": {
			any2, "kinds: [Service], operations", "kinds: [Pod], operations",
			kinds + `ClusterPolicy k (rule a) (match.any[0].resources.kinds: "Pod", match.any[0].resources.kinds: "Service")`,
		},
		"rules that are made of a rule": {
			named, "controllers: none", "controllers: Job",
			kinds + `ClusterPolicy k (metadata.annotations."pod-policies.kyverno.io/autogen-controllers")`,
		},
		"an end": {
			named, "ttl: 1h", "ttl: 1m", kinds + `ClusterPolicy k (metadata.labels."cleanup.kyverno.io/ttl")`,
		},
		"a title": {named, "title: T", "title: U", ""},
		"a version of the catalogue's": {
			strings.Replace(named, "{team: x", "{kyverno.io/kyverno-version: 1.6.0, team: x", 1), "1.6.0", "1.12.0", "",
		},
		"what a deployer does with it": {
			named, "{team: x", "{config.kubernetes.io/local-config: 'true', team: x",
			kinds + `ClusterPolicy k (metadata.annotations."config.kubernetes.io/local-config")`,
		},
		"no controllers, in place of all": {
			guarding + "---\napiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: v}\n" +
				"spec: {autogen: {podControllers: {}}, validations: [{expression: 'true'}]}\n",
			"podControllers: {}", "podControllers: {controllers: []}",
			kinds + "ValidatingPolicy v (spec.autogen.podControllers.controllers)",
		},
		"an owner, with which it goes": {
			named, "metadata: {name: k,", "metadata: {name: k, ownerReferences: [{apiVersion: v1, kind: Pod, name: x, uid: u}],",
			kinds + "ClusterPolicy k (metadata.ownerReferences)",
		},
		"a label of one's": {named, "team: x,", "team: z,", ""},
		"an audit annotation": {
			strings.Replace(guarding, "  validations:", "  auditAnnotations: [{key: a, valueExpression: x}]\n  validations:", 1),
			"  auditAnnotations: [{key: a, valueExpression: x}]\n", "",
			kinds + "ValidatingAdmissionPolicy p (spec.auditAnnotations[0], spec.auditAnnotations[0].key, " +
				"spec.auditAnnotations[0].valueExpression)",
		},
		"what denies all": {
			strings.Replace(guarding, "pattern: {spec: {type: ClusterIP}}", "deny: {}", 1), "deny: {}", "pattern: {}",
			"what policies decide differs: ClusterPolicy k (rule z) (validate.deny, validate.pattern)",
		},
		"an order that may count": {
			strings.Replace(guarding, "{x: 1}", "{x: [a, b]}", 1), "{x: [a, b]}", "{x: [b, a]}",
			"what policies decide differs: Ban c (spec.parameters)",
		},
		"a rule of a name that another has": {
			strings.Replace(guarding, "- name: z", "- name: a", 1), "hostPID: false", "hostPID: true",
			"what policies decide differs: ClusterPolicy k (rule a) (validate.pattern)",
		},
		"a role": {
			guarding + role, "[get]", "['*']", "what policies read beside the request differs: ClusterRole r",
		},
		"a setting of an engine's": {
			guarding + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: kyverno, namespace: kyverno}\ndata: {x: a}\n",
			"{x: a}", "{x: b}", "what policies read beside the request differs: ConfigMap kyverno/kyverno",
		},
		"a setting in an engine's chart": {
			guarding + "---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: x, namespace: flux}\n" +
				"spec: {chart: {spec: {chart: kyverno}}, values: {features: {policyExceptions: {enabled: false}}}}\n",
			"enabled: false", "enabled: true", "what policies read beside the request differs: HelmRelease flux/x",
		},
		"a label of a namespace": {
			guarding + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: ns, labels: {environment: staging}}\n",
			"{environment: staging}", "{environment: test}",
			"what policies read beside the request differs: Namespace ns",
		},
		"an annotation of a namespace": {
			guarding + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: ns, annotations: {exempt: nobody}}\n",
			"exempt: nobody", "exempt: somebody",
			"what policies read beside the request differs: Namespace ns",
		},
		"a version more, of which nothing is converted": {
			guarding, "apiVersions: [v1]", "apiVersions: [v1, v1beta1]",
			kinds + `ValidatingAdmissionPolicy p (spec.matchConstraints.resourceRules[0].apiVersions: "v1beta1")`,
		},
		"a version more where none is converted": {
			strings.Replace(guarding, "  matchConstraints:\n", "  matchConstraints:\n    matchPolicy: Exact\n", 1),
			"apiVersions: [v1]", "apiVersions: [v1, v1beta1]", "",
		},
		"an operation more of one of two versions": {
			two, "[CREATE, UPDATE]", "[CREATE, UPDATE, DELETE]",
			"which operations policies are about differs: ValidatingAdmissionPolicy p " +
				`(spec.matchConstraints.resourceRules[0].operations: "DELETE")`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			base := read(t, map[string]string{"a.yaml": c.base})
			is := read(t, map[string]string{"b.yaml": strings.Replace(c.base, c.was, c.is, 1)})
			if d := cmp.Diff(c.want, unasked(is, base)); d != "" {
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
	if got := unasked(is, base); got != "what tare leaves aside differs: PolicyException e" {
		t.Errorf("an exception with which a test compares: %q", got)
	}
}

// TestUnaskedPolicies: policies that the base alone has are named, and so is one that is only left aside; a policy more
// permits nothing.
func TestUnaskedPolicies(t *testing.T) {
	base := read(t, map[string]string{"a.yaml": guarding})
	more := strings.Replace(clusterPolicy, "patterns", "more", 1)
	if got := read(t, map[string]string{"a.yaml": guarding, "more.yaml": more}).Unasked(base); got != nil {
		t.Errorf("a policy more: %q", got)
	}
	const context = "    context: [{name: i, imageRegistry: {reference: x}}]\n"
	reaching := strings.Replace(guarding, "  - name: z\n", "  - name: z\n"+context, 1)
	got := read(t, map[string]string{"a.yaml": reaching}).Unasked(base)
	want := []string{
		"policies of the baseline's are missing, and requests cannot show all that this permits: ClusterPolicy k, " +
			"ClusterPolicy k (rule a), ClusterPolicy k (rule z)",
		"what tare leaves aside differs, and requests cannot show all that this permits: ClusterPolicy k",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("a policy that asks a registry (-want +got):\n%s", d)
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
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: limits.x.example}
spec:
  group: x.example
  scope: Namespaced
  names: {kind: Limits, plural: limits, singular: limits, listKind: LimitsList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {data: {type: object, properties: {most: {type: string, default: x}}}}
---
apiVersion: x.example/v1
kind: Allow
metadata: {name: main, namespace: prod}
spec: {most: 1}
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

// TestUnaskedReads: what policies read is compared, wherever it stands: their sources, parameters, the defaults that a
// definition gives these, and other objects where a policy may ask the API server for some.
func TestUnaskedReads(t *testing.T) {
	const (
		reads  = "what policies read beside the request differs: "
		decide = "what policies decide differs: ClusterPolicy k (rule a) ("
		ref    = reads + "ValidatingAdmissionPolicyBinding b (spec.paramRef)"
	)
	for name, c := range map[string]struct{ was, is, want string }{
		"a parameter's namespace": {
			"namespace: prod, labels", "namespace: dev, labels", reads + "Limits dev/limits, Limits prod/limits",
		},
		"its labels": {"{of: p}", "{of: q}", reads + "Limits prod/limits"},
		"its status": {
			"data: {most: '3'}", "data: {most: '3'}\nstatus: {free: true}", reads + "Limits prod/limits",
		},
		"its value":                  {"'3'", "'9'", reads + "Limits prod/limits"},
		"its default":                {"default: x", "default: z", reads + "CustomResourceDefinition limits.x.example"},
		"a ConfigMap of an engine's": {"allowed: a", "allowed: '*'", reads + "ConfigMap prod/settings"},
		"an object of another kind":  {"spec: {most: 1}", "spec: {most: 2}", reads + "Allow prod/main"},
		"its reference":              {"{name: limits, parameter", "{name: most, parameter", ref},
		"no parameter":               {"Action: Allow", "Action: Deny", ref},
		"a source":                   {"settings, namespace: prod}}", "settings, namespace: dev}}", decide + "context)"},
		"a source within":            {"spaces/x", "spaces/y", decide + "validate.foreach)"},
		"a variable":                 {"value: 1}", "value: 2}", decide + "context)"},
		"a condition within":         {"value: istio", "value: '*'", decide + "validate.foreach)"},
		"another list":               {"spec.containers", "spec.initContainers", decide + "validate.foreach)"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(reading, c.was) {
				t.Fatalf("nothing has %q", c.was)
			}
			base := read(t, map[string]string{"a.yaml": reading})
			is := read(t, map[string]string{"a.yaml": strings.Replace(reading, c.was, c.is, 1)})
			if d := cmp.Diff(c.want, unasked(is, base)); d != "" {
				t.Errorf("differences (-want +got):\n%s", d)
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
	if d := cmp.Diff(want, unasked(is, base)); d != "" {
		t.Errorf("an exception more (-want +got):\n%s", d)
	}
}

// TestUnaskedFiles: what kubectl reads and tare does not is compared by the objects that decide, wherever they stand; a
// document that tare refuses, and a link out of the folder, as a whole.
func TestUnaskedFiles(t *testing.T) {
	at := strings.LastIndex(reading, "---\n")
	exception := reading[at:]
	type files = map[string]string
	const (
		pod    = "apiVersion: v1\nkind: Pod\n"
		broken = "apiVersion: kyverno.io/v2\nkind: [\n"
		inJSON = `{"kind":"PolicyException","apiVersion":"kyverno.io/v2","metadata":{"name":"x","namespace":"team","note":"%s"}}`
		ofKind = "{kind: PolicyExceptionList, apiVersion: kyverno.io/v2, items: [{metadata: {name: x, namespace: team}}]}"
		ofList = "{kind: List, apiVersion: v1, items: [" + ofKind + "]}"
		one    = "{kind: PolicyException, apiVersion: kyverno.io/v2, metadata: {name: x, namespace: team}}"
		other  = "{kind: PolicyException, apiVersion: kyverno.io/v2, metadata: {name: x, namespace: team, uses: 2}}"
	)
	for name, c := range map[string]struct {
		was, is, links files
		want           string
	}{
		"hidden":           {nil, files{".z.yaml": exception}, nil, "PolicyException team/e"},
		"in another place": {files{".z.yaml": exception}, files{".x/e.yml": exception}, nil, ""},
		"a link":           {nil, files{"z": exception}, files{"z.yaml": "z"}, "PolicyException team/e"},
		"a link outside":   {nil, nil, files{"z.json": "/dev/null"}, "file z.json"},
		"a link to Rego":   {nil, files{"z": "package a\n"}, files{"z.rego": "z"}, "file z.rego"},
		"refused":          {files{".z.yaml": broken}, files{".z.yaml": broken + "#"}, nil, "file .z.yaml"},
		"on a separator, which kubectl refuses": {
			nil,
			files{".z.yaml": "--- {apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {name: e}} # x\n"},
			nil,
			"file .z.yaml",
		},
		"labels of a namespace, of tests": {
			nil,
			files{"01-assert.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: prod, labels: {exempt: 'yes'}}\n"},
			nil,
			"Namespace prod",
		},
		"a role, hidden": {
			nil, files{".z.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\n"}, nil, "Role r",
		},
		"a setting of an engine's, of tests": {
			nil,
			files{"01-errors.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kyverno, namespace: kyverno}\n"},
			nil,
			"ConfigMap kyverno/kyverno",
		},
		"no policy":            {nil, files{".github/z.yml": "on: push", ".pod.yaml": pod}, nil, ""},
		"what Flux leaves out": {nil, files{".sourceignore": "a.yaml"}, nil, "file .sourceignore"},
		"what Argo CD leaves out": {
			nil, files{"x/.argocd-source-x.yaml": "directory: {exclude: a.yaml}"}, nil, "file x/.argocd-source-x.yaml",
		},
		"patches of what Flux deploys": {
			nil, files{".z.yaml": "kind: Kustomization\napiVersion: kustomize.toolkit.fluxcd.io/v1\nmetadata: {name: z}\n" +
				"spec: {patches: [{target: {kind: ValidatingAdmissionPolicyBinding}}]}\n"}, nil, "Kustomization z",
		},
		"no YAML":                {nil, files{"z.yaml": "a: [\n"}, nil, "file z.yaml"},
		"no YAML, in both":       {files{"z.yaml": "a: [\n"}, files{"z.yaml": "a: [\n"}, nil, ""},
		"no YAML, hidden":        {nil, files{".z.yaml": "a: [\n"}, nil, "file .z.yaml"},
		"JSON that YAML refuses": {nil, files{"z.json": fmt.Sprintf(inJSON, `\ud83d\ude00`)}, nil, "PolicyException team/x"},
		"JSON that YAML merges":  {nil, files{"z.json": fmt.Sprintf(inJSON, `","<<":{"namespace":"b"},"note":"`)}, nil, "PolicyException team/x"},
		"a list of a kind":       {nil, files{"z.yaml": ofKind}, nil, "PolicyException team/x"},
		"a list in a list":       {nil, files{"z.yaml": ofList}, nil, "PolicyException team/x"},
		"the last of one name": {
			files{"x.yaml": one, "y.yaml": other}, files{"x.yaml": one, "0.yaml": other}, nil, "PolicyException team/x",
		},
		"of tests": {nil, files{".chainsaw-test/00-assert.yaml": exception}, nil, "PolicyException team/e"},
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
			got := strings.TrimPrefix(unasked(is, base), "what tare leaves aside differs: ")
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
	const want = "rules are new in policies of the baseline's: ClusterPolicy k (rule c)\n" +
		"what else policies say of their requests differs: ClusterPolicy k (spec.rules)"
	base, is := read(t, map[string]string{"a.yaml": one}), read(t, map[string]string{"a.yaml": more})
	if got := unasked(is, base); got != want {
		t.Errorf("differences %q, want %q", got, want)
	}
}

// TestUnaskedOrderOfChanges: each rule changes what those before it made, so that their order is compared: of those
// that both have, and not of those that change nothing.
func TestUnaskedOrderOfChanges(t *testing.T) {
	rule := func(name, does string) string {
		return strings.Replace(another, "name: c", "name: "+name, 1) + does + "}\n"
	}
	bundle := func(rules ...string) *Set {
		begin, rest, _ := strings.Cut(guarding, "  - name: a\n")
		return read(t, map[string]string{"a.yaml": begin + strings.Join(rules, "") + "  - name: a\n" + rest})
	}
	const mutate = "mutate: {patchStrategicMerge: {}}"
	one, two, three := rule("one", mutate), rule("two", mutate), rule("three", mutate)
	check := rule("check", "validate: {deny: {}}")
	const (
		differs = "what else policies say of their requests differs: ClusterPolicy k (spec.rules)"
		added   = "policies that change or make objects are new: ClusterPolicy k (rule "
		missing = "policies of the baseline's are missing: ClusterPolicy k (rule "
	)
	for name, c := range map[string]struct {
		is, was *Set
		want    string
	}{
		"another order":               {bundle(two, one, three), bundle(one, two, three), differs},
		"one that changes nothing":    {bundle(check, one, two), bundle(one, two, check), ""},
		"one more between the others": {bundle(one, three, two), bundle(one, two), added + "three)"},
		"one less":                    {bundle(one, three), bundle(one, two, three), missing + "two)"},
	} {
		if d := cmp.Diff(c.want, unasked(c.is, c.was)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestFurtherOnesMayWeaken: with one more, more may be permitted where failures are ignored, where the first rule
// counts, and where a policy changes what another looks at.
func TestFurtherOnesMayWeaken(t *testing.T) {
	ignoring := strings.Replace(guarding, "failurePolicy: Fail", "failurePolicy: Ignore", 1)
	first := strings.Replace(guarding, "  background: true\n", "  applyRules: One\n", 1)
	changes := strings.Replace(guarding, "    validate: {failureAction: Enforce, message: never, pattern: {spec: {type: "+
		"ClusterIP}}}", "    mutate: {patchStrategicMerge: {}}", 1)
	for name, c := range map[string]struct{ base, was, is string }{
		"ignored failures": {ignoring, "message: never}]", "message: never}, {expression: 'false'}]"},
		"the first rule":   {first, "[Service]", "[Service, Pod]"},
		"a change":         {changes, "[Service]", "[Service, Pod]"},
	} {
		base := read(t, map[string]string{"a.yaml": c.base})
		is := read(t, map[string]string{"a.yaml": strings.Replace(c.base, c.was, c.is, 1)})
		if unasked(is, base) == "" {
			t.Errorf("%s: no difference is named", name)
		}
	}
}

// TestFurtherOnesMayDelay: where an engine that is late permits what others deny, a policy more is named that could
// delay it, and so is what such a policy is about besides. Where it is not ignored, or nothing else denies, it is not.
func TestFurtherOnesMayDelay(t *testing.T) {
	const named = "policies are new that could delay their engine, with which what the others deny is permitted: "
	inCEL := strings.NewReplacer("name: ban", "name: other", "kind: Ban", "kind: Other", `rego: "package ban"`,
		"code: [{engine: K8sNativeValidation, source: {failurePolicy: Fail, validations: [{expression: 'true'}]}}]").
		Replace(banTemplate)
	other := strings.Replace(constraintOf("x", "{}"), "kind: Ban", "kind: Other", 1)
	ignored := func(name string) string {
		one := strings.Replace(clusterPolicy, "patterns", name, 1)
		return strings.Replace(one, "spec:\n", "spec:\n  failurePolicy: Ignore\n", 1)
	}
	fails := strings.Replace(clusterPolicy, "patterns", "fails", 1)
	all := func(texts ...string) string { return strings.Join(texts, "\n---\n") }
	const pods, more = "{kinds: [{apiGroups: [''], kinds: [Pod]}]}", "{kinds: [{apiGroups: [''], kinds: [Pod, Service]}]}"
	for name, c := range map[string]struct{ base, is, want string }{
		"of Gatekeeper's": {
			all(banTemplate, constraintOf("a", "{}")), all(banTemplate, constraintOf("a", "{}"), constraintOf("b", "{}")),
			named + "Ban b",
		},
		"in CEL, with an allowance": {
			all(banTemplate, constraintOf("a", "{}")), all(banTemplate, constraintOf("a", "{}"), inCEL, other), "",
		},
		"the only one of Gatekeeper's": {fails, all(fails, banTemplate, constraintOf("b", "{}")), ""},
		"of Kyverno's, ignored":        {ignored("a"), all(ignored("a"), ignored("b")), named + "ClusterPolicy b"},
		"of Kyverno's, not ignored":    {ignored("a"), all(ignored("a"), fails), ""},
		"the only one that is ignored": {fails, all(fails, ignored("b")), ""},
		"a kind more": {
			all(banTemplate, constraintOf("a", pods), constraintOf("b", pods)),
			all(banTemplate, constraintOf("a", more), constraintOf("b", pods)),
			`what else policies say of their requests differs: Ban a (spec.match.kinds[0].kinds: "Service")`,
		},
		"a validation more of a template's": {
			all(inCEL, other), all(strings.Replace(inCEL, "'true'}", "'true'}, {expression: 'false'}", 1), other), "",
		},
		"a validation more of a template's whose failures are ignored": {
			all(strings.Replace(inCEL, "Fail,", "Ignore,", 1), other), all(strings.NewReplacer("Fail,", "Ignore,",
				"{expression: 'true'}", "{expression: 'true'}, {expression: 'false'}").Replace(inCEL), other),
			`what policies decide differs: ConstraintTemplate other (spec.targets[0].code[0].source.validations: "false")`,
		},
	} {
		is, base := read(t, map[string]string{"a.yaml": c.is}), read(t, map[string]string{"a.yaml": c.base})
		if d := cmp.Diff(c.want, unasked(is, base)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestUnaskedExpressions: validations are a set, of which none may go.
func TestUnaskedExpressions(t *testing.T) {
	policy := func(variables string, validations ...string) *Set {
		text := "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\nspec:\n" +
			"  matchConstraints: {resourceRules: [{apiGroups: [\"\"], apiVersions: [v1], operations: [CREATE], " +
			"resources: [pods]}]}\n  variables: [{name: v, expression: \"" + variables + "\"}]\n  validations:\n"
		for _, v := range validations {
			text += "  - " + v + "\n"
		}
		return read(t, map[string]string{"p.yaml": text + "---\napiVersion: admissionregistration.k8s.io/v1\n" +
			"kind: ValidatingAdmissionPolicyBinding\nmetadata: {name: b}\nspec: {policyName: p, validationActions: [Deny]}\n"})
	}
	const (
		a       = "{expression: 'object.a', message: no a}"
		b       = "{expression: 'object.b', message: no b}"
		c       = "{expression: 'object.c'}"
		differs = "what policies decide differs: ValidatingAdmissionPolicy p ("
	)
	for name, x := range map[string]struct {
		is   *Set
		want string
	}{
		"nothing":    {policy("1", a, b), ""},
		"the order":  {policy("1", b, a), ""},
		"a message":  {policy("1", "{expression: 'object.a', message: x}", b), ""},
		"one more":   {policy("1", a, b, c), ""},
		"one less":   {policy("1", a), differs + `spec.validations: "object.b")`},
		"another":    {policy("1", a, c), differs + `spec.validations: "object.b")`},
		"a variable": {policy("2", a, b), differs + `spec.variables)`},
	} {
		if got := unasked(x.is, policy("1", a, b)); got != x.want {
			t.Errorf("%s: %s; want %s", name, got, x.want)
		}
	}
}

// mutants are copies of a value in which one thing is other, or gone, by its path.
func mutants(value any, path string) map[string]any {
	out := map[string]any{}
	switch v := value.(type) {
	case tree:
		for key, in := range v {
			without := maps.Clone(v)
			delete(without, key)
			out[path+"."+key+" gone"] = without
			for at, is := range mutants(in, path+"."+key) {
				other := maps.Clone(v)
				other[key] = is
				out[at] = other
			}
		}
	case []any:
		for i, in := range v {
			at := fmt.Sprintf("%s[%d]", path, i)
			out[at+" gone"] = slices.Delete(slices.Clone(v), i, i+1)
			for at, is := range mutants(in, at) {
				other := slices.Clone(v)
				other[i] = is
				out[at] = other
			}
		}
	case string:
		out[path] = v + "x"
	case bool:
		out[path] = !v
	case int64:
		out[path] = v + 1
	}
	return out
}

// TestEachChangeIsNamed: whatever is changed in a policy, or goes, is named, but for messages and defaults.
func TestEachChangeIsNamed(t *testing.T) {
	tells := regexp.MustCompile(`[mM]essage( gone)?$|\.(failurePolicy|background) gone$`)
	for name, bundle := range map[string]string{"guarding": guarding, "reading": reading} {
		var objects []object
		files := map[string]string{}
		for i, d := range documents("a.yaml", bundle) {
			of, err := d.objects()
			if err != nil || len(of) != 1 {
				t.Fatal(name, i, err)
			}
			objects = append(objects, of...)
			files[fmt.Sprintf("%d.yaml", i)] = d.text
		}
		base, tried := read(t, files), 0
		for i, o := range objects {
			at := fmt.Sprintf("%d.yaml", i)
			text := files[at]
			for path, is := range mutants(o.Object["spec"], "spec") {
				o.Object["spec"] = is
				json, err := o.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				files[at] = string(json)
				changed, err := Read(written(t, files), false)
				if err != nil {
					continue // nobody can apply it
				}
				tried++
				if got := changed.Unasked(base); (len(got) == 0) != tells.MatchString(path) {
					t.Errorf("%s %s: %s: named %q", o.GetKind(), o.GetName(), path, got)
				}
			}
			files[at] = text
		}
		if tried < 50 {
			t.Errorf("%s: %d changes were tried", name, tried)
		}
	}
}
