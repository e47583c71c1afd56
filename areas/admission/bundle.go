package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/area"
	"tare/areas/admission/engine"
	"tare/areas/admission/mechanism"
	"tare/areas/admission/own"
	"tare/areas/bundle"
	"tare/areas/plane"
	"tare/internal/design"
	"tare/internal/unit"
)

// bundles is area.Parts.Program: what says what is measured are the user's own policies, if there are any.
func bundles(_ context.Context, s area.Spec, env area.Env) (area.Program, error) {
	spec, err := area.SpecOf[*Spec](s)
	if err != nil {
		return area.Program{}, err
	}
	var paths []string
	for _, t := range env.Treatments {
		if p, err := spec.plan(t); err == nil && p.kind == mechanism.Own { // otherwise Validate reports it
			paths = append(paths, p.spec.Bundle)
		}
	}
	sums, err := bundle.Sums(paths, own.Sum)
	return area.Program{Files: true, Identity: sums}, err
}

// judgeBundle reads the user's own policies, and reports what would keep them from being measured.
func (p *plan) judgeBundle() error {
	s := p.spec
	if s.Policies != nil || s.Bound != nil || s.Useable != nil {
		return errors.New("policies: a bundle has as many as it has: leave out policies, bound and useable")
	}
	set, err := own.Read(s.Bundle, s.Network)
	if err == nil {
		err = set.Compile()
	}
	var in *own.InForce
	if err == nil {
		in, err = p.anywhere(set)
	}
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	if err := p.judgeEngines(in); err != nil {
		return err
	}
	if _, err := p.measured(anyScope); err != nil {
		return fmt.Errorf("measured: %w", err)
	}
	if s.Requests != "" {
		if _, err := own.ReadObjects(s.Requests); err != nil {
			return fmt.Errorf("requests: %w", err)
		}
	}
	return nil
}

// judgeEngines reports why engines that policies need cannot run.
func (p *plan) judgeEngines(in *own.InForce) error {
	needed := in.Engines()
	for _, k := range engine.Kinds() {
		switch is := slices.Contains(needed, k.Name); {
		case !is && p.givenVersion(k) != "":
			return fmt.Errorf("%s: the bundle holds no policy of %s's: leave the version out", k.Name, k.Title)
		case !is:
		case p.foreign && p.givenVersion(k) != "":
			return fmt.Errorf("%s: the %s of the cluster is measured, whatever its version is: leave this out", k.Name, k.Title)
		case p.foreign:
		case p.shared:
			return fmt.Errorf("bundle: it holds policies of %s's, which runs beside a control plane of one treatment: leave "+
				"shared out", k.Title)
		default:
			if err := k.CheckVersion(p.engineVersion(k)); err != nil {
				return fmt.Errorf("%s: %w", k.Name, err)
			}
			if k != engine.Kyverno {
				continue
			}
			if err := in.MissingIn(p.engineVersion(k)); err != nil {
				return fmt.Errorf("bundle: %w", err)
			}
		}
	}
	return nil
}

// givenVersion is the version of an engine that the file gives, if it gives one.
func (p *plan) givenVersion(k *engine.Kind) string {
	if k == engine.Gatekeeper {
		return p.spec.Gatekeeper
	}
	return p.spec.Kyverno
}

// engineVersion is the version of an engine, or of what runs beside it.
func (p *plan) engineVersion(k *engine.Kind) string { return cmp.Or(p.givenVersion(k), k.Default) }

// setIdle finds the engines that the treatment names although it has no policies of theirs. A version that holds for
// all treatments is only about those that have.
func (p *plan) setIdle(t design.Treatment) error {
	for _, k := range engine.Kinds() {
		switch {
		case t.Levels[k.Name] == "" || p.kind == mechanism.Own:
			continue
		case p.foreign:
			return fmt.Errorf("%s: the engines of a cluster are those that it has: leave this out", k.Name)
		case p.kind == mechanism.Manifests:
			return fmt.Errorf("%s: tare runs it for a bundle, and not for manifests: leave this out", k.Name)
		case p.shared:
			return fmt.Errorf("%s: %s runs beside a control plane of one treatment: leave shared out", k.Name, k.Title)
		case p.version != plane.V136:
			return fmt.Errorf("%s: it runs beside Kubernetes %s only", k.Name, plane.V136)
		}
		if err := k.CheckVersion(p.engineVersion(k)); err != nil {
			return fmt.Errorf("%s: %w", k.Name, err)
		}
		p.idle = append(p.idle, k)
	}
	return nil
}

// checkAudit reports why nobody could look again at what exists as often as that.
func (p *plan) checkAudit(t design.Treatment) error {
	switch every := p.spec.Audit.Std(); {
	case every == 0:
	case every < time.Second || every > time.Hour || every%time.Second != 0:
		return fmt.Errorf("audit: want whole seconds, from 1s to 1h, got %v", p.spec.Audit)
	case p.foreign:
		return errors.New("audit: the engines of a cluster look at what exists as they were told to: leave this out")
	case t.Levels["audit"] != "" && len(p.neededEngines()) == 0:
		return errors.New("audit: no engine runs that could look at what exists: give a bundle with policies of Kyverno's " +
			"or Gatekeeper's, or leave this out")
	case every > time.Minute && slices.Contains(p.neededEngines(), engine.Gatekeeper):
		return fmt.Errorf("audit: a run waits for Gatekeeper's first audit, which comes after this interval: want at most "+
			"1m, which its chart says, got %v", p.spec.Audit)
	}
	return nil
}

// beside are the programs that run beside an engine: what looks again at what exists where the experiment asks for it,
// and what acts after requests where policies want that. in is nil without policies.
func (p *plan) beside(k *engine.Kind, in *own.InForce) (out []*engine.Kind) {
	if p.spec.Audit > 0 && k.Auditor != nil {
		out = append(out, k.Auditor)
	}
	if k.Background != nil && in != nil && in.InBackground() {
		out = append(out, k.Background)
	}
	return out
}

// neededPrograms are the engines that run beside the treatment's control plane, with what runs beside them.
func (p *plan) neededPrograms() (out []*engine.Kind) {
	engines, in := p.needed()
	for _, k := range engines {
		out = append(append(out, k), p.beside(k, in)...)
	}
	return out
}

// neededEngines are the engines that run beside the treatment's control plane.
func (p *plan) neededEngines() []*engine.Kind {
	engines, _ := p.needed()
	return engines
}

// needed are the engines that run beside the treatment's control plane, and their policies, nil if they have none. A
// bundle that cannot be read needs none: Validate reports it.
func (p *plan) needed() ([]*engine.Kind, *own.InForce) {
	if p.kind != mechanism.Own || p.foreign {
		return p.idle, nil
	}
	in, err := p.readBundle()
	if err != nil {
		return nil, nil
	}
	return enginesOf(in), in
}

// enginesOf are the engines that policies in force need.
func enginesOf(in *own.InForce) (out []*engine.Kind) {
	for _, name := range in.Engines() {
		out = append(out, engine.Of(name))
	}
	return out
}

// anywhere renders a bundle where only its form matters. Which kinds of parameters a cluster of the user's has, it says
// later.
func (p *plan) anywhere(set *own.Set) (*own.InForce, error) {
	scope := anyScope
	scope.Foreign = p.foreign
	return set.Render(own.Where{Scope: scope, BindAll: p.spec.BindAll, Ours: true})
}

// readBundle reads what the bundle puts in force, where only its form matters.
func (p *plan) readBundle() (*own.InForce, error) {
	set, err := own.Read(p.spec.Bundle, p.spec.Network)
	if err != nil {
		return nil, err
	}
	return p.anywhere(set)
}

// measured is the pod that is created where policies of the user's are compared: the same in all treatments.
func (p *plan) measured(s mechanism.Scope) ([]byte, error) {
	const name = "tare-probe-good"
	if p.spec.Measured == "" {
		return mechanism.Pod{Name: name, Namespace: s.Namespace, Model: true}.JSON(), nil
	}
	text, err := readPod(p.spec.Measured)
	if err != nil {
		return nil, err
	}
	return mechanism.DecodePod(text, s, name)
}

// comparesBundles reports whether a treatment of the experiment has policies of the user's.
func (p *arm) comparesBundles() bool {
	return p.kind == mechanism.Own || slices.ContainsFunc(p.env.Treatments, func(t area.Treatment) bool {
		other, err := p.declared.plan(t)
		return err == nil && other.kind == mechanism.Own
	})
}

// bundleCopy is the name of the copy of the bundle in the record.
func (p *arm) bundleCopy() string {
	return fmt.Sprintf("policies-%d%s", p.index, own.Ext(p.spec.Bundle))
}

// readCopy copies the user's own policies into the record, and reads the copy. What it says of files names the user's.
func (p *arm) readCopy() (*own.Set, error) {
	if err := own.Copy(p.env.Dir, p.bundleCopy(), p.spec.Bundle); err != nil {
		return nil, err
	}
	set, err := own.Read(filepath.Join(p.env.Dir, p.bundleCopy()), p.spec.Network)
	if err != nil {
		return nil, err
	}
	filed, err := own.Read(p.spec.Bundle, p.spec.Network)
	if err != nil {
		return nil, err
	}
	p.policies.filed, set.Untaken, set.Repeated = filed, filed.Untaken, filed.Repeated
	return set, nil
}

// withBundle takes the user's own policies in place of rendered ones.
func (p *arm) withBundle(ctx context.Context) error {
	x := &p.policies
	set, err := p.readCopy()
	if err != nil {
		return err
	}
	where := own.Where{Scope: p.scope(), BindAll: p.spec.BindAll, Ours: !p.foreign, Makes: p.spec.ParamKinds}
	if !p.foreign {
		where.Others = p.otherDefinitions()
	} else {
		for _, k := range set.ParamKinds() {
			_, missing, err := x.keeper.Lookup(ctx, []schema.GroupVersionKind{k})
			if err != nil {
				return err
			}
			if len(missing) == 0 {
				where.Standing = append(where.Standing, k.GroupKind())
			}
		}
	}
	if x.own, err = set.Render(where); err != nil {
		return err
	}
	if err := p.confined(); err != nil {
		return err
	}
	x.rendered.Objects, x.rendered.NamespaceLabels = x.own.Objects, x.own.NamespaceLabels
	if x.rendered.Resources, x.coming, err = x.keeper.Lookup(ctx, x.own.Kinds); err != nil {
		return err
	}
	x.proof = mechanism.Prove(mechanism.Own, mechanism.Population{}, p.scope())
	return nil
}

// confined refuses objects of engines that might affect others in a cluster of the user's.
func (p *arm) confined() error {
	for _, o := range p.policies.own.Objects {
		if p.foreign && own.EngineOf(o) != "" && !own.Confined(o, p.namespace) {
			return fmt.Errorf("%s%s %s cannot be narrowed to the run's namespace, and others use this cluster", p.placeOf(o),
				o.GetKind(), own.NameOf(p.scope(), o.GetName()))
		}
	}
	return nil
}

// asked is the operation by which policies know a verb; empty: they are not asked.
func asked(verb string) string {
	return map[string]string{
		verbCreate: "CREATE", verbUpdate: "UPDATE", verbPatch: "UPDATE", verbDelete: "DELETE",
	}[verb]
}

// unseen are the policies in force that see none of the measured requests, as far as match constraints say: what
// they cost is not in the numbers.
func (p *arm) unseen() (out []string) {
	objectLabels := map[string]string{}
	for key, value := range podField(p.maker.pod, "labels") {
		objectLabels[key], _ = value.(string)
	}
	for _, one := range p.policies.own.Policies {
		seen := slices.ContainsFunc(p.operations, func(o operation) bool {
			operation := asked(o.verb)
			return operation != "" && p.policies.own.Evaluates(one, o.resource.group, "v1",
				o.resource.plural, operation, objectLabels)
		})
		if !seen {
			out = append(out, one.Name)
		}
	}
	return out
}

// idleNotes says which engines run without policies.
func (p *arm) idleNotes() (out []string) {
	for _, e := range p.engines {
		out = append(out, fmt.Sprintf("%s %s runs beside a control plane without policies of its own: started by tare on "+
			"loopback as an administrator, ready after %.1f s; %s", e.kind.Title, e.program.Version,
			e.ready.Seconds, p.audits(e)))
	}
	return out
}

// Unproved is area.Can.Unproved: of a bundle whose policies object to nothing that tare tries, it is only seen that
// they are there.
func (t *target) Unproved(tr design.Treatment) string {
	p, err := t.arms.Of(tr)
	if err != nil || !p.policies.unproved() {
		return ""
	}
	return "the policies are there, and what is measured is admitted; none of them is shown to object to anything"
}

// unproved reports whether there are policies of a bundle, and no proof of any.
func (x *policies) unproved() bool {
	return x.own != nil && len(x.own.Policies) > 0 && len(x.shown) == 0
}

// bundleNotes says what of the user's own policies is in force, what has shown it, and what is not in the numbers.
func (p *arm) bundleNotes() []string {
	x := &p.policies
	if x.own == nil {
		return p.idleNotes()
	}
	var unproved []string
	for _, one := range x.own.Policies {
		if x.shown[one.Name] == "" {
			unproved = append(unproved, one.Name)
		}
	}
	name := p.spec.Bundle
	where := "in the run's namespace only"
	if len(p.engines) > 0 && !p.foreign {
		where = "those of engines in the whole control plane"
	}
	orChanged, orChange, guard := "", "", "guard"
	if len(x.own.Mutating()) > 0 {
		orChanged, orChange, guard = ", or have changed one", " or a change", "act"
	}
	if slices.ContainsFunc(x.own.Policies, (*own.Policy).Generates) {
		orChanged, orChange, guard = orChanged+", or have generated an object", orChange+" or an object", "act"
	}
	out := []string{fmt.Sprintf("%s: %s in force, %s; %d of them have objected to a request that tare made for it%s", name,
		unit.Count(len(x.own.Policies), "policy"), where, len(x.own.Policies)-len(unproved), orChanged)}
	out = slices.Concat(out, p.triedNotes(), p.changeNotes(), p.generationNotes(), p.reportNotes())
	for _, e := range p.engines {
		if p.foreign {
			out = append(out, fmt.Sprintf("%s: evaluated by the cluster's own %s, which goes on evaluating what else is in "+
				"force; its CPU time and memory are not seen from here", name, e.describe()))
			if e.kind == engine.Gatekeeper && x.own.TemplatesInCEL() {
				out = append(out, name+": templates in CEL are evaluated by Gatekeeper itself: as ValidatingAdmissionPolicies, "+
					"whose cost is not in these numbers, they would act on objects of no namespace, too")
			}
			continue
		}
		out = append(out, fmt.Sprintf("%s: evaluated by the admission controller of %s %s, started by tare on loopback as "+
			"an administrator, ready after %.1f s; %s", name, e.kind.Title, e.program.Version, e.ready.Seconds, p.audits(e)))
	}
	if len(unproved) > 0 {
		var masked strings.Builder
		for _, e := range p.engines {
			why := e.kind.Unproved
			if p.foreign {
				why = "of a " + e.kind.Title + " that tare did not start only policies that deny can be proved"
			}
			masked.WriteString(" (" + why + ")")
		}
		if p.metricsDenied != "" {
			masked.WriteString(" (or another's denial hides it: the API server names one of those that it evaluates, and its " +
				"counts of the others cannot be read)")
		}
		out = append(out, fmt.Sprintf("%s: %s without a proof: nothing that tare tries meets an objection%s of theirs%s, so "+
			"that whether they %s is not shown: %s", name, unit.Count(len(unproved), "policy"), orChange, masked.String(), guard,
			strings.Join(unproved, ", ")))
	}
	if unseen := p.unseen(); len(unseen) > 0 {
		out = append(out, fmt.Sprintf("%s: %s not about the requests that are measured, so that their cost is not in these "+
			"numbers: %s", name, unit.Count(len(unseen), "policy"), strings.Join(unseen, ", ")))
	}
	if untried := x.finding.untried; len(untried) > 0 {
		out = append(out, fmt.Sprintf("%s: no proof was tried on %s, which the user of the kubeconfig may not create", name,
			strings.Join(untried, ", ")))
	}
	why := map[string][]string{}
	for _, idle := range slices.Sorted(maps.Keys(x.own.Idle)) {
		why[x.own.Idle[idle]] = append(why[x.own.Idle[idle]], idle)
	}
	for _, reason := range slices.Sorted(maps.Keys(why)) {
		out = append(out, fmt.Sprintf("%s: not in force, since %s: %s", name, reason, strings.Join(why[reason], ", ")))
	}
	if len(x.own.Untaken) > 0 {
		out = append(out, leftAside(name, x.own))
	}
	if says := notJudging(name, x.own); says != "" {
		out = append(out, says)
	}
	if len(x.own.Bound) > 0 {
		out = append(out, fmt.Sprintf("%s: tare has bound %s that no binding names", name,
			unit.Count(len(x.own.Bound), "policy")))
	}
	for _, kind := range x.own.Defined {
		out = append(out, fmt.Sprintf("%s: tare has defined the kind %s, whose objects may hold anything", name, kind))
	}
	return out
}
