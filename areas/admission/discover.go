package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"tare/area"
	"tare/areas/admission/mechanism"
	"tare/areas/admission/own"
	"tare/internal/design"
	"tare/internal/unit"
)

// discover puts the user's own policies in force, and finds out which of them object to which request of a catalogue:
// these requests are their proof. It leaves them in force if the control plane is the treatment's own.
func (p *arm) discover(ctx context.Context) error {
	x := &p.policies
	x.present = true // set first: a partial creation is removed as well
	if err := x.keeper.Apply(ctx, x.rendered.Objects, applyAbreast); err != nil {
		return fmt.Errorf("put the policies in force: %w", err)
	}
	if err := p.awaitCanary(ctx); err != nil {
		return err
	}
	if err := p.admits(ctx); err != nil {
		return err
	}
	if err := p.findProofs(ctx); err != nil {
		return err
	}
	x.absence = absence(p.kind, x.proof, p.scope())
	x.absence.Good.Pod = x.proof.Good.Pod
	if p.visiting() {
		return p.removePolicies(ctx)
	}
	return nil
}

// awaitCanary creates a policy of tare's own after the user's, waits until it denies, and takes it away again: the API
// server takes policies over in the order of their creation, so that the user's are in force then.
func (p *arm) awaitCanary(ctx context.Context) (err error) {
	s := p.scope()
	s.Run = p.admin.Run()
	canary, err := mechanism.Render(mechanism.VAP, mechanism.Default(mechanism.VAP, 1), s)
	if err != nil {
		return err
	}
	if err := p.admin.Apply(ctx, canary.Objects, 1); err != nil {
		return fmt.Errorf("create a policy that shows when the others are in force: %w", err)
	}
	name := canary.Objects[0].GetName()
	pod := mechanism.Pod{Name: "tare-probe-canary", Namespace: p.namespace, Model: true, Labels: map[string]string{
		mechanism.DenyLabel: mechanism.DenyAll,
	}}
	begin := p.env.Clock.Now()
	// The canary's own denial need not be the one that the API server reports: its counter tells.
	for {
		found, err := p.objections(ctx, mechanism.Probe{Pod: pod.JSON()})
		if err == nil && (slices.Contains(found, name) || p.metricsDenied != "" && len(found) > 0) {
			break
		}
		if err != nil && ctx.Err() != nil {
			return err
		}
		if p.env.Clock.Now().Sub(begin) > settleWithin {
			return errors.Join(fmt.Errorf("a policy that was created after the others is not in force within %v", settleWithin),
				err)
		}
		if err := p.env.Clock.Sleep(ctx, pause); err != nil {
			return err
		}
	}
	if err := p.admin.RemoveAll(ctx, canary.Resources); err != nil {
		return fmt.Errorf("take away the policy that showed when the others are in force: %w", err)
	}
	for begin = p.env.Clock.Now(); ; {
		found, err := p.objections(ctx, mechanism.Probe{Pod: pod.JSON()})
		if err == nil && !slices.Contains(found, name) {
			return nil
		}
		if p.env.Clock.Now().Sub(begin) > settleWithin {
			return errors.Join(fmt.Errorf("a policy is in force %v after its removal", settleWithin), err)
		}
		if err := p.env.Clock.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// objections returns the policies of the run that object to a request, as the API server counts them; where its counts
// cannot be read, the one that it names.
func (p *arm) objections(ctx context.Context, probe mechanism.Probe) ([]string, error) {
	var before map[string]uint64
	var err error
	if p.metricsDenied == "" {
		if before, err = p.checks(ctx); err != nil {
			return nil, err
		}
	}
	a, err := p.ask(ctx, probe)
	if err != nil {
		return nil, err
	}
	if p.metricsDenied != "" {
		return denier(a), nil
	}
	after, err := p.checks(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for name := range difference(before, after, p.namespace+".") {
		out = append(out, name)
	}
	slices.Sort(out)
	return out, nil
}

// denier returns the policy that an answer names as the one that denied the request.
func denier(a answer) []string {
	if mechanism.RulingOf(a.status, a.body) != mechanism.PolicyDenied {
		return nil
	}
	_, said, _ := strings.Cut(a.message(), "ValidatingAdmissionPolicy '")
	name, _, ok := strings.Cut(said, "'")
	if !ok {
		return nil
	}
	return []string{name}
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
	said := strings.ReplaceAll(a.message(), p.namespace+".", "")
	if all, err := p.objections(ctx, p.policies.proof.Good); err == nil && len(all) > 1 {
		for i := range all {
			all[i] = own.NameOf(p.scope(), all[i])
		}
		said += fmt.Sprintf(" (%s object to it: %s)", unit.Count(len(all), "policy"), strings.Join(all, ", "))
	}
	if p.spec.Measured == "" {
		return fmt.Errorf("the policies do not admit the pod that is measured, one of tare's own: %s; name a pod that they "+
			"admit: measured: FILE", said)
	}
	return fmt.Errorf("the policies do not admit the pod of %s, which is measured: %s", p.spec.Measured, said)
}

// mostCounted bounds the requests that are counted one by one, for policies that no answer names.
const mostCounted = 400

// findProofs asks for everything of the catalogue once, as dry runs, and keeps for each policy a request to which it
// objects.
func (p *arm) findProofs(ctx context.Context) error {
	x := &p.policies
	catalogue, err := own.Catalogue(p.everyPolicy(), x.proof.Good.Pod, p.namespace)
	if err != nil {
		return err
	}
	f := finding{requests: catalogue, proof: map[string]int{}}
	var before map[string]uint64
	if p.metricsDenied == "" {
		if before, err = p.checks(ctx); err != nil {
			return err
		}
	}
	for i, r := range catalogue {
		a, err := p.ask(ctx, p.probe(r))
		if err != nil {
			return err
		}
		if mechanism.RulingOf(a.status, a.body) == mechanism.AccessDenied && !slices.Contains(x.untried, r.Resource) {
			x.untried = append(x.untried, r.Resource)
		}
		deniers := denier(a)
		for _, name := range deniers {
			if _, ok := f.proof[name]; !ok {
				f.proof[name] = i
			}
		}
		if len(deniers) > 0 || a.status == http.StatusCreated {
			x.rulings = append(x.rulings, area.Ruling{Request: r.Name, Refused: len(deniers) > 0})
		}
	}
	if p.metricsDenied == "" {
		after, err := p.checks(ctx)
		if err != nil {
			return err
		}
		if err := p.countEach(ctx, &f, difference(before, after, p.namespace+".")); err != nil {
			return err
		}
	}
	p.keepProofs(f)
	return nil
}

// everyPolicy returns the policies of all bundles of the experiment: each treatment is asked about what any of them is
// about, so that their decisions can be compared.
func (p *arm) everyPolicy() (out []*own.Policy) {
	out = slices.Clone(p.policies.own.Policies)
	for _, t := range p.env.Treatments {
		other, err := p.declared.plan(t)
		if err != nil || other.kind != mechanism.Own || other.spec.Bundle == p.spec.Bundle {
			continue
		}
		if set, err := own.Read(other.spec.Bundle); err == nil { // otherwise that treatment reports it
			for i := range set.Policies {
				out = append(out, &set.Policies[i])
			}
		}
	}
	return out
}

// Rulings is area.Can.Rulings.
func (t *target) Rulings(tr design.Treatment) []area.Ruling {
	p, err := t.arms.Of(tr)
	if err != nil {
		return nil
	}
	return p.policies.rulings
}

// A finding is what a catalogue has shown: for each policy a request to which it objects.
type finding struct {
	requests []own.Request
	proof    map[string]int // index in requests, by the policy's name in the run
	silent   []string       // policies whose proof no answer names: they warn, or others deny before them
}

// countEach finds the requests of the policies that have objected to some, and that no answer has named.
func (p *arm) countEach(ctx context.Context, f *finding, objected map[string]uint64) error {
	missing := map[string]bool{}
	for name := range objected {
		if _, ok := f.proof[name]; !ok {
			missing[name] = true
		}
	}
	for i := 0; i < len(f.requests) && len(missing) > 0 && i < mostCounted; i++ {
		found, err := p.objections(ctx, p.probe(f.requests[i]))
		if err != nil {
			return err
		}
		for _, name := range found {
			if missing[name] {
				f.proof[name] = i
				f.silent = append(f.silent, name)
				delete(missing, name)
			}
		}
	}
	return nil
}

// probe is a request of the catalogue.
func (p *arm) probe(r own.Request) mechanism.Probe {
	out := mechanism.Probe{Name: "tare-probe-" + strings.ToLower(r.Kind), Pod: r.Body}
	if r.Kind != "Pod" {
		out.Path, out.Kind = r.Path(p.namespace), r.Kind
	}
	return out
}

// keepProofs makes the proof that each block tries again.
func (p *arm) keepProofs(f finding) {
	x := &p.policies
	by := map[int][]string{}
	for name, i := range f.proof {
		by[i] = append(by[i], name)
	}
	all := make([]string, 0, len(x.own.Policies))
	for _, one := range x.own.Policies {
		all = append(all, own.NameIn(p.scope(), one.Name))
	}
	proof := mechanism.Proof{Good: x.proof.Good}
	x.shown = map[string]string{}
	for i, r := range f.requests {
		names := by[i]
		if len(names) == 0 {
			continue
		}
		slices.Sort(names)
		for _, name := range names {
			x.shown[own.NameOf(p.scope(), name)] = r.Name
		}
		proof.Object = append(proof.Object, names...)
		probe := p.probe(r)
		denies := slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(f.silent, name) })
		if !denies {
			x.silent = append(x.silent, probe)
			continue
		}
		probe.Want, probe.By = mechanism.Denied, all
		probe.Why = own.NameOf(p.scope(), names[0]) + " denies a " + r.Name
		proof.Bad = append(proof.Bad, probe)
	}
	x.proof = proof
}

// proveObjections has every policy that has a proof object to it once more.
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
	for _, probe := range p.policies.silent {
		if _, err := p.ask(ctx, probe); err != nil {
			return err
		}
	}
	after, err := p.checks(ctx)
	if err != nil {
		return err
	}
	grown := difference(before, after, p.namespace+".")
	var lost []string
	for _, name := range proof.Object {
		if grown[name] == 0 {
			lost = append(lost, own.NameOf(p.scope(), name))
		}
	}
	if len(lost) > 0 {
		objects := "objects to what it"
		if len(lost) > 1 {
			objects = "object to what they"
		}
		return fmt.Errorf("%s no longer %s objected to: %s", unit.Count(len(lost), "policy"), objects,
			strings.Join(lost, ", "))
	}
	return nil
}
