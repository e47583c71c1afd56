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

// shares are the parts of the host's CPU time in a block that others used and that was stolen; NaN where the host does
// not say.
func shares(s *record.Surroundings) (others, stolen float64) {
	values := map[string]float64{}
	for _, x := range s.Samples {
		values[x.Subject+" "+x.Metric] = x.Value
	}
	all, known := values[probe.HostSubject+" "+probe.HostAll.Name]
	busy, counted := values[probe.HostSubject+" "+probe.HostCPU.Name]
	own, ours := values["tare "+probe.CPU.Name]
	if !known || !counted || !ours || !(all > 0) {
		return math.NaN(), math.NaN()
	}
	return max(0, busy-own) / all, values[probe.HostSubject+" "+probe.Steal.Name] / all
}
