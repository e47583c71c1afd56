package mechanism

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// harmless is true of a pod none of whose containers is privileged.
const harmless = `object.spec.containers.all(c, !has(c.securityContext) || !has(c.securityContext.privileged) || !c.securityContext.privileged)`

// otherResource is what irrelevant policies are for: nobody creates pod templates.
const otherResource = "podtemplates"

// rule matches what a policy is for: created and updated pods, as with PodSecurityPolicy and Pod Security Admission.
func rule(p Population, one Policy) map[string]any {
	resource := "pods"
	if one.Role == Irrelevant && p.Irrelevant == ResourceRule {
		resource = otherResource
	}
	return map[string]any{
		"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE", "UPDATE"}, "resources": []any{resource}, "scope": "Namespaced",
	}
}

// conditions are the matchConditions of a policy that is irrelevant by them, or nil.
func conditions(p Population, s Scope, one Policy) []any {
	if one.Role != Irrelevant || p.Irrelevant != MatchConditions {
		return nil
	}
	return []any{map[string]any{"name": "elsewhere", "expression": fmt.Sprintf("object.metadata.namespace == '%s'", s.nowhere())}}
}

// selects is the namespaceSelector of a binding or a webhook.
func selects(p Population, s Scope, one Policy) map[string]any {
	if one.Role == Irrelevant && (p.Irrelevant == NamespaceSelector || p.Irrelevant == "") {
		return s.elsewhere()
	}
	return s.here()
}

// matched is the part of a policy in CEL that says what it is for.
func matched(p Population, s Scope, one Policy) map[string]any {
	spec := map[string]any{"failurePolicy": "Fail", "matchConstraints": map[string]any{"resourceRules": []any{rule(p, one)}}}
	if c := conditions(p, s, one); c != nil {
		spec["matchConditions"] = c
	}
	return spec
}

func vap(p Population, s Scope, one Policy) *unstructured.Unstructured {
	spec := matched(p, s, one)
	// One expression, so that the API server counts one denial for one denied pod.
	spec["validations"] = []any{map[string]any{"expression": harmless + " && " + unasked(one), "message": "denied by " + one.Short}}
	return s.object(registration, "ValidatingAdmissionPolicy", one.Name, map[string]any{"spec": spec})
}

// unasked is true of a pod that does not ask to be denied by this policy.
func unasked(one Policy) string {
	return fmt.Sprintf(`!(has(object.metadata.labels) && '%[1]s' in object.metadata.labels && object.metadata.labels['%[1]s'] in ['%[2]s', '%[3]s'])`, DenyLabel, DenyAll, one.Short)
}

func vapBinding(p Population, s Scope, one Policy) *unstructured.Unstructured {
	return s.object(registration, "ValidatingAdmissionPolicyBinding", one.Name, map[string]any{"spec": map[string]any{
		"policyName": one.Name, "validationActions": []any{"Deny"}, "matchResources": map[string]any{"namespaceSelector": selects(p, s, one)},
	}})
}

// MutatedKey is the annotation by which what mutates says that it did. Every one adds to the number that it finds there: policies in CEL their own number
// (Policy.Number), webhooks 1. The sum says who was there; and the pod is as large after a thousand as after one, so that a pod that grows is not
// taken for policies that get dearer (with an annotation for each, N policies cost N², from N = 100 on).
const MutatedKey = "tare.dev/mutated"

func mutating(p Population, s Scope, one Policy) *unstructured.Unstructured {
	spec := matched(p, s, one)
	spec["reinvocationPolicy"] = "Never"
	spec["mutations"] = []any{map[string]any{"patchType": "ApplyConfiguration", "applyConfiguration": map[string]any{
		"expression": fmt.Sprintf(`Object{metadata: Object.metadata{annotations: {'%[1]s': string(%[2]d + `+
			`(has(object.metadata.annotations) && '%[1]s' in object.metadata.annotations ? int(object.metadata.annotations['%[1]s']) : 0))}}}`, MutatedKey, one.Number),
	}}}
	return s.object(registration, "MutatingAdmissionPolicy", one.Name, map[string]any{"spec": spec})
}

func mutatingBinding(p Population, s Scope, one Policy) *unstructured.Unstructured {
	return s.object(registration, "MutatingAdmissionPolicyBinding", one.Name, map[string]any{"spec": map[string]any{
		"policyName": one.Name, "matchResources": map[string]any{"namespaceSelector": selects(p, s, one)},
	}})
}
