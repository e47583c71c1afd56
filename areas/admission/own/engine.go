package own

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tare/areas/admission/mechanism"
	"tare/areas/bundle"
)

// The engines that evaluate policies in place of the API server.
const (
	kyverno    = "kyverno"
	gatekeeper = "gatekeeper"
)

// EngineOf is the engine that takes an object; empty: it is the API server's.
func EngineOf(o *unstructured.Unstructured) string {
	k := o.GroupVersionKind()
	switch {
	case isKyverno(k):
		return kyverno
	case isTemplate(k), isConstraint(k):
		return gatekeeper
	}
	return ""
}

// Defines reports whether other objects are of a kind that an object defines, by its engine.
func Defines(o *unstructured.Unstructured) bool { return isTemplate(o.GroupVersionKind()) }

// IsCEL reports whether a policy of Kyverno's is in CEL.
func IsCEL(o *unstructured.Unstructured) bool { return o.GroupVersionKind().Group == celGroup }

// Engines are those that the policies need, each once.
func (f *InForce) Engines() (out []string) {
	for _, p := range f.Policies {
		if e := p.Engine(); e != "" && !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	return out
}

// InServer reports whether the API server itself evaluates a policy.
func (f *InForce) InServer() bool {
	return slices.ContainsFunc(f.Policies, func(p *Policy) bool { return p.engine == nil })
}

// At is where the file has an object of an engine's that was rendered.
func (f *InForce) At(o *unstructured.Unstructured) (at bundle.Place, ok bool) {
	for _, p := range f.Policies {
		if p.engine != nil && p.Name == o.GetName() && p.kind() == o.GetKind() {
			return p.at.place(), true
		}
	}
	for _, t := range f.templates {
		if isTemplate(o.GroupVersionKind()) && t.GetName() == o.GetName() {
			return t.at.place(), true
		}
	}
	return at, false
}

// Engine is the engine that evaluates the policy; empty: the API server.
func (p *Policy) Engine() string {
	if p.engine == nil {
		return ""
	}
	return EngineOf(p.engine)
}

// Words are those by which a denial names the policy as one that denied.
func (p *Policy) Words(s mechanism.Scope) []string {
	switch {
	case p.engine == nil:
		return []string{fmt.Sprintf("ValidatingAdmissionPolicy '%s'", NameIn(s, p.Name))}
	case isConstraint(p.engine.GroupVersionKind()):
		return []string{"[" + p.Name + "] "}
	case p.engine.GroupVersionKind().Group == celGroup:
		return []string{"Policy " + p.Name + " failed: ", "ValidatingAdmissionPolicy 'vpol-" + p.Name + "'"}
	}
	return []string{"\n" + p.Name + ":\n", "ValidatingAdmissionPolicy 'cpol-" + p.Name + "'"}
}

// Ready reports whether an object of an engine's says of itself that it is in force, and what it says if it is not.
func Ready(o *unstructured.Unstructured) (ready bool, says string) {
	switch k := o.GroupVersionKind(); {
	case isTemplate(k):
		return templateReady(o)
	case isConstraint(k):
		return constraintReady(o)
	}
	return kyvernoReady(o)
}
