// Package own takes a user's own policies, ValidatingAdmissionPolicies, Kyverno's and Gatekeeper's, as they stand in
// files, compiles the first, narrows what binds them to one namespace, and makes requests that such policies deny. It
// sends none.
package own

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	node "go.yaml.in/yaml/v4"
	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	strict "sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/api/konfig"

	"tare/areas/admission/mechanism"
	"tare/areas/bundle"
	"tare/internal/files"
)

// group is the API group of policies and bindings.
const group = "admissionregistration.k8s.io"

// The kinds that are taken, besides definitions of parameters' kinds and parameters.
const (
	policyKind  = "ValidatingAdmissionPolicy"
	bindingKind = "ValidatingAdmissionPolicyBinding"
)

// ErrNone says that a bundle holds no policy.
var ErrNone = errors.New("holds no " + policyKind + " or " + mutatingKind + ", no policy of Kyverno's that " +
	"validates, mutates or generates and no constraint or mutation of Gatekeeper's in a *.yaml, *.yml or *.json file")

// A Set is what a bundle holds.
type Set struct {
	Policies  []Policy  // in the order of their names
	Bindings  []Binding // likewise
	templates []object  // of Gatekeeper's, each of which defines a kind
	// definitions are the CustomResourceDefinitions of parameters' kinds, and params the parameters.
	definitions, params []*unstructured.Unstructured
	configMaps          []*unstructured.Unstructured // those that policies of an engine's may read
	namespaces          []*unstructured.Unstructured // those with labels, which selectors may ask for
	asked               []*unstructured.Unstructured // what policies that ask the API server may be told
	beside              []*unstructured.Unstructured // what else may change or deploy policies
	// Left counts the objects that are not put in force, by kind: "Deployment": 3.
	Left map[string]int
	// Untaken are those of them that decide about requests, too, each once, and what is no YAML:
	// "ValidatingWebhookConfiguration a", "b.yaml:3: did not find expected key".
	Untaken []string
	// Repeated are the places where a key stands twice in a map of a policy, of which the last value counts.
	Repeated []string
	network  bool // policies that ask other servers are taken, too
	// deciding are all objects of the bundle that decide about requests, as they stand there, and passed those that
	// kubectl reads, or may read, and tare does not.
	deciding, passed []object
	unlisted         map[*unstructured.Unstructured]bool // those that the folder's kustomization does not list
}

// A Policy is one policy and where it stands.
type Policy struct {
	// ValidatingAdmissionPolicy is the policy. Of one of an engine's it holds the name, and in its match constraints what
	// the policy is about; of a MutatingAdmissionPolicy all but what it changes.
	admission.ValidatingAdmissionPolicy
	at       document
	engine   *unstructured.Unstructured         // as it stands in the file; nil: the API server evaluates the policy
	mutating *admission.MutatingAdmissionPolicy // nil: the policy is of another kind
	custom   []schema.GroupVersionKind          // that definitions must give it
}

// kind is the policy's kind.
func (p *Policy) kind() string {
	if p.engine != nil {
		return p.engine.GetKind()
	}
	if p.mutating != nil {
		return mutatingKind
	}
	return policyKind
}

// namespace is that in which the policy stands; empty: in none.
func (p *Policy) namespace() string {
	if p.engine != nil {
		return p.engine.GetNamespace()
	}
	return ""
}

// A Binding is one binding and where it stands.
type Binding struct {
	admission.ValidatingAdmissionPolicyBinding
	at      document
	mutates bool // it is the binding of a MutatingAdmissionPolicy
}

// kind is the binding's kind.
func (b *Binding) kind() string {
	if b.mutates {
		return mutatingBindingKind
	}
	return bindingKind
}

// binds reports whether the binding is one of the policy's.
func (b *Binding) binds(p *Policy) bool {
	return p.engine == nil && b.Spec.PolicyName == p.Name && b.mutates == (p.mutating != nil)
}

// At is where the policy stands.
func (p *Policy) At() bundle.Place { return p.at.place() }

// Read reads the policies of a file, of what a folder's kustomization builds, or of the *.yaml, *.yml and *.json files
// of a folder and of those below it. It leaves aside what is no Kubernetes object, what tests compare objects with,
// folders whose name begins with a dot, and without a network policies that ask other servers.
func Read(from string, network bool) (*Set, error) {
	s := &Set{Left: map[string]int{}, network: network, unlisted: map[*unstructured.Unstructured]bool{}}
	var others []*unstructured.Unstructured
	if err := eachObject(from, func(o object) error { return s.take(o, &others) }); err != nil {
		return nil, err
	}
	s.takeNeeded(others)
	if err := eachLink(from, func(o object) error { return s.take(o, nil) }); err != nil {
		return nil, err
	}
	slices.SortStableFunc(s.Policies, func(a, b Policy) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Bindings, func(a, b Binding) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.kind(), b.kind()))
	})
	return s, s.check(from)
}

// A Sample is an object that policies may object to.
type Sample struct {
	*unstructured.Unstructured
	// At is where it stands, and where no other does: "samples/pods.yaml:7".
	At string
}

// ReadObjects reads the objects of such files.
func ReadObjects(from string) (out []*unstructured.Unstructured, err error) {
	samples, err := ReadSamples(from)
	for _, s := range samples {
		out = append(out, s.Unstructured)
	}
	return out, err
}

// ReadSamples reads the objects of such files that policies may object to.
func ReadSamples(from string) (out []Sample, err error) {
	err = eachObject(from, func(o object) error {
		if o.passed {
			return nil
		}
		if o.unread != "" {
			return errors.New(o.unread)
		}
		if o.GetName() == "" {
			return o.at.errorf("%s without a metadata.name", o.GetKind())
		}
		out = append(out, Sample{o.Unstructured, o.at.String()})
		return nil
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s holds no Kubernetes object in a *.yaml, *.yml or *.json file", from)
	}
	return out, err
}

// eachObject calls do for each object.
func eachObject(from string, do func(o object) error) error {
	at, listed := listed(from)
	if err := eachDeploying(from, at, do); err != nil {
		return err
	}
	if at != "" {
		text, err := build(at)
		if err != nil {
			return err
		}
		return eachOf(from+built, string(text), do)
	}
	all, err := readSources(from)
	if err != nil {
		return err
	}
	compared := comparedOf(all)
	for _, one := range all {
		aside := compared(one.name)
		if deploys(one.name) || !isRead(one.name) {
			if err := do(one.whole(one.text)); err != nil {
				return err
			}
			continue
		}
		if bundle.Hidden(one.name) {
			if err := one.pass(aside, do); err != nil {
				return err
			}
			continue
		}
		if one.kustomizes(listed) {
			if err := one.eachNamed(from, do); err != nil {
				return err
			}
		}
		err := eachOf(one.in(from), one.text, func(o object) error {
			o.compared, o.unlisted = aside, listed != nil && !listed[one.name]
			name := one.name
			if one.in(from) == from {
				name = "itself"
			}
			switch {
			case o.none != "" && one.isKnown():
				return nil
			case o.none != "":
				return do(source{name: name}.whole(o.none))
			case o.unread != "":
				o.Unstructured = source{name: name}.whole(o.at.text).Unstructured
			}
			return do(o)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// kustomizes reports whether a file is a kustomization below the folder that the folder's own does not name.
func (s source) kustomizes(listed map[string]bool) bool {
	at := path.Dir(s.name)
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(s.name)) && at != "." && !listed[at]
}

// eachLink calls do for each object, or other file, to which a link of a folder leads: kubectl follows it.
func eachLink(from string, do func(o object) error) error {
	if kustomized(from) != "" {
		return nil
	}
	return bundle.Links(from, func(name, to string, text []byte) error {
		switch one := (source{name, string(text)}); {
		case to != "" && isObjects(name):
			return do(one.whole(to))
		case to != "":
			return nil
		case deploys(name) || !isObjects(name):
			return do(one.whole(one.text))
		default:
			return one.pass(false, do)
		}
	})
}

// eachNamed calls do for a kustomization as a whole, and for each file that it, or one that it names, needs and that is
// not read by its name.
func (s source) eachNamed(from string, do func(o object) error) error {
	if err := do(s.whole(s.text)); err != nil {
		return err
	}
	folder, err := filepath.Abs(from)
	if err != nil {
		return err
	}
	g := newGathered(folder, files.Top(folder))
	g.folder(filepath.Join(folder, path.Dir(s.name))) //nolint:errcheck // what cannot be built is compared as it stands
	for _, file := range slices.Sorted(maps.Keys(g.Texts)) {
		name, err := filepath.Rel(folder, file)
		if err == nil && (!filepath.IsLocal(name) || !isRead(name)) {
			err = do(source{name: name}.whole(string(g.Texts[file])))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// whole is a file as an object of no API, of which the sum of a text is compared.
func (s source) whole(text string) object {
	o := &unstructured.Unstructured{Object: tree{"kind": "file", "sum": fmt.Sprintf("%x", sha256.Sum256([]byte(text)))}}
	o.SetName(s.name)
	return object{Unstructured: o, passed: true}
}

// pass calls do for each object of a file that is not read, and for each document that tare refuses.
func (s source) pass(compared bool, do func(o object) error) error {
	for _, d := range documents(s.name, s.text) {
		objects, err := d.objects()
		if err != nil || len(objects) == 1 && objects[0].unread != "" {
			objects = []object{s.whole(d.text)}
		}
		for _, o := range objects {
			o.compared, o.passed = compared, true
			if err := do(o); err != nil {
				return err
			}
		}
	}
	return nil
}

// isObjects reports whether a file is called like one that can hold objects.
func isObjects(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// isRead reports whether a file is called like one that can hold objects, or a kustomization.
func isRead(name string) bool {
	return isObjects(name) || slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name))
}

// deploying are the names of files that tell Flux, Fleet or Argo CD which objects of their folder are left out, or how
// they are made.
var deploying = []string{bundle.LeftByFlux, bundle.LeftByFleet, "fleet.yaml", "Chart.yaml"}

// deploys reports whether a file tells a deployer which objects of its folder are left out, changed or made otherwise.
func deploys(name string) bool {
	base := path.Base(name)
	return slices.Contains(deploying, base) || strings.HasPrefix(base, ".argocd-source")
}

// A source is a file of a bundle, by its path in the bundle.
type source struct{ name, text string }

// in is the file's path, in that of its bundle.
func (s source) in(from string) string {
	if filepath.Base(from) == s.name {
		return from
	}
	return filepath.Join(from, s.name)
}

// readSources reads the files of a bundle, hidden ones too, in the order of their paths.
func readSources(from string) (out []source, err error) {
	err = bundle.Each(from, func(name string, text []byte) error {
		out = append(out, source{name, string(text)})
		return nil
	})
	return out, err
}

// eachOf calls do for each object of a file, and for each document that holds something else.
func eachOf(file, text string, do func(o object) error) error {
	for _, d := range documents(file, text) {
		objects, err := d.holds()
		if err != nil {
			return err
		}
		for _, o := range objects {
			if err := do(o); err != nil {
				return err
			}
		}
	}
	return nil
}

// An object is one that a document holds.
type object struct {
	*unstructured.Unstructured
	at document
	// repeated says where its document has a key twice in a map.
	repeated string
	// unread says why its document is no YAML; the object is its text then, or empty.
	unread string
	// none is what its document holds in place of an object.
	none string
	// compared says that tests compare objects with it.
	compared bool
	// passed says that its file is not read: it is hidden, or a link.
	passed bool
	// unlisted says that the folder's kustomization does not list its file.
	unlisted bool
}

// leaveCompared leaves an object aside with which tests compare. It is named where it would decide about requests: a
// folder that is applied as a whole has it, too.
func (s *Set) leaveCompared(o object) {
	s.passed = append(s.passed, o)
	if k := o.GroupVersionKind(); !decides(k) {
		s.Left[k.Kind]++
		return
	}
	name := o.GetKind() + " " + o.GetName()
	s.Untaken = append(s.Untaken, fmt.Sprintf("%s of %s, with which tests compare", name, o.at.file))
}

// take sorts an object. What only may be needed goes to others.
func (s *Set) take(o object, others *[]*unstructured.Unstructured) error {
	switch {
	case o.passed:
		s.passed = append(s.passed, o)
		return nil
	case o.unread != "":
		s.Untaken = append(s.Untaken, o.unread)
		s.passed = append(s.passed, o)
		return nil
	case o.compared:
		s.leaveCompared(o)
		return nil
	}
	k := o.GroupVersionKind()
	if decides(k) {
		s.deciding = append(s.deciding, o)
	}
	if decides(k) && !slices.Contains(takenKinds, k.Kind) && EngineOf(o.Unstructured) == "" {
		s.Untaken = append(s.Untaken, k.Kind+" "+o.GetName())
	}
	if o.unlisted {
		s.unlisted[o.Unstructured] = true
	}
	if o.repeated != "" && decides(k) {
		s.Repeated = append(s.Repeated, o.repeated)
	}
	switch {
	case isKyverno(k):
		return s.takeKyverno(o)
	case isTemplate(k):
		s.templates = append(s.templates, o)
		return nil
	case isConstraint(k):
		return s.takeConstraint(o)
	case isMutator(k):
		return s.takeMutator(o)
	case k.Group != group:
		*others = append(*others, o.Unstructured)
		return nil
	case !slices.Contains([]string{"v1", "v1beta1", "v1alpha1"}, k.Version):
		return o.at.errorf("%s %s: %s has no version %s", k.Kind, o.GetName(), group, k.Version)
	case k.Kind == policyKind:
		p := Policy{at: o.at}
		if err := o.into(&p.ValidatingAdmissionPolicy); err != nil {
			return err
		}
		s.Policies = append(s.Policies, p)
		return nil
	case k.Kind == bindingKind:
		b := Binding{at: o.at}
		if err := o.into(&b.ValidatingAdmissionPolicyBinding); err != nil {
			return err
		}
		s.Bindings = append(s.Bindings, b)
		return nil
	case k.Kind == mutatingKind:
		return s.takeMutating(o)
	case k.Kind == mutatingBindingKind:
		return s.takeMutatingBinding(o)
	}
	s.Left[k.Kind]++
	return nil
}

// takenKinds are those of the API server's own objects that decide about requests and are put in force.
var takenKinds = []string{policyKind, bindingKind, mutatingKind, mutatingBindingKind}

// decidingGroups are those whose objects decide about requests, and so do those of groups below them.
var decidingGroups = []string{group, kyvernoGroup, gatekeeperGroup}

// decides reports whether objects of a kind decide about requests, by themselves or by an engine.
func decides(k schema.GroupVersionKind) bool {
	return slices.ContainsFunc(decidingGroups, func(of string) bool {
		return !slices.Contains(testGroups, k.Group) && (k.Group == of || strings.HasSuffix(k.Group, "."+of))
	})
}

// into decodes an object strictly. Older versions of the API have the same fields.
func (o object) into(to any) error {
	text, err := o.MarshalJSON()
	if err != nil {
		return o.at.errorf("%w", err)
	}
	wrong, err := strict.UnmarshalStrict(text, to)
	if err = errors.Join(append([]error{err}, wrong...)...); err != nil {
		says := fmt.Sprintf("%s %s: %v", o.GetKind(), o.GetName(), err)
		if m := unknownField.FindStringSubmatch(says); m != nil {
			path := strings.Split(strings.NewReplacer("[", ".", "]", "").Replace(m[1]), ".")
			last := path[len(path)-1]
			at := o.at.keyPlace(func(key *node.Node) bool { return key.Value == last }, path[:len(path)-1]...)
			return errors.New(at.Show(o.at.all, says))
		}
		return o.at.errorf("%s", says)
	}
	return nil
}

// unknownField finds the path of a field that the API does not have in an error about it.
var unknownField = regexp.MustCompile(`unknown field "([^"]+)"`)

// engines are words of objects that may say how an engine is set up, or what becomes of policies, in small letters.
var engines = []string{"kyverno", "gatekeeper", "validatingadmissionpolic", "mutatingadmissionpolic", "clusterpolic"}

// speaksOfEngine reports whether an object may say how an engine is set up, such as a release of its chart or a setting
// in its namespace, or change policies, such as the patches of what deploys them.
func speaksOfEngine(o *unstructured.Unstructured) bool {
	text, err := bare(o).MarshalJSON()
	says := strings.ToLower(o.GetNamespace() + " " + string(text))
	return !slices.Contains(testGroups, o.GroupVersionKind().Group) && (err != nil ||
		slices.ContainsFunc(engines, func(word string) bool { return strings.Contains(says, word) }))
}

// A reader says what policies may read beside requests: objects of some kinds, and of those that definitions must give
// them.
type reader struct {
	params, custom     map[schema.GroupKind]bool
	configMaps, asking bool // all ConfigMaps, and all objects
}

// reader is what the policies of the set may read.
func (s *Set) reader() reader {
	r := reader{params: map[schema.GroupKind]bool{}, custom: map[schema.GroupKind]bool{}}
	texts := make([]string, 0, len(s.Policies)+len(s.templates))
	for i := range s.Policies {
		if gvk, ok := s.Policies[i].paramKind(); ok {
			r.params[gvk.GroupKind()] = true
		}
		for _, gvk := range s.Policies[i].custom {
			r.custom[gvk.GroupKind()] = true
		}
		if s.Policies[i].engine != nil {
			texts = append(texts, s.Policies[i].at.text)
			some, _ := asks(s.Policies[i].engine)
			r.asking = r.asking || some
		}
	}
	for _, o := range s.templates {
		texts = append(texts, o.at.text)
		some, _ := asks(o.Unstructured)
		r.asking = r.asking || some
	}
	r.configMaps = strings.Contains(strings.ToLower(strings.Join(texts, "\n")), "configmap")
	return r
}

// definition reports whether an object defines a kind of parameters, or one that policies need.
func (r reader) definition(o *unstructured.Unstructured) bool {
	defined := definedBy(o)
	return !defined.Empty() && (r.params[defined] || r.custom[defined])
}

// configMap reports whether an object is a ConfigMap that policies of an engine's may read.
func (r reader) configMap(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "ConfigMap"} && r.configMaps
}

// isDescribed reports whether an object is a namespace with labels or annotations, which policies may ask for.
func isDescribed(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Namespace"} &&
		len(o.GetLabels())+len(o.GetAnnotations()) > 0
}

// isAsked reports whether policies may depend on an object that ask for none: a role, or a setting of an engine's.
func isAsked(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().Group == "rbac.authorization.k8s.io" || speaksOfEngine(o)
}

// reads reports whether policies may read an object. It leaves out what they may ask the API server for: that may be
// anything, and beside tests there are many objects.
func (r reader) reads(o *unstructured.Unstructured) bool {
	return r.params[o.GroupVersionKind().GroupKind()] || r.definition(o) || r.configMap(o) || isDescribed(o) || isAsked(o)
}

// takeNeeded takes the objects of the policies' parameters, and the definitions of their kinds and of others that
// policies need.
func (s *Set) takeNeeded(others []*unstructured.Unstructured) {
	s.takeCustom(others)
	r := s.reader()
	for _, o := range others {
		gk := o.GroupVersionKind().GroupKind()
		if r.configMap(o) {
			s.configMaps = append(s.configMaps, o)
		}
		if isDescribed(o) {
			s.namespaces = append(s.namespaces, o)
		}
		switch {
		case r.params[gk]:
			s.params = append(s.params, o)
		case r.definition(o):
			s.definitions = append(s.definitions, o)
		default:
			s.Left[gk.Kind]++
			switch {
			case decides(o.GroupVersionKind()), r.configMap(o), isDescribed(o):
			case r.asking, isAsked(o):
				s.asked = append(s.asked, o)
			case !isHarmless(o):
				s.beside = append(s.beside, o)
			}
		}
	}
}

// definedBy is the kind that a CustomResourceDefinition defines; of other objects, none.
func definedBy(o *unstructured.Unstructured) schema.GroupKind {
	for gvk := range mechanism.Defined([]*unstructured.Unstructured{o}) {
		return gvk.GroupKind() // all versions have one
	}
	return schema.GroupKind{}
}

// paramKind is the kind of the policy's parameter.
func (p *Policy) paramKind() (schema.GroupVersionKind, bool) {
	k := p.Spec.ParamKind
	if k == nil {
		return schema.GroupVersionKind{}, false
	}
	return schema.FromAPIVersionAndKind(k.APIVersion, k.Kind), true
}

// HoldsObjects reports whether the bundle holds objects that are not put in force.
func (s *Set) HoldsObjects() bool { return len(s.Left)+len(s.Untaken)+len(s.templates) > 0 }

// check refuses a set in which something is missing or there twice.
func (s *Set) check(from string) error {
	if len(s.Policies) == 0 && len(s.Untaken) > 0 {
		return fmt.Errorf("%s %w: left aside is %s", from, ErrNone, s.Untaken[0])
	}
	if len(s.Policies) == 0 && len(s.templates) > 0 {
		return fmt.Errorf("%s %w: add a constraint of ConstraintTemplate %s", from, ErrNone, s.templates[0].GetName())
	}
	if len(s.Policies) == 0 {
		return fmt.Errorf("%s %w", from, ErrNone)
	}
	for i := range s.Policies[1:] {
		switch a, b := &s.Policies[i], &s.Policies[i+1]; {
		case a.Name != b.Name:
		case a.kind() == b.kind() && a.namespace() == b.namespace():
			return b.at.errorf("%s %s stands at %s already: remove one, or name a kustomization.yaml that lists the files "+
				"that are meant", b.kind(), b.Name, a.at.place())
		default:
			return b.at.errorf("%s %s has the name of %s %s at %s: Kubernetes allows that, but denials and counts give the "+
				"name alone, so that tare could not tell the two apart: rename one, or name a kustomization.yaml that lists "+
				"one of them", b.kind(), b.Name, a.kind(), a.Name, a.at.place())
		}
	}
	if err := s.checkTemplates(); err != nil {
		return err
	}
	for i := range s.Bindings {
		b := &s.Bindings[i]
		if i > 0 && s.Bindings[i-1].Name == b.Name && s.Bindings[i-1].mutates == b.mutates {
			return b.at.errorf("%s %s stands at %s already", b.kind(), b.Name, s.Bindings[i-1].at.place())
		}
		if p := s.named(b.Spec.PolicyName); p == nil || !b.binds(p) {
			return b.at.errorf("%s %s binds %s %q, which the bundle does not hold", b.kind(), b.Name,
				strings.TrimSuffix(b.kind(), "Binding"), b.Spec.PolicyName)
		}
	}
	return nil
}

// named finds a policy by its name; nil: there is none.
func (s *Set) named(name string) *Policy {
	for i := range s.Policies {
		if s.Policies[i].Name == name {
			return &s.Policies[i]
		}
	}
	return nil
}

// encoded returns a policy or a binding that stands in the document as it is sent.
func (d document) encoded(o any) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, d.errorf("%w", err)
	}
	delete(content, "status")
	return &unstructured.Unstructured{Object: content}, nil
}

// ParamKinds are the kinds of the policies' parameters, each once.
func (s *Set) ParamKinds() (out []schema.GroupVersionKind) {
	for i := range s.Policies {
		if gvk, ok := s.Policies[i].paramKind(); ok && !slices.Contains(out, gvk) {
			out = append(out, gvk)
		}
	}
	return out
}
