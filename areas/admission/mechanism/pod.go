package mechanism

import "encoding/json"

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
	spec := map[string]any{"containers": []any{map[string]any{
		"name": "main", "image": image,
		"securityContext": security,
	}}}
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

// JSON returns the pod as it is sent.
func (p Pod) JSON() []byte {
	text, err := json.Marshal(p.Object())
	if err != nil { // strings, numbers, maps and lists can always be encoded
		return nil
	}
	return text
}
