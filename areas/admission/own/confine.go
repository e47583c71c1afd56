package own

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/areas/admission/mechanism"
)

// mostEngineName bounds the name of an engine's policy: engines make labels of it.
const mostEngineName = 63

// nameIn is the policy's name in the run. An engine's keeps its own on control planes of tare's own.
func (p *Policy) nameIn(s mechanism.Scope) string {
	if p.engine != nil && !s.Foreign {
		return p.Name
	}
	name := NameIn(s, p.Name)
	if p.engine != nil && len(name) > mostEngineName {
		const digits = 6
		sum := sha256.Sum256([]byte(name))
		name = name[:mostEngineName-digits-1] + "-" + hex.EncodeToString(sum[:])[:digits]
	}
	return name
}

// kindIn is the policy's kind in the run.
func (p *Policy) kindIn(s mechanism.Scope) string {
	if p.engine != nil && isConstraint(p.engine.GroupVersionKind()) {
		return KindIn(s, p.kind())
	}
	if s.Foreign {
		return namespacedKind(p.kind())
	}
	return p.kind()
}

// KindIn is the kind of constraints that a template defines in the run: where others use the cluster, a template of
// that name may stand there, with other code.
func KindIn(s mechanism.Scope, kind string) string {
	if !s.Foreign {
		return kind
	}
	return "Tare" + strings.ReplaceAll(strings.TrimPrefix(s.Namespace, "tare-"), "-", "") + kind
}

// templateIn names a template, and the kind that it defines, for the run.
func templateIn(s mechanism.Scope, o *unstructured.Unstructured) *unstructured.Unstructured {
	if !s.Foreign {
		return o
	}
	kind := KindIn(s, defines(o))
	o.SetName(strings.ToLower(kind))
	names, _, _ := unstructured.NestedMap(o.Object, "spec", "crd", "spec", "names") // it has a kind
	names["kind"] = kind
	delete(names, "shortNames")
	_ = unstructured.SetNestedMap(o.Object, names, "spec", "crd", "spec", "names") // it was read from there
	for _, source := range sourcesInCEL(o) {
		source["generateVAP"] = false // the API server would evaluate it for objects of no namespace, too
	}
	return o
}

// confinable says why an engine's policy cannot act in one namespace alone.
func (p *Policy) confinable() error {
	for _, rule := range rulesIn(p.engine) {
		if does := changesOthers(rule); does != "" {
			return fmt.Errorf("a rule of it has %s, and may change what is in other namespaces", does)
		}
		if match, _ := rule["match"].(tree); len(match) == 0 {
			return errors.New("a rule of it has no match block that could be narrowed")
		}
	}
	switch reaches := reachesOthers(p.engine); {
	case mutatesExisting(p.engine):
		return errors.New("it changes what exists, and may change what is in other namespaces")
	case isGeneratingPolicy(p.engine):
		return errors.New("it generates objects, and may do so in other namespaces")
	case reaches != "":
		return errors.New(reaches)
	}
	parts := resourceRulesIn(p.engine)
	if k := p.engine.GroupVersionKind(); isConstraint(k) || isMutator(k) {
		parts = matchesOf(p.engine)
	}
	if slices.ContainsFunc(parts, func(part tree) bool { return part["scope"] == "Cluster" }) {
		return errors.New("it is about objects that are in no namespace")
	}
	return nil
}

// reachesOthers says by what a policy of Kyverno's may have requests of others refused, delayed or not looked at,
// however its rules are narrowed; empty: by nothing. Kyverno puts match conditions into a webhook for other namespaces,
// too, and the API server refuses a request for which one fails. A condition before them that excludes others would not
// help: all conditions have one allowance, and a request for which that is spent is refused as well. The webhook that
// policies share has the longest of their time-outs, and from Kyverno 1.16 to 1.18 the selectors of the last one in
// CEL.
func reachesOthers(o *unstructured.Unstructured) string {
	if !isKyverno(o.GroupVersionKind()) {
		return ""
	}
	spec, _ := o.Object["spec"].(tree)
	webhook, _ := spec["webhookConfiguration"].(tree)
	if spec["matchConditions"] != nil || webhook["matchConditions"] != nil {
		return "it has match conditions, and where one fails the API server refuses requests in other namespaces"
	}
	if spec["webhookTimeoutSeconds"] != nil || webhook["timeoutSeconds"] != nil {
		return "it sets a webhook's time-out, for which requests in other namespaces wait, too, if Kyverno does not answer"
	}
	if selector, _ := constraintsOf(o)["objectSelector"].(tree); len(selector) > 0 {
		return "it has an objectSelector, and Kyverno before 1.19 may evaluate policies of others for no other objects"
	}
	for _, rule := range resourceRulesIn(o) {
		for _, resource := range words(rule["resources"]) {
			for _, group := range words(rule["apiGroups"]) {
				if MayAsk(schema.GroupVersionKind{Group: strings.TrimPrefix(group, "*"), Kind: kindNamed(resource)}) {
					return "it is about " + resource + ": if Kyverno did not answer, nobody could mend the cluster"
				}
			}
		}
	}
	for _, resources := range resourcesIn(o) {
		for _, word := range words(resources["kinds"]) {
			k, _ := kindOf(word)
			if MayAsk(schema.GroupVersionKind{Group: strings.TrimPrefix(k.Group, "*"), Kind: k.Kind}) {
				return "a rule of it is about " + word + ": if Kyverno did not answer, nobody could mend the cluster"
			}
		}
	}
	what := perhapsInNone(rulesOf(o))
	if what != "" && slices.ContainsFunc(rulesIn(o), func(rule tree) bool {
		validate, _ := rule["validate"].(tree)
		return validate["cel"] != nil
	}) {
		return "the API server may evaluate it in Kyverno's place, and for objects that are in no namespace, too: " + what
	}
	return ""
}

// perhapsInNone is what rules are about that tare does not know to be in namespaces: "*", "nodes"; empty: nothing.
func perhapsInNone(rules []admission.NamedRuleWithOperations) string {
	for _, r := range rules { // each has one group and one resource
		resource, _, _ := strings.Cut(r.Resources[0], "/")
		if !slices.ContainsFunc(candidates(), func(c candidate) bool {
			return c.resource == resource && (r.APIGroups[0] == "*" || r.APIGroups[0] == c.group)
		}) {
			return resource
		}
	}
	return ""
}

// constraintsOf are the matchConstraints of a policy of Kyverno's in CEL; nil: it has none.
func constraintsOf(o *unstructured.Unstructured) tree {
	if !IsCEL(o) {
		return nil
	}
	return matchesOf(o)[0]
}

// resourceRulesIn are the rules of a policy of Kyverno's in CEL by which the API server asks about objects. Kyverno
// 1.18 and 1.19 end with a panic while two policies have rules that are equal but for a scope that one of them lacks,
// as tare's do.
func resourceRulesIn(o *unstructured.Unstructured) (out []tree) {
	rules, _ := constraintsOf(o)["resourceRules"].([]any) // Kyverno reports what is no list
	for _, r := range rules {
		if rule, ok := r.(tree); ok {
			out = append(out, rule)
		}
	}
	return out
}

// changesOthers says what of a rule of Kyverno's changes objects other than that of the request; empty: nothing.
func changesOthers(rule tree) string {
	mutate, _ := rule["mutate"].(tree)
	switch {
	case rule["generate"] != nil:
		return "generate"
	case mutate["targets"] != nil:
		return "mutate.targets"
	}
	return ""
}

// mutatesExisting reports whether a MutatingPolicy of Kyverno's changes objects other than that of the request.
func mutatesExisting(o *unstructured.Unstructured) bool {
	if !IsCEL(o) || !isMutatingPolicy(o) {
		return false
	}
	spec, _ := o.Object["spec"].(tree)
	evaluation, _ := spec["evaluation"].(tree)
	existing, _ := evaluation["mutateExisting"].(tree)
	return spec["targetMatchConstraints"] != nil || existing["enabled"] == true
}

// confine has an engine's policy act in the run's namespace only, and names it for the run.
func (p *Policy) confine(o *unstructured.Unstructured, s mechanism.Scope) {
	o.SetName(p.nameIn(s))
	o.SetKind(p.kindIn(s))
	switch k := o.GroupVersionKind(); {
	case k.Group == celGroup:
		o.SetNamespace(s.Namespace)  // the engine evaluates a policy of a namespace there only
		if k.Version == "v1alpha1" { // which policies of namespaces never had
			o.SetAPIVersion(celGroup + "/v1beta1")
		}
		for _, rule := range resourceRulesIn(o) {
			delete(rule, "scope")
		}
		delete(constraintsOf(o), "namespaceSelector") // the run's namespace has the labels, and a shared webhook would get it
	case isConstraint(k), isMutator(k):
		spec, _ := o.Object["spec"].(tree)
		if spec == nil {
			spec = tree{}
			o.Object["spec"] = spec
		}
		match, _ := spec["match"].(tree)
		if match == nil {
			match = tree{}
			spec["match"] = match
		}
		match["namespaces"], match["scope"] = []any{s.Namespace}, "Namespaced"
	case o.GetNamespace() == "": // the engine evaluates a policy of a namespace there only, and lets it name no other
		for _, rule := range rulesIn(o) {
			for _, block := range matchBlocks(rule) {
				resources, _ := block["resources"].(tree)
				if resources == nil {
					resources = tree{}
					block["resources"] = resources
				}
				resources["namespaces"] = []any{s.Namespace}
			}
		}
	}
}

// matchBlocks are the parts of a rule each of which must select the namespace, so that the rule does.
func matchBlocks(rule tree) (out []tree) {
	match, _ := rule["match"].(tree)
	for _, list := range []string{"any", "all"} {
		blocks, _ := match[list].([]any)
		for _, b := range blocks {
			if block, ok := b.(tree); ok {
				out = append(out, block)
			}
		}
	}
	if len(out) == 0 && match != nil || match["resources"] != nil {
		out = append(out, match)
	}
	return out
}

// Confined reports whether an object of an engine's can only affect the namespace. It looks at what is sent, and knows
// nothing of how that was made.
func Confined(o *unstructured.Unstructured, namespace string) bool {
	only := []string{namespace}
	switch k := o.GroupVersionKind(); {
	case namespace == "", reachesOthers(o) != "":
		return false
	case isTemplate(k):
		return !generates(o) // else effective only through a constraint, which its webhook narrows
	case isConstraint(k), isMutator(k):
		names, _, err := unstructured.NestedStringSlice(o.Object, "spec", "match", "namespaces")
		scope, _, _ := unstructured.NestedString(o.Object, "spec", "match", "scope") // another is not confined
		return err == nil && slices.Equal(names, only) && scope == "Namespaced"
	case k.Group == kyvernoGroup:
		rules, found, err := unstructured.NestedSlice(o.Object, "spec", "rules")
		inside := k.Kind == "Policy" && o.GetNamespace() == namespace
		return err == nil && found && !slices.ContainsFunc(rules, func(r any) bool {
			rule, ok := r.(tree)
			return !ok || changesOthers(rule) != "" || !inside && !confinedMatch(rule["match"], only)
		})
	}
	return o.GetNamespace() == namespace && !mutatesExisting(o) && !isGeneratingPolicy(o) &&
		constraintsOf(o)["namespaceSelector"] == nil &&
		!slices.ContainsFunc(resourceRulesIn(o), func(rule tree) bool { return rule["scope"] != nil })
}

// confinedMatch reports whether each alternative of a rule's match block selects these namespaces only.
func confinedMatch(of any, only []string) bool {
	match, _ := of.(tree)
	alternatives, isAny := match["any"].([]any)
	every, isAll := match["all"].([]any)
	direct := match["resources"] != nil
	switch {
	case isAny && !isAll && !direct:
		return len(alternatives) > 0 && !slices.ContainsFunc(alternatives, func(b any) bool { return !narrowed(b, only) })
	case isAll && !isAny && !direct:
		return slices.ContainsFunc(every, func(b any) bool { return narrowed(b, only) })
	case direct && !isAny && !isAll:
		return narrowed(match, only)
	}
	return false // what several of them mean together is the engine's affair
}

func narrowed(block any, only []string) bool {
	b, _ := block.(tree)
	resources, _ := b["resources"].(tree)
	return slices.Equal(words(resources["namespaces"]), only)
}
