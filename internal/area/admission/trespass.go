package admission

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"tare/internal/area"
	"tare/internal/area/admission/mechanism"
	"tare/internal/design"
	"tare/internal/load"
)

var _ area.Trespasser = (*target)(nil)

// Trespasses implements area.Trespasser: for each operation that creates pods the same with a pod that the policies
// deny, always as a dry run, so that nothing forbidden is stored or started. A treatment
// without a policy that denies has no trespasses.
func (t *target) Trespasses(tr design.Treatment) ([]load.Operation, error) {
	p, err := t.arms.Of(tr)
	if err != nil || !p.guards() {
		return nil, err
	}
	var out []load.Operation
	for k, o := range p.operations {
		if o.verb != verbCreate || o.resource.kind != "Pod" || o.startup() {
			continue
		}
		w, err := p.trespass(o, fmt.Sprintf("f%de%do%d", p.index, p.epoch, k))
		if err != nil {
			return nil, fmt.Errorf("render the trespass of %s: %w", o.name, err)
		}
		out = append(out, load.Operation{
			Name: verbCreate + "-forbidden-" + strings.TrimPrefix(o.name, verbCreate+"-"), Twin: o.name, Wire: w,
			Causes: trespassCauses(), Expect: "a denial by " + w.guard, Describe: w.describe,
		})
	}
	return out, nil
}

// A trespass is the creation of a pod that the policies must deny.
type trespass struct {
	wire
	denial *mechanism.Denial
	path   string
	what   string // the pod that is asked for
	guard  string // what must deny it
}

var (
	_ load.Wire      = (*trespass)(nil)
	_ load.Explainer = (*trespass)(nil)
)

// trespass renders the trespass of an operation that creates pods. Its body is as long as the operation's, unless the
// manifests' bad pod is longer than the good one.
func (p *arm) trespass(o operation, name string) (*trespass, error) {
	probe := p.forbidden()
	denial, err := probe.Denial()
	if err != nil {
		return nil, err
	}
	m := p.maker
	m.pod = nil // not to be decoded into
	if err := json.Unmarshal(probe.Pod, &m.pod); err != nil {
		return nil, fmt.Errorf("read the pod that is to be denied: %w", err)
	}
	legitimate, err := p.maker.object(o.resource, name+"-"+load.CallMark)
	if err != nil {
		return nil, err
	}
	body, err := m.object(o.resource, name+"-"+load.CallMark)
	if err == nil {
		body, err = padded(body, len(legitimate))
	}
	if err != nil {
		return nil, err
	}
	path := p.prefix + o.resource.path(p.namespace) + "?dryRun=All"
	return &trespass{
		wire: wire{
			caller: &p.identity, next: &atomic.Uint64{}, judge: p.judgeOf(o),
			numbered: []request{newRequest(http.MethodPost, path, p.endpoint.Host, jsonType, body)},
		},
		denial: denial, path: path, what: p.forbiddenPod(), guard: p.guard(),
	}, nil
}

// forbidden is the probe whose pod is the trespass: a privileged pod or, of policies in CEL and webhooks, one that the
// last of them denies and no other, so that each answer shows what became of one policy.
func (p *arm) forbidden() mechanism.Probe {
	bad := slices.DeleteFunc(slices.Clone(p.policies.proof.Bad), func(b mechanism.Probe) bool {
		return b.Want != mechanism.Denied
	})
	if p.single() {
		return bad[len(bad)-1]
	}
	return bad[0]
}

// single reports whether a pod can ask for its denial by one policy.
func (p *arm) single() bool { return p.kind == mechanism.VAP || p.kind.NeedsWebhook() }

// padded makes a pod size bytes long: without the annotation of the call's number, and with a longer name. A pod that
// is longer keeps its length.
func padded(body []byte, size int) ([]byte, error) {
	var o map[string]any
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, err
	}
	meta, _ := o["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	if name == "" {
		return nil, errors.New("the pod has no name")
	}
	annotations, _ := meta["annotations"].(map[string]any)
	delete(annotations, callAnnotation)
	if len(annotations) == 0 {
		delete(meta, "annotations")
	}
	out, err := json.Marshal(o)
	if err != nil || len(out) >= size {
		return out, err
	}
	meta["name"] = strings.Repeat("x", min(size-len(out), mostPadding)) + name
	return json.Marshal(o)
}

// mostPadding bounds the padding of a name: names have at most 253 bytes.
const mostPadding = 200

// guard names what must deny the trespasses.
func (p *arm) guard() string {
	switch p.kind {
	case mechanism.PSA:
		return "Pod Security Admission at level " + p.population.Level
	case mechanism.PSP:
		return "PodSecurityPolicy"
	case mechanism.VAP:
		return "ValidatingAdmissionPolicy " + p.forbidden().By[0]
	case mechanism.Webhook, mechanism.MutatingWebhook:
		return fmt.Sprintf("webhook %s, failurePolicy %s, timeoutSeconds %d", p.forbidden().By[0], p.hooks.FailurePolicy,
			p.hooks.TimeoutSeconds)
	case mechanism.None, mechanism.MAP, mechanism.Manifests:
	}
	return "the policies of the manifests"
}

// forbiddenPod describes the pod of the trespasses.
func (p *arm) forbiddenPod() string {
	switch {
	case p.single():
		return "a pod with the label " + mechanism.DenyLabel + " of one policy"
	case p.kind == mechanism.Manifests:
		return "the pod of manifests.bad"
	}
	return "a pod with a privileged container"
}

// The causes of trespasses: those of all operations, and one more.
const causeOtherGuard = causeForbidden + 1

func trespassCauses() []string {
	out := append(causes(), "denied, and not by the policies of the treatment")
	out[causePolicyFailed] = "failed closed: an admission policy or webhook did not decide, and the API server's " +
		"failurePolicy rejected the request"
	return out
}

// answer classifies an answer. What the API server rejects because a webhook has not decided is no denial by the
// webhook.
func (w *trespass) answer(status int, body []byte) (load.Outcome, cause) {
	switch {
	case status == http.StatusCreated && startsWithAny(body, w.judge.starts):
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

// Explain implements load.Explainer, with the indexes of trespassCauses.
func (w *trespass) Explain(_ uint64, status int, body []byte) int {
	_, why := w.answer(status, body)
	return int(why)
}

// describe tells a trespass that was permitted.
func (w *trespass) describe(_ uint64, status int, _ []byte) (request, answer string) {
	return "POST " + w.path + ": " + w.what,
		fmt.Sprintf("%d: the pod is admitted, without a denial by %s", status, w.guard)
}
