package analyze

import (
	"fmt"
	"math"
	"slices"

	"tare/internal/guard"
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
	used := map[int]float64{} // by target and generator, by block
	for _, t := range a.trials() {
		used[t.Block] += accounted(t)
	}
	for i := range a.rec.Host {
		o, s := shares(&a.rec.Host[i], used[a.rec.Host[i].Block])
		others, stolen = append(others, o), append(stolen, s)
	}
	if m := stat.Quantile(measuredOnly(others), 0.5); m >= busyShare {
		a.warn("", "%s meanwhile: differences between arms allow for it, absolute times are those of a busy host",
			otherWork(m, a.hidesTarget()))
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
		used += accounted(t)
	}
	if !(all > 0) {
		return // nothing was recorded, or not all of it
	}
	hidden := a.hidesTarget()
	switch others := (busy - max(own, used)) / all; { // a target that tare has started is part of both
	case others < busyShare:
	case hidden:
		a.warn("", "%s during the search", otherWork(others, hidden))
	default:
		a.warn("", "%s during the search: a target that has this host to itself may carry more", otherWork(others, hidden))
	}
	if share := stolen / all; share >= stealShare {
		a.warn("", "the hypervisor took %.0f %% of this host's CPU time during the search", 100*share)
	}
}

// busyPoints warns of a host that had other work to do while the points of a guard were offered. What the target used
// is known of its processes that listen, or of all that were probed.
func (a *analysis) busyPoints(t *record.Trial, points []guard.Point) {
	var all, busy, stolen, used, target float64
	hidden := false
	for i := range points {
		e := points[i].Segment.Effort
		if e == nil || e.Host == nil {
			continue
		}
		all, busy, stolen, used = all+e.Host.All, busy+e.Host.Busy, stolen+e.Host.Stolen, used+e.CPU
		if points[i].TargetCPU == nil {
			hidden = isLocal(t)
		} else {
			target += *points[i].TargetCPU
		}
	}
	if !(all > 0) {
		return
	}
	if probed, known := targetCPU(t); known {
		target, hidden = max(target, probed), false
	}
	if others := (busy - used - target) / all; others >= busyShare {
		a.warn(t.Treatment, "%s while the points were offered: rates and times are those of a busy host",
			otherWork(others, hidden))
	}
	if share := stolen / all; share >= stealShare {
		a.warn(t.Treatment, "the hypervisor took %.0f %% of this host's CPU time while the points were offered", 100*share)
	}
}

// otherWork says which share of the host's CPU time others used. A target on this host whose CPU time is hidden is one
// of them.
func otherWork(share float64, hidden bool) string {
	who := "other work"
	if hidden {
		who = "other processes, the server under test among them,"
	}
	return fmt.Sprintf("%s used %.0f %% of this host's CPU time", who, 100*share)
}

// hidesTarget reports whether a target runs on this host, and its CPU time could not be read.
func (a *analysis) hidesTarget() bool {
	return slices.ContainsFunc(a.rec.Trials, func(t *record.Trial) bool {
		_, known := targetCPU(t)
		return !known && isLocal(t)
	})
}

// isLocal reports whether the target of a trial ran on the generator's host.
func isLocal(t *record.Trial) bool {
	return slices.ContainsFunc(t.Generator, func(g record.Generator) bool {
		return g.Placement != nil && g.Placement.Local
	})
}

// accounted is what target and generator used in a trial, as far as is known.
func accounted(t *record.Trial) float64 {
	used, _ := targetCPU(t)
	for i := range t.Generator {
		used += t.Generator[i].CPUSeconds
	}
	return used
}

// targetCPU is what the parts of the target used in a trial, as far as probes say; known is false if they say nothing.
func targetCPU(t *record.Trial) (sum float64, known bool) {
	before := reading(t, record.Before, 0)
	for _, s := range reading(t, record.After, 0) {
		if s.Metric != probe.CPU.Name || !partOfTarget(s.Subject) {
			continue
		}
		if was, ok := find(before, subjectProbed{s.Subject, probed{s.Metric, s.Part}}); ok && s.Value >= was {
			sum, known = sum+s.Value-was, true
		}
	}
	return sum, known
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
// not say. used is what target and generator used: one that tare has started is part of tare's own time, too.
func shares(s *record.Surroundings, used float64) (others, stolen float64) {
	x := hostTimes(s)
	return max(0, x.busy-max(x.own, used)) / x.all, x.stolen / x.all
}
