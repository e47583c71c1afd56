package cluster

import (
	"encoding/json"
	"fmt"
)

// DefaultImage is the default image of pods. It is only pulled if a real node runs the pod.
const DefaultImage = "registry.k8s.io/pause:3.10"

// NoScheduler is the name of a scheduler that does not exist: pods that name it stay pending, so that nothing is
// started.
const NoScheduler = "tare.dev-none"

// Shape describes an object of the load or of the stock. The zero Shape with a namespace is valid.
type Shape struct {
	Namespace string
	Run       string            // value of OwnerLabel; see Cluster.Shape
	Labels    map[string]string // further labels
	Image     string            // "": DefaultImage
	Scheduler string            // "": the cluster's own
}

// Shape returns the shape of this run's objects in a namespace.
func (c *Cluster) Shape(namespace string) Shape { return Shape{Namespace: namespace, Run: c.run} }

// PodJSON returns a pod that satisfies every Pod Security Standard up to restricted. The name may hold load.CallMark.
func PodJSON(name string, s Shape) []byte {
	return encode(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": s.meta(name), "spec": s.podSpec()})
}

// DeploymentJSON returns a deployment of that pod with no replicas: it makes a ReplicaSet and no pod.
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

// ConfigMapJSON returns a small ConfigMap.
func ConfigMapJSON(name string, s Shape) []byte {
	return encode(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": s.meta(name),
		"data": map[string]any{"purpose": "measured by tare"},
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

// encode encodes maps of plain values, which cannot fail.
func encode(o map[string]any) []byte {
	text, err := json.Marshal(o)
	if err != nil {
		return fmt.Appendf(nil, "{%q: %q}", "error", err)
	}
	return text
}
