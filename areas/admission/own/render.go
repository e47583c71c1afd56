package own

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/areas/admission/mechanism"
)

// Where says where a set is put in force, and how.
type Where struct {
	Scope mechanism.Scope
	// BindAll binds policies that no binding names: all that they object to is denied.
	BindAll bool
	// Ours: the control plane is tare's own, so that it has no kind that the bundle does not bring.
	Ours bool
	// Standing are the kinds of parameters that another control plane has, and Makes those of them, as KIND.GROUP, of
	// which objects may be made there.
	Standing []schema.GroupKind
	Makes    []string
	// Others are the definitions of the other bundles of the experiment: what is asked where these are in force is asked
	// here, too.
	Others []*unstructured.Unstructured
}

// mayMake says why a parameter must not be made: it may do more than to be read by a policy. In a cluster that others
// use, a Pod runs, a RoleBinding gives rights, and controllers act on objects of kinds that are there already.
func (w Where) mayMake(o *unstructured.Unstructured) error {
	gk := o.GroupVersionKind().GroupKind()
	switch {
	case gk == schema.GroupKind{Kind: "ConfigMap"}:
	case MayAsk(o.GroupVersionKind()):
		return fmt.Errorf("%s %s: the API server or an engine acts on objects of this kind, so that it can be no parameter "+
			"here", gk.Kind, o.GetName())
	case !w.Scope.Foreign:
	case builtin(gk), strings.HasSuffix(gk.Group, ".k8s.io"):
		return fmt.Errorf("%s %s: others use this cluster, where a parameter can be a ConfigMap or of a kind of your own",
			gk.Kind, o.GetName())
	case slices.Contains(w.Standing, gk) && !slices.Contains(w.Makes, gk.String()):
		return fmt.Errorf("%s %s: the cluster has this kind already, and what acts on its objects is not known: write "+
			"param_kinds: [%s] if they may be made there", gk.Kind, o.GetName(), gk)
	}
	return nil
}

// InForce is a set as it is put in force.
type InForce struct {
	// Scope is where.
	Scope mechanism.Scope
	// Objects are in the order in which they are created.
	Objects []*unstructured.Unstructured
	Kinds   []schema.GroupVersionKind // of the objects, the last created first, each once
	// NamespaceLabels are those that the selectors ask for.
	NamespaceLabels map[string]string
	// Policies are those that are in force, by the names that the set has for them.
	Policies []*Policy
	// templates are those of constraints that are in force, and others.
	templates []object
	// bindings are those of these policies.
	bindings []Binding
	// made are the names of bindings that Gatekeeper has made, as far as Ready has read.
	made map[string]bool
	// Untaken are other objects of the bundle that decide about requests, and Repeated is as in Set.
	Untaken, Repeated []string
	// Idle are those that are not, and rules that are about other namespaces, by name, with the reason.
	Idle map[string]string
	// Bound are the policies for which tare has made a binding, and Defined the kinds for which it has made a definition.
	Bound, Defined []string
}

// mostName bounds the name of an object.
const mostName = 253

// NameIn is the name of a policy or a binding in the run: those of the user's may stand there already.
func NameIn(s mechanism.Scope, name string) string { return prefix(s) + name }

// NameOf is the user's name of one that is in force.
func NameOf(s mechanism.Scope, name string) string { return strings.TrimPrefix(name, prefix(s)) }

func prefix(s mechanism.Scope) string { return s.Namespace + "." }

// Render returns the set as it is put in force: unchanged, but for the names, and for what narrows it to the run's
// namespace.
func (s *Set) Render(w Where) (*InForce, error) {
	out := &InForce{
		Scope: w.Scope, Idle: map[string]string{}, Untaken: s.Untaken, Repeated: s.Repeated, templates: s.templates,
	}
	asked := &labels{has: map[string]string{}, denied: map[string][]string{}}
	bindings := s.chosen(w, out, asked)
	if len(out.Policies) == 0 {
		for i := range s.Policies {
			if p := &s.Policies[i]; p.engine != nil { // it needs no binding
				return nil, fmt.Errorf("none of the %d policies can be in force, such as %s, since %s", len(s.Policies), p.Name,
					out.Idle[p.Name])
			}
		}
		return nil, fmt.Errorf("none of the %d policies is bound, so that none is in force: add their bindings, or set "+
			"bind_all: true (--set target.bind_all=true)", len(s.Policies))
	}
	out.NamespaceLabels, out.bindings = asked.has, bindings
	definitions, params, err := s.needs(w, out, bindings)
	if err != nil {
		return nil, err
	}
	out.Objects = slices.Concat(definitions, params, s.renderTemplates(out))
	for _, p := range out.Policies {
		o, err := p.render(w.Scope)
		if err != nil {
			return nil, err
		}
		out.Objects = append(out.Objects, o)
	}
	for i := range bindings {
		o, err := bindings[i].render(w.Scope)
		if err != nil {
			return nil, err
		}
		out.Objects = append(out.Objects, o)
	}
	for _, o := range out.Objects {
		detach(o)
		mechanism.Label(o, w.Scope)
		if len(o.GetName()) > mostName {
			return nil, fmt.Errorf("%s %s: with the name of the run's namespace its name has more than %d characters",
				o.GetKind(), NameOf(w.Scope, o.GetName()), mostName)
		}
	}
	out.Kinds = mechanism.KindsOf(out.Objects)
	return out, nil
}

// detach takes from an object what ties it to others, or keeps it from being removed: finalizers that nobody takes
// away, and owners, without which a cluster removes it.
func detach(o *unstructured.Unstructured) {
	ties := []string{"finalizers", "ownerReferences", "deletionTimestamp", "deletionGracePeriodSeconds"}
	for _, field := range slices.Concat(ties, addedByCluster) {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
}

// chosen returns the bindings of the policies that can act in the run's namespace, and sorts the policies.
func (s *Set) chosen(w Where, out *InForce, asked *labels) (bindings []Binding) {
	for i := range s.Policies {
		p := &s.Policies[i]
		if p.engine != nil { // it needs no binding
			aside, err := p.fitsEngine(w.Scope, asked)
			if err != nil {
				out.Idle[p.Name] = err.Error()
				continue
			}
			maps.Copy(out.Idle, aside)
			out.Policies = append(out.Policies, p)
			continue
		}
		own, why := s.bindingsOf(p, w, out)
		var fit []Binding
		for _, b := range own {
			if err := p.fits(&b, asked); err != nil {
				why = err.Error()
				continue
			}
			fit = append(fit, b)
		}
		if len(fit) == 0 {
			out.Idle[p.Name] = why
			continue
		}
		out.Policies = append(out.Policies, p)
		bindings = append(bindings, fit...)
	}
	return bindings
}

// bindingsOf returns the bindings that name a policy, or one that is made.
func (s *Set) bindingsOf(p *Policy, w Where, out *InForce) (own []Binding, why string) {
	for i := range s.Bindings {
		if s.Bindings[i].binds(p) {
			own = append(own, s.Bindings[i])
		}
	}
	if len(own) > 0 || !w.BindAll {
		return own, "no binding names it"
	}
	b := Binding{at: p.at, mutates: p.mutating != nil}
	b.TypeMeta = meta.TypeMeta{APIVersion: group + "/v1", Kind: bindingKind}
	b.ObjectMeta = meta.ObjectMeta{Name: p.Name}
	b.Spec = admission.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: p.Name, ValidationActions: []admission.ValidationAction{admission.Deny},
	}
	if gvk, ok := p.paramKind(); ok {
		if !s.hasParam(gvk.GroupKind()) {
			return nil, "no binding names it, and the bundle holds no " + gvk.Kind + " that one could name as its parameter"
		}
		deny := admission.DenyAction
		b.Spec.ParamRef = &admission.ParamRef{Selector: &meta.LabelSelector{}, ParameterNotFoundAction: &deny}
	}
	out.Bound = append(out.Bound, p.Name)
	return []Binding{b}, ""
}

func (s *Set) hasParam(k schema.GroupKind) bool {
	return slices.ContainsFunc(s.params, func(o *unstructured.Unstructured) bool {
		return o.GroupVersionKind().GroupKind() == k
	})
}

// fits adds what a binding of the policy asks of the run's namespace, or says why it cannot act there.
func (p *Policy) fits(b *Binding, asked *labels) error {
	if p.Spec.MatchConstraints != nil {
		if err := asked.satisfy(p.Spec.MatchConstraints.NamespaceSelector); err != nil {
			return err
		}
	}
	m := b.Spec.MatchResources
	if m == nil {
		return nil
	}
	for _, r := range m.ResourceRules {
		if r.Scope != nil && *r.Scope == admission.ClusterScope {
			return fmt.Errorf("its binding %s is about objects that are in no namespace", b.Name)
		}
	}
	return asked.satisfy(m.NamespaceSelector)
}

// render returns a policy as it is sent.
func (p *Policy) render(s mechanism.Scope) (*unstructured.Unstructured, error) {
	if p.engine != nil {
		return p.renderEngine(s), nil
	}
	if p.mutating != nil {
		return p.renderMutating(s)
	}
	to := p.DeepCopy()
	to.APIVersion, to.Name = group+"/v1", NameIn(s, p.Name)
	to.ObjectMeta = meta.ObjectMeta{Name: to.Name, Annotations: p.Annotations, Labels: p.Labels}
	if c := to.Spec.MatchConstraints; c != nil {
		c.NamespaceSelector = withoutNames(c.NamespaceSelector)
	}
	return p.at.encoded(to)
}

// render returns a binding as it is sent.
func (b *Binding) render(s mechanism.Scope) (*unstructured.Unstructured, error) {
	to := b.DeepCopy()
	to.APIVersion = group + "/v1"
	to.ObjectMeta = meta.ObjectMeta{Name: NameIn(s, b.Name), Annotations: b.Annotations, Labels: b.Labels}
	to.Spec.PolicyName = NameIn(s, b.Spec.PolicyName)
	to.Spec.MatchResources = narrow(to.Spec.MatchResources, s.Namespace)
	if r := to.Spec.ParamRef; r != nil && r.Namespace != "" {
		r.Namespace = s.Namespace
	}
	if b.mutates {
		return b.renderMutating(*to)
	}
	return b.at.encoded(to)
}

// needs returns the parameters of the policies that are in force, and the definitions of their kinds and of those that
// policies of Kyverno's are about. Parameters of a namespace are put into the run's. On a control plane of tare's own
// the ConfigMaps come, too, that policies of an engine's read.
func (s *Set) needs(w Where, out *InForce, bindings []Binding) (definitions, params []*unstructured.Unstructured,
	err error,
) {
	wanted := map[schema.GroupKind]schema.GroupVersionKind{}
	scopes := map[schema.GroupKind]bool{} // whether objects are in namespaces
	for _, p := range out.Policies {
		if gvk, ok := p.paramKind(); ok {
			wanted[gvk.GroupKind()] = gvk
		}
	}
	for _, p := range out.Policies {
		for _, gvk := range p.custom {
			if _, ok := wanted[gvk.GroupKind()]; !ok && w.Ours { // in a cluster of the user's nothing is added for an engine
				wanted[gvk.GroupKind()], scopes[gvk.GroupKind()] = gvk, true
			}
		}
	}
	for _, o := range s.definitions {
		if _, ok := wanted[definedBy(o)]; ok && !slices.Contains(w.Standing, definedBy(o)) {
			if by, _, _ := unstructured.NestedString(o.Object, "spec", "conversion", "strategy"); by == "Webhook" {
				if scopes[definedBy(o)] {
					continue // policies are only about it: one that takes anything does
				}
				return nil, nil, fmt.Errorf("CustomResourceDefinition %s: a webhook converts its objects, and none runs here",
					o.GetName())
			}
			definitions = append(definitions, o.DeepCopy())
		}
	}
	stood := map[string]string{} // namespaces of the parameters, by kind and name
	for _, o := range s.params {
		gk := o.GroupVersionKind().GroupKind()
		if _, ok := wanted[gk]; !ok {
			continue
		}
		if err := w.mayMake(o); err != nil {
			return nil, nil, err
		}
		o = o.DeepCopy()
		title := o.GroupVersionKind().String() + " " + o.GetName()
		switch namespace, isThere := stood[title]; {
		case isThere && namespace == o.GetNamespace():
			return nil, nil, fmt.Errorf("%s %s stands there twice, and the one that is applied last would decide: keep one of "+
				"them", o.GetKind(), o.GetName())
		case isThere:
			return nil, nil, fmt.Errorf("%s %s stands there for two namespaces, and the run has one: keep one of them",
				o.GetKind(), o.GetName())
		}
		stood[title] = o.GetNamespace()
		if o.GetNamespace() != "" || s.namespaced(gk, bindings) {
			scopes[gk] = true
			o.SetNamespace(w.Scope.Namespace)
		}
		params = append(params, o)
	}
	for _, gk := range slices.SortedFunc(maps.Keys(wanted), func(a, b schema.GroupKind) int {
		return strings.Compare(a.String(), b.String())
	}) {
		defined := slices.ContainsFunc(definitions, func(o *unstructured.Unstructured) bool { return definedBy(o) == gk })
		if defined || builtin(gk) || slices.Contains(w.Standing, gk) {
			continue
		}
		if !w.Ours {
			return nil, nil, fmt.Errorf("the cluster has no kind %s, which policies take as their parameter: add its "+
				"CustomResourceDefinition to the bundle", wanted[gk].Kind)
		}
		definitions = append(definitions, define(wanted[gk], scopes[gk] || s.namespaced(gk, bindings)))
		out.Defined = append(out.Defined, gk.Kind)
	}
	if w.Ours {
		params = append(params, s.lookups(out)...)
	}
	return withOthers(definitions, w.Others), params, nil
}

// lookups are the ConfigMaps of the bundle that policies of an engine's in force name as what they read, where these
// look for them, and the namespaces that a control plane does not have by itself.
func (s *Set) lookups(out *InForce) (made []*unstructured.Unstructured) {
	has := []string{"kube-system", "kube-public", meta.NamespaceDefault, "kyverno"}
	for _, o := range s.configMaps {
		o = o.DeepCopy()
		o.SetNamespace(cmp.Or(o.GetNamespace(), meta.NamespaceDefault))
		if !slices.ContainsFunc(out.Policies, func(p *Policy) bool { return p.looksUp(o) }) {
			continue
		}
		if ns := o.GetNamespace(); !slices.Contains(has, ns) {
			has = append(has, ns)
			n := &unstructured.Unstructured{Object: tree{"apiVersion": "v1", "kind": "Namespace"}}
			n.SetName(ns)
			made = append(made, n)
		}
		made = append(made, o)
	}
	return made
}

// looksUp reports whether a policy of an engine's names a ConfigMap as what it reads: as its context, or in CEL.
func (p *Policy) looksUp(o *unstructured.Unstructured) (is bool) {
	if p.engine == nil {
		return false
	}
	inside(p.engine.Object["spec"], func(key string, value any) {
		named, _ := value.(tree)
		text, _ := value.(string)
		switch {
		case key == "configMap":
			namespace, _ := named["namespace"].(string)
			is = is || named["name"] == o.GetName() && cmp.Or(namespace, meta.NamespaceDefault) == o.GetNamespace()
		case IsCEL(p.engine) && strings.Contains(text, "configmaps"):
			is = is || strings.Contains(strings.ReplaceAll(text, "'", `"`), `"`+o.GetName()+`"`)
		}
	})
	return is
}

// withOthers adds definitions of kinds that are not defined yet, and of those that are, the versions that these lack.
func withOthers(definitions, others []*unstructured.Unstructured) []*unstructured.Unstructured {
	for _, o := range others {
		gk := definedBy(o)
		i := slices.IndexFunc(definitions, func(d *unstructured.Unstructured) bool { return definedBy(d) == gk })
		if i < 0 {
			definitions = append(definitions, o.DeepCopy())
			continue
		}
		served := mechanism.Defined(definitions[i : i+1])
		versions, _, _ := unstructured.NestedSlice(definitions[i].Object, "spec", "versions") // both define a kind
		more, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
		for _, v := range more {
			version, _ := v.(tree)
			name, _ := version["name"].(string)
			if _, ok := served[gk.WithVersion(name)]; !ok {
				version["storage"] = false
				versions = append(versions, version)
			}
		}
		_ = unstructured.SetNestedSlice(definitions[i].Object, versions, "spec", "versions") // it was read from there
	}
	return definitions
}

// Definitions are the objects in force that define kinds.
func (f *InForce) Definitions() []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(f.Objects), func(o *unstructured.Unstructured) bool {
		return definedBy(o).Empty()
	})
}

// namespaced reports whether the objects of a parameter's kind are in namespaces, as far as the set says so.
func (s *Set) namespaced(gk schema.GroupKind, bindings []Binding) bool {
	for _, o := range s.definitions {
		if definedBy(o) == gk {
			scope, _, _ := unstructured.NestedString(o.Object, "spec", "scope") // anything but text is no scope
			return scope == "Namespaced"
		}
	}
	if builtin(gk) {
		return true
	}
	return slices.ContainsFunc(bindings, func(b Binding) bool {
		p := s.named(b.Spec.PolicyName)
		gvk, ok := p.paramKind()
		return ok && gvk.GroupKind() == gk && b.Spec.ParamRef != nil && b.Spec.ParamRef.Namespace != ""
	})
}

// serverGroups are the groups with a domain that API servers have by themselves, or that other servers add to them.
var serverGroups = []string{
	"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io",
	"authorization.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "custom.metrics.k8s.io", "discovery.k8s.io",
	"events.k8s.io", "external.metrics.k8s.io", "flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io",
	"metrics.k8s.io", "networking.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io",
	"scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
}

// builtin reports whether no definition gives an API server the kind. Groups of definitions have a domain of their own.
func builtin(gk schema.GroupKind) bool {
	return !strings.Contains(gk.Group, ".") || slices.Contains(serverGroups, gk.Group)
}

// define makes a definition of a kind whose objects may hold anything.
func define(gvk schema.GroupVersionKind, namespaced bool) *unstructured.Unstructured {
	plural := strings.ToLower(gvk.Kind) + "s"
	scope := "Cluster"
	if namespaced {
		scope = "Namespaced"
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name": plural + "." + gvk.Group,
			// Without it a group of the Kubernetes project's is refused.
			"annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, made up by tare"},
		},
		"spec": map[string]any{
			"group": gvk.Group, "scope": scope,
			"names": map[string]any{"kind": gvk.Kind, "plural": plural, "singular": strings.ToLower(gvk.Kind)},
			"versions": []any{map[string]any{
				"name": gvk.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	}}
}
