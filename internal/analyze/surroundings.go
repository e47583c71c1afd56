package analyze

import (
	"math"

	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/stat"
)

// From these shares of the host's CPU time on, in the median block, the report warns: what others used, and what the
// hypervisor took.
const (
	busyShare  = 0.10
	stealShare = 0.02
)

// surroundings warns of a host that had other work to do. Intervals allow for it, since every arm had the same
// neighbours; but absolute times are those of a busy host.
func (a *analysis) surroundings() {
	var others, stolen []float64
	for i := range a.rec.Host {
		o, s := shares(&a.rec.Host[i])
		others, stolen = append(others, o), append(stolen, s)
	}
	if m := stat.Quantile(measuredOnly(others), 0.5); m >= busyShare {
		a.warn(
			"",
			"other work used %.0f %% of this host's CPU time meanwhile: differences between arms allow for it, absolute times "+
				"are those of a busy host",
			100*m,
		)
	}
	if m := stat.Quantile(measuredOnly(stolen), 0.5); m >= stealShare {
		a.warn("", "the hypervisor took %.0f %% of this host's CPU time meanwhile", 100*m)
	}
}

// busySearch warns of a host that had other work to do while a capacity was searched for: a target that shared its CPUs
// broke earlier than it would alone.
func (a *analysis) busySearch() {
	var all, busy, stolen, own, used float64
	for i := range a.rec.Host {
		x := hostTimes(&a.rec.Host[i])
		all, busy, stolen, own = all+x.all, busy+x.busy, stolen+x.stolen, own+x.own
	}
	for _, t := range a.rec.Trials {
		used += targetCPU(t)
		for _, g := range t.Generator {
			used += g.CPUSeconds
		}
	}
	if !(all > 0) {
		return // nothing was recorded, or not all of it
	}
	if others := (busy - max(own, used)) / all; others >= busyShare { // a target that tare has started is part of both
		a.warn("", "other work used %.0f %% of this host's CPU time during the search: a target that has this host to "+
			"itself may carry more", 100*others)
	}
	if share := stolen / all; share >= stealShare {
		a.warn("", "the hypervisor took %.0f %% of this host's CPU time during the search", 100*share)
	}
}

// targetCPU is what the parts of the target used in a trial, as far as probes say.
func targetCPU(t *record.Trial) (sum float64) {
	before := reading(t, record.Before, 0)
	for _, s := range reading(t, record.After, 0) {
		if s.Metric != probe.CPU.Name || !partOfTarget(s.Subject) {
			continue
		}
		if was, ok := find(before, subjectProbed{s.Subject, probed{s.Metric, s.Part}}); ok && s.Value > was {
			sum += s.Value - was
		}
	}
	return sum
}

// A host's CPU time in a while: in all, busy, stolen by the hypervisor, and used by tare with its children. NaN where
// the host does not say.
type hostCPU struct{ all, busy, stolen, own float64 }

func hostTimes(s *record.Surroundings) hostCPU {
	values := map[string]float64{}
	for _, x := range s.Samples {
		values[x.Subject+" "+x.Metric] = x.Value
	}
	all, known := values[probe.HostSubject+" "+probe.HostAll.Name]
	busy, counted := values[probe.HostSubject+" "+probe.HostCPU.Name]
	own, ours := values["tare "+probe.CPU.Name]
	if !known || !counted || !ours || !(all > 0) {
		return hostCPU{math.NaN(), math.NaN(), math.NaN(), math.NaN()}
	}
	return hostCPU{all, busy, values[probe.HostSubject+" "+probe.Steal.Name], own}
}

// shares are the parts of the host's CPU time in a block that others used and that was stolen; NaN where the host does
// not say.
func shares(s *record.Surroundings) (others, stolen float64) {
	x := hostTimes(s)
	return max(0, x.busy-x.own) / x.all, x.stolen / x.all
}
