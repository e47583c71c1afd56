// Package mechanism renders populations of admission policies: the objects that put N policies of one kind in force for
// the pods of one namespace, and the probes that prove it. It is pure: it makes no requests and reads no clock.
package mechanism

import "slices"

// Kind names an admission mechanism.
type Kind string

// The kinds. None is the baseline: nothing is created.
const (
	None            Kind = "none"
	PSA             Kind = "psa"              // Pod Security Admission: a level, as a label of the namespace
	PSP             Kind = "psp"              // PodSecurityPolicy, policy/v1beta1: Kubernetes up to 1.24
	VAP             Kind = "vap"              // ValidatingAdmissionPolicy, admissionregistration.k8s.io/v1
	MAP             Kind = "map"              // MutatingAdmissionPolicy, admissionregistration.k8s.io/v1
	Webhook         Kind = "webhook"          // ValidatingWebhookConfigurations of one webhook each
	MutatingWebhook Kind = "mutating-webhook" // MutatingWebhookConfigurations of one webhook each
	Manifests       Kind = "manifests"        // the user's files
	Own             Kind = "own"              // the user's own ValidatingAdmissionPolicies; no word of the file's
)

// Kinds returns all kinds that a file can name, in the order of the documentation.
func Kinds() []Kind {
	return []Kind{None, PSA, PSP, VAP, MAP, Webhook, MutatingWebhook, Manifests}
}

// Known reports whether k is one of Kinds.
func (k Kind) Known() bool { return slices.Contains(Kinds(), k) }

// Populated reports whether k has a number of policies, so that the fields of Population apply.
func (k Kind) Populated() bool { return k.Known() && k != None && k != PSA && k != Manifests }

// NeedsWebhook reports whether k calls the reference webhook, whose address Scope must then hold.
func (k Kind) NeedsWebhook() bool { return k == Webhook || k == MutatingWebhook }

// Position says where the relevant policies are among the others. It only applies to PodSecurityPolicy, which tries
// policies in the order of their names up to the first that allows the pod unchanged. All other kinds evaluate every
// relevant policy whatever its name.
type Position string

// The positions. Last is the worst case: every policy that rejects the pod is tried before the one that allows it.
const (
	First Position = "first"
	Last  Position = "last"
)

// Irrelevance says why a bound policy does not decide.
type Irrelevance string

// The kinds of irrelevance. The first three apply to policies in CEL and to webhooks, the last two to
// PodSecurityPolicy.
const (
	// NamespaceSelector: the binding (or the webhook) selects another namespace, as in a cluster with a policy for each
	// team.
	NamespaceSelector Irrelevance = "namespace-selector"
	// MatchConditions: the run's namespace is selected, and a CEL expression over the pod excludes it.
	MatchConditions Irrelevance = "match-conditions"
	// ResourceRule: the policy matches another resource.
	ResourceRule Irrelevance = "resource-rule"
	// Rejects: no policy but the useable ones allows the pod. The published experiment's "allow none".
	Rejects Irrelevance = "rejects"
	// Unauthorized: the unbound policies would allow the pod if its creator might use them: each costs two authorization
	// checks.
	Unauthorized Irrelevance = "unauthorized"
)

// Bindings says by how many RBAC bindings the bound PodSecurityPolicies are granted.
type Bindings string

// The kinds of bindings.
const (
	One  Bindings = "one"  // one Role that names them all (or none, which means all that exist), and one RoleBinding
	Each Bindings = "each" // a Role and a RoleBinding for each
)

// The levels of the Pod Security Standards.
const (
	Privileged = "privileged"
	Baseline   = "baseline"
	Restricted = "restricted"
)
