package admission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"tare/area"
	"tare/areas/admission/apimetrics"
	"tare/areas/admission/cluster"
	"tare/areas/admission/engine"
	"tare/areas/admission/mechanism"
	"tare/areas/admission/own"
	"tare/internal/kit"
	"tare/internal/proc"
)

const (
	// engineServer is the name of a policy engine as a child of this binary.
	engineServer = "engine"
	// kindsWithin bounds the wait until the API server serves kinds that were defined: Kyverno has two dozen of them, and
	// a busy host takes minutes.
	kindsWithin = 5 * time.Minute
	// engineWithin bounds its start.
	engineWithin = 3 * time.Minute
	// countEvery is the interval at which an engine's counts are read until they stand still for countStill readings:
	// Kyverno evaluates policies that only warn after it has answered.
	countEvery = 40 * time.Millisecond
	countStill = 3
	// countWithin bounds the wait for an objection that must come, and for counts to stand still.
	countWithin = 10 * time.Second
)

func engineHost(env area.Env) engine.Host {
	return engine.Host{Log: env.Log, Getenv: kit.Environment(env.Getenv)}
}

// A runningEngine is one beside a control plane.
type runningEngine struct {
	engineProcess
	beside    []*engineProcess
	reported  bool // the auditor was seen to report about a pod
	installed installed
	// restless: its counts are not read, or did not stand still while nothing was asked, so that they show nothing.
	restless bool
}

// An engineProcess is a program of an engine's that tare runs.
type engineProcess struct {
	*kit.Process // nil: one of a cluster of the user's
	kind         *engine.Kind
	program      engine.Program // of a cluster of the user's its version alone, if that is known
	ready        engine.Ready
}

// with reports whether a program of this kind runs beside the engine.
func (e *runningEngine) with(k *engine.Kind) bool {
	return k != nil && slices.ContainsFunc(e.beside, func(h *engineProcess) bool { return h.kind == k })
}

// startEngines starts engines beside the control plane, or finds those of a cluster of the user's.
func (p *arm) startEngines(ctx context.Context, kinds []*engine.Kind) error {
	start := p.startEngine
	if p.foreign {
		start = p.findEngine
	}
	for _, kind := range kinds {
		if err := start(ctx, kind); err != nil {
			return err
		}
	}
	return nil
}

// applyDefinitions creates the kinds that the policies of the experiment are about before an engine starts, which looks
// for them only then, and before anything is asked of objects of these kinds.
func (p *arm) applyDefinitions(ctx context.Context) error {
	definitions := p.policies.own.Definitions()
	if len(definitions) == 0 {
		return nil
	}
	if err := p.policies.keeper.Apply(ctx, definitions, applyAbreast); err != nil {
		return fmt.Errorf("put the policies in force: %w", err)
	}
	return p.awaitKinds(ctx, "the bundle", slices.Collect(maps.Keys(mechanism.Defined(definitions)))...)
}

func (p *arm) startEngine(ctx context.Context, kind *engine.Kind) error {
	program, err := kind.Find(ctx, p.engineVersion(kind), engineHost(p.env))
	if err != nil {
		return err
	}
	what := kind.Title + " " + program.Version
	definitions, err := own.ReadObjects(program.Definitions)
	if err != nil {
		return fmt.Errorf("read the definitions of %s: %w", what, err)
	}
	keeper := p.policies.keeper
	if err := keeper.Apply(ctx, append(definitions, kind.Before()...), applyAbreast); err != nil {
		return fmt.Errorf("prepare the control plane for %s: %w", what, err)
	}
	if err := p.awaitKinds(ctx, kind.Title, slices.Collect(maps.Keys(mechanism.Defined(definitions)))...); err != nil {
		return err
	}
	e := &runningEngine{engineProcess: engineProcess{kind: kind, program: program}}
	if err := p.startProgram(ctx, &e.engineProcess); err != nil {
		return err
	}
	p.engines = append(p.engines, e)
	if err := keeper.Apply(ctx, kind.After(e.ready, p.control.CA), applyAbreast); err != nil {
		return fmt.Errorf("have the API server ask %s: %w", what, err)
	}
	if err := p.awaitPolicyCheck(ctx, kind); err != nil {
		return err
	}
	for _, k := range p.beside(kind, p.policies.own) {
		h := &engineProcess{kind: k}
		if h.program, err = k.Find(ctx, p.engineVersion(kind), engineHost(p.env)); err != nil {
			return err
		}
		if err := p.startProgram(ctx, h); err != nil {
			return err
		}
		e.beside = append(e.beside, h)
	}
	return nil
}

// awaitKinds waits until the API server serves the kinds that somebody defined.
func (p *arm) awaitKinds(ctx context.Context, of string, kinds ...schema.GroupVersionKind) error {
	return p.awaitWithin(ctx, kindsWithin, "the API server does not serve the kinds of "+of, func() error {
		_, missing, err := p.policies.keeper.Lookup(ctx, kinds)
		if err == nil && len(missing) > 0 {
			err = fmt.Errorf("%s is missing", missing[0].Kind)
		}
		return err
	})
}

// startProgram starts a program of an engine beside the control plane, on the ports that it had before.
func (p *arm) startProgram(ctx context.Context, e *engineProcess) (err error) {
	name := e.kind.Name
	config := engine.Config{
		Engine: name, Version: e.program.Version, Path: e.program.Path, Kubeconfig: p.control.Kubeconfig(),
		Certificates: p.control.CertificateFolder(), Audit: p.spec.Audit.Std(), Network: p.spec.Network,
		Ports: e.ready.Ports,
	}
	e.Process, err = kit.StartProcess(ctx, p.journal, areaName, fmt.Sprintf("%s-%d", name, p.index), proc.Spec{
		Name: name, Path: p.env.Self, Args: []string{"serve", areaName, engineServer}, Config: config,
		LogFile: p.env.LogFile(name, p.index), ReadyWithin: engineWithin, CPUs: p.env.CPUs,
	}, &e.ready)
	if err != nil {
		return fmt.Errorf("start %s %s: %w", e.kind.Title, e.program.Version, err)
	}
	return nil
}

// awaitPolicyCheck waits until a policy that its engine must not take is refused: before that, an engine takes any, and
// Kyverno says that it is in force.
func (p *arm) awaitPolicyCheck(ctx context.Context, kind *engine.Kind) error {
	broken := kind.Broken()
	body, err := broken.MarshalJSON()
	if err != nil {
		return err
	}
	r, err := p.resourceOf(ctx, broken)
	if err != nil {
		return fmt.Errorf("%s: %w", kind.Title, err)
	}
	path := p.prefix + "/apis/" + r.Group + "/" + r.Version + "/" + r.Resource + dryRunQuery
	return p.await(ctx, kind.Title+" does not check policies", func() error {
		a, err := p.setter.do(ctx, http.MethodPost, path, jsonType, body)
		if err == nil && mechanism.RulingOf(a.status, a.body) != mechanism.PolicyDenied {
			err = fmt.Errorf("one that must be refused is answered by %d %s", a.status, a.message())
		}
		return err
	})
}

// applyEach creates the user's policies one after another where an engine checks them, so that what it refuses is named
// with its place in the user's file.
func (p *arm) applyEach(ctx context.Context) error {
	x := &p.policies
	if len(p.engines) == 0 {
		err := x.keeper.Apply(ctx, x.rendered.Objects, applyAbreast)
		var failed *cluster.NotCreatedError
		if x.own != nil && errors.As(err, &failed) {
			return fmt.Errorf("%s%w", p.placeOf(failed.Object), err)
		}
		return err
	}
	var served []schema.GroupVersionKind
	for _, o := range x.rendered.Objects {
		// An engine says that it has defined a kind before the API server serves that.
		if kind := o.GroupVersionKind(); kind.Group == own.ConstraintGroup && !slices.Contains(served, kind) {
			if err := p.awaitKinds(ctx, kind.Group, kind); err != nil {
				return fmt.Errorf("%s%w", p.placeOf(o), err)
			}
			served = append(served, kind)
		}
		if err := p.applyOne(ctx, x.keeper, o); err != nil {
			return err
		}
	}
	return nil
}

// applyOne creates an object, and if what follows may be of a kind that it defines, waits until its engine has that.
func (p *arm) applyOne(ctx context.Context, by *cluster.Cluster, o *unstructured.Unstructured) error {
	if err := by.Apply(ctx, []*unstructured.Unstructured{o}, 1); err != nil {
		return fmt.Errorf("%s%w", p.placeOf(o), err)
	}
	if !own.Defines(o) {
		return nil
	}
	return p.awaitReady(ctx, o)
}

// placeOf is the beginning of an error: the place of a policy or a binding in the user's file, not in the copy that was
// read. For other objects it is empty.
func (p *arm) placeOf(o *unstructured.Unstructured) string {
	at, ok := p.policies.own.Place(o)
	if !ok {
		return ""
	}
	at.File = own.Title(p.spec.Bundle) + strings.TrimPrefix(at.File, filepath.Join(p.env.Dir, p.bundleCopy()))
	return at.String() + ": "
}

// awaitEngines waits until each engine says of its policies that they are in force, and then until the API server asks
// the engine: a canary of each language, created after the others, denies a pod.
func (p *arm) awaitEngines(ctx context.Context) error {
	if err := p.awaitEach(ctx, p.policies.rendered.Objects); err != nil {
		return err
	}
	all := canaries(p.policies.own, p.scope())
	for _, language := range slices.Sorted(maps.Keys(all)) {
		canary := all[language]
		name := canary[len(canary)-1].GetName()
		denies := func(probe mechanism.Probe, want bool) (bool, error) {
			a, err := p.ask(ctx, probe)
			denied := mechanism.RulingOf(a.status, a.body) == mechanism.PolicyDenied
			is := denied && strings.Contains(a.said(), name)
			if err == nil && denied && want && !is {
				err = fmt.Errorf("others deny a pod that it denies: %s", a.message())
			}
			return is, err
		}
		if err := p.passCanary(ctx, canary, denies); err != nil {
			return err
		}
	}
	return nil
}

// awaitEach waits until each engine says of its policies among some objects that they are in force.
func (p *arm) awaitEach(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if own.EngineOf(o) == "" {
			continue
		}
		if err := p.awaitReady(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// canaries are those of the languages in which engines' policies are written: objects of which the last denies a pod.
func canaries(in *own.InForce, s mechanism.Scope) map[string][]*unstructured.Unstructured {
	out := map[string][]*unstructured.Unstructured{}
	name, kind := canaryName(s), own.KindIn(s, "TareCanary")
	for _, o := range in.Objects {
		switch own.EngineOf(o) {
		case engine.Kyverno.Name:
			cel := own.IsCEL(o)
			canary := engine.KyvernoCanary(cel, name, s.Namespace, mechanism.DenyLabel, mechanism.DenyAll)
			if cel {
				canary.SetAPIVersion(o.GetAPIVersion()) // which the engine may serve alone
			}
			if s.Foreign && cel {
				own.InNamespace(canary, s.Namespace)
			}
			out[fmt.Sprint("kyverno ", cel)] = []*unstructured.Unstructured{canary}
		case engine.Gatekeeper.Name:
			template, constraint := engine.GatekeeperCanary(kind, name, s.Namespace, mechanism.DenyLabel, mechanism.DenyAll)
			out["gatekeeper"] = []*unstructured.Unstructured{template, constraint}
		}
	}
	return out
}

// canaryName is the name of an engine's canary.
func canaryName(s mechanism.Scope) string {
	if s.Foreign {
		return own.NameIn(s, "tare-canary")
	}
	return "tare-canary"
}

// canaryKinds are the kinds of the canaries' objects.
func canaryKinds(in *own.InForce, run string) (out []schema.GroupVersionKind, err error) {
	mutating, err := mutatingCanaries(in, in.Scope, run)
	for _, all := range []map[string][]*unstructured.Unstructured{canaries(in, in.Scope), mutating} {
		for _, canary := range all {
			out = append(out, mechanism.KindsOf(canary)...)
		}
	}
	return out, err
}

// awaitReady waits until its engine says of a policy that it is in force.
func (p *arm) awaitReady(ctx context.Context, o *unstructured.Unstructured) error {
	what := fmt.Sprintf("%s%s %s is not in force", p.placeOf(o), o.GetKind(), o.GetName())
	resource, err := p.resourceOf(ctx, o)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	in := p.policies.keeper.Dynamic().Resource(resource).Namespace(o.GetNamespace())
	return p.awaitReadyIn(ctx, in, o.GetName(), what)
}

// awaitReadyIn is awaitReady of an object among those of its kind.
func (p *arm) awaitReadyIn(ctx context.Context, in dynamic.ResourceInterface, name, what string) error {
	within, reminded := settleWithin, p.env.Clock.Now()
	if p.foreign {
		within *= 2 // where only the engine itself tries again: it does after 20, 41 and 82 s
	}
	return p.awaitWithin(ctx, within, what, func() error { return p.checkReady(ctx, in, name, &reminded) })
}

// checkReady asks for an object whose engine should say that it is in force. The engine is reminded of one that the API
// server refused, but not on a user's cluster.
func (p *arm) checkReady(ctx context.Context, in dynamic.ResourceInterface, name string, reminded *time.Time) error {
	is, err := in.Get(ctx, name, v1.GetOptions{})
	if err != nil {
		return err
	}
	ready, says := p.policies.own.Ready(is)
	if ready {
		return nil
	}
	err = fmt.Errorf("its engine says %q", says)
	if now := p.env.Clock.Now(); !p.foreign && cluster.LacksParamKind(says) && now.Sub(*reminded) >= remindEvery {
		*reminded = now
		_, failed := in.Patch(ctx, name, types.MergePatchType, reminder(now), v1.PatchOptions{})
		err = errors.Join(err, failed)
	}
	return err
}

// remindEvery is the least time between two reminders.
const remindEvery = 2 * time.Second

// reminder is a change of an object that has its engine look at it again. The API server refuses what policies are
// about until it has found the kinds of their parameters, for which it looks every half minute, and an engine that it
// refused waits twice as long each time.
func reminder(now time.Time) []byte {
	return fmt.Appendf(nil, `{"metadata":{"annotations":{"tare.dev/reminded":%q}}}`, now.Format(time.RFC3339))
}

// await tries until it succeeds, or for settleWithin.
func (p *arm) await(ctx context.Context, what string, try func() error) error {
	return p.awaitWithin(ctx, settleWithin, what, try)
}

func (p *arm) awaitWithin(ctx context.Context, within time.Duration, what string, try func() error) error {
	for begin := p.env.Clock.Now(); ; {
		err := try()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if failed := p.failed(); failed != nil {
			return failed
		}
		if p.env.Clock.Now().Sub(begin) > within {
			return fmt.Errorf("%s after %v: %w", what, within, err)
		}
		if e := p.env.Clock.Sleep(ctx, pause); e != nil {
			return errors.Join(e, err)
		}
	}
}

// engineChecks adds the engines' counts of objections to those of the API server, by the names that policies have in
// the run, when they stand still.
func (p *arm) engineChecks(ctx context.Context, counts map[string]uint64) error {
	if p.policies.own == nil {
		return nil
	}
	return p.addEngineCounts(ctx, counts, func(c apimetrics.KyvernoCounts) map[string]uint64 { return c.Objected })
}

// apiChecks are the API server's counts of objections. Of some policies engines make ValidatingAdmissionPolicies, which
// it counts, too: Kyverno one of each, and Gatekeeper a binding of each constraint.
func (p *arm) apiChecks(ctx context.Context) (map[string]uint64, error) {
	var bindings map[string]uint64
	counts, err := p.apiCounts(ctx, func(text []byte) (counts map[string]uint64, err error) {
		if bindings, err = apimetrics.BindingChecks(text); err != nil {
			return nil, err
		}
		return apimetrics.PolicyChecks(text)
	})
	if err != nil || len(p.engines) == 0 || p.policies.own == nil {
		return counts, err
	}
	for _, one := range p.policies.own.Policies {
		if n := bindings[p.policies.own.BindingMadeOf(one)]; n > 0 {
			counts[own.NameIn(p.scope(), one.Name)] += n
		}
	}
	for _, prefix := range []string{"cpol-", "vpol-"} {
		for name, n := range counts {
			if rest, ok := strings.CutPrefix(name, prefix); ok {
				counts[own.NameIn(p.scope(), own.NameOf(p.scope(), rest))] += n
			}
		}
	}
	return counts, nil
}

// addEngineCounts adds counts of the engines', by the names that policies have in the run, when they stand still.
func (p *arm) addEngineCounts(ctx context.Context, to map[string]uint64,
	of func(apimetrics.KyvernoCounts) map[string]uint64,
) error {
	for _, e := range p.engines {
		if !e.counts() {
			continue
		}
		is, err := p.settledCounts(ctx, e)
		if err != nil {
			return errors.Join(e.Failed(), err)
		}
		for name, n := range of(is) {
			to[own.NameIn(p.scope(), name)] += n
		}
	}
	return nil
}

// counts reports whether an engine counts objections, by numbers that stand still.
func (e *runningEngine) counts() bool { return e.kind.Counts && !e.restless }

// enginesCount reports whether one of the arm's engines counts objections.
func (p *arm) enginesCount() bool { return slices.ContainsFunc(p.engines, (*runningEngine).counts) }

// settledCounts reads an engine's counts when they stand still. If they do not within countWithin, the engine is
// restless, and has none.
func (p *arm) settledCounts(ctx context.Context, e *runningEngine) (apimetrics.KyvernoCounts, error) {
	begin := p.env.Clock.Now()
	is, err := e.ready.Counts(ctx, p.namespace)
	for still := 0; err == nil && still < countStill; still++ {
		if err = p.env.Clock.Sleep(ctx, countEvery); err != nil {
			break
		}
		was := is.Evaluated
		if is, err = e.ready.Counts(ctx, p.namespace); is.Evaluated != was {
			still = -1
		}
		if err == nil && p.env.Clock.Now().Sub(begin) > countWithin {
			e.restless = true
			p.env.Log.Warn("an engine evaluates policies without being asked: its counts prove none of them",
				slog.String("engine", e.kind.Title), slog.String("namespace", p.namespace))
			return apimetrics.KyvernoCounts{}, nil
		}
	}
	return is, err
}

// engineDeniers are the policies of engines that an answer names as those that denied the request, first those that it
// surely does.
func (p *arm) engineDeniers(a answer) (out []string) {
	if p.policies.own == nil || a.status == http.StatusCreated {
		return nil
	}
	said := a.said()
	for _, one := range p.policies.own.Policies {
		if one.Engine() == "" {
			continue
		}
		switch denied, sure := one.Denied(p.scope(), said); {
		case sure:
			out = slices.Insert(out, 0, own.NameIn(p.scope(), one.Name))
		case denied:
			out = append(out, own.NameIn(p.scope(), one.Name))
		}
	}
	return out
}

// counted reports whether the objections of a policy are counted: by the API server, or by its engine.
func (p *arm) counted(one *own.Policy) bool {
	k := engine.Of(one.Engine())
	if k == nil || p.policies.own.BindingMadeOf(one) != "" {
		return true
	}
	return k.Counts && !slices.ContainsFunc(p.engines, func(e *runningEngine) bool {
		return e.kind == k && e.restless
	})
}

// uncounted are the names in the run of policies whose objections are not counted.
func (p *arm) uncounted() map[string]bool {
	out := map[string]bool{}
	for _, one := range p.policies.own.Policies {
		if !p.counted(one) {
			out[own.NameIn(p.scope(), one.Name)] = true
		}
	}
	return out
}

// programs are those that tare runs for an engine: itself, and what runs beside it.
func (e *runningEngine) programs() []*engineProcess {
	return append([]*engineProcess{&e.engineProcess}, e.beside...)
}

// enginesFailed returns which engines have ended by themselves.
func (p *arm) enginesFailed() error {
	var errs []error
	for _, e := range p.engines {
		for _, one := range e.programs() {
			errs = append(errs, one.Failed())
		}
	}
	return errors.Join(errs...)
}

// stopEngines ends the engines, after what runs beside them.
func (p *arm) stopEngines(ctx context.Context) error {
	var errs []error
	for _, e := range p.engines {
		for _, one := range slices.Backward(e.programs()) {
			errs = append(errs, one.Stop(ctx))
		}
	}
	return errors.Join(errs...)
}

// restartEngines starts engines afresh that have ended, and waits until they have all policies.
func (p *arm) restartEngines(ctx context.Context) error {
	for _, e := range p.engines {
		if err := p.startProgram(ctx, &e.engineProcess); err != nil {
			return err
		}
		if err := p.awaitPolicyCheck(ctx, e.kind); err != nil {
			return err
		}
	}
	if len(p.engines) == 0 || p.policies.own == nil {
		return nil
	}
	if err := p.awaitEngines(ctx); err != nil {
		return err
	}
	if p.policies.own.MakesPolicies() {
		// Gatekeeper takes its policies' bindings away and makes them again when it starts. The API server sees this within
		// a second, and may not find the kind of their parameter until half a minute later: until then, it refuses pods.
		if err := p.awaitCanary(ctx); err != nil {
			return err
		}
	}
	if err := p.passMutatingCanaries(ctx); err != nil {
		return err
	}
	return p.awaitAdmitted(ctx)
}
