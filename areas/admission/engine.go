package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tare/area"
	"tare/areas/admission/kyverno"
	"tare/areas/admission/mechanism"
	"tare/areas/admission/own"
	"tare/internal/kit"
)

const (
	// kyvernoServer is the name of Kyverno as a child of this binary, and the subject of its probe.
	kyvernoServer = "kyverno"
	// engineWithin bounds its start.
	engineWithin = 3 * time.Minute
	// countEvery is the interval at which Kyverno's counts are read until they stand still for countStill readings: it
	// evaluates policies that only warn after it has answered.
	countEvery = 40 * time.Millisecond
	countStill = 3
	// countWithin bounds the wait for an objection that must come.
	countWithin = 10 * time.Second
)

func kyvernoHost(env area.Env) kyverno.Host {
	return kyverno.Host{Log: env.Log, Getenv: kit.Environment(env.Getenv)}
}

// startEngine starts Kyverno beside the control plane, if policies of the bundle need it.
func (p *arm) startEngine(ctx context.Context) error {
	if len(p.policies.own.Engines()) == 0 {
		return nil
	}
	program, err := kyverno.Find(ctx, p.kyverno, kyvernoHost(p.env))
	if err != nil {
		return err
	}
	definitions, err := own.ReadObjects(program.Definitions)
	if err != nil {
		return fmt.Errorf("read the definitions of Kyverno %s: %w", program.Version, err)
	}
	keeper := p.policies.keeper
	if err := keeper.Apply(ctx, append(definitions, kyverno.Settings()...), applyAbreast); err != nil {
		return fmt.Errorf("prepare the control plane for Kyverno %s: %w", program.Version, err)
	}
	kinds := slices.Collect(maps.Keys(mechanism.Defined(definitions)))
	if err := p.await(ctx, "the API server does not serve the kinds of Kyverno", func() error {
		_, missing, err := keeper.Lookup(ctx, kinds)
		if err == nil && len(missing) > 0 {
			err = fmt.Errorf("%s is missing", missing[0].Kind)
		}
		return err
	}); err != nil {
		return err
	}
	config := kyverno.Config{Path: program.Path, Kubeconfig: p.control.Kubeconfig()}
	p.engine, err = startChild(ctx, p.env, p.journal, kyvernoServer, p.index, config, &p.engineReady, engineWithin)
	if err != nil {
		return fmt.Errorf("start Kyverno %s: %w", program.Version, err)
	}
	return p.awaitPolicyCheck(ctx)
}

// awaitPolicyCheck waits until a policy that cannot be compiled is refused: before that, Kyverno takes any, and says
// that it is in force.
func (p *arm) awaitPolicyCheck(ctx context.Context) error {
	body, err := kyverno.Broken().MarshalJSON()
	if err != nil {
		return err
	}
	path := p.prefix + "/apis/policies.kyverno.io/v1/validatingpolicies" + dryRunQuery
	return p.await(ctx, "Kyverno does not check policies", func() error {
		a, err := p.setter.do(ctx, http.MethodPost, path, jsonType, body)
		if err == nil && mechanism.RulingOf(a.status, a.body) != mechanism.PolicyDenied {
			err = fmt.Errorf("one that cannot be compiled is answered by %d %s", a.status, a.message())
		}
		return err
	})
}

// applyEach creates the user's policies one after another where an engine checks them, so that what it refuses is named
// with its place in the user's file.
func (p *arm) applyEach(ctx context.Context) error {
	x := &p.policies
	if p.engine == nil {
		return x.keeper.Apply(ctx, x.rendered.Objects, applyAbreast)
	}
	for _, o := range x.rendered.Objects {
		if err := x.keeper.Apply(ctx, []*unstructured.Unstructured{o}, 1); err != nil {
			return fmt.Errorf("%s%w", p.placeOf(o), err)
		}
	}
	return nil
}

// placeOf says where the user's file has an engine's policy, with a colon; empty: it is none. What was read is a copy.
func (p *arm) placeOf(o *unstructured.Unstructured) string {
	at, ok := p.policies.own.At(o)
	if !ok {
		return ""
	}
	at.File = p.spec.Bundle + strings.TrimPrefix(at.File, filepath.Join(p.env.Dir, p.bundleCopy()))
	return at.String() + ": "
}

// awaitEngine waits until Kyverno says of each policy that it is in force, and then until the API server asks Kyverno:
// a canary of each language, created after the others, denies a pod.
func (p *arm) awaitEngine(ctx context.Context) error {
	cel, patterns := false, false
	for _, o := range p.policies.rendered.Objects {
		if !own.IsEngines(o) {
			continue
		}
		if own.IsCEL(o) {
			cel = true
		} else {
			patterns = true
		}
		if err := p.awaitReady(ctx, o); err != nil {
			return err
		}
	}
	for _, is := range []struct{ cel, there bool }{{true, cel}, {false, patterns}} {
		if is.there {
			if err := p.awaitEngineCanary(ctx, is.cel); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitReady waits until Kyverno says of a policy that it is in force.
func (p *arm) awaitReady(ctx context.Context, o *unstructured.Unstructured) error {
	what := fmt.Sprintf("%s%s %s does not come into force", p.placeOf(o), o.GetKind(), o.GetName())
	resources, _, err := p.policies.keeper.Lookup(ctx, mechanism.KindsOf([]*unstructured.Unstructured{o}))
	if err != nil {
		return err
	}
	if len(resources) == 0 {
		return fmt.Errorf("%s: the API server has no such kind", what)
	}
	in := p.policies.keeper.Dynamic().Resource(resources[0]).Namespace(o.GetNamespace())
	return p.await(ctx, what, func() error {
		is, err := in.Get(ctx, o.GetName(), v1.GetOptions{})
		if err != nil {
			return err
		}
		if ready, says := own.Ready(is); !ready {
			return fmt.Errorf("Kyverno says: %s", says) //nolint:staticcheck // a name
		}
		return nil
	})
}

// awaitEngineCanary creates a policy of tare's own, waits until it denies, and takes it away again.
func (p *arm) awaitEngineCanary(ctx context.Context, cel bool) error {
	const name = "tare-canary"
	canary := kyverno.Canary(cel, name, p.namespace, mechanism.DenyLabel, mechanism.DenyAll)
	probe := mechanism.Probe{Pod: mechanism.Pod{
		Name: "tare-probe-canary", Namespace: p.namespace, Model: true,
		Labels: map[string]string{mechanism.DenyLabel: mechanism.DenyAll},
	}.JSON()}
	if err := p.admin.Apply(ctx, []*unstructured.Unstructured{canary}, 1); err != nil {
		return fmt.Errorf("create a policy that shows when the others are in force: %w", err)
	}
	denies := func() (bool, error) {
		a, err := p.ask(ctx, probe)
		return mechanism.RulingOf(a.status, a.body) == mechanism.PolicyDenied && strings.Contains(a.message(), name), err
	}
	if err := p.await(ctx, "a policy that was created after the others is not in force", func() error {
		is, err := denies()
		if err == nil && !is {
			err = errors.New("a pod that it denies is admitted, or denied by others only")
		}
		return err
	}); err != nil {
		return err
	}
	resources, _, err := p.admin.Lookup(ctx, mechanism.KindsOf([]*unstructured.Unstructured{canary}))
	if err == nil {
		err = p.admin.RemoveAll(ctx, resources)
	}
	if err != nil {
		return fmt.Errorf("take away the policy that showed when the others are in force: %w", err)
	}
	return p.await(ctx, "a policy that was removed is still in force", func() error {
		is, err := denies()
		if err == nil && is {
			err = errors.New("it still denies a pod")
		}
		return err
	})
}

// await tries until it succeeds, or for settleWithin.
func (p *arm) await(ctx context.Context, what string, try func() error) error {
	for begin := p.env.Clock.Now(); ; {
		err := try()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if failed := p.failed(); failed != nil {
			return failed
		}
		if p.env.Clock.Now().Sub(begin) > settleWithin {
			return fmt.Errorf("%s within %v: %w", what, settleWithin, err)
		}
		if e := p.env.Clock.Sleep(ctx, pause); e != nil {
			return errors.Join(e, err)
		}
	}
}

// engineChecks adds Kyverno's counts of objections to those of the API server, by the names that policies have in the
// run, when they stand still.
func (p *arm) engineChecks(ctx context.Context, counts map[string]uint64) error {
	if p.engine == nil {
		return nil
	}
	objected, was, err := p.engineReady.Objections(ctx)
	for still := 0; err == nil && still < countStill; still++ {
		if err = p.env.Clock.Sleep(ctx, countEvery); err != nil {
			return err
		}
		var is uint64
		if objected, is, err = p.engineReady.Objections(ctx); is != was {
			was, still = is, -1
		}
	}
	if err != nil {
		return errors.Join(p.engine.Failed(), err)
	}
	for name, n := range objected {
		counts[own.NameIn(p.scope(), name)] += n
	}
	// Of some policies Kyverno makes ValidatingAdmissionPolicies, which the API server counts.
	for _, prefix := range []string{"cpol-", "vpol-"} {
		for name, n := range counts {
			if rest, ok := strings.CutPrefix(name, prefix); ok {
				counts[own.NameIn(p.scope(), rest)] += n
			}
		}
	}
	return nil
}

// engineDeniers are the policies of an engine's that an answer names as those that denied the request.
func (p *arm) engineDeniers(a answer) (out []string) {
	if p.engine == nil || a.status == http.StatusCreated {
		return nil
	}
	said := a.message()
	for _, one := range p.policies.own.Policies {
		if one.Engine() == "" {
			continue
		}
		if slices.ContainsFunc(one.Words(p.scope()), func(word string) bool { return strings.Contains(said, word) }) {
			out = append(out, own.NameIn(p.scope(), one.Name))
		}
	}
	return out
}
