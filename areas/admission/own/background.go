package own

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Generates reports whether the policy has Kyverno create objects after a request.
func (p *Policy) Generates() bool {
	return p.engine != nil && (isGeneratingPolicy(p.engine) ||
		slices.ContainsFunc(rulesIn(p.engine), func(rule tree) bool { return rule["generate"] != nil }))
}

// InBackground reports whether policies that are in force have Kyverno do something to other objects than that of a
// request, which it does after the request.
func (f *InForce) InBackground() bool {
	return slices.ContainsFunc(f.Policies, func(p *Policy) bool {
		return p.engine != nil && (isGeneratingPolicy(p.engine) || mutatesExisting(p.engine) ||
			slices.ContainsFunc(rulesIn(p.engine), func(rule tree) bool { return changesOthers(rule) != "" }))
	})
}

// madeBy are the kinds of which the rules of a policy generate objects, or change other ones than that of the request.
// A change of a node leaves the addresses alone by which others reach it: its status has them.
func madeBy(o *unstructured.Unstructured) (out []schema.GroupVersionKind) {
	for _, rule := range rulesIn(o) {
		generate, _ := rule["generate"].(tree)
		mutate, _ := rule["mutate"].(tree)
		each, _ := generate["foreach"].([]any)
		targets, _ := mutate["targets"].([]any)
		for _, at := range slices.Concat([]any{generate}, each) {
			if k, _ := namedIn(at); k.Kind != "" {
				out = append(out, k)
			}
			object, _ := at.(tree)
			clone, _ := object["cloneList"].(tree)
			for _, word := range words(clone["kinds"]) {
				k, _ := namedIn(tree{"kind": word})
				out = append(out, k)
			}
		}
		for _, at := range targets {
			if k, sub := namedIn(at); k.Kind != "" && (k.Kind != nodeKind || sub != "") {
				out = append(out, k)
			}
		}
	}
	if !mutatesExisting(o) {
		return out
	}
	spec, _ := o.Object["spec"].(tree)
	for _, field := range []string{"matchConstraints", "targetMatchConstraints"} {
		constraints, _ := spec[field].(tree)
		if constraints["expression"] != nil { // it chooses them
			out = append(out, schema.GroupVersionKind{Group: "*"})
		}
		rules, _ := constraints["resourceRules"].([]any)
		for _, r := range rules {
			rule, _ := r.(tree)
			for _, group := range words(rule["apiGroups"]) {
				out = append(out, schema.GroupVersionKind{Group: group})
			}
			for _, resource := range words(rule["resources"]) {
				if slices.Contains([]string{"nodes/status", "nodes/*", "*/status", "*/*"}, resource) {
					out = append(out, schema.GroupVersionKind{Kind: nodeKind})
				}
			}
		}
	}
	return out
}

// namedIn is the kind that a part of a rule names, with its subresource, as Kyverno reads both of its fields together;
// empty: none.
func namedIn(part any) (k schema.GroupVersionKind, sub string) {
	object, _ := part.(tree)
	version, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	if kind == "" || strings.ContainsAny(version+kind, anyKind) {
		return schema.FromAPIVersionAndKind(version, kind), ""
	}
	return kindOf(strings.TrimPrefix(version+"/"+kind, "/"))
}

// isGeneratingPolicy reports whether a policy of Kyverno's in CEL is one that generates.
func isGeneratingPolicy(o *unstructured.Unstructured) bool {
	return IsCEL(o) && (o.GetKind() == gpol || o.GetKind() == namespacedGPol)
}
