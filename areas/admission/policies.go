package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/area"
	"tare/areas/admission/cluster"
	"tare/areas/admission/mechanism"
	"tare/areas/admission/own"
	"tare/areas/plane"
)

// applyAbreast is how many policies are created concurrently.
const applyAbreast = 16

// policies are the policies of a treatment, and their proof.
type policies struct {
	keeper   *cluster.Cluster // creates and removes them, under a separate label
	rendered mechanism.Rendered
	proof    mechanism.Proof
	coming   []schema.GroupVersionKind // of manifests: kinds that the server does not have yet
	after    mechanism.Rendered        // of manifests: objects to create after their removal
	wide     []string                  // of manifests: objects that may act outside the namespace
	own      *own.InForce              // the user's own policies; nil: the treatment has none
	filed    *own.Set                  // all of the bundle, as it stands in the user's files
	shown    map[string]string         // for each of them that has a proof, the request to which it objects
	parts    []mechanism.Proof         // the proof, in parts of one request each
	next     int                       // how many parts blocks have tried
	every    []*own.Policy             // see everyPolicy; nil: not read yet
	// finding is what the policies have shown about the requests of this treatment's catalogue.
	finding finding
	// tried are the trespasses of operations, by their names, that the policies deny before the load; nil: not yet asked.
	tried map[string][]try
	// plain are the objects that the API server answers without the policies, by the names of the requests; nil: none of
	// them changes any.
	plain map[string]*own.Plain
	// marks are parts that each answer to the creation of a measured pod must have: what the policies change.
	marks [][]byte
	// backlog is how much was left to do, at most, when a trial ended, by policy; endless are the policies for which
	// something is always left.
	backlog map[string]int
	endless []string
	// unreported is how many requests were yet to be reported on, at most, when a trial ended.
	unreported int
	// standing are the objects that were there by generation before the first trial.
	standing map[string]bool
	// absence proves that no policy is in force.
	absence mechanism.Proof
	present bool
}

// scope returns where the treatment's policies act: in its namespace only.
func (p *arm) scope() mechanism.Scope {
	s := mechanism.Scope{
		Run: p.policies.keeper.Run(), Namespace: p.namespace, Hooks: p.hooks, CEL: p.cel, Foreign: p.foreign,
	}
	s.Deployments = p.env.Trespasses && slices.ContainsFunc(p.operations, func(o operation) bool {
		return o.guarded() && o.resource.kind == "Deployment"
	})
	if !p.foreign {
		s.Caller = plane.CallerUser
	}
	if p.webhook != nil {
		s.WebhookURL, s.CABundle = p.webhookReady.URL, p.webhookReady.CA
		if w := p.spec.Webhook; w != nil && w.URL != "" {
			s.WebhookURL = strings.TrimRight(w.URL, "/") + p.webhookReady.Base
		}
	}
	return s
}

// render renders the policies, their proof, and the load's pod, which is derived from the pod that all of them admit.
func (p *arm) render(ctx context.Context) (err error) {
	x := &p.policies
	err = p.renderPolicies(ctx)
	if err == nil && p.comparesBundles() {
		x.proof.Good.Pod, err = p.measured(p.scope())
	}
	if err != nil {
		return fmt.Errorf("render the policies: %w", err)
	}
	x.absence = absence(p.kind, x.proof, p.scope())
	x.absence.Good.Pod = x.proof.Good.Pod
	p.maker = maker{namespace: p.namespace, labels: p.admin.Labels(), image: p.image, scheduler: p.scheduler}
	if err := json.Unmarshal(x.proof.Good.Pod, &p.maker.pod); err != nil {
		return fmt.Errorf("read the pod that is to be admitted: %w", err)
	}
	return nil
}

// renderPolicies renders the policies and their proof, or takes the user's.
func (p *arm) renderPolicies(ctx context.Context) (err error) {
	if p.kind == mechanism.Manifests {
		return p.withManifests(ctx)
	}
	if p.kind == mechanism.Own {
		return p.withBundle(ctx)
	}
	x := &p.policies
	if x.rendered, err = mechanism.Render(p.kind, p.population, p.scope()); err != nil {
		return err
	}
	x.proof, err = p.proof()
	return err
}

// proof returns the treatment's proof. A baseline without policies must also admit what the manifests of other
// treatments deny.
func (p *arm) proof() (mechanism.Proof, error) {
	out := mechanism.Prove(p.kind, p.population, p.scope())
	m := p.spec.Manifests
	if p.kind != mechanism.None || m == nil || m.Bad == "" {
		return out, nil
	}
	denied, err := m.prove(p.scope(), 1)
	if err != nil {
		return out, err
	}
	out.Bad = append(out.Bad, absence(mechanism.Manifests, denied, p.scope()).Bad...)
	return out, nil
}

// absence proves that no policy is in force: what the manifests or the other mechanisms deny is admitted.
func absence(k mechanism.Kind, proof mechanism.Proof, s mechanism.Scope) mechanism.Proof {
	out := mechanism.Prove(mechanism.None, mechanism.Population{}, s)
	if k == mechanism.Manifests || k == mechanism.Own {
		out.Bad = nil
		for _, probe := range proof.Bad {
			probe.Want, probe.Why = mechanism.Admitted, "nothing else denies it"
			probe.Says, probe.By, probe.ByWords, probe.Unmarked = nil, nil, nil, true
			out.Bad = append(out.Bad, probe)
		}
	}
	return out
}

// install applies the policies if the control plane is the treatment's own: once, for all trials. The proof of the
// user's own is found meanwhile.
func (p *arm) install(ctx context.Context) error {
	switch {
	case p.kind == mechanism.Own:
		return p.discover(ctx)
	case p.visiting():
		return nil
	}
	if err := p.startEngines(ctx, p.idle); err != nil {
		return err
	}
	return p.applyPolicies(ctx)
}

// applyPolicies creates the policies, and waits until they take effect, which takes up to 20 seconds.
func (p *arm) applyPolicies(ctx context.Context) error {
	x := &p.policies
	x.present = true // set first: a partial creation is removed as well
	if err := p.applyEach(ctx); err != nil {
		return fmt.Errorf("put the policies in force: %w", err)
	}
	if err := p.awaitEach(ctx, x.rendered.Objects); err != nil {
		return err
	}
	return p.awaitProof(ctx, x.proof, "the policies do not come into force")
}

// removePolicies removes policies that were applied for a trial, and waits until a pod that they deny is admitted
// again.
func (p *arm) removePolicies(ctx context.Context) error {
	x := &p.policies
	if !x.present {
		return nil
	}
	if err := x.keeper.RemoveAll(ctx, x.rendered.Resources, x.coming...); err != nil {
		return fmt.Errorf("take the policies away: %w", err)
	}
	x.present = false
	if err := p.cleanUp(ctx); err != nil {
		return fmt.Errorf("clean up after the policies: %w", err)
	}
	if err := x.keeper.AwaitGone(ctx, x.coming); err != nil {
		return fmt.Errorf("take the policies away: %w", err)
	}
	if len(x.rendered.Objects) == 0 {
		return nil // the baseline, or a label of the namespace, which goes with it
	}
	return p.awaitProof(ctx, x.absence, "the policies are still in force after they were removed")
}

// awaitProof tries a proof until it holds, for as long as changes may take to show.
func (p *arm) awaitProof(ctx context.Context, proof mechanism.Proof, what string) error {
	within := settleWithin + time.Duration(len(p.policies.rendered.Objects))*settleEach
	begin := p.env.Clock.Now()
	for {
		err := p.prove(ctx, proof)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if p.env.Clock.Now().Sub(begin) > within {
			return fmt.Errorf("%s within %v: %w", what, within, err)
		}
		if e := p.env.Clock.Sleep(ctx, pause); e != nil {
			return errors.Join(e, err)
		}
	}
}

// contents returns the resources that an arm creates in a cluster besides its policies.
func contents() []schema.GroupVersionResource {
	out := []schema.GroupVersionResource{}
	for _, r := range resources() {
		out = append(out, r.gvr())
	}
	return append(out, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
}

// gvr returns the resource in Kubernetes' terms.
func (r resource) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.group, Version: "v1", Resource: r.plural}
}

// intend journals what is about to be created on a cluster of the user's. Policies have their own entry, as they come
// and go.
func (p *arm) intend(ctx context.Context) error {
	if !p.foreign {
		return nil
	}
	x := &p.policies
	objects := contents()
	var coming []schema.GroupVersionKind
	if p.kind == mechanism.Own {
		kinds, err := canaryKinds(p.policies.own, p.admin.Run())
		if err != nil {
			return err
		}
		canaries, come, err := p.policies.keeper.Lookup(ctx, kinds)
		if err != nil {
			return err
		}
		objects, coming = slices.Concat(mechanism.Resources(mechanism.VAP), canaries, objects), come
	}
	for _, j := range []journaled{
		{name: "objects", by: p.admin, resources: objects, coming: coming},
		{
			name: "policies", by: x.keeper, resources: append(slices.Clone(x.rendered.Resources), x.after.Resources...),
			coming: x.coming,
		},
	} {
		if len(j.resources)+len(j.coming) == 0 {
			continue
		}
		var err error
		if j.change, err = j.by.Change(areaName, fmt.Sprintf("%s-%d", j.name, p.index), j.resources,
			j.coming...); err != nil {
			return err
		}
		if err := p.journal.Intend(j.change); err != nil {
			return err
		}
		p.journaled = append(p.journaled, j)
	}
	return nil
}

// journaled are objects on a cluster of the user's.
type journaled struct {
	name      string
	change    area.Change
	by        *cluster.Cluster
	resources []schema.GroupVersionResource
	coming    []schema.GroupVersionKind
}

// removeJournaled removes everything that was journaled, the latest first.
func (p *arm) removeJournaled(ctx context.Context) error {
	var errs []error
	for _, j := range slices.Backward(p.journaled) {
		err := j.by.RemoveAll(ctx, j.resources, j.coming...)
		if err == nil {
			err = j.by.AwaitGone(ctx, j.coming)
		}
		if err == nil {
			err = p.journal.Undone(j.change)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// createNamespace creates the namespace with the treatment's labels, which are all that Pod Security Admission needs.
func (p *arm) createNamespace(ctx context.Context) error {
	return p.admin.EnsureNamespace(ctx, p.namespace, p.policies.rendered.NamespaceLabels)
}

// grantCaller grants the caller of an embedded control plane exactly what its operations and the proofs need.
func (p *arm) grantCaller(ctx context.Context) error {
	if p.foreign {
		return nil
	}
	names := []string{defaultOperation} // the proofs
	for _, o := range p.operations {
		names = append(names, o.name)
	}
	rules, err := cluster.CallerRules(names)
	if err != nil {
		return err
	}
	return p.admin.EnsureRole(ctx, p.namespace, plane.CallerUser, rules)
}
