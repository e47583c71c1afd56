package admission

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tare/areas/admission/apimetrics"
	"tare/areas/admission/cluster"
	"tare/areas/admission/engine"
	"tare/areas/admission/mechanism"
	"tare/areas/admission/own"
	"tare/internal/kit"
)

// mutating reports whether policies of the experiment's bundles change objects: then what each treatment makes of a
// request is compared.
func (p *arm) mutating() bool { return slices.ContainsFunc(p.everyPolicy(), (*own.Policy).Mutates) }

// lookAtPlain asks for everything of the catalogue twice, as dry runs, while no policy of the treatment's is in force,
// if some of them change objects. What cannot be created then, such as an object of a kind that the bundle defines, is
// left out: what becomes of it is not known.
func (p *arm) lookAtPlain(ctx context.Context) error {
	x := &p.policies
	if len(x.own.Mutating()) == 0 {
		return nil
	}
	requests, err := p.catalogue(ctx)
	if err != nil {
		return err
	}
	found := make([]*own.Plain, len(requests))
	err = cluster.Each(ctx, len(requests), askAbreast, func(ctx context.Context, i int) error {
		first, err := p.ask(ctx, p.probe(requests[i]))
		if err != nil {
			return err
		}
		second, err := p.ask(ctx, p.probe(requests[i]))
		if err != nil || first.status != http.StatusCreated || second.status != http.StatusCreated {
			return err
		}
		plain, err := own.NewPlain(p.namespace, first.body, second.body)
		if errors.Is(err, own.ErrLarge) {
			return nil
		}
		if err == nil && p.foreign {
			plain = plain.Hiding(x.own.Mentions, p.salt)
		}
		found[i] = plain
		return err
	})
	if err != nil {
		return fmt.Errorf("look at what is answered without the policies: %w", err)
	}
	x.plain = map[string]*own.Plain{}
	for i, r := range requests {
		if found[i] != nil {
			x.plain[r.Name] = found[i]
		}
	}
	return nil
}

// changesOf says what became of a request's object. known is false if that cannot be told.
func (p *arm) changesOf(r own.Request, a answer) (changes own.Changes, known bool, err error) {
	plain, ok := p.policies.plain[r.Name]
	if a.status != http.StatusCreated || !ok {
		return nil, len(p.policies.own.Mutating()) == 0, nil
	}
	changes, err = plain.Changes(a.body)
	if errors.Is(err, own.ErrLarge) {
		return nil, false, nil
	}
	return changes, err == nil, err
}

// askChanges asks for a request of the catalogue, and says what became of its object.
func (p *arm) askChanges(ctx context.Context, r own.Request) (changes own.Changes, known bool, err error) {
	a, sure, err := p.askFor(ctx, r)
	if err != nil || !sure {
		return nil, false, err
	}
	return p.changesOf(r, a)
}

// mostAttributed bounds the requests for which it is found out which policies changed them: reading counts takes time.
const mostAttributed = 64

// findChanges finds for each policy that mutates a request that it changed: one that was applied to it, of those that
// came back changed. A request to which no other was applied says most.
func (p *arm) findChanges(ctx context.Context, f *finding) error {
	if err := p.settleChanges(ctx, f); err != nil {
		return err
	}
	alone, missing := map[string]bool{}, map[string]bool{}
	f.changed = map[string]int{}
	all := p.policies.own.Mutating()
	for _, one := range all {
		missing[one.Name] = true
	}
	for n, i := range f.differently() {
		if n == mostAttributed || len(missing) == 0 {
			break
		}
		applied, err := p.applied(ctx, f.requests[i])
		if err != nil {
			return err
		}
		for _, name := range applied {
			if _, known := f.changed[name]; !known || len(applied) == 1 && !alone[name] {
				f.changed[name], alone[name] = i, len(applied) == 1
			}
			if alone[name] {
				delete(missing, name)
			}
		}
	}
	if slices.ContainsFunc(all, func(one *own.Policy) bool { return !p.counted(one) }) {
		clear(alone) // of others it is not known to what they were applied
	}
	for name := range f.changed {
		if !alone[name] {
			f.together = append(f.together, name)
		}
	}
	slices.Sort(f.together)
	return nil
}

// settleChanges asks once more for what came back changed, and keeps what is the same.
func (p *arm) settleChanges(ctx context.Context, f *finding) error {
	changed := slices.DeleteFunc(slices.Sorted(maps.Keys(f.changes)), func(i int) bool { return len(f.changes[i]) == 0 })
	settled := make([]own.Changes, len(changed))
	err := cluster.Each(ctx, len(changed), askAbreast, func(ctx context.Context, n int) error {
		again, _, err := p.askChanges(ctx, f.requests[changed[n]])
		settled[n] = f.changes[changed[n]].Settled(again)
		return err
	})
	for n, i := range changed {
		f.changes[i] = settled[n]
	}
	return err
}

// differently are requests that came back changed, one for each way in which they were.
func (f *finding) differently() (out []int) {
	seen := map[string]bool{}
	for i := range f.requests {
		if key := strings.Join(f.changes[i].Lines(), "\n"); key != "" && !seen[key] {
			seen[key] = true
			out = append(out, i)
		}
	}
	return out
}

// applied are the policies that were applied to a request, by the counts of the API server and of engines; none where
// these cannot be read.
func (p *arm) applied(ctx context.Context, r own.Request) ([]string, error) {
	all := p.policies.own.Mutating()
	if p.metricsDenied != "" {
		return nil, nil
	}
	before, err := p.applications(ctx)
	if err == nil {
		_, err = p.ask(ctx, p.probe(r))
	}
	if err != nil {
		return nil, err
	}
	after, err := p.applications(ctx)
	if err != nil {
		return nil, err
	}
	grown := difference(before, after, "")
	var out []string
	for _, one := range all {
		if grown[own.NameIn(p.scope(), one.Name)] > 0 {
			out = append(out, one.Name)
		}
	}
	return out, nil
}

// applications are the API server's and the engines' counts of how often policies were applied to change an object, by
// the names that policies have in the run.
func (p *arm) applications(ctx context.Context) (map[string]uint64, error) {
	out, err := p.apiCounts(ctx, apimetrics.MutatingPolicyChecks)
	if err != nil {
		return nil, err
	}
	return out, p.addEngineCounts(ctx, out, func(c apimetrics.KyvernoCounts) map[string]uint64 { return c.Changed })
}

// changeProofs are a proof of each request by which a change was shown: that it still comes back changed in that way.
func (p *arm) changeProofs(f finding) (out []mechanism.Proof) {
	by := map[int][]string{}
	for _, name := range slices.Sorted(maps.Keys(f.changed)) {
		if !slices.Contains(f.together, name) {
			by[f.changed[name]] = append(by[f.changed[name]], name)
		}
	}
	for _, i := range slices.Sorted(maps.Keys(by)) {
		r := f.requests[i]
		plain, ok := p.policies.plain[r.Name]
		if !ok || len(f.changes[i]) == 0 {
			continue // it is not known any more what it changes
		}
		probe := p.probe(r)
		probe.Want, probe.Why = mechanism.Admitted, strings.Join(by[i], ", ")+" changes a "+r.Name
		probe.Mark = mark{plain: plain, want: f.changes[i], by: by[i], of: r.Name}
		out = append(out, mechanism.Proof{Bad: []mechanism.Probe{probe}})
		for _, name := range by[i] {
			if p.policies.shown[name] == "" {
				p.policies.shown[name] = r.Name
			}
		}
	}
	return out
}

// mostMarks bounds the parts that are looked for in each answer, which takes time.
const mostMarks = 4

// findMarks finds what each answer to the creation of a measured pod must have, so that a call is noticed of which the
// policies changed nothing, such as one for which an engine came too late: what was changed of the measured pod, and is
// also in two answers to calls as the load makes them.
func (p *arm) findMarks(ctx context.Context) error {
	f := p.policies.finding
	i := slices.IndexFunc(f.requests, func(r own.Request) bool { return r.Name == own.MeasuredPod })
	if i < 0 || len(f.changes[i]) == 0 {
		return nil
	}
	marks := f.changes[i].Marks()
	for _, o := range p.operations {
		if o.verb != verbCreate || o.resource.kind != "Pod" || o.startup() {
			continue
		}
		w, err := p.wire(o, fmt.Sprintf("t%dm%d", p.index, p.epoch))
		if err != nil {
			return err
		}
		for range 2 {
			a, err := p.asker.send(ctx, w.Render(nil, 0), true)
			if err != nil {
				return err
			}
			marks = slices.DeleteFunc(marks, func(m string) bool { return !bytes.Contains(a.body, []byte(m)) })
		}
	}
	for _, m := range marks[:min(mostMarks, len(marks))] {
		p.policies.marks = append(p.policies.marks, []byte(m))
	}
	return nil
}

// changesBeside names the policies that changed a request of the catalogue, if what they made of it is also seen in an
// answer from another namespace; empty: it is not, or was not looked for.
func (p *arm) changesBeside(f finding, i int, a answer, namespace string) (string, error) {
	plain, ok := p.policies.plain[f.requests[i].Name]
	if !ok || a.status != http.StatusCreated || len(f.changes[i]) == 0 {
		return "", nil
	}
	is, err := plain.In(namespace).Changes(a.body)
	if err != nil || len(f.changes[i].Missing(is)) == len(f.changes[i]) {
		return "", err
	}
	var by []string
	for _, one := range p.policies.own.Mutating() {
		if f.changed[one.Name] == i {
			by = append(by, one.Name)
		}
	}
	return strings.Join(by, ", "), nil
}

// changeNotes says what the policies make of the measured pod, and which of them were applied and not seen to change
// anything.
func (p *arm) changeNotes() (out []string) {
	x := &p.policies
	for _, r := range x.finding.rulings(p.mutating()) {
		if r.Request == own.MeasuredPod && len(r.Changes) > 0 {
			out = append(out, fmt.Sprintf("%s: the measured pod comes back changed: %s", p.spec.Bundle, kit.FirstOf(r.Changes)))
		}
	}
	if together := x.finding.together; len(together) > 0 {
		out = append(out, fmt.Sprintf("%s: applied to requests that others change as well, which came back the same without "+
			"each of these, or were not tried without: %s", p.spec.Bundle, strings.Join(together, ", ")))
	}
	return out
}

// A mark is what policies made of a request's object when they were proved.
type mark struct {
	plain *own.Plain
	want  own.Changes
	by    []string // the policies
	of    string   // the request
}

// There implements mechanism.Mark.
func (m mark) There(body []byte) error {
	is, err := m.plain.Changes(body)
	if err != nil {
		return err
	}
	missing := m.want.Missing(is)
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%s no longer changed a %s as before: %s", strings.Join(m.by, ", "), m.of,
		kit.FirstOf(missing.Lines()))
}

// Absent implements mechanism.Mark.
func (m mark) Absent(body []byte) error {
	is, err := m.plain.Changes(body)
	if err != nil {
		return err
	}
	if there := is.Lines(); len(m.want.Missing(is)) < len(m.want) {
		return fmt.Errorf("a %s still comes back changed: %s", m.of, kit.FirstOf(there))
	}
	return nil
}

// passMutatingCanaries creates policies of tare's own that change pods after the user's that mutate, waits until a pod
// comes back changed, and takes them away again: the API server and engines take policies over in their order.
func (p *arm) passMutatingCanaries(ctx context.Context) error {
	all, err := mutatingCanaries(p.policies.own, p.scope(), p.admin.Run())
	if err != nil {
		return err
	}
	for _, language := range slices.Sorted(maps.Keys(all)) {
		if err := p.passCanary(ctx, all[language], func(probe mechanism.Probe, _ bool) (bool, error) {
			a, err := p.ask(ctx, probe)
			return a.status == http.StatusCreated && strings.Contains(string(a.body), `"`+mechanism.MutatedKey+`"`), err
		}); err != nil {
			return err
		}
	}
	return nil
}

// mutatingCanaries are those of the languages of the policies that mutate: objects of which the last changes a pod.
func mutatingCanaries(in *own.InForce, s mechanism.Scope, run string) (map[string][]*unstructured.Unstructured, error) {
	out := map[string][]*unstructured.Unstructured{}
	for _, o := range in.Objects {
		switch {
		case !own.Mutates(o):
			continue
		case own.EngineOf(o) == "":
			s.Run = run
			canary, err := mechanism.Render(mechanism.MAP, mechanism.Default(mechanism.MAP, 1), s)
			if err != nil {
				return nil, err
			}
			out["cel"] = canary.Objects
			continue
		}
		if own.EngineOf(o) == engine.Gatekeeper.Name {
			canary := engine.GatekeeperMutatingCanary(canaryName(s)+"-mutates", s.Namespace, mechanism.MutatedKey)
			out[engine.Gatekeeper.Name] = []*unstructured.Unstructured{canary}
			continue
		}
		canary := engine.KyvernoMutatingCanary(own.IsCEL(o), canaryName(s)+"-mutates", s.Namespace, mechanism.MutatedKey)
		if own.IsCEL(o) {
			canary.SetAPIVersion(o.GetAPIVersion()) // which the engine may serve alone
			if s.Foreign {
				own.InNamespace(canary, s.Namespace)
			}
		}
		out[fmt.Sprint("kyverno ", own.IsCEL(o))] = []*unstructured.Unstructured{canary}
	}
	return out, nil
}
