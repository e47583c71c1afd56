package own

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kyverno's groups and the kinds that are taken.
const (
	kyvernoGroup = "kyverno.io"          // patterns, in YAML
	celGroup     = "policies.kyverno.io" // in CEL

	vpol           = "ValidatingPolicy"
	namespacedVPol = "NamespacedValidatingPolicy"
	mpol           = "MutatingPolicy"
	namespacedMPol = "NamespacedMutatingPolicy"
	gpol           = "GeneratingPolicy"
	namespacedGPol = "NamespacedGeneratingPolicy"
)

// isKyverno reports whether an object is a policy that Kyverno takes: one that validates, mutates or generates.
func isKyverno(k schema.GroupVersionKind) bool {
	switch k.Group {
	case kyvernoGroup:
		return k.Kind == "ClusterPolicy" || k.Kind == "Policy"
	case celGroup:
		return slices.Contains([]string{vpol, namespacedVPol, mpol, namespacedMPol, gpol, namespacedGPol}, k.Kind)
	}
	return false
}

// sinceMinor says from which minor version of Kyverno on, after "1.", its definitions have a kind in CEL, and a version
// of these.
var sinceMinor = map[string]int{
	vpol: 14, mpol: 15, gpol: 15, namespacedVPol: 16, namespacedMPol: 17, namespacedGPol: 17,
	"v1beta1": 16, "v1": 17,
}

// MissingIn says why a version of Kyverno, such as 1.13.6, cannot take a policy in force; nil: none is known.
func (f *InForce) MissingIn(kyverno string) error {
	var minor int
	if _, err := fmt.Sscanf(kyverno, "1.%d", &minor); err != nil {
		return nil //nolint:nilerr // another version is not known
	}
	for _, p := range f.Policies {
		if p.engine == nil || !IsCEL(p.engine) {
			continue
		}
		k := p.engine.GroupVersionKind()
		if since := max(sinceMinor[k.Kind], sinceMinor[k.Version]); since > minor {
			return p.at.errorf("%s %s is of %s, which Kyverno has from 1.%d on: %s would not know it", k.Kind, p.Name,
				k.GroupVersion(), since, kyverno)
		}
	}
	return nil
}

// isMutatingPolicy reports whether a policy of Kyverno's in CEL is one that mutates.
func isMutatingPolicy(o *unstructured.Unstructured) bool {
	return o.GetKind() == mpol || o.GetKind() == namespacedMPol
}

// takeKyverno takes a policy of Kyverno's. It stands as it is, and what it is about is put in the terms of
// ValidatingAdmissionPolicies.
func (s *Set) takeKyverno(o object) error {
	if o.GetName() == "" {
		return o.at.errorf("%s without a metadata.name", o.GetKind())
	}
	if verifiesImages(o.Unstructured) {
		s.Untaken = append(s.Untaken, o.GetKind()+" "+o.GetName()+", "+asksRegistry)
		return nil
	}
	if what := reaches(o); what != "" && !s.network {
		s.Untaken = append(s.Untaken, o.GetKind()+" "+o.GetName()+", "+what+" (network: true takes it)")
		return nil
	}
	p := Policy{at: o.at, engine: o.Unstructured}
	p.Name = o.GetName()
	if o.GroupVersionKind().Group == celGroup {
		spec, _, _ := unstructured.NestedMap(o.Object, "spec", "matchConstraints") // Kyverno reports what is no map
		m := admission.MatchResources{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &m); err != nil {
			return o.at.errorf("%s %s: spec.matchConstraints: %w", o.GetKind(), o.GetName(), err)
		}
		p.Spec.MatchConstraints = &m
	} else {
		p.Spec.MatchConstraints = &admission.MatchResources{ResourceRules: rulesOf(o.Unstructured)}
	}
	s.Policies = append(s.Policies, p)
	return nil
}

// verifiesImages reports whether a rule verifies images, for which Kyverno asks their registries.
func verifiesImages(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(rulesIn(o), func(rule tree) bool { return rule["verifyImages"] != nil })
}

func rulesIn(o *unstructured.Unstructured) (out []tree) {
	spec, _ := o.Object["spec"].(tree)
	rules, _ := spec["rules"].([]any) // Kyverno reports what is no list
	for _, r := range rules {
		if rule, ok := r.(tree); ok {
			out = append(out, rule)
		}
	}
	return out
}

// rulesOf says what the rules of a policy match.
func rulesOf(o *unstructured.Unstructured) (out []admission.NamedRuleWithOperations) {
	for _, resources := range resourcesIn(o) {
		for _, kind := range words(resources["kinds"]) {
			out = append(out, ruleOf(kind, words(resources["operations"])))
		}
	}
	return out
}

// resourcesIn are the parts of a policy's match blocks that say which resources, in which namespaces.
func resourcesIn(o *unstructured.Unstructured) (out []tree) {
	for _, rule := range rulesIn(o) {
		for _, a := range alternativesIn(rule) {
			out = append(out, a.resources...)
		}
	}
	return out
}

// An alternative is what must select a namespace for a rule to be about it, and where it stands in a rule that has
// several.
type alternative struct {
	at        string
	resources []tree
}

// alternativesIn are those of a rule's match block.
func alternativesIn(rule tree) (out []alternative) {
	match, _ := rule["match"].(tree)
	either, _ := match["any"].([]any)
	every, _ := match["all"].([]any)
	resourcesOf := func(blocks ...any) (out []tree) {
		for _, b := range blocks {
			block, _ := b.(tree)
			if resources, ok := block["resources"].(tree); ok {
				out = append(out, resources)
			}
		}
		return out
	}
	if all := resourcesOf(append([]any{match}, every...)...); len(all) > 0 || len(either) == 0 {
		out = append(out, alternative{"", all})
	}
	for i, b := range either {
		one := alternative{"", resourcesOf(b)}
		if len(either) > 1 {
			one.at = fmt.Sprintf(", match.any[%d]", i)
		}
		out = append(out, one)
	}
	return out
}

func words(list any) (out []string) {
	items, _ := list.([]any)
	for _, item := range items {
		if word, ok := item.(string); ok {
			out = append(out, word)
		}
	}
	return out
}

// kindOf reads one of Kyverno's words for kinds: "Pod", "apps/v1/Deployment", "*/Ingress", "Pod/exec". What the word
// does not say is empty; sub is "/exec".
func kindOf(word string) (k schema.GroupVersionKind, sub string) {
	parts := strings.Split(word, "/")
	if last := len(parts) - 1; last > 0 && strings.ToLower(parts[last]) == parts[last] && parts[last] != "*" {
		sub, parts = "/"+parts[last], parts[:last]
	}
	k.Kind = parts[len(parts)-1]
	if len(parts) > 1 {
		k.Version = parts[len(parts)-2]
	}
	if len(parts) > 2 {
		k.Group = parts[0]
	}
	return k, sub
}

// ruleOf says what one of Kyverno's words for kinds selects.
func ruleOf(word string, operations []string) admission.NamedRuleWithOperations {
	k, sub := kindOf(word)
	resource, group := resourceOfKind(k.Kind, cmp.Or(k.Group, "*"))
	if len(operations) == 0 {
		operations = []string{"CREATE", "UPDATE"}
	}
	out := admission.NamedRuleWithOperations{RuleWithOperations: admission.RuleWithOperations{Rule: admission.Rule{
		APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource + sub},
	}}}
	for _, o := range operations {
		out.Operations = append(out.Operations, admission.OperationType(strings.ToUpper(o)))
	}
	return out
}

// addedByCluster are the fields of an object's metadata that a cluster adds.
var addedByCluster = []string{"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"}

// bare returns an object without what a cluster has added.
func bare(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	unstructured.RemoveNestedField(o.Object, "status")
	for _, field := range addedByCluster {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	o.SetNamespace("")
	return o
}

// kyvernoReady is the part of Ready for Kyverno's policies.
func kyvernoReady(o *unstructured.Unstructured) (ready bool, says string) {
	at := []string{"status"}
	if o.GroupVersionKind().Group == celGroup {
		at = append(at, "conditionStatus")
		if is, _, _ := unstructured.NestedBool(o.Object, "status", "conditionStatus", "ready"); is {
			return true, ""
		}
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, append(at, "conditions")...)
	for _, c := range conditions {
		condition, _ := c.(tree)
		message, _ := condition["message"].(string)
		switch {
		case condition["type"] == "Ready" && condition["status"] == "True":
			return true, ""
		case condition["status"] == "False" && message != "":
			says = message
		}
	}
	return false, says
}
