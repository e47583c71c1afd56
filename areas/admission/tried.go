package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tare/areas/admission/mechanism"
	"tare/areas/admission/own"
	"tare/internal/load"
	"tare/internal/unit"
)

// mostTrespasses bounds the trespasses of all operations of the load: it can have 256 operations.
const mostTrespasses = 120

// A try is a request of the catalogue for a pod, and the policies that deny it.
type try struct {
	request int
	by      []string
}

// A forbiddenPod is one that must be denied. Of the user's own policies it says by which.
type forbiddenPod struct {
	mechanism.Probe
	by []string
}

// deniers names the policies that must deny the pod.
func (f forbiddenPod) deniers() string {
	if len(f.by) == 1 {
		return "policy " + f.by[0]
	}
	return "the policies " + strings.Join(f.by, ", ")
}

// nameOf is the name of an operation's trespass with the pod.
func (f forbiddenPod) nameOf(o operation) string {
	switch n := len(f.by); n {
	case 0:
		return o.forbidden()
	case 1:
		return o.forbidden() + "/" + f.by[0]
	default:
		return fmt.Sprintf("%s/%s+%d", o.forbidden(), f.by[0], n-1)
	}
}

// mostTried bounds the pods by which each operation of the load tries policies.
func (p *arm) mostTried() int {
	n := 0
	for _, o := range p.operations {
		if o.guarded() {
			n++
		}
	}
	return mostTrespasses / max(1, n)
}

// findDeniers asks once more for each pod that was refused, to know all policies that deny it: an answer names the
// first of those that the API server evaluates, whose counts name the others.
func (p *arm) findDeniers(ctx context.Context, f *finding) error {
	if !p.env.Trespasses {
		return nil
	}
	f.deniers = map[int][]string{}
	denies := map[string]bool{}
	for _, one := range p.policies.own.Policies {
		denies[one.Name] = p.policies.own.Denies(one)
	}
	for i, r := range f.requests {
		if r.Kind != "Pod" || !f.refused[i] || f.undecided[i] {
			continue
		}
		var a answer
		counted, err := p.countedDenials(ctx, func() (err error) {
			a, _, err = p.askFor(ctx, r)
			return err
		})
		if err != nil {
			return err
		}
		names := p.named(append(counted, p.denier(a)...))
		slices.Sort(names)
		failed := p.failures(f, i, a)
		f.deniers[i] = slices.DeleteFunc(slices.Compact(names), func(name string) bool {
			_, fails := failed[name]
			return fails || !denies[name] || f.quoted[name]
		})
	}
	return nil
}

// countedDenials are the policies of the run that the API server has evaluated meanwhile and that objected; none where
// its counts cannot be read.
func (p *arm) countedDenials(ctx context.Context, do func() error) (out []string, err error) {
	if p.metricsDenied != "" {
		return nil, do()
	}
	before, err := p.apiChecks(ctx)
	if err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	after, err := p.apiChecks(ctx)
	if err != nil {
		return nil, err
	}
	for name := range difference(before, after, p.namespace+".") {
		out = append(out, name)
	}
	return out, nil
}

// tries are the pods by which policies are tried: for each policy the first one that it alone denies, so that each
// answer shows what became of one policy, and of those that have none, the first that several of them deny.
func (f *finding) tries(most int) (out []try) {
	tried := map[string]bool{}
	for _, alone := range []bool{true, false} {
		for i := range f.requests {
			by := f.deniers[i]
			if len(by) == 0 || alone != (len(by) == 1) || len(out) == most ||
				!slices.ContainsFunc(by, func(name string) bool { return !tried[name] }) {
				continue
			}
			for _, name := range by {
				tried[name] = true
			}
			out = append(out, try{i, by})
		}
	}
	return out
}

// forbiddenByOwn are the pods of the trespasses of an operation that the user's own policies must deny.
func (p *arm) forbiddenByOwn(o operation) (out []forbiddenPod) {
	x := &p.policies
	tries := x.finding.tries(p.mostTried())
	if x.tried != nil {
		tries = x.tried[o.name]
	}
	var words []string
	for _, one := range x.own.Policies {
		words = append(words, one.Words(p.scope())...)
	}
	for _, t := range tries {
		r := x.finding.requests[t.request]
		pod := forbiddenPod{Probe: p.probe(r), by: t.by}
		pod.Want, pod.ByWords, pod.Why = mechanism.Denied, words, t.by[0]+" denies a "+r.Name
		out = append(out, pod)
	}
	return out
}

// chooseTrespasses asks for each trespass of the user's own policies once, before the load, and keeps those that are
// denied: a policy may not be about the form that its pod has in an operation.
func (p *arm) chooseTrespasses(ctx context.Context) error {
	tries, tried := p.policies.finding.tries(p.mostTried()), map[string][]try{}
	p.policies.tried = nil
	for _, o := range p.operations {
		if !o.guarded() {
			continue
		}
		var first error
		for n, pod := range p.forbiddenByOwn(o) {
			w, err := p.trespass(o, pod, fmt.Sprintf("f%dc", p.index))
			if err != nil {
				return fmt.Errorf("render the trespass of %s: %w", o.name, err)
			}
			refusal, err := p.askTrespass(ctx, &load.Operation{
				Name: pod.nameOf(o), Twin: o.name, Wire: w, Expect: w.expects(),
			})
			switch {
			case err != nil:
				return err
			case refusal == nil:
				tried[o.name] = append(tried[o.name], tries[n])
			case first == nil:
				first = refusal
			}
		}
		if len(tried[o.name]) == 0 && first != nil {
			return first
		}
	}
	p.policies.tried = tried
	return nil
}

// untried says which policies that deny no trespass tries alone, and why, a sentence for each reason.
func (p *arm) untried() (out []string) {
	x := &p.policies
	if !p.env.Trespasses {
		return nil
	}
	alone, together, denying := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, tries := range x.tried {
		for _, t := range tries {
			for _, name := range t.by {
				alone[name] = alone[name] || len(t.by) == 1
				together[name] = true
			}
		}
	}
	for _, by := range x.finding.deniers {
		for _, name := range by {
			denying[name] = true
		}
	}
	reasons := []string{
		noPods, "no pod that tare asks for is denied; requests: FILE names more",
		fmt.Sprintf("no operation of the load has a form that is denied, of %d pods at most", p.mostTried()),
	}
	tried := len(reasons) // with others
	by := make([][]string, tried+1)
	for _, one := range x.own.Policies {
		reason := 1
		switch name := one.Name; {
		case alone[name] || !x.own.Denies(one):
			continue
		case together[name]:
			reason = tried
		case denying[name]:
			reason = 2
		case !seesPods(one):
			reason = 0
		}
		by[reason] = append(by[reason], one.Name)
	}
	for i, names := range by {
		switch {
		case len(names) == 0:
		case i == tried:
			out = append(out, fmt.Sprintf("%s not tried alone (others deny the same pods): %s", unit.Count(len(names), "policy"),
				strings.Join(names, ", ")))
		default:
			out = append(out, notTried(names, reasons[i]))
		}
	}
	return out
}

// noPods is why a policy cannot be tried of which seesPods is false.
const noPods = "about neither pods nor Deployments"

// auditsOnly is why a policy is not tried that auditing names.
const auditsOnly = "audit or warn only"

// auditing names the policies in force that say what they object to, and deny none of it.
func auditing(in *own.InForce) (out []string) {
	for _, one := range in.Policies {
		if one.Judges() && !in.Denies(one) && !one.Mutates() && !one.Generates() {
			out = append(out, one.Name)
		}
	}
	return out
}

// seesPods reports whether a policy is about an operation of which there is a trespass.
func seesPods(one *own.Policy) bool {
	return slices.ContainsFunc(operations(), func(o operation) bool {
		return o.guarded() && one.Sees(o.resource.group, "v1", o.resource.plural, asked(o.verb))
	})
}

// notTried names policies that are not tried.
func notTried(names []string, why string) string {
	return fmt.Sprintf("%s not tried (%s): %s", unit.Count(len(names), "policy"), why, strings.Join(names, ", "))
}

// triedNotes says by what policies are tried, and which ones deny nothing.
func (p *arm) triedNotes() (out []string) {
	x := &p.policies
	if x.tried == nil {
		return nil
	}
	var pods []string
	for _, o := range p.operations {
		for _, t := range x.tried[o.name] {
			pods = append(pods, fmt.Sprintf("%s (%s)", strings.Join(t.by, ", "), x.finding.requests[t.request].Name))
		}
	}
	if slices.Sort(pods); len(pods) > 0 {
		out = append(out, fmt.Sprintf("%s: what is said of trespasses is about the policies that these try, and no "+
			"others: %s", p.spec.Bundle, strings.Join(slices.Compact(pods), ", ")))
	}
	if names := auditing(x.own); len(names) > 0 {
		out = append(out, p.spec.Bundle+": "+notTried(names, auditsOnly))
	}
	return out
}
