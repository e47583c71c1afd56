package mechanism

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The labels of everything that is rendered. Cleanup finds objects by RunLabel.
const (
	RunLabel   = "tare.dev/run"
	OwnerLabel = "app.kubernetes.io/managed-by"
	Owner      = "tare"
)

// DenyLabel is the label of a pod that requests its denial: by the policy whose short name is its value (Policy.Short),
// or by every relevant policy (DenyAll).
const (
	DenyLabel = "tare.dev/deny"
	DenyAll   = "all"
)

// NameLabel is set by the API server on every namespace and is immutable: a selector on it selects exactly one
// namespace.
const NameLabel = "kubernetes.io/metadata.name"

// Scope is where a population acts.
type Scope struct {
	Run       string // value of RunLabel
	Namespace string // the only namespace in which anything may act
	// PSP: the user who creates pods and may use the bound policies, as may the namespace's service accounts. Empty: all
	// authenticated
	Caller string
	// WebhookURL is the base of the reference webhook's address from the API server: "https://127.0.0.1:34567"; CABundle
	// is the authority of its certificate, in PEM. Only for kinds that need it.
	WebhookURL string
	CABundle   []byte
	Hooks      Hooks
	CEL        CEL
	// Foreign: others use the cluster, too. What a policy engine evaluates is narrowed to the namespace, and named for it.
	Foreign bool
	// Deployments makes policies in CEL and validating webhooks look at Deployments, too.
	Deployments bool
}

var (
	namespaceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)            // RFC 1123 label
	labelValue    = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`) // of Kubernetes
)

// check rejects a scope that might affect more than the run's namespace, or nothing.
func (s Scope) check(k Kind) error {
	switch {
	case !namespaceName.MatchString(s.Namespace):
		return fmt.Errorf("namespace %q is not the name of a namespace", s.Namespace)
	case !labelValue.MatchString(s.Run):
		return fmt.Errorf("run %q is not the value of a label", s.Run)
	case !k.NeedsWebhook():
		return nil
	case len(s.CABundle) == 0:
		return errors.New("the webhook's authority is not known: it must be running before its configurations are rendered")
	}
	u, err := url.Parse(s.WebhookURL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return fmt.Errorf("webhook URL %q: the API server calls https://HOST[:PORT][/PATH] only", s.WebhookURL)
	}
	return nil
}

// here selects the run's namespace.
func (s Scope) here() map[string]any { return selectNamespace(s.Namespace) }

// elsewhere selects a namespace that cannot exist: namespaces' names contain no dot.
func (s Scope) elsewhere() map[string]any { return selectNamespace(s.nowhere()) }

func (s Scope) nowhere() string { return s.Namespace + ".elsewhere" }

func selectNamespace(name string) map[string]any {
	return map[string]any{"matchExpressions": []any{map[string]any{
		"key": NameLabel, "operator": "In",
		"values": []any{name},
	}}}
}

// object returns an object of the given kind with this run's labels.
func (s Scope) object(apiVersion, kind, name string, body map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"name": name, "labels": map[string]any{RunLabel: s.Run, OwnerLabel: Owner}},
	}}
	maps.Copy(o.Object, body)
	return o
}

// Judges reports whether o has requests judged: a binding, or a configuration of webhooks.
func Judges(o *unstructured.Unstructured) bool {
	k := o.GroupVersionKind()
	return k.Group == "admissionregistration.k8s.io" &&
		(strings.HasSuffix(k.Kind, "PolicyBinding") || strings.HasSuffix(k.Kind, "WebhookConfiguration"))
}

// Confined reports whether o can only affect the namespace: it is in it, selects it alone or nothing, or has an effect
// only through a binding. It is false for unknown objects.
func Confined(o *unstructured.Unstructured, namespace string) bool {
	switch o.GroupVersionKind().GroupKind().String() {
	case "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io",
		"MutatingAdmissionPolicyBinding.admissionregistration.k8s.io":
		return confinedSelector(o.Object, namespace, "spec", "matchResources", "namespaceSelector")
	case "ValidatingWebhookConfiguration.admissionregistration.k8s.io",
		"MutatingWebhookConfiguration.admissionregistration.k8s.io":
		hooks, found, err := unstructured.NestedSlice(o.Object, "webhooks")
		if err != nil || !found {
			return err == nil
		}
		return !slices.ContainsFunc(hooks, func(h any) bool {
			hook, ok := h.(map[string]any)
			return !ok || !confinedSelector(hook, namespace, "namespaceSelector")
		})
	case "ValidatingAdmissionPolicy.admissionregistration.k8s.io", "MutatingAdmissionPolicy.admissionregistration.k8s.io",
		"PodSecurityPolicy.policy":
		return true // effective only through a binding
	}
	return o.GetNamespace() == namespace && namespace != ""
}

// confinedSelector reports whether the selector at path selects only namespace, or one that cannot exist.
func confinedSelector(o map[string]any, namespace string, path ...string) bool {
	terms, _, err := unstructured.NestedSlice(o, append(slices.Clone(path), "matchExpressions")...)
	if err != nil {
		return false
	}
	for _, t := range terms { // all must hold, so one that confines suffices
		term, ok := t.(map[string]any)
		if !ok || term["key"] != NameLabel || term["operator"] != "In" {
			continue
		}
		values, _, err := unstructured.NestedStringSlice(term, "values")
		if err == nil && len(values) == 1 && (values[0] == namespace || !namespaceName.MatchString(values[0])) {
			return true
		}
	}
	name, _, err := unstructured.NestedString(o, append(slices.Clone(path), "matchLabels", NameLabel)...)
	return err == nil && name != "" && name == namespace
}
