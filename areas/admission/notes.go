package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tare/area"
	"tare/areas/admission/cluster"
	"tare/areas/admission/mechanism"
	"tare/areas/plane"
	"tare/internal/kit"
	"tare/internal/unit"
)

// Notes implements area.Target.
func (t *target) Notes() []string {
	notes := t.ofArms((*arm).notes)
	releases := map[string]bool{}
	for _, p := range t.arms.Ready() {
		if !p.foreign {
			releases[p.control.binary.Kubernetes] = true
		}
	}
	if len(releases) > 1 {
		notes = append(notes, fmt.Sprintf("the arms run different releases of Kubernetes (%s): what differs between them "+
			"is not the policies alone",
			strings.Join(slices.Sorted(maps.Keys(releases)), ", ")))
	}
	return notes
}

// Warnings implements area.Target.
func (t *target) Warnings() []string {
	return t.ofArms(func(p *arm) []string {
		return slices.Concat(p.failureWarnings(), p.generationWarnings(), p.auditWarnings(), p.listingWarnings(),
			p.repeatedWarnings())
	})
}

// repeatedWarnings name the keys of policies that stand twice in a map: what stood first is not in force.
func (p *arm) repeatedWarnings() []string {
	if p.policies.own == nil || len(p.policies.own.Repeated) == 0 {
		return nil
	}
	return []string{repeated(p.spec.Bundle, p.policies.own)}
}

// listingWarnings names policies whose cost grows with what is in the cluster, where that is next to nothing.
func (p *arm) listingWarnings() []string {
	if p.foreign || p.policies.filed == nil || len(p.stock) > 0 {
		return nil
	}
	asking := p.policies.filed.Listing()
	if len(asking) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s may ask for what else is in the cluster (%s), and next to nothing is in it: what "+
		"they cost where there is much is not in these numbers. Ask that of an experiment with factors: "+
		"{objects: [10, 1000]} and an operation such as get-pod, which makes them", p.spec.Bundle,
		unit.Count(len(asking), "policy"), kit.FirstOf(asking))}
}

// ofArms is what is said of the arms, each sentence once. One that does not hold for all treatments with a bundle names
// those for which it does.
func (t *target) ofArms(says func(*arm) []string) (out []string) {
	arms := t.arms.Ready()
	said := map[*arm][]string{}
	for _, p := range arms {
		said[p] = says(p)
	}
	isAA := func(p *arm) bool { return p.treatment.Control == area.AA }
	for _, p := range arms {
		for _, s := range said[p] {
			rest, ofBundle := strings.CutPrefix(s, p.spec.Bundle+": ")
			switch {
			case isAA(p):
				if slices.ContainsFunc(arms, func(q *arm) bool { return !isAA(q) && slices.Contains(said[q], s) }) {
					continue
				}
				s = "A/A: " + s
			case ofBundle && slices.ContainsFunc(arms, func(q *arm) bool {
				return !isAA(q) && q.spec.Bundle == p.spec.Bundle && !slices.Contains(said[q], s)
			}):
				s = p.title() + ": " + rest
			}
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// title names the treatment's policies: their bundle, and the levels that tell them from other treatments with the same
// bundle.
func (p *arm) title() string {
	out := []string{p.spec.Bundle}
	for _, factor := range factors() {
		level := p.treatment.Levels[factor]
		if factor != "bundle" && level != "" && slices.ContainsFunc(p.env.Treatments, func(t area.Treatment) bool {
			other, err := p.declared.plan(t)
			return err == nil && other.kind == mechanism.Own && other.spec.Bundle == p.spec.Bundle && t.Levels[factor] != level
		}) {
			out = append(out, factor+"="+level)
		}
	}
	return strings.Join(out, " ")
}

// notes returns what is to be known of this run; what holds for every run is in README.md.
func (p *arm) notes() (out []string) {
	if p.watch != nil {
		out = p.watch.Stats().Notes()
	}
	if n := len(p.policies.wide); n > 0 {
		out = append(out, fmt.Sprintf("%d of the manifests' objects may act beyond the run's namespace: %s", n,
			kit.FirstOf(p.policies.wide)))
	}
	if p.kind == mechanism.Manifests && len(p.spec.Manifests.Says) == 0 {
		out = append(out, "manifests.says is not given: that the bad pod is denied is proved, not by which policies")
	}
	out = append(out, p.bundleNotes()...)
	if p.foreign {
		out = append(out, fmt.Sprintf("the cluster at %s is not ours: what else runs there is measured with it",
			p.endpoint.Host))
		out = append(out, p.admin.Notes()...)
		if p.metricsDenied != "" {
			out = append(out, withoutMetrics(p.metricsDenied))
		}
		return out
	}
	where := map[string]string{
		plane.Tmpfs: "etcd in memory, without fsync", plane.Disk: "etcd on disk, with fsync",
		plane.NoFsync: "etcd on disk, without fsync: memory has no room for it",
	}[p.control.Store]
	out = append(out, fmt.Sprintf("kube-apiserver %s, etcd %s, started by tare on loopback; %s",
		p.control.binary.Kubernetes, p.control.binary.Etcd, where))
	if p.nodes > 0 {
		out = append(out, p.control.nodesNote)
	}
	if p.shared {
		out = append(out, "arms that differ in their policies only share one control plane, with what the trial before "+
			"left in its caches and in etcd")
	}
	if !p.shared && !p.renewable(p.policies.own) {
		out = append(out, "control planes with nodes, audits, or policies that generate stand for the whole run, and so do "+
			"those beside them; two of one kind differ by some percent for as long as they live: in a comparison A/A shows by "+
			"how much")
	}
	if len(p.flags) > 0 {
		out = append(out, "further flags of kube-apiserver: "+strings.Join(p.flags, " "))
	}
	return out
}

// withoutMetrics says what the report lacks because the API server's own metrics could not be read.
func withoutMetrics(why string) string {
	lost, _ := cluster.MetricsRight().Optional()
	return "client-side only: the API server's own metrics cannot be read (" + why + "): " + lost
}
