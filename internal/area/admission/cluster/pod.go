package cluster

import (
	"encoding/json"
	"fmt"
)

// DefaultImage is what pods name when nothing else is asked for. It is never pulled unless a real node runs the pod.
const DefaultImage = "registry.k8s.io/pause:3.10"

// NoScheduler is the name of a scheduler that nobody runs: pods that ask for it stay pending, so that nothing is started.
const NoScheduler = "tare.dev-none"

// Shape is how an object that load or stock is made of looks. The zero Shape with a namespace is a good one.
type Shape struct {
	Namespace string
	Run       string            // value of OwnerLabel; see Cluster.Shape
	Labels    map[string]string // further labels
	Image     string            // "": DefaultImage
	Scheduler string            // "": the cluster's own
}

// Shape is the shape of this run's objects in a namespace.
func (c *Cluster) Shape(namespace string) Shape { return Shape{Namespace: namespace, Run: c.run} }

// PodJSON is a pod that every namespace takes, up to the restricted Pod Security Standard. The name may hold load.CallMark.
func PodJSON(name string, s Shape) []byte {
	return encode(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": s.meta(name), "spec": s.podSpec()})
}

// DeploymentJSON is a deployment of that pod with no replicas: it makes a ReplicaSet and no pod.
func DeploymentJSON(name string, s Shape) []byte {
	labels := s.labels()
	labels["app.kubernetes.io/name"] = "tare-stock"
	return encode(map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": s.meta(name),
		"spec": map[string]any{
			"replicas": 0,
			"selector": map[string]any{"matchLabels": map[string]any{"app.kubernetes.io/name": "tare-stock"}},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": s.podSpec()},
		},
	})
}

// ConfigMapJSON is a small ConfigMap.
func ConfigMapJSON(name string, s Shape) []byte {
	return encode(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": s.meta(name), "data": map[string]any{"purpose": "measured by tare"},
	})
}

func (s Shape) meta(name string) map[string]any {
	return map[string]any{"name": name, "namespace": s.Namespace, "labels": s.labels()}
}

func (s Shape) labels() map[string]any {
	out := map[string]any{ManagerLabel: Manager}
	for k, v := range s.Labels {
		out[k] = v
	}
	if s.Run != "" {
		out[OwnerLabel] = s.Run
	}
	return out
}

// podSpec satisfies the restricted standard: https://kubernetes.io/docs/concepts/security/pod-security-standards/.
func (s Shape) podSpec() map[string]any {
	image := s.Image
	if image == "" {
		image = DefaultImage
	}
	spec := map[string]any{
		"securityContext": map[string]any{
			"runAsNonRoot": true, "runAsUser": 65534, "seccompProfile": map[string]any{"type": "RuntimeDefault"},
		},
		"terminationGracePeriodSeconds": 0,
		"containers": []any{map[string]any{
			"name": "pause", "image": image,
			"resources": map[string]any{"requests": map[string]any{"cpu": "1m", "memory": "1Mi"}},
			"securityContext": map[string]any{
				"allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []any{"ALL"}},
			},
		}},
	}
	if s.Scheduler != "" {
		spec["schedulerName"] = s.Scheduler
	}
	return spec
}

// encode writes maps of plain values, which cannot fail.
func encode(o map[string]any) []byte {
	text, err := json.Marshal(o)
	if err != nil {
		return fmt.Appendf(nil, "{%q: %q}", "error", err)
	}
	return text
}
