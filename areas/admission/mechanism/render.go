package mechanism

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Rendered holds the objects of a population.
type Rendered struct {
	// Objects are in the order of creation: policies before their bindings, the relevant ones last. All carry RunLabel.
	Objects []*unstructured.Unstructured
	// NamespaceLabels are labels for the scope's namespace.
	NamespaceLabels map[string]string
	// Resources are those of Objects, in the order of removal: bindings before what they bind.
	Resources []schema.GroupVersionResource
}

const registration = "admissionregistration.k8s.io/v1"

var (
	registrationV1 = schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	rbacV1         = schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}

	vapResource        = registrationV1.WithResource("validatingadmissionpolicies")
	vapBindingResource = registrationV1.WithResource("validatingadmissionpolicybindings")
	mapResource        = registrationV1.WithResource("mutatingadmissionpolicies")
	mapBindingResource = registrationV1.WithResource("mutatingadmissionpolicybindings")
	validatingResource = registrationV1.WithResource("validatingwebhookconfigurations")
	mutatingResource   = registrationV1.WithResource("mutatingwebhookconfigurations")
	pspResource        = schema.GroupVersionResource{Group: "policy", Version: "v1beta1", Resource: "podsecuritypolicies"}
	roleResource       = rbacV1.WithResource("roles")
	bindingResource    = rbacV1.WithResource("rolebindings")
)

// Resources returns the resources of a population of kind k, in the order of removal; nil for kinds without objects.
func Resources(k Kind) []schema.GroupVersionResource {
	switch k {
	case VAP:
		return []schema.GroupVersionResource{vapBindingResource, vapResource}
	case MAP:
		return []schema.GroupVersionResource{mapBindingResource, mapResource}
	case Webhook:
		return []schema.GroupVersionResource{validatingResource}
	case MutatingWebhook:
		return []schema.GroupVersionResource{mutatingResource}
	case PSP:
		return []schema.GroupVersionResource{bindingResource, roleResource, pspResource}
	case None, PSA, Manifests, Own:
	}
	return nil
}

// Render renders the population p of kind k in scope s. Errors are *Refusal for p, and else describe what is wrong with
// s. Manifests are read instead: see Decode.
func Render(k Kind, p Population, s Scope) (Rendered, error) {
	if err := Check(k, p); err != nil {
		return Rendered{}, err
	}
	if err := s.check(k); err != nil {
		return Rendered{}, fmt.Errorf("render %s: %w", k, err)
	}
	out := Rendered{Resources: Resources(k)}
	switch k {
	case VAP:
		switch {
		case p.Params > 0:
			out.Objects = renderParams(p, s)
		case s.CEL.Param:
			out.Objects = append([]*unstructured.Unstructured{Param(s)}, renderBound(p, s, vap, vapBinding)...)
		default:
			out.Objects = renderBound(p, s, vap, vapBinding)
		}
		if s.CEL.Param || p.Params > 0 {
			out.Resources = append(out.Resources, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
		}
	case MAP:
		out.Objects = renderBound(p, s, mutating, mutatingBinding)
	case Webhook, MutatingWebhook:
		for _, one := range Policies(p, s) {
			out.Objects = append(out.Objects, hook(k, p, s, one))
		}
	case PSP:
		out.Objects = renderPSP(p, s)
	case PSA:
		out.NamespaceLabels = levelLabels(p.Level)
	case None, Manifests, Own:
	}
	return out, nil
}

// render renders one object of a policy.
type render func(Population, Scope, Policy) *unstructured.Unstructured

// renderBound renders all policies, and then the bindings of the bound ones.
func renderBound(p Population, s Scope, policy, binding render) []*unstructured.Unstructured {
	all := Policies(p, s)
	out := make([]*unstructured.Unstructured, 0, p.Total+p.Bound)
	for _, one := range all {
		out = append(out, policy(p, s, one))
	}
	for _, one := range all {
		if one.Role != Unbound {
			out = append(out, binding(p, s, one))
		}
	}
	return out
}

// levelLabels makes a namespace enforce a level of the Pod Security Standards. It omits warnings and audit annotations,
// which would repeat the denial.
func levelLabels(level string) map[string]string {
	return map[string]string{
		"pod-security.kubernetes.io/enforce":         level,
		"pod-security.kubernetes.io/enforce-version": "latest",
	}
}
