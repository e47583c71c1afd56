package admission

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"tare/area"
	"tare/areas/admission/cluster"
	"tare/areas/admission/engine"
	"tare/areas/admission/mechanism"
	"tare/areas/admission/own"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/unit"
)

// Presets lists the mechanisms, with one line on each.
func (Area) Presets() map[string]string {
	return map[string]string{
		string(mechanism.None):            "no policy: the baseline",
		string(mechanism.PSP):             "PodSecurityPolicy, on a control plane of Kubernetes 1.24",
		string(mechanism.PSA):             "Pod Security Admission: one level of the namespace",
		string(mechanism.VAP):             "ValidatingAdmissionPolicy (CEL)",
		string(mechanism.MAP):             "MutatingAdmissionPolicy (CEL)",
		string(mechanism.Webhook):         "validating webhooks, served by tare's reference server",
		string(mechanism.MutatingWebhook): "mutating webhooks, served by tare's reference server",
		string(mechanism.Manifests):       "any other engine, from directories of manifests",
	}
}

// Creates lists what a run of s creates on this host, and elsewhere, for the plan.
func (s *Spec) Creates(treatments []area.Treatment) []string {
	planes := map[string]int{}
	shared := map[string]bool{}
	clusters, bundles := map[string]int{}, map[string]string{}
	for _, t := range treatments {
		p, err := s.plan(t)
		if err == nil && p.kind == mechanism.Own {
			if in, err := p.readBundle(); err == nil { // otherwise Validate reports it
				bundles[p.spec.Bundle] = p.comes(in)
			}
		}
		switch {
		case err != nil:
		case p.foreign:
			clusters[p.spec.Kubeconfig]++
		case !p.shared:
			planes[p.describe()]++
		case !shared[p.key()]:
			shared[p.key()] = true
			planes[p.describe()]++
		}
	}
	var out []string
	for _, at := range slices.Sorted(maps.Keys(bundles)) {
		out = append(out, bundles[at])
	}
	for _, what := range slices.Sorted(maps.Keys(planes)) {
		out = append(out, fmt.Sprintf("%s on loopback: %s", unit.Count(planes[what], "control plane"), what))
	}
	for _, file := range slices.Sorted(maps.Keys(clusters)) {
		out = append(out, fmt.Sprintf("%s with policies, one at a time, in the cluster of %s, removed again at the end",
			unit.Count(clusters[file], "namespace"), file))
	}
	return out
}

// comes says what is created for a bundle, and where it acts.
func (p *plan) comes(in *own.InForce) string {
	out := fmt.Sprintf("%s for the policies of %s, each binding narrowed to the run's namespace",
		unit.Count(len(in.Objects), "object"), p.spec.Bundle)
	var engines []string
	for _, name := range in.Engines() {
		engines = append(engines, engine.Of(name).Title)
	}
	switch with := strings.Join(engines, " and "); {
	case with == "":
		return out
	case p.foreign:
		return out + ", and so is each policy of " + with + ", which runs there already; in a second namespace of the " +
			"run's they must deny nothing"
	default:
		return out + ", those of " + with + " as they are"
	}
}

// describe describes an embedded control plane.
func (p *plan) describe() string {
	parts := []string{"Kubernetes " + string(p.version), "etcd on " + p.etcd}
	for _, k := range p.neededEngines() {
		parts = append(parts, "with "+k.Title+" "+p.engineVersion(k))
		if p.spec.Audit > 0 {
			parts = append(parts, fmt.Sprintf("which looks at all that exists every %v", p.spec.Audit))
		}
	}
	if p.nodes > 0 {
		parts = append(parts, fmt.Sprintf("%d simulated nodes", p.nodes))
	}
	return strings.Join(parts, ", ")
}

// LockKey identifies the measured cluster, so that two runs do not measure each other; empty for embedded control
// planes, which belong to one run.
func (s *Spec) LockKey() string {
	p, err := s.plan(design.Treatment{})
	if err != nil || !p.foreign {
		return ""
	}
	server, err := serverOf(p.spec.Kubeconfig, p.spec.Context)
	if err != nil {
		return p.spec.Kubeconfig
	}
	return server.Host
}

// Says implements area.Spec.
func (s *Spec) Says() area.Says {
	return area.Says{
		Loopback: s.loopback(), LockKey: s.LockKey(), SecretFiles: s.SecretFiles(), Conditions: s.Conditions(),
		Forecast: s.Forecast, Creates: s.Creates, Alone: s.alone, Untried: s.untried,
		Afresh: s.afresh,
	}
}

// planeAfresh is about how long it takes to start one control plane of several afresh, and engineAfresh how much longer
// with an engine: on two processors, three planes start within 7 s.
const (
	planeAfresh  = 2 * time.Second
	engineAfresh = 3 * time.Second
)

// afresh is about how long it takes to start the control planes of treatments afresh; 0: they are left alone.
func (s *Spec) afresh(treatments []design.Treatment) (out time.Duration) {
	for _, t := range treatments {
		p, err := s.plan(t)
		if err != nil {
			return 0
		}
		engines, in := p.needed()
		if !p.renewable(in) {
			return 0
		}
		out += planeAfresh + time.Duration(len(engines))*engineAfresh
	}
	return out
}

// renewable reports whether the control plane and its engines can be started afresh between trials; in are their
// policies, nil if they have none. A scheduler and a controller-manager would wait for the leases of those before, and
// what audits or acts after requests begins with all that exists, which is no trial's.
func (p *plan) renewable(in *own.InForce) bool {
	return !p.foreign && !p.shared && p.nodes == 0 && p.spec.Audit == 0 && (in == nil || !in.InBackground())
}

// untried says which policies of a bundle their engine alone checks.
func (s *Spec) untried(treatments []design.Treatment) string {
	for _, t := range treatments {
		p, err := s.plan(t)
		if err != nil || p.kind != mechanism.Own {
			continue
		}
		if in, err := p.readBundle(); err == nil {
			if kinds := enginesOf(in); len(kinds) > 0 {
				return kinds[0].Title + " has not looked at its policies: it does when a run begins"
			}
		}
	}
	return ""
}

// alone says why treatments must have trials of their own: on a control plane that they share, the policies of one must
// not be weighed along with another's, and pods start for seconds.
func (s *Spec) alone(treatments []design.Treatment, mix []string) string {
	if slices.Contains(mix, startupName) {
		return "pods start for longer than a turn"
	}
	for _, t := range treatments {
		if p, err := s.plan(t); err == nil && (p.foreign || p.shared) {
			return "on a control plane that treatments share, policies are in force for one at a time"
		}
	}
	return ""
}

func (s *Spec) loopback() bool {
	p, err := s.plan(design.Treatment{})
	if err != nil || !p.foreign {
		return true
	}
	return p.isLocal()
}

// isLocal reports whether the cluster's API server is on this machine.
func (p *plan) isLocal() bool {
	server, err := serverOf(p.spec.Kubeconfig, p.spec.Context)
	return err == nil && kit.LoopbackHost(server.Hostname())
}

// serverOf returns the API server that a kubeconfig names.
func serverOf(kubeconfig, context string) (*url.URL, error) {
	at, err := cluster.Locate(kubeconfig, context)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(at.Server)
	if err != nil || u.Hostname() == "" {
		return nil, fmt.Errorf("kubeconfig %s names no server", kubeconfig)
	}
	return u, nil
}
