package mechanism

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// harmless is true for a pod without privileged containers.
const harmless = `object.spec.containers.all(c, !has(c.securityContext) || ` +
	`!has(c.securityContext.privileged) || !c.securityContext.privileged)`

// otherResource is the resource that irrelevant policies match: no client creates pod templates.
const otherResource = "podtemplates"

// rules returns the resources that a policy matches: created and updated pods, as PodSecurityPolicy and Pod Security
// Admission do, and Deployments if the scope asks for it.
func rules(p Population, s Scope, one Policy) []any {
	rule := func(group, resource string) any {
		if one.Role == Irrelevant && p.Irrelevant == ResourceRule {
			group, resource = "", otherResource
		}
		return map[string]any{
			"apiGroups": []any{group}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE", "UPDATE"},
			"resources": []any{resource}, "scope": "Namespaced",
		}
	}
	out := []any{rule("", "pods")}
	if s.Deployments {
		out = append(out, rule("apps", "deployments"))
	}
	return out
}

// conditions returns the matchConditions that make a policy irrelevant, or nil.
func conditions(p Population, s Scope, one Policy) []any {
	if one.Role != Irrelevant || p.Irrelevant != MatchConditions {
		return nil
	}
	return []any{map[string]any{
		"name":       "elsewhere",
		"expression": fmt.Sprintf("object.metadata.namespace == '%s'", s.nowhere()),
	}}
}

// namespaceSelector returns the namespaceSelector of a binding or a webhook.
func namespaceSelector(p Population, s Scope, one Policy) map[string]any {
	if one.Role == Irrelevant && (p.Irrelevant == NamespaceSelector || p.Irrelevant == "") {
		return s.elsewhere()
	}
	return s.here()
}

// matchPart returns the part of a policy in CEL that selects its requests.
func matchPart(p Population, s Scope, one Policy) map[string]any {
	spec := map[string]any{
		"failurePolicy":    "Fail",
		"matchConstraints": map[string]any{"resourceRules": rules(p, s, one)},
	}
	if c := conditions(p, s, one); c != nil {
		spec["matchConditions"] = c
	}
	return spec
}

// CEL are options of ValidatingAdmissionPolicies. The zero value is the default.
type CEL struct {
	FailurePolicy string // Fail (default) or Ignore
	Match         string // a CEL expression: policies are evaluated only where it is true; empty: everywhere
	Param         bool   // policies read Param, and their result is an error without it
}

// paramName is the name of the policies' parameter, and paramKey the key that says whether they deny.
const (
	paramName = "tare-policies"
	paramKey  = "enforce"
)

// Param renders the parameter of the policies in the scope's namespace.
func Param(s Scope) *unstructured.Unstructured { return paramOf(s, paramName) }

// paramOf renders the parameter of one of a policy's bindings.
func paramOf(s Scope, name string) *unstructured.Unstructured {
	o := s.object("v1", "ConfigMap", name, map[string]any{"data": map[string]any{paramKey: "true"}})
	o.SetNamespace(s.Namespace)
	return o
}

// renderParams renders the policies of a population, for each bound one its bindings, and for each of these its
// parameter.
func renderParams(p Population, s Scope) []*unstructured.Unstructured {
	var policies, params, bindings []*unstructured.Unstructured
	for _, one := range Policies(p, s) {
		policies = append(policies, vap(p, s, one))
		if one.Role == Unbound {
			continue
		}
		for i := range p.Params {
			name := fmt.Sprintf("%s-%05d", one.Name, i+1)
			params = append(params, paramOf(s, name))
			binding := vapBinding(p, s, one)
			binding.SetName(name)
			binding.Object["spec"].(map[string]any)["paramRef"] = paramRef(s, name)
			bindings = append(bindings, binding)
		}
	}
	return slices.Concat(params, policies, bindings)
}

func paramRef(s Scope, name string) map[string]any {
	return map[string]any{
		"name": name, "namespace": s.Namespace, "parameterNotFoundAction": "Deny", // as failurePolicy says
	}
}

func vap(p Population, s Scope, one Policy) *unstructured.Unstructured {
	spec := matchPart(p, s, one)
	allowed := harmless + " && " + unasked(one)
	if s.Deployments {
		allowed = "(!has(object.spec.containers) || " + harmless + ") && " + unasked(one)
	}
	spec["failurePolicy"] = cmp.Or(s.CEL.FailurePolicy, Fail)
	if s.CEL.Match != "" && spec["matchConditions"] == nil {
		spec["matchConditions"] = []any{map[string]any{"name": "match", "expression": s.CEL.Match}}
	}
	if s.CEL.Param || p.Params > 0 {
		spec["paramKind"] = map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
		allowed = "params.data." + paramKey + " == 'true' ? " + allowed + " : true" // || would hide an error
	}
	// One expression, so that the API server counts one denial for one denied pod.
	spec["validations"] = []any{map[string]any{
		"expression": allowed,
		"message":    "denied by " + one.Short,
	}}
	return s.object(registration, "ValidatingAdmissionPolicy", one.Name, map[string]any{"spec": spec})
}

// unasked is true for a pod that does not request its denial by this policy.
func unasked(one Policy) string {
	return fmt.Sprintf(`!(has(object.metadata.labels) && '%[1]s' in object.metadata.labels && `+
		`object.metadata.labels['%[1]s'] in ['%[2]s', '%[3]s'])`, DenyLabel, DenyAll, one.Short)
}

func vapBinding(p Population, s Scope, one Policy) *unstructured.Unstructured {
	spec := map[string]any{
		"policyName": one.Name, "validationActions": []any{"Deny"},
		"matchResources": map[string]any{"namespaceSelector": namespaceSelector(p, s, one)},
	}
	if s.CEL.Param {
		spec["paramRef"] = paramRef(s, paramName)
	}
	return s.object(registration, "ValidatingAdmissionPolicyBinding", one.Name, map[string]any{"spec": spec})
}

// MutatedKey is the annotation that mutating policies and webhooks update. Each adds to its number: policies in CEL
// their own number (Policy.Number), webhooks 1. The sum identifies those that ran, and the pod's size does not depend
// on their number: a growing pod would look like more expensive policies (with an annotation for each, N policies cost
// N², from N = 100 on).
const MutatedKey = "tare.dev/mutated"

func mutating(p Population, s Scope, one Policy) *unstructured.Unstructured {
	spec := matchPart(p, s, one)
	spec["reinvocationPolicy"] = "Never"
	spec["mutations"] = []any{map[string]any{"patchType": "ApplyConfiguration", "applyConfiguration": map[string]any{
		"expression": fmt.Sprintf(`Object{metadata: Object.metadata{annotations: {'%[1]s': string(%[2]d + `+
			`(has(object.metadata.annotations) && '%[1]s' in object.metadata.annotations ? `+
			`int(object.metadata.annotations['%[1]s']) : 0))}}}`, MutatedKey, one.Number),
	}}}
	return s.object(registration, "MutatingAdmissionPolicy", one.Name, map[string]any{"spec": spec})
}

func mutatingBinding(p Population, s Scope, one Policy) *unstructured.Unstructured {
	return s.object(registration, "MutatingAdmissionPolicyBinding", one.Name, map[string]any{"spec": map[string]any{
		"policyName": one.Name, "matchResources": map[string]any{"namespaceSelector": namespaceSelector(p, s, one)},
	}})
}
