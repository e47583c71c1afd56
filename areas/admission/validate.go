package admission

import (
	"fmt"
	"slices"
	"strings"

	"tare/area"
	"tare/areas/admission/mechanism"
	"tare/areas/admission/own"
	"tare/areas/plane"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/unit"
)

// Validate implements area.Spec.
func (s *Spec) Validate(q area.Asked, treatments []design.Treatment) []area.Finding {
	if out := s.checkTwice(treatments); len(out) > 0 {
		return out
	}
	judge := func(t design.Treatment) []area.Finding { return s.judge(q, t) }
	if out := kit.JudgeEach(treatments, judge); len(out) > 0 {
		return out
	}
	return slices.Concat(s.checkReleases(treatments), s.checkUnused(treatments), s.warnLeftAside(treatments),
		s.warnUntried(q, treatments), s.Manifests.check())
}

// checkTwice rejects what both the section and the treatments set.
func (s *Spec) checkTwice(treatments []design.Treatment) (out []area.Finding) {
	e, w := s.Embedded, s.Webhook
	if e == nil {
		e = &Embedded{}
	}
	for _, x := range []struct {
		path, factor string
		given        bool
	}{
		{"mechanism", "mechanism", s.Mechanism != ""},
		{"bundle", "bundle", s.Bundle != ""},
		{"kyverno", "kyverno", s.Kyverno != ""},
		{"gatekeeper", "gatekeeper", s.Gatekeeper != ""},
		{"policies", "policies", s.Policies != nil},
		{"bound", "bound", s.Bound != nil},
		{"useable", "useable", s.Useable != nil},
		{"position", "position", s.Position != ""},
		{"irrelevant", "irrelevant", s.Irrelevant != ""},
		{"bindings", "bindings", s.Bindings != ""},
		{"params", "params", s.Params != nil},
		{"level", "level", s.Level != ""},
		{"embedded.shared", "shared", e.Shared},
		{"kubeconfig", "kubeconfig", s.Kubeconfig != ""},
		{"context", "context", s.Context != ""},
		{"webhook.latency", "webhook_latency", w != nil && w.Latency != 0},
		{"webhook.timeout", "webhook_timeout", w != nil && w.Timeout != 0},
		{"webhook.failure_policy", "webhook_failure_policy", w != nil && w.FailurePolicy != ""},
		{"vap.failure_policy", "vap_failure_policy", s.VAP != nil && s.VAP.FailurePolicy != ""},
		{"embedded.version", "version", e.Version != ""},
		{"embedded.nodes", "nodes", e.Nodes > 0},
		{"embedded.etcd", "etcd", e.Etcd != ""},
		{"objects", "objects", s.Objects > 0},
	} {
		if x.given && slices.ContainsFunc(treatments, func(t design.Treatment) bool { return t.Levels[x.factor] != "" }) {
			out = append(out, kit.FaultVaried(x.path, x.factor))
		}
	}
	return out
}

// judge checks the section with the levels of one treatment. Findings that depend on the treatment name it.
func (s *Spec) judge(q area.Asked, t design.Treatment) []area.Finding {
	p, err := s.plan(t)
	switch {
	case err != nil:
	case p.kind == mechanism.Own:
		if err = p.judgeBundle(); err == nil && q.Trespasses {
			err = p.judgeDenying()
		}
	case !q.Trespasses:
		err = p.checkLatency()
	case !p.guards():
		err = fmt.Errorf("mechanism: %s refuses nothing, so that there is nothing to guard: list only treatments whose "+
			"policies deny a pod", p.kind)
	}
	if err == nil {
		return nil
	}
	return []area.Finding{kit.FaultIn(t, s.pathOf(err), err)}
}

// judgeDenying reports that no policy of a bundle is to deny what it objects to.
func (p *plan) judgeDenying() error {
	in, err := p.readBundle()
	if err != nil || slices.ContainsFunc(in.Policies, in.Denies) {
		return err
	}
	return fmt.Errorf("bundle: %s in force of %s, and none denies a request, so that there is nothing to guard: they "+
		"audit or warn, change objects, or judge no request; have some deny (validationActions: [Deny], "+
		"failureAction: Enforce, enforcementAction: deny), or ask what they cost by question: compare",
		unit.Count(len(in.Policies), "policy"), p.spec.Bundle)
}

// pathOf returns the field that an error of plan begins with.
func (s *Spec) pathOf(err error) string {
	name, _, _ := strings.Cut(err.Error(), ":")
	switch name {
	case "version", "nodes", "etcd":
		if s.Embedded == nil {
			return ""
		}
		return "embedded." + name
	case "mechanism", "bundle", "kyverno", "gatekeeper", "measured", "requests", "policies", "bound", "useable",
		"position", "irrelevant",
		"bindings", "params", "level",
		"kubeconfig",
		"context", "manifests",
		"webhook", "webhook.url", "webhook.latency", "webhook.timeout", "webhook.failure_policy", "webhook.workers",
		"vap.failure_policy", "vap.param", "objects",
		"embedded.flags":
		return name
	}
	return ""
}

// checkReleases warns of arms that differ in more than their policies: PodSecurityPolicy implies an older Kubernetes.
func (s *Spec) checkReleases(treatments []design.Treatment) []area.Finding {
	by := map[plane.Version]bool{}
	for _, t := range treatments {
		if p, err := s.plan(t); err == nil && !p.foreign {
			by[p.version] = true
		}
	}
	varied := slices.ContainsFunc(treatments, func(t design.Treatment) bool { return t.Levels["version"] != "" })
	if len(by) < 2 || varied {
		return nil
	}
	return []area.Finding{{
		Severity: area.Warning,
		Message: "psp runs on Kubernetes 1.24 and the other arms on 1.36: what differs between them is not the policies " +
			"alone",
		Hint: "give each arm its version, or embedded: {version: \"1.24\"}, so that the baseline is of the same release",
	}}
}

// warnLeftAside names what decides about requests in bundles and is not put in force, keys that stand twice, and
// policies that judge no request.
func (s *Spec) warnLeftAside(treatments []design.Treatment) []area.Finding {
	return kit.JudgeEach(treatments, func(t design.Treatment) (out []area.Finding) {
		p, err := s.plan(t)
		if err != nil || p.kind != mechanism.Own {
			return nil
		}
		in, err := p.readBundle()
		if err != nil {
			return nil
		}
		if len(in.Untaken) > 0 {
			out = append(out, area.Finding{Severity: area.Warning, Message: leftAside(p.spec.Bundle, in)})
		}
		if len(in.Repeated) > 0 {
			out = append(out, area.Finding{Severity: area.Warning, Message: repeated(p.spec.Bundle, in)})
		}
		if says := notJudging(p.spec.Bundle, in); says != "" {
			out = append(out, area.Finding{Severity: area.Warning, Message: says})
		}
		return out
	})
}

// warnUntried names the policies of bundles that guard cannot try: its trespasses are about pods and Deployments, and
// must be denied.
func (s *Spec) warnUntried(q area.Asked, treatments []design.Treatment) []area.Finding {
	if !q.Trespasses {
		return nil
	}
	return kit.JudgeEach(treatments, func(t design.Treatment) (out []area.Finding) {
		p, err := s.plan(t)
		if err != nil || p.kind != mechanism.Own {
			return nil
		}
		in, err := p.readBundle()
		if err != nil {
			return nil
		}
		var unseen []string
		for _, one := range in.Policies {
			if in.Denies(one) && !seesPods(one) {
				unseen = append(unseen, one.Name)
			}
		}
		warn := func(names []string, why string) {
			if len(names) > 0 {
				out = append(out, area.Finding{
					Severity: area.Warning, Message: p.spec.Bundle + ": " + notTried(names, why),
				})
			}
		}
		warn(unseen, noPods)
		warn(auditing(in), auditsOnly)
		return out
	})
}

// leftAside names what decides about requests in a bundle and is not put in force.
func leftAside(bundle string, in *own.InForce) string {
	return fmt.Sprintf("%s: left aside, and not in these numbers: %s", bundle, strings.Join(in.Untaken, "; "))
}

// notJudging names the policies in force that are not evaluated when a request comes; empty: all are.
func notJudging(bundle string, in *own.InForce) string {
	var names []string
	for _, one := range in.Policies {
		if !one.Judges() {
			names = append(names, one.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: no request is judged by %s (admission is switched off, or the mode is JSON): %s", bundle,
		unit.Count(len(names), "policy"), strings.Join(names, ", "))
}

// repeated names the keys of policies that stand twice in a map.
func repeated(bundle string, in *own.InForce) string {
	return fmt.Sprintf("%s: a key stands twice in a map, and its last value counts, as for kubectl: %s", bundle,
		kit.FirstOf(in.Repeated))
}

// checkUnused rejects options that no treatment uses: they would have no effect.
func (s *Spec) checkUnused(treatments []design.Treatment) (out []area.Finding) {
	uses := func(what []mechanism.Kind) bool {
		return slices.ContainsFunc(treatments, func(t design.Treatment) bool {
			p, err := s.plan(t)
			return err == nil && slices.Contains(what, p.kind)
		})
	}
	for _, x := range []struct {
		path  string
		given bool
		of    []mechanism.Kind
	}{
		{"webhook", s.Webhook != nil, []mechanism.Kind{mechanism.Webhook, mechanism.MutatingWebhook}},
		{"vap", s.VAP != nil, []mechanism.Kind{mechanism.VAP}},
		{"manifests", s.Manifests != nil, []mechanism.Kind{mechanism.Manifests}},
		{"bundle", s.Bundle != "", []mechanism.Kind{mechanism.Own}},
		{"bind_all", s.BindAll, []mechanism.Kind{mechanism.Own}},
		{"network", s.Network, []mechanism.Kind{mechanism.Own}},
		{"param_kinds", len(s.ParamKinds) > 0, []mechanism.Kind{mechanism.Own}},
		{"kyverno", s.Kyverno != "", []mechanism.Kind{mechanism.Own}},
		{"gatekeeper", s.Gatekeeper != "", []mechanism.Kind{mechanism.Own}},
		{"measured", s.Measured != "", []mechanism.Kind{mechanism.Own}},
		{"requests", s.Requests != "", []mechanism.Kind{mechanism.Own}},
		{"level", s.Level != "", []mechanism.Kind{mechanism.PSA}},
		{"bindings", s.Bindings != "", []mechanism.Kind{mechanism.PSP}},
		{"params", s.Params != nil, []mechanism.Kind{mechanism.VAP}},
		{"position", s.Position != "", []mechanism.Kind{mechanism.PSP}},
		{"irrelevant", s.Irrelevant != "", []mechanism.Kind{
			mechanism.PSP, mechanism.VAP, mechanism.MAP, mechanism.Webhook,
			mechanism.MutatingWebhook,
		}},
	} {
		if x.given && !uses(x.of) {
			out = append(out, area.Fault(x.path, fmt.Errorf("no treatment uses it: it is for %v", x.of),
				"leave it out, or set mechanism"))
		}
	}
	return out
}

// checkOperations rejects operations that the control plane of p cannot serve and, with trespasses, those whose
// forbidden form the policies do not deny.
func (p *plan) checkOperations(operations []operation, trespasses bool) error {
	for _, o := range operations {
		if why := p.cannotDeny(o); trespasses && why != "" {
			return fmt.Errorf("operations: %s: %s", o.name, why)
		}
		if o.startup() && !p.foreign && p.nodes == 0 {
			return fmt.Errorf("operations: %s needs nodes for pods to run on: embedded: {nodes: 10}", startupName)
		}
	}
	return nil
}
