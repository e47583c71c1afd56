package own

import (
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tare/areas/admission/mechanism"
)

// The kinds of policies that change objects, which the API server evaluates.
const (
	mutatingKind        = "MutatingAdmissionPolicy"
	mutatingBindingKind = "MutatingAdmissionPolicyBinding"
)

// takeMutating takes a MutatingAdmissionPolicy: what it has in common with a ValidatingAdmissionPolicy is put in those
// terms.
func (s *Set) takeMutating(o object) error {
	p := Policy{at: o.at, mutating: &admission.MutatingAdmissionPolicy{}}
	if err := o.into(p.mutating); err != nil {
		return err
	}
	m := p.mutating
	p.ObjectMeta = m.ObjectMeta
	p.Spec = admission.ValidatingAdmissionPolicySpec{
		ParamKind: m.Spec.ParamKind, MatchConstraints: m.Spec.MatchConstraints, FailurePolicy: m.Spec.FailurePolicy,
		MatchConditions: m.Spec.MatchConditions, Variables: m.Spec.Variables,
	}
	s.Policies = append(s.Policies, p)
	return nil
}

// takeMutatingBinding takes a binding of one, in the terms of a ValidatingAdmissionPolicy's.
func (s *Set) takeMutatingBinding(o object) error {
	var m admission.MutatingAdmissionPolicyBinding
	if err := o.into(&m); err != nil {
		return err
	}
	b := Binding{at: o.at, mutates: true}
	b.ObjectMeta = m.ObjectMeta
	b.Spec = admission.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: m.Spec.PolicyName, ParamRef: m.Spec.ParamRef, MatchResources: m.Spec.MatchResources,
	}
	s.Bindings = append(s.Bindings, b)
	return nil
}

// Mutates reports whether the policy changes objects: by itself, or by one of its rules.
func (p *Policy) Mutates() bool { return p.mutating != nil || p.engine != nil && Mutates(p.engine) }

// Mutates reports whether an object is a policy that changes others.
func Mutates(o *unstructured.Unstructured) bool {
	switch k := o.GroupVersionKind(); {
	case k.Group == group:
		return k.Kind == mutatingKind
	case IsCEL(o):
		return isMutatingPolicy(o)
	case isMutator(k):
		return true
	case isKyverno(k):
		return slices.ContainsFunc(rulesIn(o), func(rule tree) bool { return rule["mutate"] != nil })
	}
	return false
}

// Mutating are the policies in force that change objects.
func (f *InForce) Mutating() (out []*Policy) {
	for _, p := range f.Policies {
		if p.Mutates() {
			out = append(out, p)
		}
	}
	return out
}

// Mentions reports whether the files of the policies in force hold a text.
func (f *InForce) Mentions(text string) bool {
	return text == "" || text == anyNamespace || slices.ContainsFunc(f.Policies, func(p *Policy) bool {
		return strings.Contains(p.at.text, text)
	})
}

// Acting are the objects without which a policy in force would not act: its bindings, or an engine's policy itself.
func (f *InForce) Acting(p *Policy) (out []*unstructured.Unstructured) {
	for _, o := range f.Objects {
		bound, _, _ := unstructured.NestedString(o.Object, "spec", "policyName") // other objects have none
		switch {
		case p.engine != nil && o.GetName() == p.nameIn(f.Scope) && o.GetKind() == p.kindIn(f.Scope),
			p.mutating != nil && o.GetKind() == mutatingBindingKind && bound == NameIn(f.Scope, p.Name):
			out = append(out, o)
		}
	}
	return out
}

// renderMutating returns a MutatingAdmissionPolicy as it is sent.
func (p *Policy) renderMutating(s mechanism.Scope) (*unstructured.Unstructured, error) {
	to := p.mutating.DeepCopy()
	to.APIVersion = group + "/v1"
	to.ObjectMeta = meta.ObjectMeta{Name: NameIn(s, p.Name), Annotations: p.Annotations, Labels: p.Labels}
	if c := to.Spec.MatchConstraints; c != nil {
		c.NamespaceSelector = withoutNames(c.NamespaceSelector)
	}
	return p.at.encoded(to)
}

// renderMutating returns the binding of a MutatingAdmissionPolicy as it is sent, from what a binding in general is.
func (b *Binding) renderMutating(in admission.ValidatingAdmissionPolicyBinding) (*unstructured.Unstructured, error) {
	to := &admission.MutatingAdmissionPolicyBinding{TypeMeta: in.TypeMeta, ObjectMeta: in.ObjectMeta}
	to.Kind = mutatingBindingKind
	to.Spec = admission.MutatingAdmissionPolicyBindingSpec{
		PolicyName: in.Spec.PolicyName, ParamRef: in.Spec.ParamRef, MatchResources: in.Spec.MatchResources,
	}
	for i := range to.Spec.MatchResources.ResourceRules { // nothing else can be changed
		r := &to.Spec.MatchResources.ResourceRules[i]
		if slices.Contains(r.Operations, admission.OperationAll) {
			r.Operations = []admission.OperationType{admission.Create, admission.Update}
		}
	}
	return b.at.encoded(to)
}
