package own

import (
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ConstraintGroup is the group of Gatekeeper's constraints, whose kinds templates define.
const ConstraintGroup = "constraints.gatekeeper.sh"

const (
	gatekeeperGroup = "gatekeeper.sh" // those of its objects are below it
	templateKind    = "ConstraintTemplate"

	templateGroup = "templates.gatekeeper.sh"
	mutatorGroup  = "mutations.gatekeeper.sh"
	// suiteGroup is that of tests, which decide nothing.
	suiteGroup = "test.gatekeeper.sh"
)

func isTemplate(k schema.GroupVersionKind) bool {
	return k.Group == templateGroup && k.Kind == templateKind
}

func isConstraint(k schema.GroupVersionKind) bool { return k.Group == ConstraintGroup }

// isMutator reports whether a kind is one of Gatekeeper's mutations: Assign, AssignMetadata, ModifySet or AssignImage.
func isMutator(k schema.GroupVersionKind) bool { return k.Group == mutatorGroup }

// takeMutator takes a mutation of Gatekeeper's. It stands as it is, and what it is about is put in the terms of
// ValidatingAdmissionPolicies.
func (s *Set) takeMutator(o object) error {
	if o.GetName() == "" {
		return o.at.errorf("%s without a metadata.name", o.GetKind())
	}
	p := Policy{at: o.at, engine: o.Unstructured}
	p.Name = o.GetName()
	p.Spec.MatchConstraints = &admission.MatchResources{ResourceRules: rulesAt(o.Unstructured, "spec", "applyTo")}
	if o.GetKind() == "AssignMetadata" {
		p.Spec.MatchConstraints.ResourceRules = rulesAt(o.Unstructured, "spec", "match", "kinds")
	}
	s.Policies = append(s.Policies, p)
	return nil
}

// rulesAt turns a list of groups with kinds into rules. Without a list the rule selects every kind.
func rulesAt(o *unstructured.Unstructured, path ...string) (out []admission.NamedRuleWithOperations) {
	blocks, _, _ := unstructured.NestedSlice(o.Object, path...) // Gatekeeper reports what is no list
	for _, b := range blocks {
		block, _ := b.(tree)
		groups := append(words(block["apiGroups"]), words(block["groups"])...)
		for _, group := range groups {
			for _, kind := range words(block["kinds"]) {
				out = append(out, rule(group, kind))
			}
		}
	}
	if len(blocks) == 0 {
		out = append(out, rule("*", "*"))
	}
	return out
}

// takeConstraint takes a constraint of Gatekeeper's. It stands as it is, and what it is about is put in the terms of
// ValidatingAdmissionPolicies.
func (s *Set) takeConstraint(o object) error {
	if o.GetName() == "" {
		return o.at.errorf("%s without a metadata.name", o.GetKind())
	}
	p := Policy{at: o.at, engine: o.Unstructured}
	p.Name = o.GetName()
	p.Spec.MatchConstraints = &admission.MatchResources{ResourceRules: rulesAt(o.Unstructured, "spec", "match", "kinds")}
	s.Policies = append(s.Policies, p)
	return nil
}

// rule selects the creation and the change of objects of a kind.
func rule(group, kind string) admission.NamedRuleWithOperations {
	resource, _ := resourceOfKind(kind, group)
	return admission.NamedRuleWithOperations{RuleWithOperations: admission.RuleWithOperations{
		Operations: []admission.OperationType{admission.Create, admission.Update},
		Rule: admission.Rule{
			APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource},
		},
	}}
}

// defines is the kind that a template defines.
func defines(template *unstructured.Unstructured) string {
	kind, _, _ := unstructured.NestedString(template.Object, "spec", "crd", "spec", "names", "kind") // or none
	return kind
}

// checkTemplates refuses a constraint of a kind that no template defines, two templates of one kind, in whatever case,
// and two of one name, of which the one that is applied last would stand.
func (s *Set) checkTemplates() error {
	defined, kinds, titles := map[string]bool{}, map[string]object{}, map[string]object{}
	for _, t := range s.templates {
		kind := defines(t.Unstructured)
		if other, ok := kinds[strings.ToLower(kind)]; ok {
			return t.at.errorf("ConstraintTemplate %s defines %s, as that at %s does", t.GetName(), kind, other.at.place())
		}
		if other, ok := titles[t.GetName()]; ok {
			return t.at.errorf("ConstraintTemplate %s stands at %s already", t.GetName(), other.at.place())
		}
		defined[kind], kinds[strings.ToLower(kind)], titles[t.GetName()] = true, t, t
	}
	for i := range s.Policies {
		p := &s.Policies[i]
		if p.engine == nil || !isConstraint(p.engine.GroupVersionKind()) {
			continue
		}
		if !defined[p.kind()] {
			return p.at.errorf("%s %s: the bundle holds no ConstraintTemplate that defines its kind", p.kind(), p.Name)
		}
	}
	return nil
}

// renderTemplates returns the templates of the constraints that are in force, and names the others.
func (s *Set) renderTemplates(out *InForce) (objects []*unstructured.Unstructured) {
	used := map[string]bool{}
	for _, p := range out.Policies {
		used[p.kind()] = true
	}
	for _, t := range s.templates {
		if !used[defines(t.Unstructured)] {
			out.Idle["template "+t.GetName()] = "no constraint is of its kind"
			continue
		}
		objects = append(objects, templateIn(out.Scope, bare(t.Unstructured)))
	}
	return objects
}

// templateReady and constraintReady are the parts of Ready for Gatekeeper's objects.
func templateReady(o *unstructured.Unstructured) (ready bool, says string) {
	if is, _, _ := unstructured.NestedBool(o.Object, "status", "created"); is {
		return true, ""
	}
	return false, podErrors(o)
}

func constraintReady(o *unstructured.Unstructured, generates bool) (ready bool, says string) {
	pods, _, _ := unstructured.NestedSlice(o.Object, "status", "byPod")
	for _, p := range pods {
		pod, _ := p.(tree)
		if pod["enforced"] != true {
			continue
		}
		points, _ := pod["enforcementPointsStatus"].([]any)
		generated, waits := !generates, ""
		for _, e := range points {
			point, _ := e.(tree)
			if point["enforcementPoint"] == vapPoint {
				generated = point["state"] != "waiting"
				waits, _ = point["message"].(string)
			}
		}
		return generated, waits
	}
	return false, podErrors(o)
}

// mutatorReady is the part of Ready for Gatekeeper's mutations.
func mutatorReady(o *unstructured.Unstructured) (ready bool, says string) {
	pods, _, _ := unstructured.NestedSlice(o.Object, "status", "byPod")
	says = podErrors(o)
	return says == "" && slices.ContainsFunc(pods, func(p any) bool {
		pod, _ := p.(tree)
		return pod["enforced"] == true
	}), says
}

// generates reports whether an object is a template of which, and of its constraints, Gatekeeper makes
// ValidatingAdmissionPolicies, which the API server then evaluates in its place: those that have a source in CEL and do
// not say otherwise.
func generates(template *unstructured.Unstructured) bool {
	if !isTemplate(template.GroupVersionKind()) {
		return false
	}
	return slices.ContainsFunc(sourcesInCEL(template), func(source tree) bool { return source["generateVAP"] != false })
}

// sourcesInCEL are the sources of a template that Gatekeeper may make a policy of the API server's of.
func sourcesInCEL(template *unstructured.Unstructured) (out []tree) {
	spec, _ := template.Object["spec"].(tree)
	targets, _ := spec["targets"].([]any)
	for _, t := range targets {
		target, _ := t.(tree)
		code, _ := target["code"].([]any)
		for _, c := range code {
			one, _ := c.(tree)
			if source, ok := one["source"].(tree); ok && one["engine"] == "K8sNativeValidation" {
				out = append(out, source)
			}
		}
	}
	return out
}

// TemplatesInCEL reports whether some of the templates are in CEL.
func (f *InForce) TemplatesInCEL() bool {
	return slices.ContainsFunc(f.Objects, func(o *unstructured.Unstructured) bool {
		return isTemplate(o.GroupVersionKind()) && len(sourcesInCEL(o)) > 0
	})
}

// MakesPolicies reports whether an engine makes policies of the API server's of some.
func (f *InForce) MakesPolicies() bool { return slices.ContainsFunc(f.Objects, generates) }

// BindingMadeOf is the name of the ValidatingAdmissionPolicyBinding that Gatekeeper says that it has made of a
// constraint, as Ready has read; empty: it has made none.
func (f *InForce) BindingMadeOf(p *Policy) string {
	if p.engine == nil || !isConstraint(p.engine.GroupVersionKind()) {
		return ""
	}
	if name := bindingOf(p.kindIn(f.Scope), p.nameIn(f.Scope)); f.made[name] {
		return name
	}
	return ""
}

// generates reports whether Gatekeeper makes ValidatingAdmissionPolicies of a kind's constraints.
func (f *InForce) generates(kind string) bool {
	return !f.Scope.Foreign && slices.ContainsFunc(f.templates, func(t object) bool {
		return defines(t.Unstructured) == kind && generates(t.Unstructured)
	})
}

// bindingOf is the name of the binding that Gatekeeper makes of a constraint.
func bindingOf(kind, name string) string { return "gatekeeper-" + strings.ToLower(kind) + "-" + name }

// keepMade keeps whether Gatekeeper has made a binding of a constraint.
func (f *InForce) keepMade(constraint *unstructured.Unstructured) {
	pods, _, _ := unstructured.NestedSlice(constraint.Object, "status", "byPod")
	made := slices.ContainsFunc(pods, func(p any) bool {
		pod, _ := p.(tree)
		points, _ := pod["enforcementPointsStatus"].([]any)
		return slices.ContainsFunc(points, func(e any) bool {
			point, _ := e.(tree)
			return point["enforcementPoint"] == vapPoint && point["state"] == "generated"
		})
	})
	if f.made == nil {
		f.made = map[string]bool{}
	}
	f.made[bindingOf(constraint.GetKind(), constraint.GetName())] = made
}

// vapPoint is how Gatekeeper names the API server that evaluates in its place.
const vapPoint = "vap.k8s.io"

// podErrors are what those that read an object of Gatekeeper's say of it.
func podErrors(o *unstructured.Unstructured) string {
	var out []string
	pods, _, _ := unstructured.NestedSlice(o.Object, "status", "byPod")
	for _, p := range pods {
		pod, _ := p.(tree)
		list, _ := pod["errors"].([]any)
		for _, e := range list {
			one, _ := e.(tree)
			if message, ok := one["message"].(string); ok {
				out = append(out, message)
			}
		}
	}
	return strings.Join(out, "; ")
}
