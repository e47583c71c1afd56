package own

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	selectors "k8s.io/apimachinery/pkg/labels"
)

// A Request is the creation of an object that some policies deny.
type Request struct {
	Name  string // "pod privileged"
	Group string
	// Version and Resource are as in the path of the request.
	Version, Resource string
	Kind              string
	Body              []byte // JSON
}

// Path returns the path of the request in a namespace, from the API server's root.
func (r Request) Path(namespace string) string {
	root := "/apis/" + r.Group + "/"
	if r.Group == "" {
		root = "/api/"
	}
	return root + r.Version + "/namespaces/" + namespace + "/" + r.Resource
}

// In is the same request in another namespace.
func (r Request) In(namespace string) (Request, error) {
	o := &unstructured.Unstructured{}
	err := o.UnmarshalJSON(r.Body)
	if err == nil {
		o.SetNamespace(namespace)
		r.Body, err = o.MarshalJSON()
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", r.Name, err)
	}
	return r, nil
}

// Sees reports whether the policies' match constraints select the creation of such objects: without their conditions,
// which only the API server evaluates.
func (p *Policy) Sees(apiGroup, version, resource, operation string) bool {
	c := p.Spec.MatchConstraints
	return c != nil && seen(c, apiGroup, version, resource, operation)
}

// Evaluates reports whether a policy that is in force evaluates the request about an object with these labels, as far
// as its own match constraints and those of its bindings say.
func (f *InForce) Evaluates(p *Policy, apiGroup, version, resource, operation string,
	objectLabels map[string]string,
) bool {
	if !p.Sees(apiGroup, version, resource, operation) || !matches(p.Spec.MatchConstraints, objectLabels) {
		return false
	}
	if p.engine != nil {
		return true
	}
	return slices.ContainsFunc(f.bindings, func(b Binding) bool {
		m := b.Spec.MatchResources
		if !b.binds(p) || !matches(m, objectLabels) {
			return false
		}
		if m == nil {
			return true
		}
		all := len(m.ResourceRules) == 0 || anySelects(m.ResourceRules, apiGroup, version, resource, operation)
		return all && !anySelects(m.ExcludeResourceRules, apiGroup, version, resource, operation)
	})
}

// matches reports whether a selector of objects, if there is one, selects these labels.
func matches(m *admission.MatchResources, objectLabels map[string]string) bool {
	if m == nil || m.ObjectSelector == nil {
		return true
	}
	s, err := meta.LabelSelectorAsSelector(m.ObjectSelector)
	return err == nil && s.Matches(selectors.Set(objectLabels))
}

func seen(m *admission.MatchResources, apiGroup, version, resource, operation string) bool {
	return anySelects(m.ResourceRules, apiGroup, version, resource, operation) &&
		!anySelects(m.ExcludeResourceRules, apiGroup, version, resource, operation)
}

func anySelects(rules []admission.NamedRuleWithOperations, apiGroup, version, resource, operation string) bool {
	return slices.ContainsFunc(rules, func(r admission.NamedRuleWithOperations) bool {
		return selects(r, apiGroup, version, resource, operation)
	})
}

func selects(r admission.NamedRuleWithOperations, apiGroup, version, resource, operation string) bool {
	has := func(list []string, word string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, word)
	}
	isCluster := r.Scope != nil && *r.Scope == admission.ClusterScope
	return len(r.ResourceNames) == 0 && !isCluster && has(r.APIGroups, apiGroup) && has(r.APIVersions, version) &&
		(has(r.Resources, resource) || slices.Contains(r.Resources, "*/*")) &&
		slices.ContainsFunc(r.Operations, func(o admission.OperationType) bool {
			return o == admission.OperationAll || string(o) == operation
		})
}

// Catalogue returns requests that policies as people write them deny: each differs from pod, which they should admit,
// or from a harmless object of another kind, in one thing. It holds those of the kinds that one of the policies sees.
func Catalogue(policies []*Policy, pod []byte, namespace string) (out []Request, err error) {
	for _, c := range candidates() {
		seen, alone := c.seenBy(policies)
		if !seen {
			continue
		}
		r := Request{Group: c.group, Version: c.version, Resource: c.resource, Kind: c.kind}
		objects, err := c.make(pod, namespace, alone)
		if err != nil {
			return nil, fmt.Errorf("make a request that a policy may deny: %w", err)
		}
		var plain []byte
		for i, o := range objects {
			r.Name = strings.ToLower(c.kind) + " " + o.what
			if r.Body, err = json.Marshal(o.object); err != nil {
				return nil, fmt.Errorf("make the request %q: %w", r.Name, err)
			}
			if i > 0 && bytes.Equal(r.Body, plain) {
				continue // it differs in nothing
			}
			if i == 0 {
				plain = r.Body
			}
			out = append(out, r)
		}
	}
	return out, nil
}

// seenBy reports whether one of the policies sees the creation of such objects, and whether one does that sees neither
// that of pods nor that of Deployments.
func (c candidate) seenBy(policies []*Policy) (seen, alone bool) {
	const create = string(admission.Create)
	for _, p := range policies {
		if p.Sees(c.group, c.version, c.resource, create) {
			seen = true
			alone = alone || !p.Sees("", "v1", "pods", create) && !p.Sees("apps", "v1", "deployments", create)
		}
	}
	return seen, alone
}

// A candidate makes objects of one kind.
type candidate struct {
	group, version, resource, kind string
	// around puts a pod into an object of the kind; nil: objects are those of others.
	around func(pod tree) tree
	others []oddity
}

// tree is an object in JSON.
type tree = map[string]any

// An oddity is one thing in which an object differs from a harmless one.
type oddity struct {
	what   string
	object tree
}

// make makes the objects: of workloads other than pods and Deployments, unless all is asked for, the usual ones.
func (c candidate) make(pod []byte, namespace string, all bool) (out []oddity, err error) {
	all = all || c.kind == "Pod" || c.kind == "Deployment"
	name := "tare-probe-" + strings.ToLower(c.kind)
	finish := func(what string, o tree) {
		o["apiVersion"], o["kind"] = strings.TrimPrefix(c.group+"/"+c.version, "/"), c.kind
		m := below(o, "metadata")
		m["name"], m["namespace"] = name, namespace
		out = append(out, oddity{what, o})
	}
	if c.around == nil {
		for _, o := range c.others {
			finish(o.what, o.object)
		}
		return out, nil
	}
	for _, change := range podChanges() {
		if !all && !change.usual() {
			continue
		}
		var p tree
		if err := json.Unmarshal(pod, &p); err != nil {
			return nil, err
		}
		change.do(p)
		finish(change.what, c.around(p))
	}
	return out, nil
}

// below returns the object at a path within o. It creates those that are missing on the way.
func below(o tree, path ...string) tree {
	for _, step := range path {
		next, ok := o[step].(tree)
		if !ok {
			next = tree{}
			o[step] = next
		}
		o = next
	}
	return o
}
