package engine

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tare/areas/admission/cluster"
)

const (
	// gatekeeperNamespace is where Gatekeeper keeps the status of what it has read.
	gatekeeperNamespace = "gatekeeper-system"
	// gatekeeperPod and gatekeeperAccount are what its chart would have it run as.
	gatekeeperPod, gatekeeperAccount = "gatekeeper-controller-manager", "gatekeeper-admin"
)

// gatekeeperArguments are those of its chart, of both of its deployments, on loopback; the audit is an option. Its
// metrics would be served on all addresses: it sends them to a port where nobody is, and that once a day.
func gatekeeperArguments(c Config, webhooks, health string) []string {
	out := []string{
		"--kubeconfig=" + c.Kubeconfig, "--host=127.0.0.1", "--port=" + webhooks, "--cert-dir=" + c.Certificates,
		"--disable-cert-rotation", "--health-addr=127.0.0.1:" + health,
		"--metrics-backend=opentelemetry", "--otlp-endpoint=127.0.0.1:1", "--otlp-metric-interval=24h",
		"--operation=webhook", "--operation=mutation-webhook", "--operation=status", "--operation=mutation-status",
		"--operation=generate", "--exempt-namespace=" + gatekeeperNamespace, "--shutdown-delay=0",
	}
	for _, name := range reaching {
		out = append(out, "--disable-opa-builtin="+name)
	}
	if c.Audit > 0 {
		out = append(out, "--operation=audit", fmt.Sprintf("--audit-interval=%.0f", c.Audit.Seconds()),
			"--constraint-violations-limit=20", "--audit-chunk-size=500", "--api-cache-dir="+c.auditFolder())
	}
	return out
}

// reaching are the functions of Rego that reach other servers, or files of this host. Gatekeeper's chart names the
// first as {http.send}, which its program compares with http.send, so that it disables nothing.
var reaching = []string{"http.send", "net.lookup_ip_addr", "json.match_schema", "json.verify_schema"}

// auditFolder is where Gatekeeper's audit keeps what it has read. It removes what is in that folder.
func (c Config) auditFolder() string { return filepath.Join(c.Certificates, gatekeeperAudit) }

const gatekeeperAudit = "audit"

// gatekeeperEnvironment is what its deployment sets.
func gatekeeperEnvironment() []string {
	return []string{
		"POD_NAMESPACE=" + gatekeeperNamespace, "NAMESPACE=" + gatekeeperNamespace, "CONTAINER_NAME=manager",
		"POD_NAME=" + gatekeeperPod,
	}
}

// gatekeeperSettings are its namespace, and a pod that stands for it. That pod owns what Gatekeeper writes about its
// policies: if there were none, a controller-manager would delete that, and Gatekeeper write it again, without end.
func gatekeeperSettings() []*unstructured.Unstructured {
	object := objectsIn(gatekeeperNamespace)
	namespace := object("Namespace", gatekeeperNamespace, map[string]any{})
	namespace.SetLabels(map[string]string{"admission.gatekeeper.sh/ignore": "no-self-managing"})
	return []*unstructured.Unstructured{
		namespace, object("ServiceAccount", gatekeeperAccount, map[string]any{}),
		object("Pod", gatekeeperPod, map[string]any{"spec": map[string]any{
			"schedulerName": cluster.NoScheduler, "serviceAccountName": gatekeeperAccount, "automountServiceAccountToken": false,
			"containers": []any{map[string]any{"name": "manager", "image": "none"}},
		}}),
	}
}

// subresources are those that its chart has Gatekeeper asked about, beside all resources.
var subresources = []any{
	"*", "pods/ephemeralcontainers", "pods/exec", "pods/log", "pods/eviction", "pods/portforward", "pods/proxy",
	"pods/attach", "pods/binding", "pods/resize", "deployments/scale", "replicasets/scale", "statefulsets/scale",
	"replicationcontrollers/scale", "services/proxy", "nodes/proxy", "services/status",
}

// gatekeeperWebhooks are the configurations of its chart: a request that it does not answer in time is permitted.
func gatekeeperWebhooks(r Ready, ca []byte) []*unstructured.Unstructured {
	others := map[string]any{
		"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": []any{gatekeeperNamespace},
	}
	selected := map[string]any{"matchExpressions": []any{
		map[string]any{"key": "admission.gatekeeper.sh/ignore", "operator": "DoesNotExist"}, others,
	}}
	hook := func(name, path, failurePolicy string, seconds int64, selector map[string]any, groups []any, resources []any,
	) map[string]any {
		return map[string]any{
			"name": name, "admissionReviewVersions": []any{"v1", "v1beta1"}, "sideEffects": "None",
			"failurePolicy": failurePolicy, "timeoutSeconds": seconds, "matchPolicy": "Exact",
			"clientConfig": map[string]any{
				"url": "https://" + r.Webhooks + path, "caBundle": base64.StdEncoding.EncodeToString(ca),
			},
			"namespaceSelector": selector,
			"rules": []any{map[string]any{
				"apiGroups": groups, "apiVersions": []any{"*"}, "operations": []any{"CREATE", "UPDATE"}, "resources": resources,
			}},
		}
	}
	configuration := func(kind, name string, hooks ...any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "webhooks": hooks,
		}}
		o.SetName(name)
		return o
	}
	every := []any{"*"}
	return []*unstructured.Unstructured{
		configuration("ValidatingWebhookConfiguration", "gatekeeper-validating-webhook-configuration",
			hook("validation.gatekeeper.sh", "/v1/admit", "Ignore", 3, selected, every, subresources),
			hook("check-ignore-label.gatekeeper.sh", "/v1/admitlabel", "Fail", 3,
				map[string]any{"matchExpressions": []any{others}}, []any{""}, []any{"namespaces"})),
		configuration("MutatingWebhookConfiguration", "gatekeeper-mutating-webhook-configuration",
			hook("mutation.gatekeeper.sh", "/v1/mutate", "Ignore", 1, selected, every, every)),
	}
}

// template returns a template of a kind whose constraints deny what the Rego says.
func template(name, kind, rego string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "templates.gatekeeper.sh/v1", "kind": "ConstraintTemplate",
		"spec": map[string]any{
			"crd":     map[string]any{"spec": map[string]any{"names": map[string]any{"kind": kind}}},
			"targets": []any{map[string]any{"target": "admission.k8s.gatekeeper.sh", "rego": rego}},
		},
	}}
	o.SetName(name)
	return o
}

// brokenTemplate has another name than its kind: Gatekeeper compiles Rego only after it has taken a template.
func brokenTemplate() *unstructured.Unstructured {
	return template("tarebroken", "TareOther", "package x")
}

// GatekeeperMutatingCanary returns a mutation that adds an annotation to pods of a namespace.
func GatekeeperMutatingCanary(name, namespace, annotation string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "mutations.gatekeeper.sh/v1", "kind": "AssignMetadata",
		"spec": map[string]any{
			"match": map[string]any{
				"kinds":      []any{map[string]any{"apiGroups": []any{""}, "kinds": []any{"Pod"}}},
				"namespaces": []any{namespace}, "scope": "Namespaced",
			},
			"location":   `metadata.annotations."` + annotation + `"`,
			"parameters": map[string]any{"assign": map[string]any{"value": "1"}},
		},
	}}
	o.SetName(name)
	return o
}

// GatekeeperCanary returns a template of a kind, and a constraint of it that denies pods of a namespace with a label of
// this value.
func GatekeeperCanary(kind, name, namespace, label, value string) (tmpl, constraint *unstructured.Unstructured) {
	tmpl = template(strings.ToLower(kind), kind, `package tarecanary

violation[{"msg": "it has the label of the canary"}] {
	input.review.object.metadata.labels["`+label+`"] == "`+value+`"
}
`)
	constraint = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "constraints.gatekeeper.sh/v1beta1", "kind": kind,
		"spec": map[string]any{"match": map[string]any{
			"kinds":      []any{map[string]any{"apiGroups": []any{""}, "kinds": []any{"Pod"}}},
			"namespaces": []any{namespace},
		}},
	}}
	constraint.SetName(name)
	return tmpl, constraint
}
