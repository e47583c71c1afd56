package own

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/areas/admission/mechanism"
)

// reaching are policies of Kyverno's that ask other servers, each in another way, and some that only look so.
const reaching = `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: service}, spec: {rules: [{name: a,
  context: [{name: x, apiCall: {method: POST, service: {url: "http://x"}}}],
  match: {any: [{resources: {kinds: [Pod]}}]},
  validate: {message: x, pattern: {}}}]}}
---
{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: nested}, spec: {rules: [{name: a,
  match: {any: [{resources: {kinds: [Pod]}}]}, validate: {foreach: [{list: x, context: [{name: x,
  imageRegistry: {reference: "{{ element.image }}"}}], pattern: {}}]}}]}}
---
{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: own-server}, spec: {rules: [{name: a,
  context: [{name: x, apiCall: {urlPath: /api/v1/namespaces}}], match: {any: [{resources: {kinds: [Pod]}}]},
  validate: {message: "imageRegistry, service and http.Get", pattern: {}}}]}}
---
{apiVersion: policies.kyverno.io/v1, kind: ValidatingPolicy, metadata: {name: get}, spec: {matchConstraints: {},
  variables: [{name: x, expression: 'http.Get("http://x")'}], validations: [{expression: "variables.x"}]}}
---
{apiVersion: policies.kyverno.io/v1, kind: ValidatingPolicy, metadata: {name: hidden}, spec: {matchConstraints: {},
  validations: [{expression: "[.http].all(h, h.Get('x') == object.spec.http)"}]}}
---
{apiVersion: policies.kyverno.io/v1, kind: MutatingPolicy, metadata: {name: metadata}, spec: {matchConstraints: {},
  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[image].map(i, i.GetMetadata("x").y)'}}]}}
---
{apiVersion: policies.kyverno.io/v1, kind: ValidatingPolicy, metadata: {name: words}, spec: {matchConstraints: {},
  validations: [{message: http.Get,
  expression: "object.spec.http == 'http.Get' && image(object.x).registry() != \"http\""}]}}
`

// TestPoliciesThatAskOthers: a policy that has Kyverno ask another server is left aside, by name, unless a network is
// allowed.
func TestPoliciesThatAskOthers(t *testing.T) {
	files := map[string]string{"a.yaml": reaching}
	s, err := Read(written(t, files), false)
	if err != nil {
		t.Fatal(err)
	}
	names := func() (out []string) {
		for i := range s.Policies {
			out = append(out, s.Policies[i].Name)
		}
		return out
	}
	if d := cmp.Diff([]string{"own-server", "words"}, names()); d != "" {
		t.Error(d)
	}
	const server, registry = ", which asks another server (network: true takes it)",
		", which asks registries about images (network: true takes it)"
	want := []string{
		"ClusterPolicy service" + server, "ClusterPolicy nested" + registry, "ValidatingPolicy get" + server,
		"ValidatingPolicy hidden" + server, "MutatingPolicy metadata" + registry,
	}
	if d := cmp.Diff(want, s.Untaken); d != "" {
		t.Error(d)
	}
	if s, err = Read(written(t, files), true); err != nil || len(names()) != 7 {
		t.Errorf("with a network: %v, %v", names(), err)
	}
	if _, err := Read(written(t, map[string]string{"a.yaml": strings.Split(reaching, "---")[0]}), false); err == nil ||
		!strings.Contains(err.Error(), "left aside is ClusterPolicy service, which asks another server") {
		t.Errorf("nothing else: %v", err)
	}
}

// TestEachWayOutIsSeen: each field of Kyverno's policies by which it asks somebody else than the API server is seen
// wherever it may stand, and so is one that is not known; those that ask nobody else are known.
func TestEachWayOutIsSeen(t *testing.T) {
	const (
		server, registry, makes = asksServer, asksRegistry, makesAny
		field                   = "which has the field %s at a.yaml:2:%d, which tare does not know: it is misspelt, or the " +
			"policy may ask another server by it"
		service = `context: [{name: x, apiCall: {method: GET, service: {url: "http://x"}}}]`
		image   = `context: [{name: x, imageRegistry: {reference: x}}]`
		own     = `context: [{name: x, apiCall: {urlPath: "/api/v1/nodes/{{ x }}"}}]`
	)
	inRule := func(rule string) string {
		return `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: a,
  match: {any: [{resources: {kinds: [Pod]}}]}, ` + rule + "}]}}"
	}
	inCEL := func(kind, spec string) string {
		return "{apiVersion: policies.kyverno.io/v1, kind: " + kind + ", metadata: {name: p}, spec: {matchConstraints: {}, " +
			spec + "}}"
	}
	call := func(call string) string {
		return inRule(`context: [{name: x, apiCall: ` + call + `}], validate: {deny: {}}`)
	}
	for name, c := range map[string]struct{ policy, want string }{
		"manifests of a registry": {
			inRule(`validate: {manifests: {repository: evil.example/x, attestors: [{entries: [{keys: {publicKeys: x}}]}]}}`),
			server,
		},
		"manifests of a log of signatures": {inRule(`validate: {manifests: {attestors: [{entries: [{keyless: {
  rekor: {url: "https://evil.example"}}}]}]}}`), server},
		"manifests by a key elsewhere": {
			inRule(`validate: {manifests: {attestors: [{entries: [{keys: {publicKeys: "hashivault://x"}}]}]}}`), server,
		},
		"a service for a rule":              {inRule(service + `, validate: {deny: {}}`), server},
		"a service for a change":            {inRule(`mutate: {foreach: [{list: x, ` + service + `}]}`), server},
		"a service for another object":      {inRule(`mutate: {targets: [{apiVersion: v1, kind: Pod, ` + service + `}]}`), server},
		"a service for a generation":        {inRule(`generate: {foreach: [{list: x, ` + service + `}]}`), server},
		"an image within two lists":         {inRule(`validate: {foreach: [{foreach: [{` + image + `}]}]}`), registry},
		"a change's image within two lists": {inRule(`mutate: {foreach: [{foreach: [{` + image + `}]}]}`), registry},
		"a field in capitals within two lists": {inRule(`validate: {foreach: [{foreach: [{CONTEXT: [{NAME: x, APICALL: {
  METHOD: GET, SERVICE: {URL: "http://x"}}}]}]}]}`), fmt.Sprintf(field, "CONTEXT", 81)},
		"a field of a later version": {inRule(`validate: {askSomebody: "http://x"}`), fmt.Sprintf(field, "askSomebody", 59)},
		"a node by the API server":   {call(`{urlPath: "/api/v1/nodes/http:x:80/proxy/{{ request.object.metadata.name }}"}`), server},
		"a pod by the API server":    {call(`{urlPath: "/api/v1/namespaces/{{ x }}/pods/y:80/proxy"}`), server},
		"a service by it":            {call(`{urlPath: "/api/v1/namespaces/x/services/y:80/proxy?z"}`), server},
		"a log of a pod":             {call(`{urlPath: "/api/v1/namespaces/x/pods/y/log"}`), server},
		"a name server": {
			inRule(`validate: {message: "{{ is_external_url('http://x') }}", deny: {}}`), server,
		},
		"a name server in a list": {
			inRule(`validate: {deny: {conditions: [{key: x, operator: In, value: ["{{ is_external_url('http://x') }}"]}]}}`), server,
		},
		"a name server in a key": {inRule(`mutate: {patchStrategicMerge: {"{{ is_external_url('http://x') }}": y}}`), server},
		"a method that is a variable": {
			inRule(`validate: {foreach: [{foreach: [{context: [{name: x, apiCall: {method: "{{ x }}", urlPath: /x}}]}]}]}`), makes,
		},
		"a condition in CEL":           {inCEL("ValidatingPolicy", `matchConditions: [{name: x, expression: "http.Get('x')"}]`), server},
		"a message in CEL":             {inCEL("ValidatingPolicy", `validations: [{messageExpression: "http.Get('x')"}]`), server},
		"an annotation in CEL":         {inCEL("NamespacedValidatingPolicy", `auditAnnotations: [{valueExpression: http.x}]`), server},
		"a condition of others in CEL": {inCEL("MutatingPolicy", `targetMatchConditions: [{expression: http.x}]`), server},
		"a change in CEL":              {inCEL("NamespacedMutatingPolicy", `mutations: [{jsonPatch: {expression: image.GetMetadata(x)}}]`), registry},
		"a generation in a namespace":  {inCEL("NamespacedGeneratingPolicy", `generate: [{expression: generator.Apply(x)}]`), makes},
		"an entry that Kyverno keeps":  {inCEL("ValidatingPolicy", `validations: [{expression: "globalContext.Get('x', '') == 1"}]`), ""},
		"objects of the API server":    {call(`{urlPath: "/api/v1/namespaces/{{ request.namespace }}/configmaps/{{ x }}", default: 1}`), ""},
		"pods by a selector":           {call(`{urlPath: "/api/v1/namespaces/x/pods?labelSelector=app=proxy", jmesPath: x}`), ""},
		"a ConfigMap of that name":     {call(`{urlPath: "/api/v1/namespaces/pods-proxy/configmaps/proxy"}`), ""},
		"a call within two lists":      {inRule(`validate: {foreach: [{list: x, foreach: [{list: y, ` + own + `, deny: {}}]}]}`), ""},
		"words in what is compared":    {inRule(`validate: {pattern: {spec: {imageRegistry: x, service: {manifests: y}}}}`), ""},
		"words in what is made":        {inRule(`generate: {apiVersion: v1, kind: ConfigMap, name: x, data: {service: {apiCall: y}}}`), ""},
		"other sources":                {inRule(`context: [{name: x, variable: {value: y}}, {name: y, configMap: {name: x}}, {name: z, globalReference: {name: x}}], validate: {assert: {}}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := written(t, map[string]string{"a.yaml": c.policy + "\n---\n" + policy("q", isTrue)})
			s, err := Read(dir, false)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			if c.want != "" {
				kind := regexp.MustCompile("kind: ([A-Za-z]+)").FindStringSubmatch(c.policy)[1]
				want = []string{kind + " p, " + c.want + " (network: true takes it)"}
			}
			for i, one := range s.Untaken {
				s.Untaken[i] = strings.Replace(one, dir+"/", "", 1)
			}
			if d := cmp.Diff(want, s.Untaken); d != "" || len(s.Policies) != 2-len(want) {
				t.Errorf("%d policies are taken; left aside: %s", len(s.Policies), d)
			}
			if s, err := Read(written(t, map[string]string{"a.yaml": c.policy}), true); err != nil || len(s.Policies) != 1 {
				t.Errorf("with a network: %v", err)
			}
		})
	}
}

// TestKindsThatAskAreNeverTaken: kinds of Kyverno's and of Gatekeeper's by which they ask other servers, or do
// something by themselves, stay aside whether a network is allowed or not.
func TestKindsThatAskAreNeverTaken(t *testing.T) {
	for kind, of := range map[string]string{
		"ImageValidatingPolicy": "policies.kyverno.io/v1", "NamespacedImageValidatingPolicy": "policies.kyverno.io/v1",
		"DeletingPolicy": "policies.kyverno.io/v1", "GlobalContextEntry": "kyverno.io/v2", "CleanupPolicy": "kyverno.io/v2",
		"ClusterCleanupPolicy": "kyverno.io/v2", "PolicyException": "kyverno.io/v2",
		"Provider": "externaldata.gatekeeper.sh/v1beta1", "Connection": "connection.gatekeeper.sh/v1alpha1",
		"ExpansionTemplate":              "expansion.gatekeeper.sh/v1beta1",
		"ValidatingWebhookConfiguration": "admissionregistration.k8s.io/v1",
	} {
		text := "apiVersion: " + of + "\nkind: " + kind + "\nmetadata: {name: p}\n---\n" + policy("q", isTrue)
		for _, network := range []bool{false, true} {
			s, err := Read(written(t, map[string]string{"a.yaml": text}), network)
			if err != nil || len(s.Policies) != 1 || !slices.Equal(s.Untaken, []string{kind + " p"}) {
				t.Errorf("%s, network %v: %v; left aside: %q", kind, network, err, s.Untaken)
			}
		}
	}
}

// TestPoliciesThatMakeOthers: a policy by which objects come to be that ask other servers, or of a kind that is not
// known before, is left aside, and one that makes harmless ones is not.
func TestPoliciesThatMakeOthers(t *testing.T) {
	const cluster = `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: a,
  match: {any: [{resources: {kinds: [Pod]}}]}, `
	inCEL := func(kind, spec string) string {
		return "{apiVersion: policies.kyverno.io/v1, kind: " + kind + ", metadata: {name: p}, spec: {" + spec + "}}"
	}
	for name, c := range map[string]struct {
		policy string
		aside  bool
	}{
		"a quota":   {cluster + `generate: {apiVersion: v1, kind: ResourceQuota, name: q, data: {}}}]}}`, false},
		"a webhook": {cluster + `generate: {apiVersion: admissionregistration.k8s.io/v1, kind: X, data: {}}}]}}`, true},
		"one without a group": {
			cluster + `generate: {kind: MutatingWebhookConfiguration, name: q, data: {}}}]}}`, true,
		},
		"a policy":         {cluster + `generate: {apiVersion: kyverno.io/v2, kind: X, name: q, data: {}}}]}}`, true},
		"a made up kind":   {cluster + `generate: {apiVersion: v1, kind: "{{ request.kind }}", name: q}}]}}`, true},
		"a made up group":  {cluster + `generate: {apiVersion: "{{ x }}/v1", kind: X, name: q}}]}}`, true},
		"a list of clones": {cluster + `generate: {cloneList: {kinds: [v1/Secret, v1/ConfigMap]}}}]}}`, false},
		"a clone of an API": {
			cluster + `generate: {cloneList: {kinds: [v1/Secret, apiregistration.k8s.io/v1/APIService]}}}]}}`, true,
		},
		"a clone of a made up kind": {
			cluster + `generate: {cloneList: {kinds: ["apiregistration.k8s.io/v1/{{ kind }}"]}}}]}}`, true,
		},
		"one of several": {
			cluster + `generate: {foreach: [{list: x, apiVersion: v1, kind: ConfigMap}, {kind: APIService}]}}]}}`, true,
		},
		"a change of what exists": {
			cluster + `mutate: {targets: [{apiVersion: apps/v1, kind: Deployment}], patchStrategicMerge: {}}}]}}`, false,
		},
		"a change of webhooks": {
			cluster + `mutate: {targets: [{apiVersion: "*", kind: "*Webhook*"}], patchStrategicMerge: {}}}]}}`, true,
		},
		"a node":                 {cluster + `generate: {apiVersion: v1, kind: Node, name: n, data: {}}}]}}`, true},
		"what a controller asks": {cluster + `generate: {apiVersion: storage.k8s.io/v1, kind: StorageClass, name: n}}]}}`, true},
		"a kind by reference":    {cluster + `generate: {apiVersion: v1, kind: "$(./../name)", name: APIService}}]}}`, true},
		"a kind with its group": {
			cluster + `generate: {kind: admissionregistration.k8s.io/v1/X, name: n, data: {}}}]}}`, true,
		},
		"a kind with a subresource": {cluster + `generate: {kind: Node.status, name: n, data: {}}}]}}`, true},
		"a kind of any group":       {cluster + `generate: {kind: Provider, name: n, data: {}}}]}}`, true},
		"a group without its version": {
			cluster + `mutate: {targets: [{apiVersion: admissionregistration.k8s.io, kind: v1/X}], patchStrategicMerge: {}}}]}}`, true,
		},
		"a change of a node": {
			cluster + `mutate: {targets: [{apiVersion: v1, kind: Node}], patchStrategicMerge: {}}}]}}`, false,
		},
		"a change of a node's addresses": {
			cluster + `mutate: {targets: [{apiVersion: v1, kind: Node/status}], patchStrategicMerge: {}}}]}}`, true,
		},
		"CEL that changes a node": {inCEL("MutatingPolicy", `matchConstraints: {}, targetMatchConstraints: {resourceRules: [
  {apiGroups: [""], resources: [nodes]}]}`), false},
		"CEL that changes a node's addresses": {inCEL("MutatingPolicy", `matchConstraints: {}, targetMatchConstraints: {
  resourceRules: [{apiGroups: [""], resources: [nodes/status]}]}`), true},
		"a review": {
			cluster + `context: [{name: x, apiCall: {method: POST, urlPath: /apis/authorization.k8s.io/v1/subjectaccessreviews}}],
  validate: {pattern: {}}}]}}`, false,
		},
		"a call that creates": {
			cluster + `context: [{name: x, apiCall: {method: POST,
  urlPath: /apis/authorization.k8s.io/v1/../../admissionregistration.k8s.io/v1/x}}], validate: {pattern: {}}}]}}`, true,
		},
		"CEL that creates": {
			inCEL("ValidatingPolicy", `matchConstraints: {}, validations: [{expression: "resource.Post('v1', 'x', {}) == x"}]`), true,
		},
		"CEL that asks for a review": {
			inCEL("ValidatingPolicy", `matchConstraints: {}, variables: [{name: x, expression:
  'resource.Post( "authorization.k8s.io/v1", "subjectaccessreviews", {}).status'}], validations: []`), false,
		},
		"CEL with a review in a comment": {
			inCEL("ValidatingPolicy", `matchConstraints: {}, variables: [{name: x, expression:
  "resource.Post(object.a, object.b, {}) // .Post('authorization.k8s.io/v1', 'subjectaccessreviews', x)"}], validations: []`),
			true,
		},
		"CEL with a part of a review": {
			inCEL("ValidatingPolicy", `matchConstraints: {}, variables: [{name: x, expression:
  "resource.Post('authorization.k8s.io/v1', 'subjectaccessreviews' + object.b, {})"}], validations: []`), true,
		},
		"CEL that reads": {
			inCEL("ValidatingPolicy", `matchConstraints: {}, validations: [{expression: "resource.Get('v1', 'x', 'y') == x"}]`),
			false,
		},
		"CEL that generates": {
			inCEL("GeneratingPolicy", `matchConstraints: {}, generate: [{expression: "generator.Apply('x', [])"}]`), true,
		},
		"CEL that changes what exists": {inCEL("MutatingPolicy", `matchConstraints: {resourceRules: [{apiGroups: [apps]}]},
  evaluation: {mutateExisting: {enabled: true}}`), false},
		"CEL that changes everything": {inCEL("MutatingPolicy", `matchConstraints: {}, targetMatchConstraints: {resourceRules: [
  {apiGroups: ["*"]}]}`), true},
		"CEL that chooses what it changes": {
			inCEL("MutatingPolicy", `matchConstraints: {}, targetMatchConstraints: {expression: "x"}`), true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Read(written(t, map[string]string{"a.yaml": c.policy}), false)
			aside := err != nil && strings.Contains(err.Error(), "which may create or change what asks other servers")
			if aside != c.aside || !aside && (err != nil || len(s.Policies) != 1) {
				t.Errorf("%v; want left aside: %v", err, c.aside)
			}
			if s, err := Read(written(t, map[string]string{"a.yaml": c.policy}), true); err != nil || len(s.Policies) != 1 {
				t.Errorf("with a network: %v", err)
			}
		})
	}
}

// FuzzIdentifiers: what CEL's own parser takes for a variable is seen.
func FuzzIdentifiers(f *testing.F) {
	for _, seed := range []string{
		`http.Get("x")`, `'a' + r"\" + http.x`, "b'''\n'http''' == http", "[http].map(h, h) // x", `"\"" + http`, "{http: 1}",
		"x.http", "x . http", "rb'\\'+http", "http\x00", "`http`", "a.`http`", "1.http", "1e5.http", ".http.Get(x)", "a + .http",
		"a ? .http : b", "a.?http", "a[.http]",
	} {
		f.Add(seed)
	}
	env, err := cel.NewEnv()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, issues := env.Parse(text)
		if issues.Err() != nil {
			return
		}
		var seen []string
		identifiers(text, func(name, _ string) { seen = append(seen, name) })
		ast.PreOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
			if e.Kind() == ast.IdentKind && strings.TrimPrefix(e.AsIdent(), ".") == "http" && !slices.Contains(seen, "http") {
				t.Errorf("%q has the variable %s, and %q was found", text, e.AsIdent(), seen)
			}
		}))
	})
}

// TestParametersThatDoMore: in a cluster that others use a parameter must be nothing that somebody acts on.
func TestParametersThatDoMore(t *testing.T) {
	const limit = "rules.example.com"
	gk := func(kind, of string) schema.GroupKind { return schema.GroupKind{Group: of, Kind: kind} }
	for _, c := range []struct {
		kind, of string
		where    Where
		want     string
	}{
		{"ConfigMap", "", Where{Scope: mechanism.Scope{Foreign: true}}, ""},
		{"Limit", limit, Where{Scope: mechanism.Scope{Foreign: true}}, ""},
		{"Pod", "", Where{Ours: true}, ""},
		{"Pod", "", Where{Scope: mechanism.Scope{Foreign: true}}, "others use this cluster"},
		{"RoleBinding", "rbac.authorization.k8s.io", Where{Scope: mechanism.Scope{Foreign: true}}, "others use this cluster"},
		{"Pod", "", Where{Scope: mechanism.Scope{Foreign: true}, Makes: []string{"Pod"}}, "others use this cluster"},
		{
			"Limit", limit,
			Where{Scope: mechanism.Scope{Foreign: true}, Standing: []schema.GroupKind{gk("Limit", limit)}},
			"Limit x: the cluster has this kind already, and what acts on its objects is not known: write param_kinds: " +
				"[Limit.rules.example.com]",
		},
		{"Limit", limit, Where{
			Scope: mechanism.Scope{Foreign: true}, Standing: []schema.GroupKind{gk("Limit", limit)},
			Makes: []string{"Limit.rules.example.com"},
		}, ""},
		{"GlobalContextEntry", "kyverno.io", Where{Ours: true}, "an engine acts on objects of this kind"},
		{"Provider", "externaldata.gatekeeper.sh", Where{Ours: true}, "an engine acts on objects of this kind"},
		{"APIService", "apiregistration.k8s.io", Where{Ours: true}, "the API server or an engine acts on"},
		{"CustomResourceDefinition", "apiextensions.k8s.io", Where{Ours: true}, "the API server or an engine acts on"},
		{"Node", "", Where{Ours: true}, "the API server or an engine acts on"},
	} {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(gk(c.kind, c.of).WithVersion("v1"))
		o.SetName("x")
		if err := c.where.mayMake(o); (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s.%s: %v, want %q", c.kind, c.of, err, c.want)
		}
	}
	text := strings.Join([]string{
		strings.Replace(policy("p", isTrue), "spec:\n", "spec:\n  paramKind: {apiVersion: v1, kind: Pod}\n", 1),
		strings.Replace(binding, "spec:\n", "spec:\n  paramRef: {name: x, parameterNotFoundAction: Deny}\n", 1),
		"apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n",
	}, "---\n")
	foreign := scope
	foreign.Foreign = true
	if _, err := read(t, map[string]string{"a.yaml": text}).Render(Where{Scope: foreign}); err == nil ||
		!strings.Contains(err.Error(), "Pod x: others use this cluster") {
		t.Errorf("a pod as a parameter: %v", err)
	}
}

// TestDefinitionsThatCallOut: a bundle brings no webhook that converts objects.
func TestDefinitionsThatCallOut(t *testing.T) {
	text := strings.Join([]string{
		strings.Replace(policy("p", isTrue), "spec:\n",
			"spec:\n  paramKind: {apiVersion: a.example.com/v1, kind: Limit}\n", 1),
		strings.Replace(binding, "spec:\n", "spec:\n  paramRef: {name: x, parameterNotFoundAction: Deny}\n", 1),
		"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: limits.a.example.com}\n" +
			"spec: {group: a.example.com, names: {kind: Limit, plural: limits}, scope: Namespaced, versions: [{name: v1}], " +
			"conversion: {strategy: Webhook}}\n",
		"apiVersion: a.example.com/v1\nkind: Limit\nmetadata: {name: x}\n",
	}, "---\n")
	if _, err := read(t, map[string]string{"a.yaml": text}).Render(Where{Scope: scope, Ours: true}); err == nil ||
		!strings.Contains(err.Error(), "limits.a.example.com: a webhook converts its objects") {
		t.Errorf("%v", err)
	}
}

// TestNothingKeepsAnObject: what a bundle puts in force can be removed, and no cluster removes it before.
func TestNothingKeepsAnObject(t *testing.T) {
	const tied = "metadata: {finalizers: [a.example.com/never], " +
		"ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u}], resourceVersion: \"7\", "
	tie := func(text string) string { return strings.Replace(text, "metadata: {", tied, 1) }
	text := strings.Join([]string{
		tie(strings.Replace(policy("p", isTrue), "spec:\n", "spec:\n  paramKind: {apiVersion: v1, kind: ConfigMap}\n", 1)),
		tie(strings.Replace(binding, "spec:\n", "spec:\n  paramRef: {name: x, parameterNotFoundAction: Deny}\n", 1)),
		tie("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"), tie(clusterPolicy), tie(validatingPolicy),
	}, "---\n")
	if n := strings.Count(text, "a.example.com/never"); n != 5 {
		t.Fatalf("%d objects are tied, not 5", n)
	}
	in, err := read(t, map[string]string{"a.yaml": text}).Render(Where{Scope: scope, Ours: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range in.Objects {
		if len(o.GetFinalizers()) > 0 || len(o.GetOwnerReferences()) > 0 || o.GetResourceVersion() != "" {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), o.Object["metadata"])
		}
	}
	if len(in.Objects) != 5 {
		t.Errorf("%d objects, not 5", len(in.Objects))
	}
}
