package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/area"
	"tare/areas/admission/cluster"
	"tare/areas/admission/mechanism"
	"tare/areas/admission/own"
	"tare/internal/kit"
	"tare/internal/unit"
)

// discover puts the user's own policies in force, and finds out which of them object to which request of a catalogue:
// these requests are their proof. It leaves them in force if the control plane is the treatment's own.
func (p *arm) discover(ctx context.Context) error {
	x := &p.policies
	x.present = true // set first: a partial creation is removed as well
	engines := enginesOf(x.own)
	if !p.foreign {
		if err := p.applyDefinitions(ctx); err != nil {
			return err
		}
	}
	if err := p.startEngines(ctx, engines); err != nil {
		return err
	}
	if err := p.lookAtPlain(ctx); err != nil {
		return err
	}
	if err := p.applyEach(ctx); err != nil {
		return fmt.Errorf("put the policies in force: %w", err)
	}
	if err := p.awaitEngines(ctx); err != nil {
		return err
	}
	if err := p.lookAtEngines(ctx); err != nil {
		return err
	}
	if err := p.awaitCanary(ctx); err != nil { // of what engines have the API server evaluate, too
		return err
	}
	if err := p.passMutatingCanaries(ctx); err != nil {
		return err
	}
	if err := p.awaitAdmitted(ctx); err != nil {
		return err
	}
	if err := p.findOrTakeProofs(ctx); err != nil {
		return err
	}
	if err := p.proveGenerations(ctx); err != nil {
		return err
	}
	if err := p.findMarks(ctx); err != nil {
		return err
	}
	if err := p.proveConfined(ctx); err != nil {
		return err
	}
	if err := p.awaitAudit(ctx); err != nil {
		return err
	}
	x.absence = absence(p.kind, x.proof, p.scope())
	x.absence.Good.Pod = x.proof.Good.Pod
	if p.visiting() {
		return p.removePolicies(ctx)
	}
	return nil
}

// passCanary creates a policy of tare's own after the user's, waits until it objects to a pod, and takes it away again.
// objects reports whether it does; want is what is waited for.
func (p *arm) passCanary(ctx context.Context, canary []*unstructured.Unstructured,
	objects func(probe mechanism.Probe, want bool) (bool, error),
) error {
	probe, err := p.canaryProbe()
	if err != nil {
		return err
	}
	for _, o := range canary {
		if err := p.applyOne(ctx, p.admin, o); err != nil {
			return fmt.Errorf("create a policy that shows when the others are in force: %w", err)
		}
	}
	await := func(want bool, what, otherwise string) error {
		return p.await(ctx, what, func() error {
			is, err := objects(probe, want)
			if err == nil && is != want {
				err = errors.New(otherwise)
			}
			return err
		})
	}
	if err := await(true, "a policy that was created after the others is not in force",
		"a pod that it denies is admitted, or denied by others only"); err != nil {
		return cmp.Or(p.admits(ctx), err) // what denies the measured pod keeps a canary from being seen, too
	}
	resources, _, err := p.admin.Lookup(ctx, mechanism.KindsOf(canary))
	if err == nil {
		err = p.admin.RemoveAll(ctx, resources)
	}
	if err != nil {
		return fmt.Errorf("take away the policy that showed when the others are in force: %w", err)
	}
	return await(false, "a policy that was removed is still in force", "it still denies a pod")
}

// awaitCanary has the API server's canary pass: it takes policies over in the order of their creation, so that the
// user's are in force then. The canary's denial need not be the one that the API server reports: the counter tells.
// Where that cannot be read, any denial by the run's policies will do.
func (p *arm) awaitCanary(ctx context.Context) error {
	s := p.scope()
	s.Run = p.admin.Run()
	canary, err := mechanism.Render(mechanism.VAP, mechanism.Default(mechanism.VAP, 1), s)
	if err != nil {
		return err
	}
	name := canary.Objects[0].GetName()
	return p.passCanary(ctx, canary.Objects, func(probe mechanism.Probe, want bool) (bool, error) {
		found, err := p.objections(ctx, probe)
		return slices.Contains(found, name) || want && p.metricsDenied != "" && len(found) > 0, err
	})
}

// canaryProbe is the measured pod, which the user's policies should admit, with a label that a canary denies: what
// others deny may never come to the canary.
func (p *arm) canaryProbe() (mechanism.Probe, error) {
	probe := mechanism.Probe{Name: "tare-probe-canary"}
	pod := &unstructured.Unstructured{}
	if err := pod.UnmarshalJSON(p.policies.proof.Good.Pod); err != nil {
		return probe, fmt.Errorf("read the pod that is measured: %w", err)
	}
	labels := pod.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[mechanism.DenyLabel] = mechanism.DenyAll
	pod.SetLabels(labels)
	pod.SetName(probe.Name)
	var err error
	probe.Pod, err = pod.MarshalJSON()
	return probe, err
}

// objections returns the policies of the run that object to a request, as the API server counts them; where its counts
// cannot be read, the one that it names.
func (p *arm) objections(ctx context.Context, probe mechanism.Probe) ([]string, error) {
	var a answer
	out, err := p.objecting(ctx, func(ctx context.Context) (err error) {
		a, err = p.ask(ctx, probe)
		return err
	})
	if err == nil && p.metricsDenied != "" {
		return p.denier(a), nil
	}
	return out, err
}

// objecting returns the policies of the run that object meanwhile, as the API server counts them: none where its counts
// cannot be read.
func (p *arm) objecting(ctx context.Context, do func(context.Context) error) (out []string, err error) {
	if p.metricsDenied != "" {
		return nil, do(ctx)
	}
	before, err := p.checks(ctx)
	if err != nil {
		return nil, err
	}
	if err := do(ctx); err != nil {
		return nil, err
	}
	after, err := p.checks(ctx)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(difference(before, after, p.namespace+"."))), nil
}

// counts are the API server's and the engine's; none where they cannot be read.
func (p *arm) counts(ctx context.Context) (map[string]uint64, error) {
	if p.metricsDenied != "" {
		return nil, nil //nolint:nilnil // none
	}
	return p.checks(ctx)
}

// denier returns the policies of the run that an answer names as those that denied the request. The API server names
// the first of its own.
func (p *arm) denier(a answer) []string {
	if mechanism.RulingOf(a.status, a.body) != mechanism.PolicyDenied {
		return nil
	}
	if named := p.engineDeniers(a); len(named) > 0 {
		return named
	}
	_, said, _ := strings.Cut(a.said(), "ValidatingAdmissionPolicy '")
	name, _, ok := strings.Cut(said, "'")
	if !ok || !strings.HasPrefix(name, p.namespace+".") {
		return nil // somebody else's
	}
	return []string{name}
}

// awaitAdmitted tries the measured pod when the API server has found the kinds of the policies' parameters.
func (p *arm) awaitAdmitted(ctx context.Context) error {
	var said error
	err := p.await(ctx, "the kind of a policy's parameter is not found", func() error {
		if said = p.admits(ctx); said != nil && cluster.LacksParamKind(said.Error()) {
			return said
		}
		return nil
	})
	return cmp.Or(err, said)
}

// admits tries the measured pod: one that the policies deny measures nothing.
func (p *arm) admits(ctx context.Context) error {
	a, err := p.ask(ctx, p.policies.proof.Good)
	if err != nil {
		return err
	}
	if a.status == http.StatusCreated {
		return nil
	}
	const most = 1500 // what engines say begins with the names of object, policy and rule
	said := strings.ReplaceAll(kit.Clipped(a.said(), most), p.namespace+".", "")
	if a.webhookIsAway() {
		return fmt.Errorf("no policy has judged the pod that is measured, since a webhook could not be called: %s; start "+
			"what answers there, or have the webhook leave the namespaces of runs alone, such as %s", said, p.namespace)
	}
	if all, err := p.objections(ctx, p.policies.proof.Good); err == nil && len(all) > 1 {
		said += fmt.Sprintf(" (%s object to it: %s)", unit.Count(len(all), "policy"), strings.Join(p.named(all), ", "))
	}
	if !p.foreign && strings.Contains(said, "failed to get configmap") {
		return fmt.Errorf("a policy reads a ConfigMap that is not there: add it to the bundle, with the namespace and the "+
			"name that the policy says: %s", said)
	}
	if p.spec.Measured == "" {
		return fmt.Errorf("the policies do not admit the pod that is measured, one of tare's own: %s; name a pod that they "+
			"admit: measured: FILE, or --set target.measured=FILE", said)
	}
	return fmt.Errorf("the policies do not admit the pod of %s, which is measured: %s", p.spec.Measured, said)
}

// findOrTakeProofs finds the proofs, or takes those of a treatment with the same policies, such as the A/A arm's, and
// tries them.
func (p *arm) findOrTakeProofs(ctx context.Context) error {
	x := &p.policies
	requests, err := p.catalogue(ctx)
	if err != nil {
		return err
	}
	key := p.findingKey()
	f, known := p.found[key]
	f.requests = requests // those of another treatment are about its namespace
	if known {
		p.keepProofs(f)
		return p.prove(ctx, x.proof)
	}
	if err := p.findProofs(ctx, &f); err != nil {
		return err
	}
	p.found[key] = f
	p.keepProofs(f)
	return nil
}

// findingKey names what the bundle may show: on another control plane the same policies may find other things.
func (p *arm) findingKey() string {
	return fmt.Sprintln(p.spec.Bundle, p.spec.Kubeconfig, p.spec.Context, p.version, p.flags, p.spec.Kyverno,
		p.spec.Gatekeeper)
}

// catalogue is everything that is asked in search of proofs.
func (p *arm) catalogue(ctx context.Context) ([]own.Request, error) {
	out, err := own.Catalogue(p.everyPolicy(), p.policies.proof.Good.Pod, p.namespace)
	if err != nil {
		return nil, err
	}
	yours, err := p.requests(ctx)
	if err != nil {
		return nil, err
	}
	tested, err := p.tested(ctx)
	return slices.Concat(out, yours, tested), err
}

// proveConfined asks, in a cluster of the user's, for what engines' policies deny, and for the measured pod, in another
// namespace of the run's with the same labels: there they must not.
func (p *arm) proveConfined(ctx context.Context) error {
	if !p.foreign || len(p.engines) == 0 {
		return nil
	}
	beside := p.namespace + "-beside"
	if err := p.admin.EnsureNamespace(ctx, beside, p.policies.rendered.NamespaceLabels); err != nil {
		return err
	}
	f := p.policies.finding
	indexes := slices.Sorted(maps.Values(f.proof))
	indexes = slices.AppendSeq(indexes, maps.Values(f.changed))
	isMeasured := func(r own.Request) bool { return r.Name == own.MeasuredPod }
	if i := slices.IndexFunc(f.requests, isMeasured); i >= 0 {
		indexes = append(indexes, i)
	}
	slices.Sort(indexes)
	for _, i := range slices.Compact(indexes) {
		r, err := f.requests[i].In(beside)
		if err != nil {
			return err
		}
		a, err := p.ask(ctx, mechanism.Probe{Path: r.Path(beside), Kind: r.Kind, Pod: r.Body})
		if err != nil {
			return err
		}
		const away = "taken away again, and not measured in a cluster that others use"
		const unconfined = "in another namespace, although it was narrowed to the run's: it is " + away
		if named := p.named(p.denier(a)); len(named) > 0 {
			return fmt.Errorf("%s also denies a %s %s: %s", strings.Join(named, ", "), r.Name, unconfined, a.message())
		}
		if isMeasured(r) && a.status/100 == 4 && a.status != http.StatusTooManyRequests {
			return fmt.Errorf("with the policies a %s is refused in another namespace: they are %s: %s", r.Name, away,
				a.message())
		}
		if by, err := p.changesBeside(f, i, a, beside); err != nil || by != "" {
			return cmp.Or(err, fmt.Errorf("%s also changes a %s %s", by, r.Name, unconfined))
		}
	}
	return nil
}

// requests are the user's own, for the run's namespace.
func (p *arm) requests(ctx context.Context) (out []own.Request, err error) {
	if p.spec.Requests == "" {
		return nil, nil
	}
	samples, err := own.ReadSamples(p.spec.Requests)
	if err != nil {
		return nil, err
	}
	for _, o := range samples {
		resource, err := p.resourceOf(ctx, o.Unstructured)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.spec.Requests, err)
		}
		r, err := creationOf(o, resource, p.namespace)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.spec.Requests, err)
		}
		r.Name = "your " + r.Name
		out = append(out, r)
	}
	return out, nil
}

// creationOf is the creation of an object in a namespace. Its name has the object's place: several may have one kind
// and one name, and treatments are compared by the names of their requests.
func creationOf(s own.Sample, r schema.GroupVersionResource, namespace string) (own.Request, error) {
	o := s.DeepCopy()
	o.SetNamespace(namespace)
	body, err := o.MarshalJSON()
	if err != nil {
		return own.Request{}, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return own.Request{
		Name: o.GetKind() + " " + o.GetName() + " of " + s.At, Group: r.Group, Version: r.Version, Resource: r.Resource,
		Kind: o.GetKind(), Body: body,
	}, nil
}

// tested are the objects on which the policies' own tests try them, of all bundles of the experiment: as for
// everyPolicy. Those that no policy is about are left out, and so is what the control plane does not have.
func (p *arm) tested(ctx context.Context) (out []own.Request, err error) {
	policies, known := p.everyPolicy(), map[schema.GroupVersionKind][]schema.GroupVersionResource{}
	samples, more, err := own.Tested(p.bundlePaths()...)
	if err != nil {
		return nil, err
	}
	if more {
		p.env.Log.Warn("the policies' tests name more objects than are tried", slog.Int("tried", len(samples)))
	}
	for _, o := range samples {
		k := o.GroupVersionKind()
		resources, ok := known[k]
		if !ok {
			if resources, _, err = p.policies.keeper.Lookup(ctx, []schema.GroupVersionKind{k}); err != nil {
				return nil, err
			}
			known[k] = resources
		}
		if len(resources) == 0 || !slices.ContainsFunc(policies, func(one *own.Policy) bool {
			return one.Sees(resources[0].Group, resources[0].Version, resources[0].Resource, "CREATE")
		}) {
			continue
		}
		r, err := creationOf(o, resources[0], p.namespace)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// bundlePaths are the bundles of the experiment, each once.
func (p *arm) bundlePaths() (out []string) {
	for _, t := range p.env.Treatments {
		other, err := p.declared.plan(t)
		if err == nil && other.kind == mechanism.Own && !slices.Contains(out, other.spec.Bundle) {
			out = append(out, other.spec.Bundle)
		}
	}
	if !slices.Contains(out, p.spec.Bundle) {
		out = append(out, p.spec.Bundle)
	}
	return out
}

// resourceOf is the resource of an object's kind.
func (p *arm) resourceOf(ctx context.Context, o *unstructured.Unstructured) (schema.GroupVersionResource, error) {
	resources, _, err := p.policies.keeper.Lookup(ctx, []schema.GroupVersionKind{o.GroupVersionKind()})
	if err == nil && len(resources) == 0 {
		err = fmt.Errorf("the API server has no kind %s in %s", o.GetKind(), o.GetAPIVersion())
	}
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	return resources[0], nil
}

// counted is how many requests lie between two readings of the API server's counts: a reading costs as much as ten
// requests.
const counted = 16

// sayEvery is the interval at which the search says how far it is.
const sayEvery = 15 * time.Second

// askAbreast is how many requests of the search are in flight: policies may ask outside servers, and wait for them.
const askAbreast = 8

// findProofs asks for everything of the catalogue once, as dry runs, and keeps for each policy a request to which it
// objects.
func (p *arm) findProofs(ctx context.Context, f *finding) error {
	f.proof, f.alone, f.refused, f.undecided = map[string]int{}, map[string]bool{}, map[int]bool{}, map[int]bool{}
	f.changes, f.failures, f.unnamed = map[int]own.Changes{}, map[string]failure{}, failure{}
	f.met, f.first, f.quoted = map[string][]int{}, map[string]bool{}, map[string]bool{}
	unasked, err := p.unasked(ctx)
	if err != nil {
		return err
	}
	within := map[string]int{} // for each policy that objects, where the first group begins in which it does
	said := p.env.Clock.Now()
	for i := 0; i < len(f.requests); i += counted {
		if now := p.env.Clock.Now(); now.Sub(said) > sayEvery {
			p.env.Log.Info("looking for requests that prove the policies", slog.Int("asked", i),
				slog.Int("of", len(f.requests)))
			said = now
		}
		objected, err := p.objecting(ctx, func(ctx context.Context) error {
			return p.askEach(ctx, f, i, min(i+counted, len(f.requests)))
		})
		if err != nil {
			return err
		}
		for _, name := range p.named(objected) {
			if _, ok := within[name]; !ok && !unasked[name] {
				within[name] = i
			}
		}
	}
	if err := p.settleFailures(ctx, f); err != nil {
		return err
	}
	if err := p.countEach(ctx, f, within); err != nil {
		return err
	}
	if err := p.dropQuoted(ctx, f); err != nil {
		return err
	}
	if err := p.findDeniers(ctx, f); err != nil {
		return err
	}
	if err := p.findChanges(ctx, f); err != nil {
		return err
	}
	return p.isolate(ctx, f)
}

// unaskedWatch is how long policies are watched that object without tare's asking.
const unaskedWatch = time.Second

// unasked are the policies that object while tare asks for nothing: those of engines act in all namespaces, and on what
// engines and the control plane ask for. Counts do not prove them.
func (p *arm) unasked(ctx context.Context) (map[string]bool, error) {
	out := map[string]bool{}
	if len(p.engines) == 0 {
		return out, nil
	}
	objected, err := p.objecting(ctx, func(ctx context.Context) error { return p.env.Clock.Sleep(ctx, unaskedWatch) })
	for _, name := range p.named(objected) {
		out[name] = true
	}
	return out, err
}

// named are the user's names of policies.
func (p *arm) named(policies []string) []string {
	out := make([]string, len(policies))
	for i, name := range policies {
		out[i] = own.NameOf(p.scope(), name)
	}
	return out
}

// askEach asks for some requests of the catalogue, and keeps the policies that answers name.
func (p *arm) askEach(ctx context.Context, f *finding, from, to int) error {
	answers, sure, err := p.askAll(ctx, f.requests[from:to])
	if err != nil {
		return err
	}
	for i := from; i < to; i++ {
		r, a := f.requests[i], answers[i-from]
		if !sure[i-from] {
			f.undecided[i] = true
			continue
		}
		if mechanism.RulingOf(a.status, a.body) == mechanism.AccessDenied && !slices.Contains(f.untried, r.Resource) {
			f.untried = append(f.untried, r.Resource)
		}
		failed := p.failures(f, i, a)
		deniers := f.keepFailures(failed, p.named(p.denier(a)))
		for n, name := range deniers {
			f.meet(name, i)
			if _, ok := f.proof[name]; !ok || len(deniers) == 1 && !f.alone[name] || n == 0 && !f.first[name] {
				f.proof[name] = i // one that nobody else denies says most
				f.alone[name] = len(deniers) == 1
			}
			f.first[name] = f.first[name] || n == 0
		}
		if refused, known := p.decision(f, i, a); known {
			f.refused[i] = refused
			if refused && len(deniers)+len(failed) == 0 {
				f.unnamed = f.unnamed.also(f.failureOn(i, a.said(), true))
			}
		}
		changes, known, err := p.changesOf(r, a)
		if err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		if known {
			f.changes[i] = changes
		}
	}
	return nil
}

// countEach finds the requests of the policies that object and that no answer has named, in the groups in which they
// do.
func (p *arm) countEach(ctx context.Context, f *finding, within map[string]int) error {
	groups := map[int][]string{}
	for name, from := range within {
		if _, ok := f.proof[name]; !ok {
			groups[from] = append(groups[from], name)
		}
	}
	for from, missing := range groups {
		before, err := p.counts(ctx)
		if err != nil {
			return err
		}
		for i := from; i < min(from+counted, len(f.requests)) && len(missing) > 0; i++ {
			a, err := p.ask(ctx, p.probe(f.requests[i]))
			if err != nil {
				return err
			}
			after, err := p.counts(ctx)
			if err != nil {
				return err
			}
			found := p.named(slices.Collect(maps.Keys(difference(before, after, p.namespace+"."))))
			if p.metricsDenied != "" {
				found = p.named(p.denier(a))
			}
			before = after
			failed := p.failures(f, i, a) // is counted as an objection
			missing = slices.DeleteFunc(missing, func(name string) bool {
				if _, fails := failed[name]; fails || !slices.Contains(found, name) {
					return false
				}
				f.proof[name] = i
				f.meet(name, i)
				f.silent = append(f.silent, name)
				return true
			})
		}
	}
	return nil
}

// everyPolicy returns the policies of all bundles of the experiment, in force or not, which it reads once: each
// treatment is asked about what any of them is about, so that their decisions can be compared.
func (p *arm) everyPolicy() []*own.Policy {
	x := &p.policies
	if x.every != nil {
		return x.every
	}
	for _, path := range p.bundlePaths() {
		if set, err := own.Read(path, p.spec.Network); err == nil { // otherwise its treatment reports it
			for i := range set.Policies {
				x.every = append(x.every, &set.Policies[i])
			}
		}
	}
	return x.every
}

// otherDefinitions define the kinds that the policies of other bundles of the experiment need.
func (p *arm) otherDefinitions() (out []*unstructured.Unstructured) {
	for _, path := range p.bundlePaths() {
		set, err := own.Read(path, p.spec.Network)
		if err != nil || path == p.spec.Bundle {
			continue
		}
		if in, err := p.anywhere(set); err == nil { // otherwise its treatment reports it
			out = append(out, in.Definitions()...)
		}
	}
	return out
}

// A finding is what a catalogue has shown of the policies of a bundle, by the user's names of them.
type finding struct {
	requests []own.Request
	proof    map[string]int   // for each policy the index of a request to which it objects
	alone    map[string]bool  // whether its answer names no other policy
	met      map[string][]int // requests to which policies object, as far as answers say
	first    map[string]bool  // whether an answer names it before all others
	quoted   map[string]bool  // policies that did not deny, and whose names stood in what others say
	silent   []string         // policies whose proof no answer names: they warn, or others deny before them
	untried  []string         // resources that who sets up may not create
	refused  map[int]bool     // the requests that were admitted, or refused by these policies: whether they were refused
	// undecided are requests of which no answer shows what the policies decide, or whose answers differ.
	undecided map[int]bool
	// changes are what became of the objects of requests that were admitted, where that is known, and changed is a request
	// for each policy that changed it: alone, or as its absence showed. Of those in together it is not known what they
	// change.
	changes  map[int]own.Changes
	changed  map[string]int
	together []string
	failures map[string]failure // of policies that fail on requests
	// deniers are, where trespasses are to be asked for, the policies that deny a pod of the requests: of those that the
	// API server evaluates all, as it counts them.
	deniers map[int][]string
	unnamed failure // requests that were refused in words that name no policy
}

// meet keeps that a policy, or a rule of one, objects to the i-th request.
func (f *finding) meet(name string, i int) { f.met[name] = append(f.met[name], i) }

// rulings are what the policies decided, and if changes is set, what they changed.
func (f *finding) rulings(changes bool) (out []area.Ruling) {
	for i := range f.requests {
		refused, known := f.refused[i]
		r := area.Ruling{Request: f.requests[i].Name, Undecided: f.undecided[i]}
		if !r.Undecided {
			r.Refused = refused
		}
		if is, known := f.changes[i]; changes && known && !refused && !r.Undecided {
			r.Known, r.Changes = true, is.Lines()
		}
		if known || r.Undecided {
			out = append(out, r)
		}
	}
	return out
}

// probe is a request of the catalogue, in the arm's namespace.
func (p *arm) probe(r own.Request) mechanism.Probe {
	out := mechanism.Probe{Name: "tare-probe-" + strings.ToLower(r.Kind), Pod: r.Body}
	if r.Kind != "Pod" {
		out.Path, out.Kind = r.Path(p.namespace), r.Kind
	}
	return out
}

// keepProofs makes the proof of each policy that has one.
func (p *arm) keepProofs(f finding) {
	x := &p.policies
	x.finding = f
	by := map[int][]string{}
	for name, i := range f.proof {
		by[i] = append(by[i], name)
	}
	var all []string
	policies := map[string]*own.Policy{}
	for _, one := range x.own.Policies {
		all = append(all, one.Words(p.scope())...)
		policies[one.Name] = one
	}
	x.shown = map[string]string{}
	for i, r := range f.requests {
		names := by[i]
		if len(names) == 0 {
			continue
		}
		slices.Sort(names)
		part, probe := mechanism.Proof{}, p.probe(r)
		for _, name := range names {
			x.shown[name] = r.Name
			if p.counted(policies[name]) {
				part.Object = append(part.Object, own.NameIn(p.scope(), name))
			}
		}
		if denies := slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(f.silent, name) }); denies {
			probe.Want, probe.ByWords, probe.Why = mechanism.Denied, all, names[0]+" denies a "+r.Name
			part.Bad = []mechanism.Probe{probe}
		} else {
			part.Counted = []mechanism.Probe{probe}
		}
		x.parts = append(x.parts, part)
	}
	x.parts = append(x.parts, p.changeProofs(f)...)
	x.proof = joined(x.proof.Good, x.parts)
}

// joined is the proof of all parts, with the measured pod.
func joined(good mechanism.Probe, parts []mechanism.Proof) mechanism.Proof {
	out := mechanism.Proof{Good: good}
	for _, part := range parts {
		out.Bad = append(out.Bad, part.Bad...)
		out.Counted = append(out.Counted, part.Counted...)
		out.Object = append(out.Object, part.Object...)
	}
	return out
}

// atOnce is how many parts of the proof are tried before a block: with sixty policies one of their requests takes
// 30 ms.
const atOnce = 8

// nextProof is the proof that is tried before a block: of the user's own policies that stay in force, some in turn.
func (p *arm) nextProof() mechanism.Proof {
	x := &p.policies
	if len(x.parts) <= atOnce || p.visiting() {
		return x.proof
	}
	var parts []mechanism.Proof
	for range atOnce {
		parts = append(parts, x.parts[x.next%len(x.parts)])
		x.next++
	}
	return joined(x.proof.Good, parts)
}

// proveObjections has the policies of a proof object to it once more.
func (p *arm) proveObjections(ctx context.Context, proof mechanism.Proof, try func(context.Context) error) error {
	if len(proof.Object) == 0 || p.metricsDenied != "" {
		return try(ctx)
	}
	before, err := p.checks(ctx)
	if err != nil {
		return err
	}
	if err := try(ctx); err != nil {
		return err
	}
	for _, probe := range proof.Counted {
		if _, err := p.ask(ctx, probe); err != nil {
			return err
		}
	}
	var lost []string
	for begin := p.env.Clock.Now(); ; {
		after, err := p.checks(ctx)
		if err != nil {
			return err
		}
		objected, uncounted := difference(before, after, p.namespace+"."), p.uncounted()
		lost = slices.DeleteFunc(slices.Clone(proof.Object), func(name string) bool {
			return objected[name] > 0 || uncounted[name]
		})
		if len(lost) == 0 {
			return nil
		}
		// An engine counts some of its objections after the answer, and later on a busy host. The API server has counted its
		// own by then.
		if !p.enginesCount() || p.env.Clock.Now().Sub(begin) > countWithin {
			break
		}
	}
	objects := "objects to what it"
	if len(lost) > 1 {
		objects = "object to what they"
	}
	return fmt.Errorf("%s no longer %s objected to: %s", unit.Count(len(lost), "policy"), objects,
		strings.Join(p.named(lost), ", "))
}
