package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"tare/areas/admission/mechanism"
	"tare/areas/admission/startup"
	"tare/internal/load"
)

// dryRunQuery ends the paths of requests that change nothing.
const dryRunQuery = "?dryRun=All"

// guarded reports whether a control can refuse o for what is in its pod.
func (o operation) guarded() bool {
	return writes(o.verb) && o.verb != verbDelete && o.resource.kind != "ConfigMap"
}

// forbidden is the name of o's trespass.
func (o operation) forbidden() string {
	if o.startup() {
		return "forbidden-" + o.name
	}
	return o.verb + "-forbidden-" + strings.TrimPrefix(o.name, o.verb+"-")
}

// cannotDeny says why no form of o is denied by the policies; empty: one is.
func (p *plan) cannotDeny(o operation) string {
	if p.kind != mechanism.PSA && p.kind != mechanism.PSP || !o.guarded() {
		return ""
	}
	switch {
	case o.resource.kind == "Deployment":
		return fmt.Sprintf("%s denies pods, and not the Deployments that make them: there is no request that it must "+
			"refuse; leave the operation out", p.kind)
	case o.verb != verbCreate:
		return fmt.Sprintf("what %s would deny in an update of a pod, the API server rejects as invalid before it asks: "+
			"there is no request that %[1]s must refuse; leave the operation out", p.kind)
	}
	return ""
}

// forbiddenRequests renders the requests of o's trespass, as dry runs, and returns their method. They are as long as
// the operation's, unless a forbidden object is longer.
func (p *arm) forbiddenRequests(o operation, pod forbiddenPod, name string) (out []request, method string, err error) {
	at, host := p.prefix+o.resource.path(p.namespace), p.endpoint.Host
	if o.verb == verbCreate {
		body, err := p.forbiddenNew(o, pod, name+"-"+load.CallMark)
		if err != nil {
			return nil, "", err
		}
		return []request{newRequest(http.MethodPost, at+dryRunQuery, host, jsonType, body)}, http.MethodPost, nil
	}
	method, contentType, render := http.MethodPut, jsonType, p.forbiddenUpdate
	if o.verb == verbPatch {
		method, contentType, render = http.MethodPatch, patchType, p.forbiddenPatch
	}
	for _, item := range p.stock[o.resource.noun] {
		body, err := render(pod, o.resource, item)
		if err != nil {
			return nil, "", err
		}
		size := len(item.body)
		if o.verb == verbPatch {
			size = len(callPatch)
		}
		body = append(body, bytes.Repeat([]byte(" "), max(0, size-len(body)))...)
		out = append(out, newRequest(method, at+"/"+item.name+dryRunQuery, host, contentType, body))
	}
	return out, method, nil
}

// forbiddenMaker makes objects whose pod must be denied.
func (p *arm) forbiddenMaker(pod forbiddenPod) (maker, error) {
	m := p.maker
	m.pod = nil // not to be decoded into
	if err := json.Unmarshal(pod.Pod, &m.pod); err != nil {
		return m, fmt.Errorf("read the pod that is to be denied: %w", err)
	}
	m.labels = maps.Clone(m.labels) // policies look at the labels of a Deployment itself
	for key, value := range podField(m.pod, "labels") {
		if text, ok := value.(string); ok {
			m.labels[key] = text
		}
	}
	return m, nil
}

// podField returns the labels or annotations of a pod.
func podField(pod map[string]any, field string) map[string]any {
	meta, _ := pod["metadata"].(map[string]any)
	out, _ := meta[field].(map[string]any)
	return out
}

// forbiddenNew renders an object that must not be created.
func (p *arm) forbiddenNew(o operation, pod forbiddenPod, name string) ([]byte, error) {
	m, err := p.forbiddenMaker(pod)
	if err != nil {
		return nil, err
	}
	good := p.maker
	if o.startup() {
		good.scheduler, m.scheduler = "", ""
	}
	legitimate, err := good.object(o.resource, name)
	if err != nil {
		return nil, err
	}
	body, err := m.object(o.resource, name)
	if err != nil {
		return nil, err
	}
	return padded(body, len(legitimate))
}

// forbiddenUpdate renders an object of the stock as it must not become.
func (p *arm) forbiddenUpdate(pod forbiddenPod, r resource, i item) ([]byte, error) {
	m, err := p.forbiddenMaker(pod)
	if err != nil {
		return nil, err
	}
	if r.kind == "Deployment" {
		body, err := m.object(r, i.name)
		if err != nil {
			return nil, err
		}
		return withoutCall(body)
	}
	var o map[string]any // of a pod only labels, annotations and images may change
	if err := json.Unmarshal(i.body, &o); err != nil {
		return nil, fmt.Errorf("read an object of the stock: %w", err)
	}
	meta, _ := o["metadata"].(map[string]any)
	if meta == nil {
		return nil, errors.New("an object of the stock has no metadata")
	}
	for _, field := range []string{"labels", "annotations"} {
		have := merged(meta[field], nil)
		maps.Copy(have, podField(m.pod, field))
		meta[field] = have
	}
	body, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return withoutCall(body)
}

// forbiddenPatch renders a patch that must not be applied.
func (p *arm) forbiddenPatch(pod forbiddenPod, r resource, _ item) ([]byte, error) {
	m, err := p.forbiddenMaker(pod)
	if err != nil {
		return nil, err
	}
	meta := map[string]any{}
	for _, field := range []string{"labels", "annotations"} {
		if x := podField(m.pod, field); len(x) > 0 {
			meta[field] = x
		}
	}
	patch := map[string]any{"metadata": meta}
	if r.kind == "Deployment" && !p.single() {
		object, err := m.build(r)
		if err != nil {
			return nil, err
		}
		patch["spec"] = object["spec"]
	}
	return json.Marshal(patch)
}

// withoutCall removes the annotation of the call's number.
func withoutCall(body []byte) ([]byte, error) {
	var o map[string]any
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, err
	}
	meta, _ := o["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	delete(annotations, callAnnotation)
	if len(annotations) == 0 {
		delete(meta, "annotations")
	}
	return json.Marshal(o)
}

// mostPadding bounds the padding of a name: names have at most 253 bytes.
const mostPadding = 200

// padded makes an object size bytes long: without the annotation of the call's number, and with a longer name. One that
// is longer keeps its length.
func padded(body []byte, size int) ([]byte, error) {
	out, err := withoutCall(body)
	if err != nil || len(out) >= size {
		return out, err
	}
	var o map[string]any
	if err := json.Unmarshal(out, &o); err != nil {
		return nil, err
	}
	meta, _ := o["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	if name == "" {
		return nil, errors.New("the object has no name")
	}
	meta["name"] = strings.Repeat("x", min(size-len(out), mostPadding)) + name
	return json.Marshal(o)
}

// startupTrespass makes w's request over the connection of pod-startup.
func (p *arm) startupTrespass(w *trespass, pod forbiddenPod, name string) (load.Operation, error) {
	body, err := p.forbiddenNew(operation{name: startupName, verb: verbCreate, resource: resources()[0]}, pod,
		name+"-"+load.CallMark)
	if err != nil {
		return load.Operation{}, err
	}
	op, err := p.watch.Ask(startup.Pods{
		Caller: p.starter, Pod: body,
		Judge: func(status int, body []byte) (load.Outcome, int) {
			outcome, why := w.answer(status, body)
			return outcome, int(why)
		},
	})
	return op, p.admin.Scrub(err)
}

// rehearseTrespasses asks for each trespass once, before the load: one that is admitted then needs no load to be,
// and one that is rejected for another reason tests nothing.
func (p *arm) rehearseTrespasses(ctx context.Context) error {
	if !p.env.Trespasses || !p.guards() {
		return nil
	}
	switch {
	case p.kind != mechanism.Own:
	case len(p.policies.finding.tries(p.mostTried())) == 0:
		return nil // trespasses says so: the policies are in force, and deny no pod
	case p.policies.tried == nil:
		return p.chooseTrespasses(ctx)
	}
	twins, err := p.trespasses()
	if err != nil {
		return err
	}
	for i := range twins {
		op := &twins[i]
		if op.Wire == nil {
			continue // its request is the forbidden pod's, which the proof has made
		}
		refusal, err := p.askTrespass(ctx, op)
		if err := errors.Join(refusal, err); err != nil {
			return err
		}
	}
	return nil
}

// askTrespass asks for a trespass once. refusal says why it tests nothing; nil: it was denied.
func (p *arm) askTrespass(ctx context.Context, op *load.Operation) (refusal, err error) {
	a, err := p.asker.send(ctx, op.Wire.Render(nil, 0), false)
	switch {
	case err != nil:
		return nil, fmt.Errorf("operation %s: %w", op.Name, err)
	case op.Wire.Check(0, a.status, a.body) == load.Denied:
		return nil, nil
	}
	return fmt.Errorf("operation %s: want %s before the load, got: %s; leave %s out of load.operations", op.Name,
		op.Expect, a.message(), op.Twin), nil
}
