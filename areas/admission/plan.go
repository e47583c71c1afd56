package admission

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tare/areas/admission/cluster"
	"tare/areas/admission/engine"
	"tare/areas/admission/mechanism"
	"tare/areas/admission/webhook"
	"tare/areas/plane"
	"tare/internal/design"
)

// defaultObjects is the default size of the stock of a kind.
const defaultObjects = 200

// plan is a Spec with the levels of one treatment applied and defaults filled in.
type plan struct {
	spec       *Spec // with the levels applied
	foreign    bool  // a cluster of the user's own
	kind       mechanism.Kind
	population mechanism.Population
	copies     int  // of manifests: how often a document is repeated that is for each policy
	counted    bool // the treatment itself gives the number of policies
	latency    webhook.Latency
	workers    int
	hooks      mechanism.Hooks
	cel        mechanism.CEL
	version    plane.Version // of an embedded control plane
	nodes      int
	etcd       string
	shared     bool
	flags      []string
	size       int // of the stock of objects
	image      string
	scheduler  string
	idle       []*engine.Kind // engines beside the control plane without a policy
}

// plan applies the levels of t to s. Errors begin with the field's name.
func (s *Spec) plan(t design.Treatment) (plan, error) {
	u, err := s.under(t.Levels)
	if err != nil {
		return plan{}, err
	}
	p := plan{spec: u, kind: mechanism.Kind(u.Mechanism), size: u.Objects, scheduler: cluster.NoScheduler}
	switch {
	case u.Policies != nil && *u.Policies == 0:
		p.kind = mechanism.None
	case u.Bundle != "" && (p.kind == "" || p.kind == mechanism.VAP):
		p.kind = mechanism.Own
	case p.kind == "":
		p.kind = mechanism.None
	}
	p.copies, p.counted = 1, t.Levels["policies"] != ""
	if u.Policies != nil {
		p.copies = *u.Policies
	}
	if p.size == 0 {
		p.size = defaultObjects
	}
	if err := p.setHooks(); err != nil {
		return p, err
	}
	if err := p.setCEL(); err != nil {
		return p, err
	}
	if u.Pod != nil {
		p.image = u.Pod.Image
		if u.Pod.Scheduler != "" {
			p.scheduler = u.Pod.Scheduler
		}
	}
	if err := p.checkWords(); err != nil {
		return p, err
	}
	if err := p.choose(); err != nil {
		return p, err
	}
	if err := p.setIdle(t); err != nil {
		return p, err
	}
	if err := p.checkAudit(t); err != nil {
		return p, err
	}
	if p.population, err = u.population(p.kind, t.Levels); err != nil {
		return p, err
	}
	return p, p.checkOptions()
}

// setHooks determines the options of webhooks.
func (p *plan) setHooks() error {
	w := p.spec.Webhook
	if w == nil {
		w = &Webhook{}
	}
	const longest = mechanism.MostWebhookTimeout * time.Second
	timeout := w.Timeout.Std()
	switch {
	case timeout < 0 || timeout > longest || timeout%time.Second != 0:
		return fmt.Errorf("webhook.timeout: want whole seconds, from 1s to %v, got %v", longest, w.Timeout)
	case !slices.Contains([]string{"", mechanism.Fail, mechanism.Ignore}, w.FailurePolicy):
		return fmt.Errorf("webhook.failure_policy: %q is neither %s nor %s", w.FailurePolicy, mechanism.Fail,
			mechanism.Ignore)
	case w.Workers < 0:
		return errors.New("webhook.workers: a number is not negative")
	}
	p.latency, p.workers = webhook.Latency{Median: w.Latency.Std(), Spread: w.Spread}, w.Workers
	p.hooks = mechanism.Hooks{
		FailurePolicy: w.FailurePolicy, TimeoutSeconds: int(timeout / time.Second), Match: w.Match,
	}.WithDefaults()
	if err := p.latency.Check(); err != nil {
		return fmt.Errorf("webhook.latency: %w", err)
	}
	return nil
}

// setCEL determines the options of ValidatingAdmissionPolicies.
func (p *plan) setCEL() error {
	o := p.spec.VAP
	if o == nil {
		return nil
	}
	switch {
	case !slices.Contains([]string{"", mechanism.Fail, mechanism.Ignore}, o.FailurePolicy):
		return fmt.Errorf("vap.failure_policy: %q is neither %s nor %s", o.FailurePolicy, mechanism.Fail, mechanism.Ignore)
	case o.Param && p.spec.Kubeconfig != "":
		return errors.New("vap.param: only on a control plane of tare's own, where it can take the parameter away")
	case o.Param && p.spec.Embedded != nil && p.spec.Embedded.Shared:
		return errors.New("vap.param: on a shared control plane policies come and go, and kube-apiserver 1.36 does not " +
			"find the parameter of those that come later: leave shared out")
	}
	p.cel = mechanism.CEL{FailurePolicy: o.FailurePolicy, Match: o.Match, Param: o.Param}
	return nil
}

// timeout is how long the API server waits for a webhook.
func (p *plan) timeout() time.Duration { return time.Duration(p.hooks.TimeoutSeconds) * time.Second }

// checkLatency rejects a latency with which a webhook causes errors, not a cost.
func (p *plan) checkLatency() error {
	if most := p.timeout() * 4 / 5; p.latency.Median > most {
		return fmt.Errorf("webhook.latency: want at most %v: the API server waits %v for these webhooks; only guard "+
			"measures what happens beyond", most, p.timeout())
	}
	return nil
}

// guards reports whether the treatment's policies deny anything.
func (p *plan) guards() bool {
	switch p.kind {
	case mechanism.None, mechanism.MAP:
		return false
	case mechanism.PSA:
		return p.population.Level != mechanism.Privileged
	case mechanism.VAP, mechanism.Webhook, mechanism.MutatingWebhook:
		return p.population.Useable > 0
	case mechanism.PSP, mechanism.Manifests, mechanism.Own:
	}
	return true
}

// checkWords checks fields with fixed values, which may be levels.
func (p *plan) checkWords() error {
	s := p.spec
	version, etcd := "", ""
	if s.Embedded != nil {
		version, etcd = s.Embedded.Version, s.Embedded.Etcd
	}
	kinds := []string{""}
	for _, k := range mechanism.Kinds() {
		kinds = append(kinds, string(k))
	}
	for _, x := range []struct {
		field, word string
		known       []string
	}{
		{"mechanism", s.Mechanism, kinds},
		{"version", version, []string{"", string(plane.V136), string(plane.V124)}},
		{"etcd", etcd, []string{"", plane.Tmpfs, plane.Disk}},
	} {
		if !slices.Contains(x.known, x.word) {
			return fmt.Errorf("%s: %q is not one of %s", x.field, x.word, strings.Join(x.known[1:], ", "))
		}
	}
	return nil
}

// choose determines the control plane.
func (p *plan) choose() error {
	s := p.spec
	if s.Kubeconfig != "" {
		p.foreign = true
		return p.checkForeign()
	}
	if s.Context != "" {
		return errors.New("context: it is a context of a kubeconfig: name one, or leave it out")
	}
	e := s.Embedded
	if e == nil {
		e = &Embedded{}
	}
	p.version, p.nodes, p.etcd, p.shared, p.flags = plane.Version(e.Version), e.Nodes, e.Etcd, e.Shared, e.Flags
	if p.etcd == "" {
		p.etcd = plane.Tmpfs
	}
	switch {
	case p.kind == mechanism.PSP && p.version == plane.V136:
		return errors.New("version: PodSecurityPolicy was removed from Kubernetes with 1.25: psp needs version 1.24, or " +
			"leave the version out")
	case p.kind == mechanism.PSP:
		p.version = plane.V124
	case p.version == "":
		p.version = plane.V136
	}
	if p.version == plane.V124 && (p.kind == mechanism.VAP || p.kind == mechanism.MAP || p.kind == mechanism.Own) {
		return errors.New("version: Kubernetes 1.24 has no policies in CEL: they need version 1.36")
	}
	for _, flag := range p.flags {
		if name, _, _ := strings.Cut(flag, "="); !strings.HasPrefix(name, "--") || len(name) < len("--x") {
			return fmt.Errorf("embedded.flags: %q is not a flag such as --max-requests-inflight=800", flag)
		}
	}
	return nil
}

// checkForeign rejects options that do not apply to an existing cluster.
func (p *plan) checkForeign() error {
	e, w := p.spec.Embedded, p.spec.Webhook
	switch {
	case p.kind == mechanism.PSP:
		return errors.New("mechanism: PodSecurityPolicy takes a plugin of the API server that no current cluster has: psp " +
			"needs embedded")
	case e == nil:
	case e.Nodes > 0:
		return errors.New("nodes: tare adds no simulated nodes to a cluster that is not its own: leave nodes out")
	case e.Etcd != "":
		return errors.New("etcd: where a cluster keeps its data is not ours to say: leave etcd out")
	case e.Version != "":
		return errors.New("version: a cluster has the version that it has: leave version out")
	default:
		return errors.New("kubeconfig: kubeconfig and embedded exclude each other")
	}
	if p.kind.NeedsWebhook() && (w == nil || w.URL == "") && !p.isLocal() {
		return errors.New("webhook.url: the cluster's API server must reach the webhook server, which runs here: give " +
			"url, and listen")
	}
	return nil
}

// checkOptions checks the options of mechanisms.
func (p *plan) checkOptions() error {
	m, w := p.spec.Manifests, p.spec.Webhook
	switch {
	case p.kind == mechanism.Manifests && m == nil:
		return errors.New("manifests: say where the manifests are: manifests: {before: DIR, bad: FILE}")
	case p.kind == mechanism.Manifests && (m.Before == "" || m.Bad == ""):
		return errors.New("manifests: before and bad are needed: the manifests, and a pod that they must deny")
	case w != nil && w.URL != "" && !strings.HasPrefix(w.URL, "https://"):
		return errors.New("webhook.url: webhooks are called by https:// only")
	}
	return nil
}

// psp reports whether the control plane runs the plugin PodSecurityPolicy.
func (p *plan) psp() bool { return p.kind == mechanism.PSP }

// key identifies the control plane that the treatment can share with others.
func (p *plan) key() string {
	return fmt.Sprintf("%s nodes=%d etcd=%s psp=%t %s", p.version, p.nodes, p.etcd, p.psp(), strings.Join(p.flags, " "))
}
