package engine

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// kyvernoArguments are those of its chart, on loopback, and without what only its other controllers read: reports.
func kyvernoArguments(c Config, webhooks, metrics string) []string {
	return []string{
		"--kubeconfig=" + c.Kubeconfig,
		"--serverIP=127.0.0.1:" + webhooks, "--webhookServerHost=127.0.0.1", "--webhookServerPort=" + webhooks,
		"--caSecretName=kyverno-svc.kyverno.svc.kyverno-tls-ca",
		"--tlsSecretName=kyverno-svc.kyverno.svc.kyverno-tls-pair",
		"--backgroundServiceAccountName=system:serviceaccount:kyverno:kyverno-background-controller",
		"--reportsServiceAccountName=system:serviceaccount:kyverno:kyverno-reports-controller",
		"--controllerRuntimeMetricsAddress=0", "--metricsHost=127.0.0.1", "--metricsPort=" + metrics,
		"--admissionReports=false", "--generateValidatingAdmissionPolicy=true",
		"--omitEvents=PolicyApplied,PolicySkipped", "--v=2", "--disableLogColor=true",
	}
}

// kyvernoEnvironment is what its deployment sets.
func kyvernoEnvironment() []string {
	return []string{
		"KYVERNO_NAMESPACE=" + kyvernoNamespace, "KYVERNO_SERVICEACCOUNT_NAME=kyverno-admission-controller",
		"KYVERNO_ROLE_NAME=kyverno:admission-controller", "KYVERNO_DEPLOYMENT=kyverno-admission-controller",
		"KYVERNO_POD_NAME=kyverno-0", "KYVERNO_SVC=kyverno-svc", "INIT_CONFIG=kyverno", "METRICS_CONFIG=kyverno-metrics",
	}
}

// kyvernoNamespace is where Kyverno keeps what is its own: certificates, settings, its lease.
const kyvernoNamespace = "kyverno"

// unseen are the requests that Kyverno's chart has it leave aside, but for those about its own deployment.
var unseen = []string{
	"[*/*,kyverno,*]", "[Event,*,*]", "[*/*,kube-system,*]", "[*/*,kube-public,*]", "[*/*,kube-node-lease,*]",
	"[Node,*,*]", "[Node/?*,*,*]", "[APIService,*,*]", "[APIService/?*,*,*]", "[TokenReview,*,*]",
	"[SubjectAccessReview,*,*]", "[SelfSubjectAccessReview,*,*]", "[Binding,*,*]", "[Pod/binding,*,*]",
	"[ReplicaSet,*,*]", "[ReplicaSet/?*,*,*]", "[EphemeralReport,*,*]", "[ClusterEphemeralReport,*,*]",
}

// kyvernoSettings are the objects that Kyverno reads when it starts: its namespace, and its settings as its chart has
// them. It takes a policy, and says that it is in force, only if the accounts of its controllers have the rights for
// it: nobody has tokens of them.
func kyvernoSettings() []*unstructured.Unstructured {
	account := func(of string) map[string]any {
		name := "kyverno-" + of + "-controller"
		return map[string]any{"kind": "ServiceAccount", "namespace": kyvernoNamespace, "name": name}
	}
	object := func(kind, name string, rest map[string]any) *unstructured.Unstructured {
		rest["apiVersion"], rest["kind"] = "v1", kind
		o := &unstructured.Unstructured{Object: rest}
		o.SetName(name)
		if kind != "Namespace" {
			o.SetNamespace(kyvernoNamespace)
		}
		return o
	}
	grant := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
		"subjects": []any{account("admission"), account("background"), account("reports")},
	}}
	grant.SetName("kyverno-controllers")
	return []*unstructured.Unstructured{
		grant, object("Namespace", kyvernoNamespace, map[string]any{}),
		object("ConfigMap", "kyverno", map[string]any{"data": map[string]any{
			"enableDefaultRegistryMutation": "true", "defaultRegistry": "docker.io", "generateSuccessEvents": "false",
			"excludeGroups": "system:nodes", "resourceFilters": strings.Join(unseen, " "), "updateRequestThreshold": "1000",
			"webhooks": `{"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name",` +
				`"operator":"NotIn","values":["kube-system","kyverno"]}]}}`,
		}}),
		object("ConfigMap", "kyverno-metrics", map[string]any{"data": map[string]any{
			"namespaces": `{"exclude":[],"include":[]}`,
			"metricsExposure": `{"kyverno_policy_results_total":{"disabledLabelDimensions":["resource_namespace",` +
				`"policy_namespace"]},"kyverno_validating_policy_results_total":{"disabledLabelDimensions":` +
				`["resource_namespace","policy_namespace"]}}`,
		}}),
	}
}

// brokenPolicy returns a policy that cannot be compiled.
func brokenPolicy() *unstructured.Unstructured {
	o := KyvernoCanary(true, "tare-broken", "none", "none", "none")
	o.Object["spec"].(map[string]any)["validations"] = []any{map[string]any{"expression": "("}}
	return o
}

// KyvernoCanary returns a policy that denies pods of a namespace with a label of this value, in Kyverno's patterns or
// in CEL.
func KyvernoCanary(cel bool, name, namespace, label, value string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}}}
	o.SetName(name)
	if cel {
		o.SetAPIVersion("policies.kyverno.io/v1")
		o.SetKind("ValidatingPolicy")
		o.Object["spec"] = map[string]any{
			"validationActions": []any{"Deny"},
			"evaluation":        map[string]any{"background": map[string]any{"enabled": false}},
			"matchConstraints": map[string]any{
				"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace}},
				"resourceRules": []any{map[string]any{
					"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"}, "resources": []any{"pods"},
				}},
			},
			"validations": []any{map[string]any{
				"expression": "object.metadata.?labels[?'" + label + "'].orValue('') != '" + value + "'",
				"message":    "it has the label of the canary",
			}},
		}
		return o
	}
	o.SetAPIVersion("kyverno.io/v1")
	o.SetKind("Policy")
	o.SetNamespace(namespace)
	o.Object["spec"] = map[string]any{
		"background": false,
		"rules": []any{map[string]any{
			"name":  "canary",
			"match": map[string]any{"any": []any{map[string]any{"resources": map[string]any{"kinds": []any{"Pod"}}}}},
			"validate": map[string]any{
				"failureAction": "Enforce", "message": "it has the label of the canary",
				"pattern": map[string]any{"metadata": map[string]any{"=(labels)": map[string]any{
					"=(" + label + ")": "!" + value,
				}}},
			},
		}},
	}
	return o
}
