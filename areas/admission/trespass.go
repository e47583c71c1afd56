package admission

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"

	"tare/areas/admission/mechanism"
	"tare/internal/design"
	"tare/internal/load"
)

// Trespasses is area.Can.Trespass: for each operation that writes pods or Deployments the same with one that the
// policies deny, always as a dry run, so that nothing forbidden is stored or started. A treatment without a policy that
// denies has no trespasses.
func (t *target) Trespasses(tr design.Treatment) ([]load.Operation, error) {
	p, err := t.arms.Of(tr)
	if err != nil || !p.guards() {
		return nil, err
	}
	return p.trespasses()
}

// trespasses renders the trespasses of all operations.
func (p *arm) trespasses() (out []load.Operation, err error) {
	if p.kind == mechanism.Own && len(p.policies.finding.tries(p.mostTried())) == 0 {
		return nil, fmt.Errorf("no policy of %s denies any of the pods that tare tries: there is nothing to guard; "+
			"requests: FILE names more pods", p.spec.Bundle)
	}
	for k, o := range p.operations {
		if !o.guarded() {
			continue
		}
		if why := p.cannotDeny(o); why != "" {
			return nil, fmt.Errorf("%s: %s", o.name, why)
		}
		name := fmt.Sprintf("f%de%do%d", p.index, p.epoch, k)
		for _, pod := range p.forbiddenOf(o) {
			op, w, err := p.trespassOf(o, pod, name)
			if err != nil {
				return nil, fmt.Errorf("render the trespass of %s: %w", o.name, err)
			}
			op.Name, op.Twin, op.Weight = pod.nameOf(o), o.name, 1
			op.Causes, op.Expect, op.Describe = trespassCauses(p.rightless()), w.expects(), w.describe
			out = append(out, op)
		}
	}
	return out, nil
}

// trespassOf is the call of an operation's trespass, and its wire.
func (p *arm) trespassOf(o operation, pod forbiddenPod, name string) (op load.Operation, w *trespass, err error) {
	if w, err = p.trespass(o, pod, name); err != nil {
		return op, nil, err
	}
	if o.startup() {
		op, err = p.startupTrespass(w, pod, name)
		return op, w, err
	}
	return load.Operation{Wire: w}, w, nil
}

// A trespass is an operation that the policies must deny.
type trespass struct {
	wire
	denial *mechanism.Denial
	what   string // what is asked for: "POST /api/v1/…: a pod with a privileged container"
	guard  string // what must deny it
}

var _ load.Wire = (*trespass)(nil)

// expects is what must happen to it.
func (w *trespass) expects() string { return "a denial by " + w.guard }

// trespass renders the trespass of an operation.
func (p *arm) trespass(o operation, pod forbiddenPod, name string) (*trespass, error) {
	denial, err := pod.Denial()
	if err != nil {
		return nil, err
	}
	requests, method, err := p.forbiddenRequests(o, pod, name)
	if err != nil {
		return nil, err
	}
	path := p.prefix + o.resource.path(p.namespace)
	if o.verb != verbCreate {
		path += "/NAME"
	}
	return &trespass{
		wire:   wire{caller: &p.identity, next: &atomic.Uint64{}, judge: p.judgeOf(o), numbered: requests},
		denial: denial, what: method + " " + path + dryRunQuery + ": " + p.forbiddenObject(pod, o.resource),
		guard: p.guard(pod),
	}, nil
}

// forbiddenOf are the pods of an operation's trespasses: a privileged pod or, of policies in CEL and webhooks, one that
// the last of them denies and no other, so that each answer shows what became of one policy; of the user's own, one for
// each policy.
func (p *arm) forbiddenOf(o operation) []forbiddenPod {
	if p.kind == mechanism.Own {
		return p.forbiddenByOwn(o)
	}
	bad := slices.DeleteFunc(slices.Clone(p.policies.proof.Bad), func(b mechanism.Probe) bool {
		return b.Want != mechanism.Denied || b.Path != ""
	})
	if p.single() {
		return []forbiddenPod{{Probe: bad[len(bad)-1]}}
	}
	return []forbiddenPod{{Probe: bad[0]}}
}

// single reports whether a pod can ask for its denial by one policy.
func (p *arm) single() bool { return p.kind == mechanism.VAP || p.kind.NeedsWebhook() }

// guard names what must deny a pod of the trespasses.
func (p *arm) guard(pod forbiddenPod) string {
	switch p.kind {
	case mechanism.PSA:
		return "Pod Security Admission at level " + p.population.Level
	case mechanism.PSP:
		return "PodSecurityPolicy"
	case mechanism.VAP:
		return "ValidatingAdmissionPolicy " + pod.By[0] + ", failurePolicy " +
			cmp.Or(p.cel.FailurePolicy, mechanism.Fail)
	case mechanism.Webhook, mechanism.MutatingWebhook:
		return fmt.Sprintf("webhook %s, failurePolicy %s, timeoutSeconds %d", pod.By[0], p.hooks.FailurePolicy,
			p.hooks.TimeoutSeconds)
	case mechanism.Own:
		return pod.deniers() + " of " + p.spec.Bundle
	case mechanism.None, mechanism.MAP, mechanism.Manifests:
	}
	return "the policies of the manifests"
}

// forbiddenObject describes the object of the trespasses with a pod.
func (p *arm) forbiddenObject(pod forbiddenPod, r resource) string {
	switch {
	case p.single():
		return "a " + r.noun + " with the label " + mechanism.DenyLabel + " of one policy"
	case p.kind == mechanism.Own:
		return "a " + r.noun + ", " + pod.Why
	case p.kind == mechanism.Manifests && r.kind == "Pod":
		return "the pod of manifests.bad"
	case p.kind == mechanism.Manifests:
		return "a " + r.noun + " of the pod of manifests.bad"
	}
	return "a pod with a privileged container"
}

// The causes of trespasses: those of all operations, and one more.
const causeOtherGuard = causeForbidden + 1

func trespassCauses(rightless string) []string {
	out := append(causes(rightless), "denied, and not by the policies of the treatment")
	out[causePolicyFailed] = "failed closed: an admission policy or webhook did not decide, and the API server's " +
		"failurePolicy rejected the request"
	return out
}

// answer classifies an answer. What the API server rejects because a webhook has not decided is no denial by the
// webhook.
func (w *trespass) answer(status int, body []byte) (load.Outcome, cause) {
	switch {
	case status == w.judge.status && startsWithAny(body, w.judge.starts):
		return load.Permitted, fine
	case w.denial.Matches(status, body):
		return load.Denied, fine
	case mechanism.RulingOf(status, body) == mechanism.PolicyDenied:
		return load.Wrong, causeOtherGuard
	}
	return unwanted(status, body)
}

// Check implements load.Wire.
func (w *trespass) Check(_ uint64, status int, body []byte) load.Outcome {
	o, _ := w.answer(status, body)
	return o
}

// Explain implements load.Wire, with the indexes of trespassCauses.
func (w *trespass) Explain(_ uint64, status int, body []byte) int {
	_, why := w.answer(status, body)
	return int(why)
}

// describe tells a trespass that was permitted.
func (w *trespass) describe(_ uint64, status int, _ []byte) (request, answer string) {
	return w.what, fmt.Sprintf("%d: it is admitted, without a denial by %s", status, w.guard)
}
