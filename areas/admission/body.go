package admission

import (
	"encoding/json"
	"fmt"
	"maps"

	"tare/internal/load"
)

// callAnnotation holds the number of the call that wrote last: update and patch change it.
const callAnnotation = "tare.dev/call"

// A maker makes the objects of one treatment.
type maker struct {
	namespace string
	labels    map[string]string // labels of all objects
	// pod is the pod that every policy admits.
	pod       map[string]any
	image     string // of its containers; empty: the pod's own image
	scheduler string // empty: the pod's own scheduler
}

// object returns an object of the resource as JSON, for create.
func (m maker) object(r resource, name string) ([]byte, error) {
	o, err := m.build(r)
	if err != nil {
		return nil, err
	}
	o["apiVersion"], o["kind"] = r.version(), r.kind
	meta, _ := o["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	delete(meta, "generateName")
	meta["name"], meta["namespace"] = name, m.namespace
	meta["labels"] = merged(meta["labels"], m.labels)
	meta["annotations"] = merged(meta["annotations"], map[string]string{callAnnotation: load.CallMark})
	o["metadata"] = meta
	b, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", r.noun, err)
	}
	return b, nil
}

// build returns the object without what all objects share.
func (m maker) build(r resource) (map[string]any, error) {
	switch r.kind {
	case "ConfigMap":
		return map[string]any{"data": map[string]any{"key": "value"}}, nil
	case "Deployment":
		pod, err := m.admitted()
		if err != nil {
			return nil, err
		}
		labels := map[string]any{"tare.dev/deployment": "stock"}
		meta, _ := pod["metadata"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
		}
		delete(meta, "name")
		delete(meta, "namespace")
		meta["labels"] = merged(meta["labels"], map[string]string{"tare.dev/deployment": "stock"})
		return map[string]any{"spec": map[string]any{
			"replicas": 0, "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": meta, "spec": pod["spec"]},
		}}, nil
	}
	return m.admitted()
}

// admitted returns a copy of the pod that every policy admits, with the file's image and scheduler.
func (m maker) admitted() (map[string]any, error) {
	b, err := json.Marshal(m.pod)
	if err != nil {
		return nil, fmt.Errorf("write pod: %w", err)
	}
	var pod map[string]any
	if err := json.Unmarshal(b, &pod); err != nil {
		return nil, fmt.Errorf("read pod: %w", err)
	}
	spec, _ := pod["spec"].(map[string]any)
	if spec == nil {
		return nil, fmt.Errorf("the pod that is to be admitted has no spec")
	}
	if m.scheduler != "" {
		spec["schedulerName"] = m.scheduler
	}
	containers, _ := spec["containers"].([]any)
	for _, c := range containers {
		if c, ok := c.(map[string]any); ok && m.image != "" {
			c["image"] = m.image
		}
	}
	return pod, nil
}

// merged returns labels or annotations with more added.
func merged(have any, more map[string]string) map[string]any {
	out := map[string]any{}
	if h, ok := have.(map[string]any); ok {
		maps.Copy(out, h)
	}
	for k, v := range more {
		out[k] = v
	}
	return out
}

// stored turns an object that the API server stores into a body for update: without the fields that would make the
// update conflict, and with a mark for the call's number.
func stored(body []byte) ([]byte, error) {
	var o map[string]any
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, fmt.Errorf("read an object of the stock: %w", err)
	}
	meta, _ := o["metadata"].(map[string]any)
	if meta == nil {
		return nil, fmt.Errorf("an object of the stock has no metadata")
	}
	for _, field := range []string{"resourceVersion", "managedFields", "generation"} {
		delete(meta, field)
	}
	meta["annotations"] = merged(meta["annotations"], map[string]string{callAnnotation: load.CallMark})
	delete(o, "status")
	return json.Marshal(o)
}
