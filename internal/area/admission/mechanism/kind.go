// Package mechanism renders populations of admission policies: what must be created in a cluster so that N policies of one kind stand in the way of
// the pods of one namespace, and what proves that they do. It is pure: it talks to nobody and reads no clock.
package mechanism

import "slices"

// Kind names how pods are admitted.
type Kind string

// The kinds. None is the baseline: nothing is put in place.
const (
	None            Kind = "none"
	PSA             Kind = "psa"              // Pod Security Admission: a level, as a label of the namespace
	PSP             Kind = "psp"              // PodSecurityPolicy, policy/v1beta1: Kubernetes up to 1.24
	VAP             Kind = "vap"              // ValidatingAdmissionPolicy, admissionregistration.k8s.io/v1
	MAP             Kind = "map"              // MutatingAdmissionPolicy, admissionregistration.k8s.io/v1
	Webhook         Kind = "webhook"          // ValidatingWebhookConfigurations of one webhook each
	MutatingWebhook Kind = "mutating-webhook" // MutatingWebhookConfigurations of one webhook each
	Manifests       Kind = "manifests"        // whatever the user's files put in place
)

// Kinds are all kinds, in the order in which they are explained.
func Kinds() []Kind {
	return []Kind{None, PSA, PSP, VAP, MAP, Webhook, MutatingWebhook, Manifests}
}

// Known says whether k is one of Kinds.
func (k Kind) Known() bool { return slices.Contains(Kinds(), k) }

// Populated says whether k comes in numbers: whether Total and the rest of the geometry mean anything.
func (k Kind) Populated() bool { return k.Known() && k != None && k != PSA && k != Manifests }

// NeedsWebhook says whether k calls the reference webhook: Scope must then say where it listens.
func (k Kind) NeedsWebhook() bool { return k == Webhook || k == MutatingWebhook }

// Position says where the policies that decide stand among the others. It means something for PodSecurityPolicy alone, which tries policies in the
// order of their names and ends at the first that allows the pod as it is. All others evaluate every relevant policy whatever it is called.
type Position string

// The positions. Last is the worst case: every policy that does not allow the pod is tried before the one that does.
const (
	First Position = "first"
	Last  Position = "last"
)

// Irrelevance says why a policy that is bound does not decide.
type Irrelevance string

// The kinds of irrelevance. The first three are those of policies in CEL and of webhooks, the last two those of PodSecurityPolicy.
const (
	// NamespaceSelector: the binding (or the webhook) selects another namespace. What a cluster with a policy for each team looks like.
	NamespaceSelector Irrelevance = "namespace-selector"
	// MatchConditions: our namespace is selected, and a CEL expression over the pod says that the policy is not for it.
	MatchConditions Irrelevance = "match-conditions"
	// ResourceRule: the policy is for another resource.
	ResourceRule Irrelevance = "resource-rule"
	// Rejects: no policy allows the pod, other than the useable ones. The published experiment's "allow none".
	Rejects Irrelevance = "rejects"
	// Unauthorized: the policies that are not bound would allow the pod, if its creator might use them: each costs two questions to the authorizer.
	Unauthorized Irrelevance = "unauthorized"
)

// Bindings says by how many RBAC bindings the bound PodSecurityPolicies may be used.
type Bindings string

// The ways of binding.
const (
	One  Bindings = "one"  // one Role that names them all (or names none, which means all that exist), one RoleBinding
	Each Bindings = "each" // a Role and a RoleBinding for each
)

// The levels of the Pod Security Standards.
const (
	Privileged = "privileged"
	Baseline   = "baseline"
	Restricted = "restricted"
)
