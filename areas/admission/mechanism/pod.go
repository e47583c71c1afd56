package mechanism

import (
	"encoding/json"
	"maps"
)

// DefaultImage is the default image of pods: it does nothing, and most nodes have it.
const DefaultImage = "registry.k8s.io/pause:3.10"

// Pod describes a pod of one container. By default it satisfies the restricted level of the Pod Security Standards and
// the useable PodSecurityPolicy unchanged, so that no policy has to change it.
type Pod struct {
	Name, Namespace string
	Labels          map[string]string
	Image           string // default DefaultImage
	Scheduler       string // default: the cluster's
	Privileged      bool   // every mechanism that checks pods denies it
	// Model: it also has what policies commonly demand: labels, resources, probes, a read-only root file system.
	Model bool
}

// Object returns the pod as an API object. The caller may change it.
func (p Pod) Object() map[string]any {
	security := map[string]any{
		"allowPrivilegeEscalation": p.Privileged, "privileged": p.Privileged, "runAsNonRoot": true, "runAsUser": int64(1000),
		"capabilities": map[string]any{"drop": []any{"ALL"}}, "seccompProfile": map[string]any{"type": "RuntimeDefault"},
	}
	image := p.Image
	if image == "" {
		image = DefaultImage
	}
	container := map[string]any{"name": "main", "image": image, "securityContext": security}
	spec := map[string]any{"containers": []any{container}}
	if p.Model {
		p.Labels = model(p.Labels, container, spec)
	}
	if p.Scheduler != "" {
		spec["schedulerName"] = p.Scheduler
	}
	meta := map[string]any{"name": p.Name, "namespace": p.Namespace}
	if len(p.Labels) > 0 {
		labels := make(map[string]any, len(p.Labels))
		for k, v := range p.Labels {
			labels[k] = v
		}
		meta["labels"] = labels
	}
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
}

// model gives a pod what policies commonly demand, and returns its labels.
func model(labels map[string]string, container, spec map[string]any) map[string]string {
	size := map[string]any{"cpu": "100m", "memory": "64Mi", "ephemeral-storage": "64Mi"}
	probe := func(port int64) map[string]any {
		return map[string]any{"tcpSocket": map[string]any{"port": port}, "periodSeconds": int64(10)}
	}
	container["resources"] = map[string]any{"requests": size, "limits": size}
	container["livenessProbe"], container["readinessProbe"] = probe(8080), probe(8081)
	container["imagePullPolicy"] = "Always"
	container["securityContext"].(map[string]any)["readOnlyRootFilesystem"] = true //nolint:forcetypeassert // made above
	spec["automountServiceAccountToken"] = false
	spec["securityContext"] = map[string]any{
		"runAsNonRoot": true, "runAsUser": int64(1000), "runAsGroup": int64(1000),
		"seccompProfile": map[string]any{"type": "RuntimeDefault"},
	}
	out := map[string]string{
		"app": "tare", "app.kubernetes.io/name": "tare", "app.kubernetes.io/instance": "tare",
		"app.kubernetes.io/version": "1", "app.kubernetes.io/component": "probe", "app.kubernetes.io/part-of": "tare",
		"app.kubernetes.io/managed-by": "tare", "owner": "tare", "team": "tare", "environment": "test", "env": "test",
	}
	maps.Copy(out, labels)
	return out
}

// JSON returns the pod as it is sent.
func (p Pod) JSON() []byte {
	text, err := json.Marshal(p.Object())
	if err != nil { // strings, numbers, maps and lists can always be encoded
		return nil
	}
	return text
}
