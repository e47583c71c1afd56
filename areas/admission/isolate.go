package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tare/areas/admission/own"
)

// mostIsolated bounds the policies that are taken away for a moment each: one takes seconds.
const mostIsolated = 16

// quotedWithin bounds the wait until answers do not name a policy any more that was taken away: engines take a second.
const quotedWithin = 15 * time.Second

// dropQuoted takes policies away for a moment each that answers name only after others, and whose objections nobody
// counts: a name that then stands there still is a part of what another policy says.
func (p *arm) dropQuoted(ctx context.Context, f *finding) error {
	for _, one := range p.policies.own.Policies {
		i, proved := f.proof[one.Name]
		if !proved || f.first[one.Name] || p.counted(one) {
			continue
		}
		denied, err := p.deniedBy(ctx, f.requests[i], one)
		if err != nil {
			return fmt.Errorf("take %s away for a moment, to see what it denies: %w", one.Name, err)
		}
		if !denied {
			f.quoted[one.Name] = true
			delete(f.proof, one.Name)
			delete(f.met, one.Name)
		}
	}
	return nil
}

// deniedBy takes a policy away for a moment, and reports whether an answer names it no longer that names others still.
func (p *arm) deniedBy(ctx context.Context, r own.Request, one *own.Policy) (denied bool, err error) {
	acting := p.policies.own.Acting(one)
	if err := p.takeAway(ctx, acting); err != nil {
		return false, err
	}
	names := func(want bool) func() error {
		return func() error {
			a, err := p.ask(ctx, p.probe(r))
			if by := p.named(p.denier(a)); err == nil && (len(by) == 0 || slices.Contains(by, one.Name) != want) {
				err = errNamed
			}
			return err
		}
	}
	err = p.awaitWithin(ctx, quotedWithin, one.Name, names(false))
	if err != nil && !errors.Is(err, errNamed) {
		return false, err
	}
	denied = err == nil
	if err := p.putBack(ctx, acting); err != nil {
		return false, err
	}
	return denied, p.await(ctx, one.Name, names(true))
}

// errNamed says that an answer does not name the policies that it should.
var errNamed = errors.New("an answer does not name the policies that deny the request")

// isolate takes policies away for a moment each: what comes back otherwise then was changed by it. It tries those that
// were applied only to requests that others changed as well, and those whose applications nobody counts.
func (p *arm) isolate(ctx context.Context, f *finding) error {
	var shown []string
	tried := 0
	for _, one := range p.policies.own.Mutating() {
		var on []int
		switch {
		case slices.Contains(f.together, one.Name):
			on = []int{f.changed[one.Name]}
		case !p.counted(one) || p.metricsDenied != "":
			on = f.differently()
		}
		if len(on) == 0 || tried == mostIsolated {
			continue
		}
		tried++
		i, err := p.missed(ctx, f, one, on[:min(len(on), mostAttributed)])
		if err != nil {
			return fmt.Errorf("take %s away for a moment, to see what it changes: %w", one.Name, err)
		}
		if i >= 0 {
			f.changed[one.Name] = i
			shown = append(shown, one.Name)
		}
	}
	f.together = slices.DeleteFunc(f.together, func(name string) bool { return slices.Contains(shown, name) })
	if tried == 0 {
		return nil
	}
	if err := p.reorder(ctx); err != nil {
		return fmt.Errorf("put the policies back in their order: %w", err)
	}
	return p.settleChanges(ctx, f)
}

// reorder creates what mutates anew in the order of the bundle: engines apply policies in the order in which they were
// created, and what one makes of an object may depend on what others have.
func (p *arm) reorder(ctx context.Context) error {
	var all []*unstructured.Unstructured
	for _, one := range p.policies.own.Mutating() {
		all = append(all, p.policies.own.Acting(one)...)
	}
	if err := p.takeAway(ctx, all); err != nil {
		return err
	}
	return p.putBack(ctx, all)
}

// missed takes a policy away for a moment, and returns the first of some requests that then comes back otherwise; -1:
// none does.
func (p *arm) missed(ctx context.Context, f *finding, one *own.Policy, on []int) (found int, err error) {
	acting := p.policies.own.Acting(one)
	if err := p.takeAway(ctx, acting); err != nil {
		return -1, err
	}
	found = -1
	for _, i := range on {
		first, known, err := p.askChanges(ctx, f.requests[i])
		if err != nil {
			return -1, err
		}
		second, again, err := p.askChanges(ctx, f.requests[i])
		if err != nil {
			return -1, err
		}
		without := first.Settled(second)
		if known && again && len(f.changes[i].Missing(without))+len(without.Missing(f.changes[i])) > 0 {
			found = i
			break
		}
	}
	return found, p.putBack(ctx, acting)
}

// takeAway removes objects of policies, and waits until the API server and the engines have noticed.
func (p *arm) takeAway(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		resource, err := p.resourceOf(ctx, o)
		if err != nil {
			return err
		}
		in := p.policies.keeper.Dynamic().Resource(resource).Namespace(o.GetNamespace())
		if err := in.Delete(ctx, o.GetName(), v1.DeleteOptions{}); err != nil {
			return err
		}
		if err := p.await(ctx, o.GetName()+" is still there", func() error {
			_, err := in.Get(ctx, o.GetName(), v1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return cmp.Or(err, fmt.Errorf("%s %s was deleted", o.GetKind(), o.GetName()))
		}); err != nil {
			return err
		}
	}
	return p.passMutatingCanaries(ctx)
}

// putBack creates such objects again, and waits until they are in force.
func (p *arm) putBack(ctx context.Context, objects []*unstructured.Unstructured) error {
	if err := p.policies.keeper.Apply(ctx, objects, 1); err != nil {
		return err
	}
	if err := p.awaitEach(ctx, objects); err != nil {
		return err
	}
	return p.passMutatingCanaries(ctx)
}
