package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/areas/admission/cluster"
	"tare/areas/admission/engine"
	"tare/areas/admission/own"
	"tare/internal/kit"
	"tare/internal/unit"
)

const (
	// generatedWithin bounds the wait for what policies generate.
	generatedWithin = time.Minute
	// anotherWithin bounds the wait for another policy to generate something where Kyverno does not come to rest.
	anotherWithin = 20 * time.Second
	// idleLooks is how often nothing must be left to do until nothing more is expected.
	idleLooks = 10
	// dropLooks is the same for what is deleted: Kyverno notes it a moment after a request.
	dropLooks = 3
	// droppedWithin bounds both.
	droppedWithin = 10 * time.Second
	// mostTriggers bounds the objects of one kind that are created so that policies generate others.
	mostTriggers = 6
)

// Namespaces are in none, so that requests about them have a path of their own.
const namespaces, namespacesPath = "namespaces", "/api/v1/namespaces"

// A trigger is an object for which policies may generate others.
type trigger struct {
	own.Request
	path string
	n    int // of its kind
}

// proveGenerations creates, for real, objects about which policies that generate are, and keeps for each of these
// policies an object that it generated. What it creates it deletes.
func (p *arm) proveGenerations(ctx context.Context) (err error) {
	x := &p.policies
	generating := slices.DeleteFunc(slices.Clone(x.own.Policies), func(one *own.Policy) bool { return !one.Generates() })
	if len(generating) == 0 || p.foreign {
		return nil
	}
	created := map[string]string{} // paths, by uid
	defer func() { err = errors.Join(err, p.endTriggers(ctx, created)) }()
	for _, t := range p.triggers(generating) {
		if err := p.createTrigger(ctx, t, created); err != nil {
			return err
		}
	}
	shown, idle, grew := map[string]string{}, 0, p.env.Clock.Now()
	err = p.awaitWithin(ctx, generatedWithin, "policies have not generated anything", func() error {
		objects, err := p.generated(ctx)
		if err != nil {
			return err
		}
		for _, o := range objects {
			by := o.Labels[engine.GeneratedBy]
			if shown[by] == "" {
				grew = p.env.Clock.Now()
			}
			shown[by] = o.Kind + " " + o.Name
		}
		left, err := p.backlog(ctx)
		if err != nil {
			return err
		}
		if idle++; len(left) > 0 {
			idle = 0
		}
		all := !slices.ContainsFunc(generating, func(one *own.Policy) bool { return shown[one.Name] == "" })
		if !all && idle < idleLooks && p.env.Clock.Now().Sub(grew) < anotherWithin {
			return errUnfinished
		}
		return nil
	})
	for _, one := range generating {
		if what := shown[one.Name]; what != "" {
			x.shown[one.Name] = what + ", which it generated"
		}
	}
	if errors.Is(err, errUnfinished) { // those without are named as unproved
		return nil
	}
	return err
}

// endTriggers deletes what was created so that policies generate others, and what was generated for it: a quota, say,
// would be in the way of what is measured.
func (p *arm) endTriggers(ctx context.Context, created map[string]string) error {
	var errs []error
	for _, path := range created {
		_, err := p.setter.do(ctx, http.MethodDelete, path+"?gracePeriodSeconds=0", "", nil)
		errs = append(errs, err)
	}
	if err := errors.Join(append(errs, p.dropBacklog(ctx))...); err != nil {
		return err
	}
	err := p.deleteGenerated(ctx, func(o cluster.Labelled) bool { return created[o.Labels[engine.GeneratedFor]] != "" })
	if err != nil {
		return err
	}
	all, err := p.generated(ctx)
	p.policies.standing = map[string]bool{}
	for _, o := range all {
		p.policies.standing[idOf(o)] = true
	}
	return err
}

// idOf names an object.
func idOf(o cluster.Labelled) string { return fmt.Sprint(o.Resource, " ", o.Namespace, "/", o.Name) }

var errUnfinished = errors.New("its engine has something left to do")

// triggers are objects about which some of the policies are: those of the catalogue that no policy refuses, of the
// policies' own tests first, and a namespace. Objects that may ask other servers are left out, since a bundle's tests
// may be a stranger's.
func (p *arm) triggers(policies []*own.Policy) (out []trigger) {
	sees := func(r own.Request) bool {
		return slices.ContainsFunc(policies, func(one *own.Policy) bool {
			return one.Sees(r.Group, r.Version, r.Resource, "CREATE")
		})
	}
	f := p.policies.finding
	n := map[string]int{}
	for i, r := range slices.Backward(f.requests) {
		kind := schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
		if f.refused[i] || !sees(r) || n[r.Resource] == mostTriggers || own.MayAsk(kind) {
			continue
		}
		n[r.Resource]++
		t := trigger{r, r.Path(p.namespace), n[r.Resource]}
		if r.Resource == namespaces {
			t.path = namespacesPath
		}
		out = append(out, t)
	}
	namespace := own.Request{Name: "a namespace", Version: "v1", Resource: namespaces, Kind: "Namespace"}
	if !sees(namespace) {
		return out
	}
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	o.SetName(p.namespace + "-trigger")
	o.SetLabels(p.policies.rendered.NamespaceLabels)
	var err error
	if namespace.Body, err = o.MarshalJSON(); err != nil { // it was made here
		return out
	}
	return append(out, trigger{namespace, namespacesPath, 0})
}

// createTrigger creates one under a name of its own, and keeps its path by its uid. If that cannot be created, another
// one may do.
func (p *arm) createTrigger(ctx context.Context, t trigger, created map[string]string) error {
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(t.Body); err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	if t.Resource == namespaces {
		o.SetNamespace("")
	}
	o.SetName(fmt.Sprintf("%s-%d", o.GetName(), t.n))
	if labels := o.GetLabels(); labels[engine.GeneratedBy] != "" { // it must not pass for something generated
		delete(labels, engine.GeneratedBy)
		o.SetLabels(labels)
	}
	body, err := o.MarshalJSON()
	if err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	a, err := p.setter.do(ctx, http.MethodPost, p.prefix+t.path, jsonType, body)
	if err != nil || a.status != http.StatusCreated {
		return err
	}
	if err := o.UnmarshalJSON(a.body); err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	created[string(o.GetUID())] = p.prefix + t.path + "/" + o.GetName()
	return nil
}

// backlog is how much is left to do for what acts after requests, by policy.
func (p *arm) backlog(ctx context.Context) (left map[string]int, err error) {
	resource, namespace := engine.Backlog()
	left = map[string]int{}
	err = p.policies.keeper.ForEach(ctx, resource, namespace, "", func(o *unstructured.Unstructured) {
		policy, _, _ := unstructured.NestedString(o.Object, "spec", "policy") // as Kyverno writes it
		left[policy]++
	})
	if err != nil {
		return nil, fmt.Errorf("look at what Kyverno has left to do: %w", err)
	}
	return left, nil
}

// sum is how much a backlog holds.
func sum(backlog map[string]int) (n int) {
	for _, of := range backlog {
		n += of
	}
	return n
}

// noteBacklog keeps what is left to do when a trial ends: it is done outside of what is measured.
func (p *arm) noteBacklog(ctx context.Context) error {
	if !p.inBackground() {
		return nil
	}
	left, err := p.backlog(ctx)
	if sum(left) > sum(p.policies.backlog) {
		p.policies.backlog = left
	}
	return err
}

// inBackground reports whether something runs beside an engine that acts after requests.
func (p *arm) inBackground() bool {
	return slices.ContainsFunc(p.engines, func(e *runningEngine) bool { return e.with(e.kind.Background) })
}

// dropBacklog deletes what is left to do for what acts after requests, until nothing comes any more: done later, it
// would slow the next trial. Where something always comes, the report says so.
func (p *arm) dropBacklog(ctx context.Context) error {
	resource, namespace := engine.Backlog()
	in := p.policies.keeper.Dynamic().Resource(resource).Namespace(namespace)
	idle, comes := 0, map[string]int{}
	err := p.awaitWithin(ctx, droppedWithin, "Kyverno's requests to generate or change objects come again", func() error {
		left, err := p.backlog(ctx)
		if idle++; err == nil && len(left) > 0 {
			idle = 0
			err = in.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		}
		if err == nil && idle < dropLooks {
			err = errUnfinished
		}
		comes = left
		return err
	})
	if errors.Is(err, errUnfinished) {
		p.policies.endless = slices.Sorted(maps.Keys(comes))
		return nil
	}
	return err
}

// generated are the objects that are there by generation.
func (p *arm) generated(ctx context.Context) ([]cluster.Labelled, error) {
	all, err := p.policies.keeper.Labelled(ctx, engine.GeneratedBy)
	left, _ := engine.Backlog()
	return slices.DeleteFunc(all, func(o cluster.Labelled) bool { return o.Resource.Group == left.Group }), err
}

// clearGenerated deletes, after a trial, what was generated during it: the treatment's control plane would fill up from
// trial to trial.
func (p *arm) clearGenerated(ctx context.Context) error {
	if !p.inBackground() {
		return nil
	}
	if err := p.dropBacklog(ctx); err != nil {
		return err
	}
	return p.deleteGenerated(ctx, func(o cluster.Labelled) bool { return !p.policies.standing[idOf(o)] })
}

// deleteGenerated deletes those of the objects that are there by generation.
func (p *arm) deleteGenerated(ctx context.Context, those func(cluster.Labelled) bool) error {
	all, err := p.generated(ctx)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(o cluster.Labelled) bool { return !those(o) })
	if len(all) == 0 {
		return nil
	}
	err = cluster.Each(ctx, len(all), applyAbreast, func(ctx context.Context, i int) error {
		in := p.policies.keeper.Dynamic().Resource(all[i].Resource).Namespace(all[i].Namespace)
		err := in.Delete(ctx, all[i].Name, metav1.DeleteOptions{})
		if _, refused := errors.AsType[*apierrors.StatusError](err); refused { // it is gone, or a policy keeps it
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("delete what was generated: %w", err)
	}
	return p.dropBacklog(ctx)
}

// generationNotes says what of the policies that act after requests is in the numbers.
func (p *arm) generationNotes() (out []string) {
	if !p.inBackground() {
		return nil
	}
	if !slices.ContainsFunc(p.operations, func(o operation) bool { return writes(o.verb) && !o.dryRun }) {
		out = append(out, p.spec.Bundle+": for dry runs Kyverno generates and changes nothing else: create-pod measures it")
	}
	if n := sum(p.policies.backlog); n > 0 {
		of := slices.SortedFunc(maps.Keys(p.policies.backlog), func(a, b string) int {
			return cmp.Or(p.policies.backlog[b]-p.policies.backlog[a], strings.Compare(a, b))
		})
		out = append(out, fmt.Sprintf("%s: when a trial ended, Kyverno had up to %s left for which it was yet to generate "+
			"or change objects, most of that for %s: tare has deleted it, and what it would have taken is not in these numbers",
			p.spec.Bundle, unit.Count(n, "request"), of[0]))
	}
	return out
}

// generationWarnings names the policies for which Kyverno never comes to rest.
func (p *arm) generationWarnings() []string {
	if len(p.policies.endless) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: Kyverno goes on generating or changing objects between trials, also beside those "+
		"of other treatments: for %s", p.spec.Bundle, kit.FirstOf(p.policies.endless))}
}
