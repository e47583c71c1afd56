package engine

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/internal/build"
	"tare/internal/files"
)

// kyvernoOptions are the flags that not each version has. Where the file that should declare one that keeps Kyverno on
// loopback does not, as before 1.17, the program is built with an edit instead.
var kyvernoOptions = []struct {
	flag, value, declared string
	edit                  build.Edit
}{
	{flag: "metricsHost", value: "127.0.0.1", declared: "cmd/internal/flag.go", edit: build.Edit{
		File: "cmd/internal/metrics.go", Old: `":" + metricsPort`, New: `"127.0.0.1:" + metricsPort`,
	}},
	{flag: "webhookServerHost", value: "127.0.0.1", declared: "cmd/kyverno/main.go", edit: build.Edit{
		File: "pkg/webhooks/server.go", Old: `Sprintf(":%d", webhookServerPort)`,
		New: `Sprintf("127.0.0.1:%d", webhookServerPort)`,
	}},
	{flag: "controllerRuntimeMetricsAddress", value: "0"}, // of a server that older versions lack
	{flag: "disableLogColor", value: "true"},
}

// mostSource bounds a file of its sources, in bytes.
const mostSource = 1 << 20

// kyvernoPrograms are the folders of what may run.
var kyvernoPrograms = []string{"cmd/kyverno", "cmd/background-controller", "cmd/reports-controller"}

// networkVariable is what a program of Kyverno's finds in its environment where it may ask name servers.
const networkVariable = "TARE_NETWORK"

// withoutNames has a program ask no name server: a policy's text does not show each call of the function that does.
func withoutNames(folder string) []build.Edit {
	const imports, main = "import (\n", "func main() {\n"
	return []build.Edit{
		{File: folder + "/main.go", Old: imports, New: imports + `	tarecontext "context"
	tarenet "net"
	tareos "os"
`},
		{File: folder + "/main.go", Old: main, New: main + `	if tareos.Getenv("` + networkVariable + `") == "" {
		tarenet.DefaultResolver.PreferGo = true
		tarenet.DefaultResolver.Dial = func(tarecontext.Context, string, string) (tarenet.Conn, error) {
			return nil, tareos.ErrPermission
		}
	}
`},
	}
}

func kyvernoEdits(module string) (out []build.Edit, err error) {
	out = shut(kyvernoModule, kyvernoServed)
	for _, folder := range kyvernoPrograms {
		out = append(out, withoutNames(folder)...)
	}
	for _, a := range kyvernoOptions {
		if a.declared == "" {
			continue
		}
		text, err := files.Read(filepath.Join(module, filepath.FromSlash(a.declared)), mostSource)
		if err != nil {
			return nil, fmt.Errorf("look for its flags: %w", err)
		}
		if !bytes.Contains(text, []byte(`"`+a.flag+`"`)) {
			out = append(out, a.edit)
		}
	}
	return out, nil
}

// kyvernoFlags returns those of kyvernoOptions that the program has.
func kyvernoFlags(ctx context.Context, path string) (out []string, err error) {
	help, err := build.Step{Path: path, Args: []string{"-help"}}.Run(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask Kyverno for its flags: %w: %s", err, build.Tail(help))
	}
	known := strings.Fields(help)
	for _, a := range kyvernoOptions {
		if slices.Contains(known, "-"+a.flag) {
			out = append(out, "--"+a.flag+"="+a.value)
		}
	}
	return out, nil
}

// kyvernoArguments are those of its chart. Reports of requests, which only its reports controller reads, are made if
// that runs.
func kyvernoArguments(c Config, webhooks, metrics string) []string {
	old := strings.HasPrefix(c.Version, "1.13.") || strings.HasPrefix(c.Version, "1.14.")
	return []string{
		"--kubeconfig=" + c.Kubeconfig, "--serverIP=127.0.0.1:" + webhooks, "--webhookServerPort=" + webhooks,
		"--caSecretName=kyverno-svc.kyverno.svc.kyverno-tls-ca",
		"--tlsSecretName=kyverno-svc.kyverno.svc.kyverno-tls-pair",
		"--backgroundServiceAccountName=system:serviceaccount:kyverno:kyverno-background-controller",
		"--reportsServiceAccountName=system:serviceaccount:kyverno:kyverno-reports-controller",
		"--metricsPort=" + metrics, fmt.Sprint("--admissionReports=", c.Audit > 0),
		fmt.Sprint("--generateValidatingAdmissionPolicy=", !old),
		"--omitEvents=PolicyApplied,PolicySkipped", "--v=2",
	}
}

// kyvernoReportsArguments are those of its chart, but for the interval.
func kyvernoReportsArguments(c Config, metrics string) []string {
	return append(kyvernoBackgroundArguments(c, metrics), "--backgroundScanInterval="+c.Audit.String())
}

// kyvernoBackgroundArguments are those of its chart.
func kyvernoBackgroundArguments(c Config, metrics string) []string {
	return []string{
		"--kubeconfig=" + c.Kubeconfig, "--metricsPort=" + metrics, "--omitEvents=PolicyApplied,PolicySkipped", "--v=2",
	}
}

// kyvernoEnvironment is what the deployment of a controller sets.
func kyvernoEnvironment(c Config, controller string) []string {
	out := []string{
		"KYVERNO_NAMESPACE=" + kyvernoNamespace, "KYVERNO_SERVICEACCOUNT_NAME=kyverno-" + controller + "-controller",
		"KYVERNO_ROLE_NAME=kyverno:" + controller + "-controller", "KYVERNO_DEPLOYMENT=kyverno-" + controller + "-controller",
		"KYVERNO_POD_NAME=kyverno-" + controller + "-0", "KYVERNO_SVC=kyverno-svc", "INIT_CONFIG=kyverno",
		"METRICS_CONFIG=kyverno-metrics",
	}
	if c.Network {
		out = append(out, networkVariable+"=true")
	}
	return out
}

// kyvernoNamespace is where Kyverno keeps what is its own: certificates, settings, its lease.
const kyvernoNamespace = "kyverno"

// The labels of an object that Kyverno generated: the name of the policy, and the uid of what it was generated for.
const (
	GeneratedBy  = "generate.kyverno.io/policy-name"
	GeneratedFor = "generate.kyverno.io/trigger-uid"
)

// Backlog is where Kyverno keeps what it has left to do after requests.
func Backlog() (r schema.GroupVersionResource, namespace string) {
	return schema.GroupVersionResource{Group: "kyverno.io", Version: "v2", Resource: "updaterequests"}, kyvernoNamespace
}

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
	object := objectsIn(kyvernoNamespace)
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

// brokenPolicy returns a policy with two rules of one name.
func brokenPolicy() *unstructured.Unstructured {
	o := KyvernoCanary(false, "tare-broken", "", "none", "none")
	o.SetKind("ClusterPolicy")
	spec := o.Object["spec"].(map[string]any)
	rules := spec["rules"].([]any)
	spec["rules"] = append(rules, rules...)
	return o
}

// KyvernoMutatingCanary returns a policy that adds an annotation to pods of a namespace, in Kyverno's patterns or in
// CEL.
func KyvernoMutatingCanary(cel bool, name, namespace, annotation string) *unstructured.Unstructured {
	o := KyvernoCanary(cel, name, namespace, "", "")
	spec := o.Object["spec"].(map[string]any)
	if cel {
		o.SetKind("MutatingPolicy")
		delete(spec, "validationActions")
		delete(spec, "evaluation")
		delete(spec, "validations")
		spec["mutations"] = []any{map[string]any{
			"patchType": "ApplyConfiguration", "applyConfiguration": map[string]any{
				"expression": "Object{metadata: Object.metadata{annotations: {'" + annotation + "': '1'}}}",
			},
		}}
		return o
	}
	rule := spec["rules"].([]any)[0].(map[string]any)
	delete(rule, "validate")
	rule["mutate"] = map[string]any{"patchStrategicMerge": map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{annotation: "1"}},
	}}
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
