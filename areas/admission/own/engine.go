package own

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

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
	case isTemplate(k), isConstraint(k), isMutator(k):
		return gatekeeper
	}
	return ""
}

// InNamespace makes a policy of Kyverno's in CEL one of a namespace.
func InNamespace(o *unstructured.Unstructured, namespace string) {
	o.SetKind(namespacedKind(o.GetKind()))
	o.SetNamespace(namespace)
}

// namespacedKind is the kind of Kyverno's policies in CEL for a namespace.
func namespacedKind(kind string) string {
	switch kind {
	case vpol:
		return namespacedVPol
	case mpol:
		return namespacedMPol
	}
	return kind
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

// At is where the file has an object of an engine's that was rendered.
func (f *InForce) At(o *unstructured.Unstructured) (at bundle.Place, ok bool) {
	for _, p := range f.Policies {
		if p.engine != nil && p.nameIn(f.Scope) == o.GetName() && p.kindIn(f.Scope) == o.GetKind() {
			return p.at.place(), true
		}
	}
	for _, t := range f.templates {
		if isTemplate(o.GroupVersionKind()) && strings.ToLower(KindIn(f.Scope, defines(t.Unstructured))) == o.GetName() {
			return t.at.place(), true
		}
	}
	return at, false
}

// Place is where an object in force, or what it was made of, stands in the bundle; false: tare made it.
func (f *InForce) Place(o *unstructured.Unstructured) (at bundle.Place, ok bool) {
	for _, p := range f.Policies {
		if p.engine == nil && p.kind() == o.GetKind() && NameIn(f.Scope, p.Name) == o.GetName() {
			return p.at.place(), true
		}
	}
	for i := range f.bindings {
		if b := &f.bindings[i]; b.kind() == o.GetKind() && NameIn(f.Scope, b.Name) == o.GetName() {
			return b.at.place(), true
		}
	}
	return f.At(o)
}

// Engine is the engine that evaluates the policy; empty: the API server.
func (p *Policy) Engine() string {
	if p.engine == nil {
		return ""
	}
	return EngineOf(p.engine)
}

// matchesOf are the parts of an engine's policy that name namespaces.
func matchesOf(o *unstructured.Unstructured) []tree {
	spec, _ := o.Object["spec"].(tree)
	switch {
	case IsCEL(o):
		constraints, _ := spec["matchConstraints"].(tree)
		return []tree{constraints}
	case isConstraint(o.GroupVersionKind()), isMutator(o.GroupVersionKind()):
		match, _ := spec["match"].(tree)
		return []tree{match}
	}
	return resourcesIn(o)
}

// fitsEngine adds what an engine's policy asks of the run's namespace, or says why it cannot act there alone. Of the
// rules of a policy, and the alternatives of each, some may be about other namespaces: aside says why, by their names.
func (p *Policy) fitsEngine(s mechanism.Scope, asked *labels) (aside map[string]string, err error) {
	if s.Foreign {
		if err := p.confinable(); err != nil {
			return nil, err
		}
	}
	if p.engine.GroupVersionKind().Group != kyvernoGroup {
		return nil, asked.satisfyAll(matchesOf(p.engine))
	}
	fit := false
	aside = map[string]string{}
	for _, rule := range rulesIn(p.engine) {
		for _, a := range alternativesIn(rule) {
			e := asked.satisfyAll(a.resources)
			if fit = fit || e == nil; e == nil {
				continue
			}
			err = cmp.Or(err, e)
			aside[fmt.Sprintf("%s (rule %v%s)", p.Name, rule["name"], a.at)] = e.Error()
		}
	}
	if !fit {
		return nil, err
	}
	return aside, nil
}

// satisfyAll is satisfy for the selectors of some parts of a policy, or for none of them.
func (l *labels) satisfyAll(matches []tree) error {
	was := *l
	for _, m := range matches {
		if err := l.satisfy(namespaceSelectorOf(m)); err != nil {
			*l = was
			return err
		}
	}
	return nil
}

// namespaceSelectorOf reads a selector of namespaces; nil: there is none, or none that can be read, as its engine will
// report.
func namespaceSelectorOf(m tree) *meta.LabelSelector {
	content, ok := m["namespaceSelector"].(tree)
	out := &meta.LabelSelector{}
	if !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(content, out) != nil {
		return nil
	}
	return out
}

// renderEngine returns a policy of an engine's as it is sent: unchanged, but that the run's namespace stands for those
// that it names, and that it is narrowed to that namespace where others use the cluster.
func (p *Policy) renderEngine(s mechanism.Scope) *unstructured.Unstructured {
	o := bare(p.engine)
	if slices.Contains([]string{"Policy", namespacedVPol, namespacedMPol, namespacedGPol}, o.GetKind()) {
		o.SetNamespace(s.Namespace)
	}
	for _, m := range matchesOf(o) {
		if len(words(m["namespaces"])) > 0 {
			m["namespaces"] = []any{s.Namespace}
		}
		selector := withoutNames(namespaceSelectorOf(m))
		if selector == nil {
			continue
		}
		if content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(selector); err == nil { // it was read
			m["namespaceSelector"] = content
		}
	}
	if s.Foreign {
		p.confine(o, s)
	}
	return o
}

// resourceOfKind is the resource of a kind, and its group. Of a kind that tare does not know it is the customary one,
// and for a pattern all.
func resourceOfKind(kind, group string) (resource, in string) {
	if strings.ContainsAny(kind, "*?") {
		return "*", group
	}
	for _, c := range candidates() {
		if c.kind == kind && (group == "*" || group == c.group) {
			return c.resource, c.group
		}
	}
	return strings.ToLower(kind) + "s", group
}

// Words are those by which a denial names the policy as one that denied.
func (p *Policy) Words(s mechanism.Scope) []string {
	name := p.nameIn(s)
	switch {
	case p.mutating != nil, p.engine != nil && isMutator(p.engine.GroupVersionKind()):
		return nil
	case p.engine == nil:
		return []string{fmt.Sprintf("ValidatingAdmissionPolicy '%s'", name)}
	case isConstraint(p.engine.GroupVersionKind()):
		return []string{"[" + name + "] ", fmt.Sprintf("with binding '%s' denied", bindingOf(p.kindIn(s), name))}
	case p.engine.GroupVersionKind().Group == celGroup:
		return []string{"Policy " + name + " failed: ", "ValidatingAdmissionPolicy 'vpol-" + name + "'"}
	}
	return []string{"\n" + name + ":\n", "ValidatingAdmissionPolicy 'cpol-" + name + "'"}
}

// Denied reports whether the message of a refusal names an engine's policy as one that denied, where the engine puts
// names: others may stand in what policies say. sure is false where a policy that is named before it could have said
// so.
func (p *Policy) Denied(s mechanism.Scope, said string) (denied, sure bool) {
	of := p.Words(s)
	if len(of) == 0 {
		return false, false
	}
	if !strings.HasPrefix(said, `admission webhook "`) {
		by, _, _ := strings.Cut(said, " request: ")
		denied = strings.Contains(by, of[1])
		return denied, denied
	}
	_, says, _ := strings.Cut(said, " denied the request: ")
	between := "\n"
	switch k := p.engine.GroupVersionKind(); {
	case k.Group == celGroup:
		between = "; "
	case isKyverno(k): // what policies say is indented
		denied = strings.Contains(says, of[0])
		return denied, denied
	}
	sure = strings.HasPrefix(says, of[0])
	return sure || strings.Contains(says, between+of[0]), sure
}

// Ready reports whether an object of an engine's says of itself that it is in force, and what it says if it is not.
func (f *InForce) Ready(o *unstructured.Unstructured) (ready bool, says string) {
	switch k := o.GroupVersionKind(); {
	case isTemplate(k):
		return templateReady(o)
	case isMutator(k):
		return mutatorReady(o)
	case isConstraint(k):
		f.keepMade(o)
		return constraintReady(o, f.generates(k.Kind))
	}
	return kyvernoReady(o)
}
